// SPDX-License-Identifier: Apache-2.0
/// \file
/// The runtime: everything hangs off it. Several may live in one process, each another rank.
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

#pragma GCC visibility push(default)

namespace rma {

namespace detail {
struct runtime_core;
}

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
  std::string choices;    ///< what else it may be
  std::string summary;    ///< what it is for
  bool internal = false;  ///< set by launchers or tests: nothing that a user looks for
};

/// One rank's part of a job.
///
/// Started by `rmarun -n N ./app` a process is one of N ranks; started alone it is a job of one rank.
/// The destructor leaves the job in good order. It waits for no call of another rank, only until what this rank has
/// sent has arrived and the job knows that it goes: seconds at most. Finish epochs, and put a barrier before it if
/// others may still use this rank's memory: between nodes, or memory of its own, or if rank 0 was not started by rmarun
/// and may go.
///
/// Several in one process are ranks of different jobs, or different ranks of one. A launcher's parameters make this
/// process one rank, so that a second Runtime is refused with bad_boot until the first is gone; what is to live beside
/// it is a job of its own, as by Config{.environment = false, .boot = "alone"}.
///
/// Shape      construction is collective over the job
/// Errors     the constructor throws Error(bad_boot, bad_setting, out_of_memory)
/// Limits     by TCP, and in rank 0's process where it serves the job, a job of more than about 128 ranks raises the
///            process's soft limit of open descriptors to its hard one, which processes started later inherit
/// Streams    standard streams that are closed are opened as /dev/null, so that what is printed goes into no socket
/// Threads    see thread_level; by default any thread may call, and a team or a window is for one thread at a time.
///            The thread that makes a Runtime must live as long as it: its end is taken for the death of the rank.
/// Stack      a wait takes less than 8 KiB, any other call less than 16 KiB, and what UCX takes where that is used
/// Fork       a forked child must exec or _exit. Until then it holds the rank's sockets open: between nodes the rank's
///            death may be noticed only when the child ends
class Runtime {
 public:
  /// Takes the launcher's parameters from the environment (and a reserved argument, which is removed). `config`: what
  /// else is wanted, a thread level say; in the simulator the job decides who this rank is, and of settings the ones
  /// given here win.
  Runtime(int& argc, char** argv, const Config& config = {});
  /// As the other constructor, without a command line.
  explicit Runtime(const Config& config = {});
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  /// Leaves the job. In good order it first waits until what this rank's calls have sent cannot be lost any more,
  /// however late its receivers look (a line says so after RMA_STALL_REPORT_S); left by an exception, 2 s at most.
  ~Runtime();

  /// All ranks of the job.
  [[nodiscard]] Team world() const noexcept;
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
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
  /// Numbers in the world of a process set's members, ascending.
  /// Errors     bad_argument naming the sets that there are; not_supported if processes of other jobs are members;
  ///            bad_boot
  /// Shape, threads, cost   as process_sets()
  [[nodiscard]] std::vector<int> ranks_of(std::string_view process_set,
                                          std::source_location where = std::source_location::current()) const;
  /// A team of a process set's members, ordered by their numbers in the world; each call makes another one.
  /// Shape      collective over the members: the others need not know, and must not call
  /// Errors     as ranks_of; bad_argument if this rank is no member; peer_failed if a member is dead
  /// Threads    one thread at a time for each set
  /// Cost       as Team::split of so many ranks, and ranks_of
  /// Source     MPI 4.0, 7.4.2 (MPI_Comm_create_from_group)
  [[nodiscard]] Team team_of(std::string_view process_set,
                             std::source_location where = std::source_location::current()) const;
  /// A team of ranks of the world, in the order of the list; each call with the same list makes another one.
  /// Shape      collective over the ranks of the list, all with the same one: the others need not know, and must not
  ///            call
  /// Errors     bad_argument if the list names a rank twice or lacks this one; bad_rank; peer_failed if one is dead
  /// Threads    one thread at a time for each list
  /// Cost       as Team::split of so many ranks; a few bytes for each rank of each list are kept
  /// Source     MPI 4.0, 7.4.2 (MPI_Comm_create_group)
  [[nodiscard]] Team team_of_ranks(std::span<const int> ranks,
                                   std::source_location where = std::source_location::current()) const;

  /// Time since some fixed moment; virtual in the simulator, where each look takes 20 ns of it: a loop that waits for a
  /// time comes to an end.
  [[nodiscard]] std::chrono::nanoseconds now() const noexcept;
  /// Tells the simulator that the program computes for so long. Nothing elsewhere.
  void compute(std::chrono::nanoseconds work) noexcept;
  /// Runs handlers and completes operations for others and for us, and hears of deaths; never blocks. Calls that wait
  /// do it anyway; `sync`, and flushes and ends of epochs of a window between nodes, now and then. What is inlined does
  /// not: a program that for long only puts, gets and updates mapped memory, or flushes and locks within a node, calls
  /// this where others may need it (`one_sided` is false), or has a progress thread (RMA_PROGRESS_THREAD).
  void progress() noexcept;

  /// Calls `look` now and then while a call of this rank waits for others: for a second communication library whose
  /// progress those may need meanwhile, as in `rt.on_wait([&] { MPI_Iprobe(...); })`. An empty one: none any more.
  /// Shape      local; set while no other thread is in a call, after construction say
  /// Completes  nothing; a call that need not wait, and one that waits for a microsecond, does not look
  /// Threads    the calling thread of the program, whichever it is, one at a time; never a thread of the library
  /// Limits     `look` must not block or throw. It may be called within any call that waits, ~Runtime included, and so
  ///            must not use the windows, teams and requests of this Runtime
  /// Cost       every microsecond or so while a wait spins; a wait that sleeps wakes up for it every millisecond
  void on_wait(std::function<void()> look);

  /// Ends the whole job with this exit code, of which the system keeps eight bits (0 is made 1). Nothing is destroyed.
  [[noreturn]] void abort(int code, std::string_view message) noexcept;

  /// Ranks of the world known to be dead.
  [[nodiscard]] std::vector<int> failed_ranks() const;
  /// Counts of what the engine did (inlined operations on mapped memory are not counted: they cost a store).
  [[nodiscard]] std::vector<Counter> counters() const;
  /// Every setting, its value and where it came from.
  [[nodiscard]] std::vector<Setting> settings() const;
  /// The fabrics of this runtime and what they can do, one line each.
  [[nodiscard]] std::vector<std::string> fabrics() const;
  /// How a call that has to wait passes its time here, and why: "spin for 20 us, then sleep: ranks 2, processors 2".
  /// The ranks are those of this machine; the processors those that they may use (taskset, binding, cpusets, quotas of
  /// control groups). Where they are fewer than the ranks, no wait spins.
  [[nodiscard]] std::string waits() const;
  /// How this rank reaches another: "memory", "itself", or the fabric and what it has picked ("ucx tcp/eth0"); "no such
  /// rank" for a number outside the world. Connects if that has not been done yet; not for data paths.
  [[nodiscard]] std::string route(int rank) const;

  /// For the library itself.
  [[nodiscard]] detail::runtime_core& core() const noexcept { return *core_; }

 private:
  std::shared_ptr<detail::runtime_core> core_;
  std::shared_ptr<detail::team_core> world_;
};

/// A named part of the program in the rank's trace (RMA_TRACE): from its construction to its end. Regions may lie
/// within each other. Without a trace it does nothing.
///
///   const rma::trace_region region(rt, "assembly");
///
/// Shape      local
/// Threads    any; one region is for one thread
/// Lifetime   within that of its Runtime; the name is copied
/// Cost       two looks at the clock, and some 100 bytes in the trace; without a trace one load
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

}  // namespace rma

#pragma GCC visibility pop
