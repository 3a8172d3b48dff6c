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
/// The pseudo programs of NSIM-ACE (Susukita et al.): to predict a communication pattern on a machine that one does not
/// have, and to see why it takes that long. The network is the one that sim.hpp has; the library's own protocols are
/// left out, which makes it fast: thousands of ranks in a second.
///
/// A put of a rank to its own node goes through the adapter's DMA engine, unless the caller wants it otherwise. A rank
/// that waits looks all the time: wake_time is not charged. T_pp of the paper is `library_overhead`: the processor is
/// busy for so long before a put leaves, and data or a completion are noticed so much later than they arrive.
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

/// A put or get between two ranks of one node is one of these.
enum class IntraNode : std::uint8_t {
  adapter,  ///< a transfer like others, from memory to memory through the node's DMA engine
  copy,     ///< done by the origin's processor: copy_latency, copy_bandwidth, memory_bandwidth
  free,     ///< it takes no time: what the pattern would be without it
};

/// A put or get that was started. Belongs to the rank that did it.
struct PatternHandle {
  std::size_t number = static_cast<std::size_t>(-1);  ///< among those of its rank
};

/// The function of a pattern gets the rank that runs it. Times are virtual.
///
/// Errors     every call throws Error for what cannot be meant: bad_rank for a rank outside the job; bad_size for a
///            negative size or count, or one beyond the model; bad_argument for a negative tag or time, and for a
///            handle that this rank did not get from put or get. run_pattern ends with that error, the rank's number
///            before it.
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

  /// Starts to put so many bytes into the memory of rank `dest`. Puts of one rank leave in the order of their calls.
  PatternHandle put(int dest, std::int64_t bytes, int tag);
  /// Starts to get so many bytes from the memory of rank `source`, whose processor takes no part.
  PatternHandle get(int source, std::int64_t bytes);
  /// Waits until data of `count` puts with that tag are in this rank's memory. Each put counts once.
  void poll(int tag, int count = 1);
  /// Waits until a put's control packet is back, or the data of a get are here. Again: returns at once.
  void complete(PatternHandle handle);
  /// As `complete`, of all that this rank has started.
  void complete_all();
  /// The processor works for so long.
  void compute(picoseconds time);
  /// All ranks: nobody leaves before all have come. Dissemination: ceil(log2(size)) rounds of 8-byte puts.
  void barrier();
  /// From here on this rank's time is counted under that label; empty: under none.
  void phase(std::string_view label);

 private:
  pattern_job& job_;
  int rank_;
};

/// Outcome of one rank.
struct PatternRankOutcome {
  Fate fate = Fate::stuck;  ///< how it ended
  /// When its function returned.
  picoseconds end{};
  /// By phase, in the order of PatternOutcome::phases.
  std::vector<picoseconds> phases{};
  /// Virtual time of the processor until then, by activity.
  picoseconds computing{}, posting{}, waiting{}, copying{}, polling{};
  /// Puts whose data arrived and that no poll asked for.
  std::uint64_t unpolled = 0;
};

/// Puts and gets of one kind, all ranks together; barriers are not among them.
struct TransferUse {
  std::uint64_t count = 0;  ///< transfers
  std::uint64_t bytes = 0;  ///< carried
  /// From the call until it was completed.
  picoseconds latency{}, latency_max{};
  /// Of that: for the DMA engine that sends, while it works on earlier transfers or on what comes in.
  picoseconds queued{}, queued_max{};
  /// Of that: between packets, while the same engine works on packets that come in.
  picoseconds interrupted{}, interrupted_max{};
};

/// One direction of a cable.
struct LinkUse {
  std::string name{};                    ///< "node 3 -> switch 0.1"
  std::uint64_t bytes = 0;               ///< carried
  std::uint64_t packets = 0;             ///< carried
  picoseconds busy{};                    ///< time in which it carried
  picoseconds waiting{}, waiting_max{};  ///< of packets, all together and of one
};

/// One DMA engine of a node's adapter.
struct EngineUse {
  int node = 0;                  ///< whose engine it is
  int number = 0;                ///< of the engine in its node
  std::uint64_t bytes_out = 0;   ///< that left the node
  std::uint64_t bytes_in = 0;    ///< that came into the node
  std::uint64_t transfers = 0;   ///< that it made
  picoseconds busy{};            ///< time in which it carried
  picoseconds waiting{};         ///< of transfers and of packets that came in, for this engine
  std::uint64_t queue_most = 0;  ///< transfers that waited at a time
};

/// Outcome of a pattern.
struct PatternOutcome {
  /// By rank.
  std::vector<PatternRankOutcome> ranks{};
  /// Labels, in the order in which they were first used.
  std::vector<std::string> phases{};
  /// When the last rank ended; if not all did, when the run ended.
  picoseconds time{};
  /// When the last packet and completion had arrived.
  picoseconds quiet{};
  TransferUse intra_node{}, network{};
  /// Those that were used.
  std::vector<LinkUse> links{};
  std::vector<EngineUse> engines{};
  std::string topology{};
  /// Things that happened, one after the other, and how often a packet crossed a link.
  std::uint64_t events = 0;
  std::uint64_t hops = 0;
  /// Empty, or why the run ended before its ranks did, and what each of them waits for, one line each.
  std::string stuck{};

  /// All ranks returned.
  [[nodiscard]] bool ok() const noexcept { return stuck.empty(); }
  /// The sum, least and most of the ranks' times in a phase; 0 if no rank was in it.
  [[nodiscard]] picoseconds phase_sum(std::string_view label) const;
  [[nodiscard]] picoseconds phase_min(std::string_view label) const;
  [[nodiscard]] picoseconds phase_max(std::string_view label) const;
  /// The engine, or link, that was busy for longest; null if none was used.
  [[nodiscard]] const EngineUse* busiest_engine() const noexcept;
  [[nodiscard]] const LinkUse* busiest_link() const noexcept;
};

/// Runs a pattern: the function once for each rank. Of the job's settings those of a runtime mean nothing here.
///
/// Shape      one caller; ranks run inside the call, as fibers
/// Completes  all ranks: each has returned, died, or is stuck; and all that they started
/// Memory     plain: what ranks wrote into the caller's variables is there
/// Units      bytes, picoseconds of virtual time
/// Errors     throws Error(bad_argument, bad_setting, out_of_memory) for a job that cannot be made; the error of a
///            rank's call, or whatever else came out of the function, after which no rank goes on
/// Threads    any; ranks run in the caller's thread and must not leave it
/// Cost       about 0.1 us of real time for each packet and link; a put takes 100 bytes
/// Source     Susukita, Morie, Nanri, Shibamura: Performance Evaluation of RDMA Communication Patterns by Means of
///            Simulations
/// See        src/fabric/sim/pattern.cpp · tests/fabric/sim/pattern_test.cpp · perf/sim_pattern.cpp
PatternOutcome run_pattern(const Config& job, const std::function<void(PatternRank&)>& rank_main,
                           IntraNode intra_node = IntraNode::adapter);

/// One line of a recorded pattern.
struct TracePut {
  int rank = 0;            ///< origin
  int dest = 0;            ///< target
  std::int64_t bytes = 0;  ///< carried
  int tag = 0;             ///< of the put
  /// Equal in everything.
  bool operator==(const TracePut&) const = default;
};

/// Reads a recorded pattern: a put per line, `rank dest bytes tag`; `#` starts a comment.
/// Errors     throws Error(bad_argument): one line that names file and line; `ranks` is the size of the job
std::vector<TracePut> read_trace(const std::string& path, int ranks);
/// As `read_trace` from text; `origin` is what errors call it.
std::vector<TracePut> parse_trace(std::string_view text, std::string_view origin, int ranks);

/// Runs it: each rank starts its puts in the order of the lines, completes them, and polls for those aimed at it.
PatternOutcome run_trace(const Config& job, const std::vector<TracePut>& puts,
                         IntraNode intra_node = IntraNode::adapter);

}  // namespace rma::sim

#pragma GCC visibility pop
