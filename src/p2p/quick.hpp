// SPDX-License-Identifier: Apache-2.0
/// \file
/// Short messages between ranks of a node: each takes one line in shared memory and no operation, and needs no locked
/// instruction if only one thread can be in the library and the receiver has a processor of its own.
///
/// The lines are those of the fabric's messages, so that all messages of a pair keep one order. A send takes this path
/// if no other send of this pair waits for room or credit. A receive takes it if the next message of its source is an
/// eager one that it matches, and no unexpected message and no posted receive precede it. All others use operations
/// (p2p/messenger.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>

#include "fabric/shm/ring.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {

inline constexpr std::size_t short_message_max = shm::line_payload_max - sizeof(envelope);
/// A short message counts as this many units of its sender's share, whatever its size.
inline constexpr std::uint32_t short_message_units = unexpected_messages::units_of(short_message_max);
static_assert(unexpected_messages::units_of(0) == short_message_units);

/// The progress lock, which is not taken if no other thread can be in the library.
class quick_turn {
 public:
  explicit quick_turn(context& ctx) noexcept : lock_(ctx.several_threads() ? &ctx.lock() : nullptr) {
    if (lock_ != nullptr) [[unlikely]]
      lock_->lock();
  }
  ~quick_turn() {
    if (lock_ != nullptr) [[unlikely]]
      lock_->unlock();
  }
  quick_turn(const quick_turn&) = delete;
  quick_turn& operator=(const quick_turn&) = delete;

 private:
  small_lock* lock_;
};

/// Copies at most a line; most messages are a single number.
inline void copy_short(void* to, const void* from, std::size_t bytes) noexcept {
  if (bytes == sizeof(std::uint64_t)) [[likely]] {
    std::memcpy(to, from, sizeof(std::uint64_t));
  } else if (bytes != 0) {
    std::memcpy(to, from, bytes);
  }
}

[[gnu::always_inline]] inline void messenger::fill_line(shm::line_pair& l, std::byte* room, std::uint64_t context,
                                                        int tag, const void* at, std::size_t bytes) noexcept {
  peer& p = *static_cast<peer*>(l.user);
  const envelope e{context, tag, p.sequence, static_cast<std::uint16_t>(p.freed)};
  std::memcpy(room, &e, sizeof e);
  copy_short(room + sizeof e, at, bytes);
  l.out->commit_line(sizeof e + bytes, static_cast<std::uint16_t>(message::eager));
  ++p.sequence;
  p.freed = 0;
  p.used += short_message_units;
  ctx_.count(counter::messages_sent);
  ctx_.count(counter::eager_messages);
  if (l.fence) full_fence();
}

/// Returns false if there is no room.
[[gnu::always_inline]] inline bool messenger::put_line(shm::line_pair& l, std::uint64_t context, int tag,
                                                       const void* at, std::size_t bytes) noexcept {
  peer& p = *static_cast<peer*>(l.user);
  if (p.before_lines->waiting_count() != 0) return false;
  std::byte* const room = l.out->reserve_line();
  if (room == nullptr) return false;
  fill_line(l, room, context, tag, at, bytes);
  if (l.bell->load(std::memory_order_relaxed) != 0) [[unlikely]]
    ring(p);
  return true;
}

/// Releases the first line, whose message gives back so much credit. Returns true if `tell_received` must follow.
[[gnu::always_inline]] inline bool messenger::release_line(shm::line_pair& from, std::uint32_t freed) noexcept {
  peer& p = *static_cast<peer*>(from.user);
  ++p.seen;
  ctx_.count(counter::messages_received);
  p.freed += short_message_units;
  p.used -= freed;
  return from.in->take_line() || p.freed >= credit_units_ || p.is_busy;
}

[[gnu::always_inline]] inline bool messenger::send_quickly(shm::line_pair& to, std::uint64_t context, int tag,
                                                           const void* at, std::size_t bytes) noexcept {
  if (bytes > short_message_max) return false;
  const quick_turn turn(ctx_);
  const peer& p = *static_cast<const peer*>(to.user);
  const bool open = !p.gone && !p.is_busy && p.used + short_message_units <= eager_units_max_;
  return open && put_line(to, context, tag, at, bytes);
}

[[gnu::always_inline]] inline messenger::quick_result messenger::send_word(shm::line_pair& to, std::uint64_t context,
                                                                           int tag, const void* at) noexcept {
  const peer& p = *static_cast<const peer*>(to.user);
  const bool open = !ctx_.several_threads() && !p.gone && !p.is_busy && p.before_lines->waiting_count() == 0 &&
                    p.used + short_message_units <= eager_units_max_;
  std::byte* const room = open ? to.out->cleared_line() : nullptr;
  if (room == nullptr) return quick_result::no;
  fill_line(to, room, context, tag, at, sizeof(std::uint64_t));
  return to.bell->load(std::memory_order_relaxed) == 0 ? quick_result::done : quick_result::done_and_tell;
}

[[gnu::always_inline]] inline messenger::quick_result messenger::receive_word(shm::line_pair& from,
                                                                              std::uint64_t context, int& tag,
                                                                              void* at) noexcept {
  constexpr std::size_t bytes = sizeof(std::uint64_t);
  if (ctx_.several_threads() || !from.in || from.forgotten || !unexpected_.empty() || !posted_.empty())
    return quick_result::no;
  shm::ring_reader& in = *from.in;
  const shm::message_header* const h = in.front();
  if (h == nullptr || h->stamp.load(std::memory_order_relaxed) != sizeof(envelope) + bytes + 1 ||
      h->kind != static_cast<std::uint16_t>(message::eager))
    return quick_result::no;
  envelope e;
  const auto* const message = reinterpret_cast<const std::byte*>(h + 1);
  std::memcpy(&e, message, sizeof e);
  if (e.context != context || e.tag < 0 || (e.tag != tag && tag != any_tag)) return quick_result::no;
  std::memcpy(at, message + sizeof e, bytes);
  tag = e.tag;
  return release_line(from, e.freed) ? quick_result::done_and_tell : quick_result::done;
}

[[gnu::always_inline]] inline messenger::quick_result messenger::receive_quickly(shm::line_pair& from,
                                                                                 std::uint64_t context, int& tag,
                                                                                 void* at,
                                                                                 std::size_t& bytes) noexcept {
  const quick_turn turn(ctx_);
  if (!from.in || from.forgotten || !unexpected_.empty() || !posted_.empty()) return quick_result::no;
  shm::ring_reader& in = *from.in;
  const shm::message_header* const h = in.front();
  if (h == nullptr) return quick_result::not_yet;
  const std::size_t data = h->stamp.load(std::memory_order_relaxed) - 1 - sizeof(envelope);
  envelope e;
  if (h->kind != static_cast<std::uint16_t>(message::eager) || data > short_message_max) return quick_result::no;
  const auto* const message = reinterpret_cast<const std::byte*>(h + 1);
  std::memcpy(&e, message, sizeof e);
  const bool mine = e.context == context && (e.tag == tag || tag == any_tag) && e.tag >= 0 && data <= bytes;
  if (!mine) return quick_result::no;
  copy_short(at, message + sizeof e, data);
  tag = e.tag;
  bytes = data;
  if (release_line(from, e.freed)) [[unlikely]]
    tell_received(from);
  return quick_result::done;
}

}  // namespace rma::detail
