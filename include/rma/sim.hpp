// SPDX-License-Identifier: Apache-2.0
/// \file
/// Jobs of simulated ranks inside this process: each rank is a fiber, and time is virtual.
///
/// \code
/// auto out = rma::sim::run({.ranks = 4}, [](rma::Runtime& rt) {
///   rt.world().barrier();
/// });
/// \endcode
///
/// The same program, library calls and protocols as elsewhere. `Runtime::now` is virtual time, `Runtime::compute` lets
/// it pass, and every call of the library takes some. A run depends on its Config only: the same one gives the same
/// result, to the picosecond. Ranks share one thread: a loop that waits for memory to change without a call of the
/// library never ends.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "rma/config.hpp"
#include "rma/runtime.hpp"

#pragma GCC visibility push(default)

namespace rma::sim {

/// A rank that dies: it stops wherever it is at that moment of virtual time.
struct Kill {
  int rank = 0;                   ///< in the world
  std::chrono::nanoseconds at{};  ///< virtual time
};

/// A time in which no link between the nodes carries anything: packets wait until it is over.
struct Outage {
  std::chrono::nanoseconds from{};   ///< virtual time
  std::chrono::nanoseconds until{};  ///< virtual time
};

/// A simulated job. Everything has a default.
struct Config {
  /// How many there are.
  int ranks = 1;
  /// Ranks that share a node's memory; 0: all of them.
  int ranks_per_node = 0;
  /// Of everything that is drawn by chance.
  std::uint64_t seed = 1;
  /// Of each rank; memory is taken when touched.
  std::size_t stack_bytes = std::size_t{256} << 10;
  /// Of each rank's runtime, by their variable's name: {"RMA_PROGRESS_THREAD", "1"}.
  std::map<std::string, std::string> settings{};
  /// The topology connects the nodes, the parameters say what the parts of the machine can do; empty: the default.
  std::string topology{};
  std::string parameters{};
  /// Faults drawn from the seed: what completions mean, order of placement, full queues, receivers that are not
  /// ready, delays, links that go down, registrations that fail. All of it within the contract of a fabric.
  bool faults = false;
  /// Some transfers between nodes, drawn from the seed, end with an error though both ranks live: calls report
  /// `transfer_failed`, and the program must know what to do then.
  bool errors = false;
  /// A promise that the network breaks on purpose, to see that a checker notices: read_overtakes, early_completion,
  /// lost_write, lost_message, double_message, blind_swap, swallowed_error.
  std::string breach{};
  /// Keep what links and adapters did, for Outcome::network.
  bool watch_network = false;
  std::vector<Kill> kills{};
  std::vector<Outage> outages{};
  /// Operations of one rank that its adapter takes at a time; 0: 1024, or with `faults` what the seed says.
  unsigned send_queue = 0;
  /// Virtual time after which the run ends; 0: none.
  std::chrono::nanoseconds limit{};
  /// Real time for which one rank may run without a call that lets others run, as it does in an endless loop; 0: any.
  /// Then a line says which rank, and in which call; again after twice that time, and so on. The run goes on.
  std::chrono::milliseconds watchdog{};
  /// Gets that line, on another thread; empty: it is printed to standard error.
  std::function<void(const std::string&)> on_stall{};
};

/// How a rank ended.
enum class Fate : std::uint8_t {
  stuck,     ///< it did not: the run ended before
  finished,  ///< its main function returned
  threw,     ///< an exception came out of its main function
  killed,    ///< as Config::kills said
};

/// Outcome of one rank.
struct RankOutcome {
  Fate fate = Fate::stuck;  ///< how it ended
  /// Of its main function.
  int exit_code = 0;
  /// The exception's text.
  std::string error{};
  /// When it ended.
  std::chrono::nanoseconds end{};
  /// Virtual time of its processor until then, by activity.
  std::chrono::nanoseconds computing{}, posting{}, waiting{}, copying{}, handling{}, polling{};
};

/// Counts and times of the network between the nodes.
struct NetworkReport {
  std::string text;      ///< totals, and the busiest links and DMA engines
  std::string json;      ///< every link and engine that was used: bytes, busy and waiting time, use over time
  std::string heat_map;  ///< an SVG picture of the links' use over time
  std::string trace;     ///< Chrome/Perfetto JSON in virtual time
};

/// Outcome of a simulated job.
struct Outcome {
  std::vector<RankOutcome> ranks{};  ///< one for each rank of the job
  /// Virtual time at the end.
  std::chrono::nanoseconds time{};
  /// Things that happened in it, one after the other: what a run costs real time.
  std::uint64_t events = 0;
  /// Empty if the job has one node and no adapters (RMA_FABRIC=sim), or nobody asked (Config::watch_network).
  NetworkReport network{};
  /// Empty, or why the run ended before its ranks did, and what each of them waits for, one line each.
  std::string stuck{};
  /// Runtime::abort: its exit code and text.
  bool aborted = false;
  int abort_code = 0;
  std::string abort_message{};

  /// No rank is stuck, and every rank's main function returned 0; those that Config::kills named do not count.
  [[nodiscard]] bool ok() const noexcept;
  /// Exit status that a launcher would return: the code of an abort, 2 if ranks are stuck, else the first that is not
  /// 0.
  [[nodiscard]] int exit_code() const noexcept;
  /// One line for each rank that did not return 0, and the report of those that are stuck; empty if all is well.
  [[nodiscard]] std::string text() const;
  /// Where the ranks' time went, and NetworkReport::json or null: what `rma-sim report` reads.
  [[nodiscard]] std::string json() const;
};

/// Runs a job whose ranks make their runtimes from the configuration that they are given.
///
/// Shape      one caller; ranks run inside the call
/// Completes  all ranks: each has ended, died, or is stuck
/// Memory     plain: everything that ranks wrote is there
/// Units      nanoseconds of virtual time
/// Errors     throws Error(bad_argument, bad_setting, out_of_memory) for a job that cannot be made; what happens inside
///            is in the Outcome. A rank that dies or is stuck leaves its objects undestroyed.
/// Threads    any; ranks run in the caller's thread and must not leave it
/// Cost       a switch between ranks takes 0.1 us; a rank takes its stack, as far as touched
/// Source     none
/// See        src/fabric/sim/world.hpp · tests/fabric/sim/run_test.cpp
Outcome run_ranks(const Config& job, const std::function<int(const rma::Config& start)>& rank_main);

/// As `run_ranks` for a program's main function, which gets `arguments` and makes its runtime from them: rma-sim's way.
/// The first argument is the program's name.
Outcome run_program(const Config& job, const std::vector<std::string>& arguments,
                    const std::function<int(int argc, char** argv)>& program);

/// As `run_ranks` for functions that want a runtime.
inline Outcome run(const Config& job, const std::function<void(Runtime&)>& rank_main) {
  return run_ranks(job, [&rank_main](const rma::Config& start) {
    Runtime runtime(start);
    rank_main(runtime);
    return 0;
  });
}

}  // namespace rma::sim

#pragma GCC visibility pop
