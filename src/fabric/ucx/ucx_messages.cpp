// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts, gets and atomics made of messages, where no transport has anything else. Messages to one peer stay in order,
/// and so do these: a flush asks behind its puts whether they went well, and nothing has to wait for it. Small ones
/// travel together: a put with its flush, a question with others while one is not answered, answers with each other.
///
///     origin                              target
///     put, put, ...  ------------------>  copied into the region
///     ask_placed     ------------------>
///                    <------------------  result: the worst of the puts since the last one
///     ask_get        ------------------>
///                    <------------------  give_get, with the data
///     ask_atomic     ------------------>  by the processor
///                    <------------------  result: what it has found
#include <array>
#include <atomic>
#include <cstring>
#include <span>
#include <utility>

#include "fabric/object_bytes.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rma::ucx {
namespace {

using fabric::bytes_of;

template <class T>
std::span<const std::byte> take(std::span<const std::byte> from, T& what) noexcept {
  std::memcpy(&what, from.data(), sizeof what);
  return from.subspan(sizeof what);
}

std::size_t bytes_in(std::span<const fabric::local_slice> slices) noexcept {
  std::size_t bytes = 0;
  for (const fabric::local_slice& each : slices) bytes += each.bytes;
  return bytes;
}

/// One alone goes at once. While others are not answered yet, more of them travel together.
departure departure_of_question(const connection& c) noexcept {
  return c.questions == 1 ? departure::now : departure::soon;
}

}  // namespace

// ---- at the origin ------------------------------------------------------------------------------------------

// Room for an operation and its message.
status ucx_fabric::reach_by_messages(int peer, connection*& c) noexcept {
  if (const status s = reach(peer, c); s != status::done) return s;
  return c->under_way + 2 <= under_way_max ? status::done : status::retry_queue_full;
}

status ucx_fabric::put_by_messages(connection& c, slices from, const fabric::region_key& region,
                                   std::uint64_t to) noexcept {
  const placement where{region.key, to};
  ++c.unflushed;
  ++puts_;
  list(c);
  std::byte* at = begin_message(c, static_cast<std::uint16_t>(own_kind::put), sizeof where + bytes_in(from));
  if (at == nullptr) return status::retry_queue_full;  // cannot be: there was room
  std::memcpy(at, &where, sizeof where);
  at += sizeof where;
  for (const fabric::local_slice& each : from) {
    std::memcpy(at, each.at, each.bytes);
    at += each.bytes;
  }
  end_message(c, departure::soon);
  return status::posted;
}

status ucx_fabric::get_by_messages(connection& c, slices to, const fabric::region_key& region, std::uint64_t from,
                                   std::uint64_t token) noexcept {
  operation& o = new_operation(c, token);
  o.into.assign(to.begin(), to.end());
  const remote_request what{.id = expect_answer(o), .key = region.key, .address = from, .bytes = bytes_in(to)};
  ++gets_;
  (void)transmit(c, static_cast<std::uint16_t>(own_kind::ask_get), bytes_of(what), {}, departure_of_question(c));
  return status::posted;
}

status ucx_fabric::atomic_by_messages(connection& c, remote_request what, std::uint64_t& old,
                                      std::uint64_t token) noexcept {
  operation& o = new_operation(c, token);
  o.old = &old;
  what.id = expect_answer(o);
  ++atomics_;
  (void)transmit(c, static_cast<std::uint16_t>(own_kind::ask_atomic), bytes_of(what), {}, departure_of_question(c));
  return status::posted;
}

void ucx_fabric::ask_placed(operation& o) noexcept {
  const remote_request what{.id = expect_answer(o)};
  send_own(o.to->peer, own_kind::ask_placed, bytes_of(what));
}

// An id is never used again: its lower part says where the operation is, the upper one which of all that were there.
std::uint64_t ucx_fabric::expect_answer(operation& o) noexcept {
  ++o.to->questions;
  return o.asked = ++questions_ << place_bits | o.place;
}

operation* ucx_fabric::asked(const connection& c, std::uint64_t id) noexcept {
  const std::uint64_t place = id & ((std::uint64_t{1} << place_bits) - 1);
  if (id == 0 || place >= operations_.size()) return nullptr;
  operation& o = *operations_[place];
  return o.asked == id && o.to == &c ? &o : nullptr;
}

void ucx_fabric::take_answer(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  answer a;
  if (payload.size() < sizeof a) return;
  std::span<const std::byte> data = take(payload, a);
  operation* const found = asked(c, a.id);
  if (found == nullptr) return;
  operation& o = *found;
  o.asked = 0;
  --c.questions;
  o.result = a.result;
  o.reply = a.found;
  if (kind == own_kind::give_get && a.result == status::done) {
    if (data.size() != bytes_in(o.into)) o.result = status::transfer_failed;
    for (const fabric::local_slice& each : o.into) {
      if (o.told || o.result != status::done) break;
      std::memcpy(each.at, data.data(), each.bytes);
      data = data.subspan(each.bytes);
    }
  }
  end_piece(o, UCS_OK);
}

// Nobody answers any more.
void ucx_fabric::end_asked(connection& c) noexcept {
  c.questions = 0;
  for (const auto& o : operations_) {
    if (o->to != &c || std::exchange(o->asked, 0) == 0) continue;
    o->result = status::peer_failed;
    end_piece(*o, UCS_OK);
  }
}

// ---- at the target ------------------------------------------------------------------------------------------

std::byte* ucx_fabric::own_memory(std::uint64_t key, std::uint64_t address, std::uint64_t bytes) noexcept {
  const auto at = regions_.find(key);
  if (at == regions_.end()) return nullptr;
  const std::uint64_t begin = at->second.address;
  const bool inside = address >= begin && bytes <= at->second.bytes && address - begin <= at->second.bytes - bytes;
  return inside ? reinterpret_cast<std::byte*>(address) : nullptr;
}

void ucx_fabric::take_put(connection& c, std::span<const std::byte> payload) noexcept {
  placement where;
  if (payload.size() < sizeof where) return;
  const std::span<const std::byte> data = take(payload, where);
  std::byte* const to = own_memory(where.key, where.address, data.size());
  if (to == nullptr) {
    c.put_error = status::transfer_failed;
  } else if (!data.empty()) {
    std::memcpy(to, data.data(), data.size());
  }
}

void ucx_fabric::take_order(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  remote_request what;
  if (payload.size() != sizeof what) return;
  (void)take(payload, what);
  answer a{.id = what.id};
  if (kind == own_kind::ask_placed) {
    a.result = std::exchange(c.put_error, status::done);
    return send_own(c.peer, own_kind::result, bytes_of(a), {}, departure::soon);
  }
  std::byte* const at = own_memory(what.key, what.address, what.bytes);
  if (at == nullptr || what.bytes > caps_.transfer_bytes_max) a.result = status::transfer_failed;
  if (kind == own_kind::ask_get) {
    const bool good = a.result == status::done;
    return send_own(c.peer, own_kind::give_get, bytes_of(a), {at, good ? what.bytes : 0}, departure::soon);
  }
  if (what.bytes != sizeof a.found || what.address % sizeof a.found != 0) a.result = status::transfer_failed;
  if (a.result == status::done) {
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
    a.found = what.operand;
    if (what.swap != 0) {
      (void)word.compare_exchange_strong(a.found, what.desired);
    } else {
      a.found = word.fetch_add(what.operand);
    }
  }
  send_own(c.peer, own_kind::result, bytes_of(a), {}, departure::soon);
}

}  // namespace rma::ucx
