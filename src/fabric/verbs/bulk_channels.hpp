// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk channels of a rank: their calls, and the completions of their queue pairs. See bulk.hpp.
#pragma once

#include <infiniband/verbs.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/completion_queue.hpp"
#include "fabric/verbs/connections.hpp"
#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/send_request.hpp"

namespace rma::verbs {

class bulk_channels {
 public:
  bulk_channels(connections& all, local_memory& memory, completion_budget& budget,
                const fabric::capabilities& caps) noexcept
      : all_(all), memory_(memory), budget_(budget), caps_(caps) {}

  status send(int peer, slices from, std::uint64_t token) noexcept;
  status post_receive(int peer, slices to, std::uint64_t token) noexcept;

  /// True if the label of a completion is that of a bulk entry.
  [[nodiscard]] static bool is_bulk(std::uint64_t label) noexcept;
  void take(const ibv_wc& done, fabric::sink& to) noexcept;
  /// Called when the connection is broken, or its peer is dead.
  void abandon(connection& c, fabric::sink& to) noexcept;
  /// True if channels wait for their connection, or for room.
  [[nodiscard]] bool are_waiting() const noexcept { return !waiting_.empty(); }
  void go_on(fabric::sink& to) noexcept;
  /// True if all sends are complete.
  [[nodiscard]] bool quiet() const noexcept { return sends_ == 0; }
  /// The number of sends posted so far.
  [[nodiscard]] std::uint64_t posted() const noexcept { return posted_; }
  /// Releases the channel's leases on registrations, at the end.
  void drop(bulk_channel& b) noexcept;

 private:
  status add(int peer, slices local, std::uint64_t token, bool receive) noexcept;
  status reach(int peer, connection*& c) noexcept;
  bool describe(slices local, bulk_entry& entry) noexcept;
  void list(connection& c) noexcept;
  void post(connection& c) noexcept;
  void end(const bulk_entry& entry, status result, fabric::sink& to, std::uint64_t bytes = 0) noexcept;
  void release(const bulk_entry& entry) noexcept;
  void end_unresolved(connection& c, bool dead, fabric::sink& to) noexcept;
  void end_all(connection& c, fabric::sink& to) noexcept;
  void forget_queue(bulk_channel& b) noexcept;
  bool needs_no_more(connection& c, fabric::sink& to) noexcept;
  void resolve_doubts(connection& c, fabric::sink& to) noexcept;
  void flow_again(connection& c, fabric::sink& to) noexcept;

  connections& all_;
  local_memory& memory_;
  completion_budget& budget_;
  const fabric::capabilities& caps_;
  std::unordered_map<int, connection*> by_peer_;
  std::vector<connection*> waiting_;  ///< channels with entries that are not posted
  std::uint32_t sends_ = 0;           ///< sends that are not complete
  std::uint64_t posted_ = 0;
};

}  // namespace rma::verbs
