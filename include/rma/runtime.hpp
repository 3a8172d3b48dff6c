// SPDX-License-Identifier: Apache-2.0
/// \file
/// The runtime: it owns all state of a rank. Several runtimes may live in one process, each as a rank of its own.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "rma/config.hpp"
#include "rma/error.hpp"
#include "rma/team.hpp"
#include "rma/version.hpp"

// Declared before the push: users' code has pointers to it only, and its members are not exported.
namespace rma::detail {
struct runtime_core;
}

#pragma GCC visibility push(default)

namespace rma {

/// A named count, for reports and tests.
struct Counter {
  std::string name;         ///< as in the documentation
  std::uint64_t value = 0;  ///< at this time
};

/// A setting as it is in force.
struct Setting {
  std::string name;       ///< RMA_...
  std::string value;      ///< in force
  std::string origin;     ///< "default", "environment", "config"
  std::string choices;    ///< the values that it may have
  std::string summary;    ///< its purpose in one line
  bool internal = false;  ///< only launchers and tests set it
};

/// One rank's part of a job.
///
/// Started by `rmarun -n N ./app` a process is one of N ranks; started alone it is a job of one rank.
/// The destructor leaves the job in good order. It waits for no call of another rank, only until everything that this
/// rank has sent has arrived and the job knows that the rank leaves: seconds at most. Close all epochs before it. Call
/// a barrier before it where other ranks may still access this rank's memory between nodes, or user memory that is not
/// promoted; also if rank 0 was not started by rmarun and may end first.
///
/// Several runtimes in one process are ranks of different jobs, or different ranks of one job. A launcher's parameters
/// describe one rank: a second Runtime that reads them is refused with bad_boot until the first one is destroyed. A
/// runtime beside it has to be a job of its own: Config{.environment = false, .boot = "alone"}.
///
/// Shape      construction is collective over the job
/// Errors     the constructor throws Error(bad_boot, bad_setting, unreachable, out_of_memory). The first
///            three are mistakes of a configuration: if the program does not catch them, the process (in a simulated
///            job rma-sim) prints one line and exits with status 2, without the handler of std::set_terminate
/// Limits     by TCP, and in rank 0's process where it serves the job, a job of more than about 128 ranks raises the
///            process's soft limit of open descriptors to its hard one, which processes started later inherit
/// Streams    standard streams that are closed are opened as /dev/null, so that printed text cannot reach a socket
/// Threads    see thread_level; by default any thread may call, and a team or a window is for one thread at a time.
///            The thread that makes a Runtime must outlive it: its end is seen as the death of the rank
/// Stack      a wait takes less than 8 KiB, any other call less than 16 KiB; UCX, where it is used, adds its own
/// Fork       a forked child must exec or _exit. Until then it holds the rank's sockets open: between nodes the rank's
///            death may be noticed only when the child ends
class Runtime {
 public:
  /// Takes the launcher's parameters from the environment (and from a reserved argument, which is removed). `config`
  /// adds wishes of the program, such as a thread level. In the simulator the job determines the rank and its node;
  /// settings of `config` override those of the job.
  Runtime(int& argc, char** argv, const Config& config = {});
  /// As the other constructor, without a command line.
  explicit Runtime(const Config& config = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  /// Leaves the job. It first waits until nothing that this rank's calls have sent can be lost, however late the
  /// receivers make progress (a line reports that after RMA_STALL_REPORT_S); during an exception it waits 2 s at most.
  ~Runtime();

  /// All ranks of the job.
  [[nodiscard]] Team world() const noexcept;
  [[nodiscard]] int rank() const noexcept;  ///< This rank's number in the world.
  [[nodiscard]] int size() const noexcept;  ///< Number of ranks in the world.
  /// The level of thread support in force: the one that was asked for (Config::threads, RMA_THREADS).
  [[nodiscard]] thread_level threads() const noexcept;

  /// Names of the process sets of MPI-4 sessions: "rma://world", "rma://node" (as Team::node()), "rma://self"; those of
  /// RMA_PROCESS_SETS (`rmarun --pset NAME=RANKS`); those of a PMIx launcher (`prterun --pset`; Open MPI 4's mpirun and
  /// Slurm define none). This rank need not be a member.
  /// Shape      local
  /// Errors     bad_boot if the launcher does not answer
  /// Threads    any
  /// Cost       one question to the launcher's daemon on this node, if PMIx has started the job; not for data paths
  /// Source     MPI 4.0, 11.3.2; PMIx 4, PMIX_QUERY_PSET_NAMES
  [[nodiscard]] std::vector<std::string> process_sets() const;
  /// The members of a process set, as ranks of the world in ascending order.
  /// Errors     bad_argument, which lists the sets that exist; not_supported if processes of other jobs are members;
  ///            bad_boot
  /// Shape, threads, cost   as process_sets()
  [[nodiscard]] std::vector<int> ranks_of(std::string_view process_set,
                                          std::source_location where = std::source_location::current()) const;
  /// A team of a process set's members, ordered by their ranks in the world; each call makes another team.
  /// Shape      collective over the members; other ranks must not call it
  /// Errors     as ranks_of; bad_argument if this rank is no member; peer_failed if a member is dead
  /// Threads    one thread at a time for each set
  /// Cost       as Team::split of as many ranks, and ranks_of
  /// Source     MPI 4.0, 7.4.2 (MPI_Comm_create_from_group)
  [[nodiscard]] Team team_of(std::string_view process_set,
                             std::source_location where = std::source_location::current()) const;
  /// A team of ranks of the world, in the order of the list; each call with the same list makes another team.
  /// Shape      collective over the ranks of the list, which all give the same list; other ranks must not
  ///            call it
  /// Errors     bad_argument if the list names a rank twice or lacks this one; bad_rank; peer_failed if one is dead
  /// Threads    one thread at a time for each list
  /// Cost       as Team::split of as many ranks; a few bytes are kept for each rank of each list
  /// Source     MPI 4.0, 7.4.2 (MPI_Comm_create_group)
  [[nodiscard]] Team team_of_ranks(std::span<const int> ranks,
                                   std::source_location where = std::source_location::current()) const;

  /// Time since some fixed moment; virtual in the simulator, where each call takes 20 ns of that time, so that a loop
  /// that waits for a moment ends.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  /// Advances virtual time by `work` in the simulator, as if the program computed; does nothing elsewhere.
  void compute(std::chrono::nanoseconds duration) noexcept;
  /// Makes progress: runs handlers, completes operations of this and of other ranks, and notices deaths. Never blocks.
  /// Calls that wait make progress themselves; `sync`, flushes and ends of epochs between nodes, do so now and then.
  /// Inlined calls on mapped memory make none. A program that for a long time makes only such calls has to call this if
  /// other ranks need it as a target (`one_sided` is false), or to use a progress thread (RMA_PROGRESS_THREAD).
  void progress() noexcept;

  /// Calls `look` now and then while a call of this rank waits, to make progress of a second communication library on
  /// which other ranks may depend, as in `rt.on_wait([&] { MPI_Iprobe(...); })`. An empty function ends that.
  /// Shape      local; call it while no other thread is in a call, for example right after construction
  /// Completes  nothing; calls that do not wait, or wait for about a microsecond only, do not call `look`
  /// Threads    `look` runs in the thread whose call waits, one at a time; never in a thread of the library
  /// Limits     `look` must not block or throw. It may be called within any call that waits, ~Runtime included, and so
  ///            must not use the windows, teams and requests of this Runtime
  /// Cost       one call of `look` per microsecond or so while a wait spins, and per millisecond while it sleeps
  void on_wait(std::function<void()> look);

  /// Ends the whole job with this exit code, of which the system keeps eight bits (0 becomes 1). No destructor runs.
  [[noreturn]] void abort(int code, std::string_view message) noexcept;

  /// Ranks of the world known to be dead.
  [[nodiscard]] std::vector<int> failed_ranks() const;
  /// Counters of the engine. Inlined operations on mapped memory are not counted: they cost no more than a store.
  [[nodiscard]] std::vector<Counter> counters() const;
  /// Every setting with its value and the origin of the value.
  [[nodiscard]] std::vector<Setting> settings() const;
  /// The fabrics of this runtime with their capabilities, one line each.
  [[nodiscard]] std::vector<std::string> fabrics() const;
  /// The waiting policy of this rank and its reason: "spin for 20 us, then sleep: ranks 2, processors 2". It counts the
  /// ranks of this machine and the processors that they may use (taskset, binding, cpusets, quotas of control groups).
  /// Where there are fewer processors than ranks, no wait spins.
  [[nodiscard]] std::string waits() const;
  /// The route from this rank to another: "memory", "itself", or the fabric and its device ("ucx tcp/eth0"); "no such
  /// rank" for a number outside the world. Connects to the rank if there is no connection yet; not for data paths.
  [[nodiscard]] std::string route(int rank) const;

  /// For the library itself.
  [[nodiscard]] detail::runtime_core& core() const noexcept { return *core_; }

 private:
  std::shared_ptr<detail::runtime_core> core_;
  std::shared_ptr<detail::team_core> world_;
};

/// A named region of the program in the rank's trace (RMA_TRACE), from its construction to its destruction. Regions may
/// nest. Without a trace it does nothing.
///
///   const rma::trace_region region(rt, "assembly");
///
/// Shape      local
/// Threads    any; a region belongs to one thread
/// Lifetime   within that of its Runtime; the name is copied
/// Cost       two readings of the clock and some 100 bytes in the trace; without a trace one load
class [[nodiscard]] trace_region {
 public:
  /// Begins the region.
  trace_region(const Runtime& rt, std::string_view name);
  ~trace_region();
  trace_region(const trace_region&) = delete;
  trace_region& operator=(const trace_region&) = delete;

 private:
  detail::runtime_core* core_;  ///< null: nothing is traced
  std::string name_;
  std::int64_t begin_ns_ = 0;
};

/// For a call of another library that blocks, and that calls `Runtime::progress` as it polls (MPI's progress engine can
/// be made to): from its construction to its end, ranks of this node count on that. They send this rank small puts,
/// gets and updates of memory that is not mapped as messages, as if it waited in this library, and wake no thread.
///
///   const rma::PollingScope scope(rt);
///   MPI_Barrier(comm);
///
/// Shape      local
/// Completes  no operation; the destructor handles the messages that other ranks sent because of the scope, and may
///            wait for a sender that is not running
/// Limits     if the blocked call does not poll, operations on this rank wait up to 2 ms for the progress thread, which
///            RMA_PROGRESS_THREAD=yielding starts
/// Threads    any; one scope is for one thread
/// Lifetime   within that of its Runtime
/// Cost       two stores and a fence
class [[nodiscard]] PollingScope {
 public:
  /// Begins the scope.
  explicit PollingScope(const Runtime& rt) noexcept;
  ~PollingScope();
  PollingScope(const PollingScope&) = delete;
  PollingScope& operator=(const PollingScope&) = delete;

 private:
  detail::runtime_core* core_;
};

}  // namespace rma

#pragma GCC visibility pop
