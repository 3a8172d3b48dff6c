// SPDX-License-Identifier: Apache-2.0
/// \file
/// Communication patterns on a simulated machine: sizes and targets only, no data and no runtime.
///
/// \code
/// auto out = rma::sim::run_pattern({.ranks = 2, .ranks_per_node = 1, .parameters = "susukita"}, [](auto& me) {
///   if (me.rank() == 0) {
///     me.compute(std::chrono::microseconds(100));
///     me.complete(me.put(1, 4, 0));  // 4 bytes to rank 1, with tag 0
///   } else {
///     me.poll(0);
///   }
/// });
/// \endcode
///
/// These are the pseudo programs of NSIM-ACE (Susukita et al.): they predict the time of a communication pattern on a
/// machine that is not at hand, and explain it. The network model is that of sim.hpp; the library's own protocols are
/// left out, which makes it fast: thousands of ranks in a second.
///
/// A put of a rank to its own node goes through the adapter's DMA engine, unless the caller chooses otherwise. A rank
/// that waits polls: wake_time is not charged. T_pp of the paper is `library_overhead`: the processor is busy for that
/// time before a put leaves, and it notices data and completions that much later than they arrive.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <ratio>
#include <string>
#include <string_view>
#include <vector>

#include "rma/sim.hpp"

#pragma GCC visibility push(default)

namespace rma::sim {

class pattern_job;

/// Virtual time.
using picoseconds = std::chrono::duration<std::int64_t, std::pico>;

/// The model of a put or get between two ranks of one node.
enum class IntraNode : std::uint8_t {
  adapter,  ///< a transfer from memory to memory through the node's DMA engine
  copy,     ///< a copy by the origin's processor: copy_latency, copy_bandwidth, memory_bandwidth
  free,     ///< it takes no time
};

/// A handle of a started put or get, valid on the rank that started it.
struct PatternHandle {
  std::size_t number = static_cast<std::size_t>(-1);  ///< index among the transfers of its rank
};

/// A rank of a pattern: the argument of the pattern's function. Times are virtual.
///
/// Errors     every call throws Error for invalid arguments: bad_rank for a rank outside the job; bad_size for a
///            negative size or count, or one beyond the model; bad_argument for a negative tag or time, and for a
///            handle that this rank did not get from put or get. run_pattern then throws that error, with the rank
///            in its text.
/// Threads    the rank's own fiber
class PatternRank {
 public:
  /// Made by run_pattern.
  PatternRank(pattern_job& job, int rank) noexcept : job_(job), rank_(rank) {}
  PatternRank(const PatternRank&) = delete;
  PatternRank& operator=(const PatternRank&) = delete;

  /// This rank's number.
  [[nodiscard]] int rank() const noexcept { return rank_; }
  /// Number of ranks.
  [[nodiscard]] int size() const noexcept;
  /// The node on which it runs.
  [[nodiscard]] int node() const noexcept;
  /// Virtual time.
  [[nodiscard]] picoseconds now() const noexcept;

  /// Starts a put of `bytes` into the memory of rank `dest`. Puts of one rank leave in the order of their calls.
  PatternHandle put(int dest, std::int64_t bytes, int tag);
  /// Starts a get of `bytes` from the memory of rank `source`, whose processor takes no part.
  PatternHandle get(int source, std::int64_t bytes);
  /// Waits until the data of `count` puts with this tag are in this rank's memory. Each put counts once.
  void poll(int tag, int count = 1);
  /// Waits until a put is acknowledged, or the data of a get have arrived. Returns at once if called again.
  void complete(PatternHandle handle);
  /// As `complete`, for all transfers of this rank.
  void complete_all();
  /// Keeps the processor busy for `time`.
  void compute(picoseconds time);
  /// A dissemination barrier of all ranks: ceil(log2(size)) rounds of 8-byte puts.
  void barrier();
  /// Counts this rank's time under `label` from now on; empty: under none.
  void phase(std::string_view label);

 private:
  pattern_job& job_;
  int rank_;
};

/// Outcome of one rank.
struct PatternRankOutcome {
  Fate fate = Fate::stuck;  ///< how it ended
  /// Virtual time at which its function returned.
  picoseconds end{};
  /// Time in each phase, in the order of PatternOutcome::phases.
  std::vector<picoseconds> phases{};
  /// Virtual time that the processor spent on each activity.
  picoseconds computing{}, posting{}, waiting{}, copying{}, polling{};
  /// Number of puts whose data arrived without a poll for them.
  std::uint64_t unpolled = 0;
};

/// Totals over all ranks of the puts, or of the gets, without those of barriers.
struct TransferUse {
  std::uint64_t count = 0;  ///< number of transfers
  std::uint64_t bytes = 0;  ///< bytes carried
  /// Time from the call to the completion.
  picoseconds latency{}, latency_max{};
  /// Part of it in which the sending DMA engine works on earlier transfers or on incoming packets.
  picoseconds queued{}, queued_max{};
  /// Part of it between packets in which the same engine works on incoming packets.
  picoseconds interrupted{}, interrupted_max{};
};

/// One direction of a cable.
struct LinkUse {
  std::string name{};         ///< "node 3 -> switch 0.1"
  std::uint64_t bytes = 0;    ///< bytes carried
  std::uint64_t packets = 0;  ///< packets carried
  picoseconds busy{};         ///< time in which it carried packets
  picoseconds waiting{};      ///< waiting time of packets: the sum
  picoseconds waiting_max{};  ///< and the maximum
};

/// One DMA engine of a node's adapter.
struct EngineUse {
  int node = 0;                  ///< its node
  int number = 0;                ///< its index in the node
  std::uint64_t bytes_out = 0;   ///< bytes that left the node
  std::uint64_t bytes_in = 0;    ///< bytes that entered the node
  std::uint64_t transfers = 0;   ///< number of transfers
  picoseconds busy{};            ///< time in which it was busy
  picoseconds waiting{};         ///< time for which transfers and incoming packets waited for it
  std::uint64_t queue_most = 0;  ///< the longest queue of transfers
};

/// Outcome of a pattern.
struct PatternOutcome {
  /// The outcome of each rank.
  std::vector<PatternRankOutcome> ranks{};
  /// Labels of the phases, in the order of their first use.
  std::vector<std::string> phases{};
  /// Virtual time at which the last rank ended, or the run if some ranks did not end.
  picoseconds time{};
  /// Virtual time at which the last packet and completion had arrived.
  picoseconds quiet{};
  TransferUse intra_node{}, network{};
  /// The links, and the engines, that were used.
  std::vector<LinkUse> links{};
  std::vector<EngineUse> engines{};
  std::string topology{};
  /// Number of events, and number of times that a packet crossed a link.
  std::uint64_t events = 0;
  std::uint64_t hops = 0;
  /// Empty, or the reason why the run ended before its ranks did, and a line for each rank with what it waits for.
  std::string stuck{};

  /// True if all ranks returned.
  [[nodiscard]] bool ok() const noexcept { return stuck.empty(); }
  /// The sum, minimum and maximum of the ranks' times in a phase; 0 if no rank was in it.
  [[nodiscard]] picoseconds phase_sum(std::string_view label) const;
  [[nodiscard]] picoseconds phase_min(std::string_view label) const;
  [[nodiscard]] picoseconds phase_max(std::string_view label) const;
  /// The engine, or link, with the longest busy time; null if none was used.
  [[nodiscard]] const EngineUse* busiest_engine() const noexcept;
  [[nodiscard]] const LinkUse* busiest_link() const noexcept;
};

/// Runs a pattern: calls the function once for each rank. Settings of a runtime in the job have no effect.
///
/// Shape      one caller; ranks run inside the call, as fibers
/// Completes  all ranks, each of which has returned, died, or is stuck, and all their transfers
/// Memory     all stores of the ranks are visible after the call
/// Units      bytes, picoseconds of virtual time
/// Errors     throws Error(bad_argument, bad_setting, out_of_memory) for a job that cannot be made; passes on the error
///            of a rank's call, or any other exception of the function, after which no rank continues
/// Threads    any; ranks run in the caller's thread and must not leave it
/// Cost       about 0.1 us of real time for each packet and link; a put takes 100 bytes
/// Source     Susukita, Morie, Nanri, Shibamura: Performance Evaluation of RDMA Communication Patterns by Means of
///            Simulations
/// See        src/fabric/sim/pattern.cpp · tests/fabric/sim/pattern_test.cpp · perf/sim_pattern.cpp
PatternOutcome run_pattern(const Config& job, const std::function<void(PatternRank&)>& rank_main,
                           IntraNode intra_node = IntraNode::adapter);

/// One line of a recorded pattern.
struct TracePut {
  int rank = 0;            ///< the origin
  int dest = 0;            ///< the target
  std::int64_t bytes = 0;  ///< bytes of the put
  int tag = 0;             ///< tag of the put
  /// True if all members are equal.
  bool operator==(const TracePut&) const = default;
};

/// Reads a recorded pattern: a put per line, `rank dest bytes tag`; `#` starts a comment.
/// Errors     throws Error(bad_argument): one line that names file and line; `ranks` is the size of the job
std::vector<TracePut> read_trace(const std::string& path, int ranks);
/// As `read_trace`, from text; errors name it `origin`.
std::vector<TracePut> parse_trace(std::string_view text, std::string_view origin, int ranks);

/// Runs a recorded pattern: each rank starts its puts in order, completes them, and polls for those aimed at it.
PatternOutcome run_trace(const Config& job, const std::vector<TracePut>& puts,
                         IntraNode intra_node = IntraNode::adapter);

}  // namespace rma::sim

#pragma GCC visibility pop
