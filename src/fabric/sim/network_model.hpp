// SPDX-License-Identifier: Apache-2.0
/// \file
/// How long bytes take from the memory of one node to that of another.
///
///   post --> DMA engine of the source --packets--> link, router, link ... --> DMA engine of the target --> control
///   packet back to the source                                                (Susukita, NSIM-ACE, sect. 2)
///
/// Knows nodes and bytes only: no ranks, no data. The owner of the data is told when each packet leaves the source's
/// memory and when it is in the target's.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/sim/event_queue.hpp"

namespace rma::sim {

/// Number of a transfer, the caller's own.
using transfer_id = std::uint64_t;

/// What the model tells the owner of the data. Called while virtual time is that of the event.
class transfer_sink {
 public:
  /// Bytes [first, first + bytes) have been read from the source's memory.
  virtual void on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept = 0;
  /// They are in the target's memory.
  virtual void on_arrival(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept = 0;
  /// The control packet that says so is back at the source.
  virtual void on_acknowledgement(transfer_id id) noexcept = 0;

 protected:
  ~transfer_sink() = default;
};

struct transfer {
  transfer_id id = 0;
  int from_node = 0;
  int to_node = 0;           ///< may be the same: loop-back through the adapter
  std::uint64_t bytes = 0;   ///< 0: a control packet, no DMA at either end; one arrival of 0 bytes
  bool acknowledged = true;  ///< a control packet comes back
};

}  // namespace rma::sim
