// SPDX-License-Identifier: Apache-2.0
/// \file
/// Writes and reads that find the send queue full. A stream of them would be posted one by one as the queue takes them;
/// queued here and posted in chains of up to half a queue they cost one call, one doorbell and one completion for each
/// chain. For a device in software a call is a system call, and reads are left to a kernel thread, which is woken for
/// each: a seventh of what a small write costs, a quarter to two fifths of a small read (docs/decisions/0011).
///
///   posted at once <--(nothing under way)-- posted as a chain <--(all of them fit)-- queued
///        +-----------------------------(no room)-------------------------------------->+
///
/// Queued is only what comes while the device has half a queue to do. To one connection at a time; what else is posted
/// to it waits for them. `poll` and whoever posts see whether they fit. Atomics that more follow are queued in
/// the same place, whatever the device has to do: all of them have been called for before anybody waits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "fabric/verbs/bounced_transfers.hpp"
#include "fabric/verbs/connection_manager.hpp"
#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/send_queues.hpp"

namespace rma::verbs {

class queued_transfers {
 public:
  /// `packet_bytes`: what a packet carries.
  queued_transfers(send_queues& queues, local_memory& memory, std::size_t packet_bytes) noexcept
      : queues_(queues), memory_(memory), packet_bytes_(packet_bytes) {}

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// True until there is room for all that comes.
  [[nodiscard]] bool active() const noexcept { return to_ != nullptr; }
  /// Nothing can be posted there now.
  [[nodiscard]] bool is_blocked(const connection& c, std::size_t entries = 1) noexcept {
    if (count_ != 0 && to_ == &c && !post()) return true;
    return c.stages != 0 || !queues_.has_room(c, entries);
  }
  /// True if this write or read is to be queued, by `add`.
  [[nodiscard]] bool takes(const connection& c, slices local, const send_request& o) const noexcept;
  status add(connection& c, const fabric::local_slice& local, const send_request& o) noexcept;
  /// True if this atomic is one of a chain, for `add_to_chain`.
  [[nodiscard]] bool chains(const connection& c, fabric::posting when) noexcept;
  /// False if the chain has to wait.
  [[nodiscard]] bool has_room_in_chain(const connection& c) noexcept { return count_ != chain_of(c) || post(); }
  status add_to_chain(connection& c, const send_request& o, fabric::posting when) noexcept;
  /// Posts what fits.
  void go_on() noexcept;
  /// The connection is broken, or its peer is dead. After a break they are posted on the connection's next generation.
  void end(const connection& c, status result, bounced_transfers& transfers, fabric::sink& to) noexcept;
  /// At the end: gives back what they have taken of the registration cache.
  void drop() noexcept;

 private:
  static constexpr std::size_t count_max = 8;

  [[nodiscard]] std::uint32_t chain_of(const connection& c) const noexcept;
  bool post() noexcept;

  send_queues& queues_;
  local_memory& memory_;
  const std::size_t packet_bytes_;
  connection* to_ = nullptr;  ///< null: there has been room for all
  std::uint32_t count_ = 0;
  bool is_chain_ = false;  ///< the last of them is an atomic that more follow
  bool had_room_ = false;  ///< there was room for all when the chain began
  std::array<send_request, count_max> all_;
  std::array<std::array<std::byte, inline_bytes_max>, count_max> data_;  ///< of those that go inline
};

}  // namespace rma::verbs
