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
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/verbs/verbs_fabric.hpp"

namespace rma::verbs {

std::uint32_t verbs_fabric::chain_of(const connection& c) const noexcept {
  return std::min<std::uint32_t>(c.mask / 2, static_cast<std::uint32_t>(queued_.all.size()));
}

// As long as the device has more to do than half a queue. Then those that are queued fit, and go first (is_blocked).
// Writes of several packets gain nothing by it, and who waits for a signal is not to wait for the writes behind it.
bool verbs_fabric::queues(const connection& c, slices local, const send_request& o) const noexcept {
  const bool busy = queued_.to == nullptr ? !has_room(c) && c.stages == 0
                                          : queued_.to == &c && c.head - c.tail - c.silent > chain_of(c);
  if (!busy || local.size() != 1 || o.then.silent) return false;
  const bool short_write = o.request.opcode == IBV_WR_RDMA_WRITE && local[0].bytes <= packet_bytes_;
  return short_write || o.request.opcode == IBV_WR_RDMA_READ;
}

// What goes inline is copied: the caller may write to its memory again.
status verbs_fabric::queue(connection& c, const fabric::local_slice& local, const send_request& o) noexcept {
  if (queued_.count == chain_of(c) && !post_queued()) return status::retry_queue_full;
  send_request& next = queued_.all[queued_.count];
  next.request = o.request;
  next.then = o.then;
  next.must_signal = true;
  const status placed = choose_buffer(c, {&local, 1}, local.bytes, next);
  if (placed != status::done) return placed == status::not_yet ? status::retry_queue_full : placed;
  if ((next.request.send_flags & IBV_SEND_INLINE) != 0) {
    auto& copy = queued_.data[queued_.count];
    std::memcpy(copy.data(), local.at, local.bytes);
    next.pieces[0].addr = reinterpret_cast<std::uint64_t>(copy.data());
  }
  queued_.to = &c;
  if (++queued_.count == chain_of(c)) (void)post_queued();
  return status::posted;
}

// Atomics that more follow are queued from the first one on: nobody waits for them before the last. Behind what another
// connection has queued they are posted one by one.
bool verbs_fabric::chains(const connection& c, fabric::posting when) noexcept {
  const bool follows = when == fabric::posting::more_follow;
  if (queued_.is_chain && queued_.to != &c) (void)post_queued();
  if (queued_.count == 0) return follows;
  return queued_.to == &c && (follows || queued_.is_chain);
}

// There is room for it. What finds none in the device now is posted by `poll`.
status verbs_fabric::add_to_chain(connection& c, const send_request& o, fabric::posting when) noexcept {
  if (queued_.count == 0) queued_.had_room = queued_.to == nullptr;
  send_request& next = queued_.all[queued_.count];
  next.request = o.request;
  next.pieces[0] = o.pieces[0];
  next.then = o.then;
  next.must_signal = true;
  queued_.to = &c;
  queued_.is_chain = true;
  if (++queued_.count == chain_of(c) || when == fabric::posting::now) (void)post_queued();
  return status::posted;
}

// False if they have to wait.
bool verbs_fabric::post_queued() noexcept {
  connection& c = *queued_.to;
  const std::uint32_t count = queued_.count;
  if (c.state.load(std::memory_order_acquire) != connection_state::ready || !c.resend.empty()) return false;
  if (c.stages != 0 || !has_room(c, count) || !post_list(c, std::span(queued_.all).first(count))) return false;
  queued_.count = 0;
  if (std::exchange(queued_.is_chain, false) && queued_.had_room) queued_.to = nullptr;
  return true;
}

void verbs_fabric::go_on_with_queued() noexcept {
  if (queued_.count != 0) {
    (void)post_queued();
  } else if (queued_.to->head - queued_.to->tail == queued_.to->silent) {
    queued_.to = nullptr;
  }
}

// After a break they are posted on the connection's next generation.
void verbs_fabric::end_queued(const connection& c, status result, fabric::sink& to) noexcept {
  if (queued_.to != &c || result != status::peer_failed) return;
  for (const send_request& o : std::span(queued_.all).first(std::exchange(queued_.count, 0))) end(o.then, result, to);
  queued_.to = nullptr;
  queued_.is_chain = false;
}

}  // namespace rma::verbs
