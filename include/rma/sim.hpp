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
/// The program, the calls and the protocols are the same as elsewhere. `Runtime::now` is virtual time,
/// `Runtime::compute` advances it, and every call of the library takes some. A run depends on its Config only: the same
/// Config gives the same result, to the picosecond. Ranks share one thread: a loop that waits for memory to change
/// without a call of the library never ends.
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

/// The death of a rank: it stops at that moment of virtual time, wherever it is.
struct Kill {
  int rank = 0;                   ///< rank in the world
  std::chrono::nanoseconds at{};  ///< virtual time
};

/// An interval in which no link between nodes carries packets: they wait until its end.
struct Outage {
  std::chrono::nanoseconds from{};   ///< virtual time
  std::chrono::nanoseconds until{};  ///< virtual time
};

/// A simulated job. Everything has a default.
struct Config {
  /// Number of ranks.
  int ranks = 1;
  /// Number of ranks on each node; 0: all of them.
  int ranks_per_node = 0;
  /// Seed of the random numbers.
  std::uint64_t seed = 1;
  /// Bytes of each rank's stack; only touched pages take memory.
  std::size_t stack_bytes = std::size_t{256} << 10;
  /// Settings of each rank's runtime by variable name: {"RMA_PROGRESS_THREAD", "1"}.
  std::map<std::string, std::string> settings{};
  /// The topology of the network, and the parameters of the machine's parts; empty: the default.
  std::string topology{};
  std::string parameters{};
  /// Injects faults, chosen by the seed: meaning of completions, order of placement, full queues, receivers that are
  /// not ready, delays, links that go down, registrations that fail. All stay within the contract of a fabric.
  bool faults = false;
  /// Lets some transfers between nodes, chosen by the seed, end with an error though both ranks live: calls report
  /// `transfer_failed`, which the program must handle.
  bool errors = false;
  /// A guarantee that the network breaks on purpose, to test a checker: read_overtakes, early_completion,
  /// lost_write, lost_message, double_message, blind_swap, swallowed_error.
  std::string breach{};
  /// Records the use of links and adapters, for Outcome::network.
  bool watch_network = false;
  std::vector<Kill> kills{};
  std::vector<Outage> outages{};
  /// Length of each rank's send queue; 0: 1024, or with `faults` a length chosen by the seed.
  unsigned send_queue = 0;
  /// Virtual time after which the run ends; 0: none.
  std::chrono::nanoseconds limit{};
  /// Real time for which one rank may run without a call that lets others run, as in an endless loop; 0: no limit.
  /// After that time a line reports the rank and its call, again after twice that time, and so on. The run continues.
  std::chrono::milliseconds watchdog{};
  /// Receives that line, on another thread; empty: it is printed to standard error.
  std::function<void(const std::string&)> on_stall{};
};

/// How a rank ended.
enum class Fate : std::uint8_t {
  stuck,     ///< it did not end: the run ended before it
  finished,  ///< its main function returned
  threw,     ///< an exception came out of its main function
  killed,    ///< killed by Config::kills
};

/// Outcome of one rank.
struct RankOutcome {
  Fate fate = Fate::stuck;  ///< how it ended
  /// Result of its main function. After an exception 1, or 2 if it was an Error of kind bad_setting, bad_boot or
  /// unreachable.
  int exit_code = 0;
  /// The exception's text.
  std::string error{};
  /// Virtual time of its end.
  std::chrono::nanoseconds end{};
  /// Virtual time that its processor spent on each activity.
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
  /// Number of events, which determines the real time of a run.
  std::uint64_t events = 0;
  /// Empty if the job has one node and no adapters (RMA_FABRIC=sim), or without Config::watch_network.
  NetworkReport network{};
  /// Empty, or the reason why the run ended before its ranks did, and a line for each rank with what it waits for.
  std::string stuck{};
  /// True after Runtime::abort; its exit code and text follow.
  bool aborted = false;
  int abort_code = 0;
  std::string abort_message{};

  /// True if no rank is stuck and every main function returned 0, except of ranks that Config::kills names.
  [[nodiscard]] bool ok() const noexcept;
  /// Exit status that a launcher would return: the code of an abort, 2 if ranks are stuck, else the first exit code
  /// that is not 0.
  [[nodiscard]] int exit_code() const noexcept;
  /// One line for each rank that did not return 0 (ranks whose exceptions have the same text share one), and the
  /// report of stuck ranks; empty if all returned 0.
  [[nodiscard]] std::string text() const;
  /// The ranks' times by activity, and NetworkReport::json or null: the input of `rma-sim report`.
  [[nodiscard]] std::string json() const;
};

/// Runs a job whose ranks make their runtimes from the configuration that they receive.
///
/// Shape      one caller; ranks run inside the call
/// Completes  all ranks: each has ended, died, or is stuck
/// Memory     all stores of the ranks are visible after the call
/// Units      nanoseconds of virtual time
/// Errors     throws Error(bad_argument, bad_setting, out_of_memory) for a job that cannot be made; the Outcome reports
///            errors of ranks. A rank that dies or is stuck leaves its objects undestroyed.
/// Threads    any; ranks run in the caller's thread and must not leave it
/// Cost       a switch between ranks takes 0.1 us; a rank takes the touched pages of its stack
/// Source     none
/// See        src/fabric/sim/world.hpp · tests/fabric/sim/run_test.cpp
Outcome run_ranks(const Config& job, const std::function<int(const rma::Config& start)>& rank_main);

/// As `run_ranks`, for a program's main function, which gets `arguments` and makes its runtime from them, as in
/// rma-sim. The first argument is the program's name.
Outcome run_program(const Config& job, const std::vector<std::string>& arguments,
                    const std::function<int(int argc, char** argv)>& program);

/// As `run_ranks`, for functions that take a runtime.
inline Outcome run(const Config& job, const std::function<void(Runtime&)>& rank_main) {
  return run_ranks(job, [&rank_main](const rma::Config& start) {
    Runtime runtime(start);
    rank_main(runtime);
    return 0;
  });
}

}  // namespace rma::sim

#pragma GCC visibility pop
