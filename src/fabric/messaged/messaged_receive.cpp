// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages that come are for handlers, or the fabric's own.
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/messaged/messaged_fabric.hpp"

namespace rma::messaged {

using fabric::bytes_of;

// ---- for handlers -------------------------------------------------------------------------------------------

// Handlers do not re-enter, and messages stay in order.
void messaged_fabric::hand(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  if (!may_hand() || handing_on_ || !arrivals_.empty()) {
    arrivals_.push_back({source, kind, {payload.begin(), payload.end()}});
  } else {
    hand_on(source, kind, payload);
  }
}

void messaged_fabric::hand_on(int source, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  handing_on_ = true;
  ++handed_;
  std::uint32_t immediate = 0;
  if (kind >= fabric::first_kind) {
    sink_->on_message(source, kind, payload);
  } else if (payload.size() == sizeof immediate) {
    std::memcpy(&immediate, payload.data(), sizeof immediate);
    sink_->on_immediate(source, immediate);
  }
  handing_on_ = false;
}

void messaged_fabric::hand_arrivals() noexcept {
  while (!arrivals_.empty() && may_hand()) {
    const arrival a = std::move(arrivals_.front());
    arrivals_.pop_front();
    hand_on(a.source, a.kind, a.bytes);
  }
}

// ---- the fabric's own ---------------------------------------------------------------------------------------

void messaged_fabric::take_own(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(kind < own_kind::count_);
  RMA_ASSERT(&known(p.rank) == &p);
  switch (kind) {
    case own_kind::goodbye:
      if (p.state != connection_state::open) break;
      p.state = connection_state::left;
      leavers_.push_back(&p);
      // It serves for a while what is still under way there. Without watching its peer a line never ends the rest.
      if (!watches_peers_ && !p.idle()) suspect(p);
      break;
    case own_kind::understood: p.understood = true; break;
    case own_kind::immediate: hand(p.rank, static_cast<std::uint16_t>(kind), payload); break;
    case own_kind::put: take_put(p, payload); break;
    case own_kind::ask_placed:
    case own_kind::ask_get:
    case own_kind::ask_atomic: take_question(p, kind, payload); break;
    case own_kind::give_get:
    case own_kind::result: take_answer(p, kind, payload); break;
    case own_kind::count_: break;
  }
}

void messaged_fabric::take_put(peer& p, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(p.put_error == status::done || p.put_error == status::transfer_failed);
  placement where;
  if (payload.size() < sizeof where) return distrust(p);
  std::memcpy(&where, payload.data(), sizeof where);
  const std::span<const std::byte> data = payload.subspan(sizeof where);
  std::byte* const to = own_memory(where.key, where.address, data.size());
  if (to == nullptr && !data.empty()) {
    p.put_error = status::transfer_failed;
  } else if (!data.empty()) {
    copy_in(to, data.data(), data.size());
  }
  RMA_ASSERT(to != nullptr || data.empty() || p.put_error != status::done);
}

void messaged_fabric::take_question(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(kind == own_kind::ask_placed || kind == own_kind::ask_get || kind == own_kind::ask_atomic);
  answer a;
  question asked;
  if (kind != own_kind::ask_placed) {
    if (payload.size() != sizeof asked) return distrust(p);
    std::memcpy(&asked, payload.data(), sizeof asked);
  }
  status found = status::done;
  std::byte* at = nullptr;
  if (kind == own_kind::ask_placed) {
    found = std::exchange(p.put_error, status::done);
  } else {
    at = own_memory(asked.key, asked.address, asked.bytes);
    const bool is_word = asked.bytes == sizeof a.found && asked.address % sizeof a.found == 0;
    const bool fits = kind == own_kind::ask_get ? asked.bytes <= caps_.transfer_bytes_max : is_word;
    if ((at == nullptr && asked.bytes != 0) || !fits) found = status::transfer_failed;
  }
  RMA_ASSERT(found != status::done || at != nullptr || kind == own_kind::ask_placed || asked.bytes == 0);
  if (!can_answer(p)) return;
  a.result = static_cast<std::int64_t>(found);
  if (kind == own_kind::ask_get) {
    const fabric::local_slice data{at, found == status::done ? asked.bytes : 0};
    constexpr auto give_get = static_cast<std::uint16_t>(own_kind::give_get);
    return transmit_data(p, give_get, bytes_of(a), {&data, 1}, departure::soon);
  }
  if (kind == own_kind::ask_atomic && found == status::done) a.found = messaged::apply(asked, at);
  transmit(p, own_kind::result, bytes_of(a), departure::soon);
}

void messaged_fabric::take_answer(peer& p, own_kind kind, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(kind == own_kind::give_get || kind == own_kind::result);
  RMA_ASSERT((p.first != nullptr) == (p.questions != 0));
  answer a;
  unanswered* const o = p.first;
  if (payload.size() < sizeof a || o == nullptr || o->answered_by != kind) return distrust(p);
  std::memcpy(&a, payload.data(), sizeof a);
  payload = payload.subspan(sizeof a);
  status result = static_cast<status>(a.result);
  if (result == status::done && payload.size() != o->bytes) result = status::transfer_failed;
  if (result == status::done) {
    if (o->old != nullptr) *o->old = a.found;
    for (const fabric::local_slice& each : o->into) {
      if (each.bytes != 0) copy_in(each.at, payload.data(), each.bytes);
      payload = payload.subspan(each.bytes);
    }
  }
  end_first(p, result);
}

}  // namespace rma::messaged
