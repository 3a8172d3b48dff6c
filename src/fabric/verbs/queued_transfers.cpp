// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/queued_transfers.hpp"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/assert.hpp"

namespace rma::verbs {

std::uint32_t queued_transfers::chain_of(const connection& c) const noexcept {
  return std::min<std::uint32_t>(c.mask / 2, static_cast<std::uint32_t>(count_max));
}

// Queues while the device has more work than half a queue; after that the queued ones fit, and are posted first
// (is_blocked). Writes of several packets gain nothing by it. An immediate or silent write must not wait for the writes
// after it.
bool queued_transfers::takes(const connection& c, slices local, const send_request& o) const noexcept {
  const bool busy =
      to_ == nullptr ? !queues_.has_room(c) && c.stages == 0 : to_ == &c && c.head - c.tail - c.silent > chain_of(c);
  if (!busy || local.size() != 1 || o.then.silent) return false;
  const bool short_write = o.request.opcode == IBV_WR_RDMA_WRITE && local[0].bytes <= packet_bytes_;
  return short_write || o.reads();
}

// Inline data are copied: the caller may modify its memory again.
status queued_transfers::add(connection& c, const fabric::local_slice& local, const send_request& o) noexcept {
  if (count_ == chain_of(c) && !post()) return status::retry_queue_full;
  RMA_ASSERT(count_ < chain_of(c) && (count_ == 0 || to_ == &c));
  send_request& next = all_[count_];
  next.request = o.request;
  next.then = o.then;
  next.must_signal = true;
  const status placed = memory_.prepare(c, {&local, 1}, local.bytes, next);
  if (placed != status::done) return placed == status::not_yet ? status::retry_queue_full : placed;
  if ((next.request.send_flags & IBV_SEND_INLINE) != 0) {
    auto& copy = data_[count_];
    std::memcpy(copy.data(), local.at, local.bytes);
    next.pieces[0].addr = reinterpret_cast<std::uint64_t>(copy.data());
  }
  to_ = &c;
  if (++count_ == chain_of(c)) (void)post();
  return status::posted;
}

// Atomics with more_follow are queued from the first one on: none is waited for before the last. While transfers of
// another connection are queued, they are posted one by one.
bool queued_transfers::chains(const connection& c, fabric::posting when) noexcept {
  const bool follows = when == fabric::posting::more_follow;
  if (is_chain_ && to_ != &c) (void)post();
  if (count_ == 0) return follows;
  return to_ == &c && (follows || is_chain_);
}

// The caller has checked that there is room. If the device has none now, `poll` posts the chain.
status queued_transfers::add_to_chain(connection& c, const send_request& o, fabric::posting when) noexcept {
  RMA_ASSERT(count_ < chain_of(c));
  if (count_ == 0) had_room_ = to_ == nullptr;
  send_request& next = all_[count_];
  next.request = o.request;
  next.pieces[0] = o.pieces[0];
  next.then = o.then;
  next.must_signal = true;
  to_ = &c;
  is_chain_ = true;
  if (++count_ == chain_of(c) || when == fabric::posting::now) (void)post();
  return status::posted;
}

// Returns false if they have to wait.
bool queued_transfers::post() noexcept {
  connection& c = *to_;
  if (c.state.load(std::memory_order_acquire) != connection_state::ready || !c.resend.empty()) return false;
  if (c.stages != 0 || !queues_.has_room(c, count_) || !queues_.post_list(c, std::span(all_).first(count_)))
    return false;
  count_ = 0;
  if (std::exchange(is_chain_, false) && had_room_) to_ = nullptr;
  return true;
}

void queued_transfers::go_on() noexcept {
  if (to_ == nullptr) return;
  if (count_ != 0) {
    (void)post();
  } else if (to_->head - to_->tail == to_->silent) {
    to_ = nullptr;
  }
}

void queued_transfers::end(const connection& c, status result, bounced_transfers& transfers,
                           fabric::sink& to) noexcept {
  if (to_ != &c || result != status::peer_failed) return;
  for (const send_request& o : std::span(all_).first(std::exchange(count_, 0))) transfers.end(o.then, result, to);
  to_ = nullptr;
  is_chain_ = false;
}

void queued_transfers::drop() noexcept {
  for (const send_request& o : std::span(all_).first(count_)) memory_.release(o.then);
}

}  // namespace rma::verbs
