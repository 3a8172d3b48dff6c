// SPDX-License-Identifier: Apache-2.0
/// \file
/// Queues writes and reads that find the send queue full. A stream of them would be posted one by one as entries become
/// free; posted in chains of up to half a queue they cost one call, one doorbell and one completion for each chain. For
/// a device in software a call is a system call, and each read wakes a kernel thread: chains save a seventh of the cost
/// of a small write, a quarter to two fifths of that of a small read (docs/decisions/0011).
///
///   posted at once <--(none outstanding)--- posted as a chain <--(all of them fit)-- queued
///        +-----------------------------(no room)-------------------------------------->+
///
/// Transfers are queued only while the device has work for half a queue, and for one connection at a time; further
/// operations on it wait for them. `poll` and each post check whether they fit. Atomics with posting::more_follow are
/// queued in the same place, however little work the device has: all of them are called before any is waited for.
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
  /// `packet_bytes` is the payload of a packet.
  queued_transfers(send_queues& queues, local_memory& memory, std::size_t packet_bytes) noexcept
      : queues_(queues), memory_(memory), packet_bytes_(packet_bytes) {}

  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// True until there is room for all new transfers.
  [[nodiscard]] bool active() const noexcept { return to_ != nullptr; }
  /// True if nothing can be posted on the connection now.
  [[nodiscard]] bool is_blocked(const connection& c, std::size_t entries = 1) noexcept {
    if (count_ != 0 && to_ == &c && !post()) return true;
    return c.stages != 0 || !queues_.has_room(c, entries);
  }
  /// True if this write or read is to be queued with `add`.
  [[nodiscard]] bool takes(const connection& c, slices local, const send_request& o) const noexcept;
  status add(connection& c, const fabric::local_slice& local, const send_request& o) noexcept;
  /// True if this atomic is one of a chain, to be queued with `add_to_chain`.
  [[nodiscard]] bool chains(const connection& c, fabric::posting when) noexcept;
  /// False if the chain has to wait.
  [[nodiscard]] bool has_room_in_chain(const connection& c) noexcept { return count_ != chain_of(c) || post(); }
  status add_to_chain(connection& c, const send_request& o, fabric::posting when) noexcept;
  /// Posts queued transfers if they fit.
  void go_on() noexcept;
  /// Called when the connection is broken, or its peer is dead. After a break they are posted on the connection's next
  /// generation.
  void end(const connection& c, status result, bounced_transfers& transfers, fabric::sink& to) noexcept;
  /// Releases their leases on registrations, at the end.
  void drop() noexcept;

 private:
  static constexpr std::size_t count_max = 8;

  [[nodiscard]] std::uint32_t chain_of(const connection& c) const noexcept;
  bool post() noexcept;

  send_queues& queues_;
  local_memory& memory_;
  const std::size_t packet_bytes_;
  connection* to_ = nullptr;  ///< null if there has been room for all
  std::uint32_t count_ = 0;
  bool is_chain_ = false;  ///< the last of them is an atomic with posting::more_follow
  bool had_room_ = false;  ///< there was room for all when the chain began
  std::array<send_request, count_max> all_;
  std::array<std::array<std::byte, inline_bytes_max>, count_max> data_;  ///< copies of inline data
};

}  // namespace rma::verbs
