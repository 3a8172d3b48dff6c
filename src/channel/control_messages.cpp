// SPDX-License-Identifier: Apache-2.0
/// \file
/// The control messages of a rank: sending, queueing, handling, and acknowledgements.
#include <algorithm>
#include <bit>
#include <cstring>
#include <mutex>
#include <utility>

#include "channel/context.hpp"
#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t wake_most_ns = 100'000;    // usually a quarter
constexpr std::uint32_t missed_per_wake = 8;      // a wake costs as much as some system calls that copy
constexpr std::uint16_t held_immediate = 0xffff;  // kind of an immediate among held messages

fabric::delivery_guarantee reserve_by(const fabric::network& network, int to, std::size_t bytes) noexcept {
  fabric::reservations* const bound = network.as_reservations();
  return bound == nullptr ? fabric::delivery_guarantee::none : bound->reserve_delivery(to, bytes);
}

}  // namespace

void context::send(int to, message kind, std::span<const std::byte> header,
                   std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(is_guarded());
  RMA_ASSERT(to >= 0 && to < size());
  peer& p = peer_of(to);
  count(counter::messages_sent);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::send, header.size() + payload.size());
  if (p.waiting_count() == 0) {
    if (p.network->send(to, static_cast<std::uint16_t>(kind), header, payload) == status::done) return;
    waiting_.push_back(to);
  }
  count(counter::sends_queued);
  p.waiting.push_back(unsent_.take(static_cast<std::uint16_t>(kind), header, payload));
}

bool context::try_send(int to, message kind, std::span<const std::byte> header,
                       std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(is_guarded());
  RMA_ASSERT(to >= 0 && to < size());
  peer& p = peer_of(to);
  if (p.waiting_count() != 0) return false;  // queued messages come first
  if (p.network->send(to, static_cast<std::uint16_t>(kind), header, payload) != status::done) return false;
  count(counter::messages_sent);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::send, header.size() + payload.size());
  return true;
}

// Queued messages to a peer that has gone are dropped: the fabric does not accept them any more.
void context::send_waiting() noexcept {
  std::erase_if(waiting_, [&](int rank) {
    peer& p = peer_of(rank);
    RMA_ASSERT(!p.waiting.empty());
    while (!p.waiting.empty()) {
      message_pool::record& first = p.waiting.front();
      if (p.network->send(rank, first.kind(), first.bytes(), {}) != status::done && !gone(rank)) return false;
      p.waiting.pop_front();
      unsent_.give_back(first);
    }
    return true;
  });
}

fabric::delivery_guarantee context::reserve_delivery(int to, std::size_t bytes) noexcept {
  peer& p = peer_of(to);
  if (p.waiting_count() != 0) return fabric::delivery_guarantee::no_room;  // queued messages come first
  const fabric::delivery_guarantee found = reserve_by(*p.network, to, bytes);
  if (found == fabric::delivery_guarantee::asleep && patience_.spin_ns != 0 &&
      ++p.missed_reservations % missed_per_wake == 0) {
    full_fence();
    around_.ring(to);
  }
  return found;
}

// A woken peer spins for a while. If the caller rings it and then computes for long instead of sending, the peer is
// asleep again at the next attempt.
fabric::delivery_guarantee context::reserve_delivery_awake(int to, std::size_t bytes) noexcept {
  fabric::delivery_guarantee found = reserve_delivery(to, bytes);
  if (found != fabric::delivery_guarantee::asleep || patience_.spin_ns == 0) return found;
  full_fence();
  around_.ring(to);
  const std::int64_t until_ns = around_.now_ns() + wake_most_ns;
  do {
    spin_pause();
    found = reserve_by(*peer_of(to).network, to, bytes);
  } while (found == fabric::delivery_guarantee::asleep && around_.now_ns() < until_ns);
  return found;
}

void context::defer_ack(int source) noexcept {
  if (peer_of(source).pending_acks++ == 0) ack_sources_.push_back(source);
}

// Acknowledgements that find no room stay pending, and later ones add to them.
void context::acknowledge() noexcept {
  std::erase_if(ack_sources_, [&](int rank) {
    peer& p = peer_of(rank);
    if (p.pending_acks == 0) return true;  // sent with a reply
    const auto kind = static_cast<std::uint16_t>(message::acknowledge);
    const auto bytes = std::as_bytes(std::span(&p.pending_acks, 1));
    if (p.waiting_count() != 0 || p.network->send(rank, kind, bytes, {}) != status::done) return gone(rank);
    count(counter::messages_sent);
    p.pending_acks = 0;
    return true;
  });
}

// The number of all messages that wait for room.
std::size_t context::waiting_messages() noexcept {
  std::size_t n = ack_sources_.size();
  for (const int rank : waiting_) n += peer_of(rank).waiting_count();
  return n;
}

void context::on_message(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(is_guarded());
  RMA_ASSERT(source >= 0 && source < size());
  count(counter::messages_received);
  if (held_peers_ != 0 && kind < handlers_.size() && is_behind_held(source, kind, payload)) [[unlikely]]
    return;
  handle(source, kind, payload);
}

[[gnu::always_inline]] inline void context::handle(int source, std::uint16_t kind,
                                                   std::span<const std::byte> payload) noexcept {
  if (kind >= handlers_.size() || handlers_[kind].run == nullptr) {
    reject_malformed(source, kind, payload.size(), malformed_reason::unknown_kind);
    return;
  }
  handlers_[kind].run(handlers_[kind].self, source, payload);
  if (accounts_) [[unlikely]]
    around_.charge(cost_kind::handler, payload.size());
}

void context::on_completion(std::uint64_t token, status result, std::uint64_t bytes) noexcept {
  if (token == 0) return;
  fabric::completion& over = fabric::completion_of(token);
  RMA_ASSERT(is_guarded());
  RMA_ASSERT(over.run != nullptr);
  over.run(over, result, bytes);
}

void context::on_immediate(int source, std::uint32_t immediate) noexcept {
  RMA_ASSERT(is_guarded());
  RMA_ASSERT(source >= 0 && source < size());
  if (held_peers_ != 0 && is_behind_held(source, held_immediate, std::as_bytes(std::span(&immediate, 1)))) [[unlikely]]
    return;
  const auto& user = immediates_[static_cast<std::size_t>(user_of_immediate(immediate))];
  if (user.run == nullptr)
    return reject_malformed(source, 0, sizeof immediate, malformed_reason::unknown_kind);  // not an immediate
  user.run(user.self, source, value_of_immediate(immediate));
}

// ---- messages that wait until they may be handled -----------------------------------------------------------

void context::hold_message(int source, message kind, std::span<const std::byte> payload) {
  RMA_ASSERT(is_guarded());
  peer& p = peer_of(source);
  if (!std::exchange(p.is_held, true)) ++held_peers_;
  p.held.push_front(unsent_.take(static_cast<std::uint16_t>(kind), {}, payload));  // before those that came later
}

bool context::is_behind_held(int source, std::uint16_t kind, std::span<const std::byte> payload) {
  peer& p = peer_of(source);
  if (!p.is_held || kind == static_cast<std::uint16_t>(message::layout)) return false;
  p.held.push_back(unsent_.take(kind, {}, payload));
  return true;
}

// A handler may hold its message again, which ends the loop.
void context::release_messages(int source) noexcept {
  peer& p = peer_of(source);
  if (!std::exchange(p.is_held, false)) return;
  RMA_ASSERT(held_peers_ != 0);
  --held_peers_;
  while (!p.is_held && !p.held.empty()) {
    message_pool::record& first = p.held.front();
    p.held.pop_front();
    if (first.kind() == held_immediate) {
      std::uint32_t immediate = 0;
      std::memcpy(&immediate, first.bytes().data(), sizeof immediate);
      on_immediate(source, immediate);
    } else {
      handle(source, first.kind(), first.bytes());
    }
    unsent_.give_back(first);
  }
}

void context::drop_held(int source) noexcept {
  peer& p = peer_of(source);
  if (std::exchange(p.is_held, false)) --held_peers_;
  while (!p.held.empty()) {
    message_pool::record& first = p.held.front();
    p.held.pop_front();
    unsent_.give_back(first);
  }
}

// True if a rank may still ask for a layout that this rank's messages have named.
bool context::may_be_asked() noexcept {
  return std::any_of(peers_.begin(), peers_.end(), [this](const auto& each) {
    return each.second->operations_done.load() < each.second->last_naming && !gone(each.first);
  });
}

}  // namespace rma::detail
