// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts, gets and atomics made of messages, where no transport has anything else. Messages to one peer stay in order,
/// and so do these: a flush asks behind its puts whether they went well, and nothing has to wait for it.
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
#include <vector>

#include "fabric/ucx/ucx_fabric.hpp"

namespace rma::ucx {
namespace {

template <class T>
std::vector<std::byte> bytes_of(const T& what, std::span<const std::byte> behind = {}) {
  std::vector<std::byte> bytes(sizeof what + behind.size());
  std::memcpy(bytes.data(), &what, sizeof what);
  if (!behind.empty()) std::memcpy(bytes.data() + sizeof what, behind.data(), behind.size());
  return bytes;
}

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

std::span<const std::byte> seen(const fabric::local_slice& s) noexcept {
  return {static_cast<const std::byte*>(s.at), s.bytes};
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
  const order what{.key = region.key, .address = to, .bytes = bytes_in(from)};
  const std::span<const std::byte> header = std::as_bytes(std::span(&what, 1));
  ++c.unflushed;
  ++puts_;
  list(c);
  if (from.size() == 1) {
    (void)transmit(c, static_cast<std::uint16_t>(own_kind::put), header, seen(from[0]));
    return status::posted;
  }
  std::array<std::byte, message_bytes> gathered;
  std::size_t filled = 0;
  for (const fabric::local_slice& each : from) {
    std::memcpy(gathered.data() + filled, each.at, each.bytes);
    filled += each.bytes;
  }
  (void)transmit(c, static_cast<std::uint16_t>(own_kind::put), header, {gathered.data(), filled});
  return status::posted;
}

status ucx_fabric::get_by_messages(connection& c, slices to, const fabric::region_key& region, std::uint64_t from,
                                   std::uint64_t token) noexcept {
  operation& o = new_operation(c, token);
  o.into.assign(to.begin(), to.end());
  const order what{.id = next_id_++, .key = region.key, .address = from, .bytes = bytes_in(to)};
  asked_.emplace(what.id, &o);
  ++gets_;
  (void)transmit(c, static_cast<std::uint16_t>(own_kind::ask_get), std::as_bytes(std::span(&what, 1)), {});
  return status::posted;
}

status ucx_fabric::atomic_by_messages(connection& c, order what, std::uint64_t& old, std::uint64_t token) noexcept {
  operation& o = new_operation(c, token);
  o.old = &old;
  what.id = next_id_++;
  asked_.emplace(what.id, &o);
  ++atomics_;
  (void)transmit(c, static_cast<std::uint16_t>(own_kind::ask_atomic), std::as_bytes(std::span(&what, 1)), {});
  return status::posted;
}

void ucx_fabric::ask_placed(operation& o) noexcept {
  const order what{.id = next_id_++};
  asked_.emplace(what.id, &o);
  send_own(o.to->peer, own_kind::ask_placed, bytes_of(what));
}

void ucx_fabric::take_answer(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  answer a;
  if (payload.size() < sizeof a) return;
  std::span<const std::byte> data = take(payload, a);
  const auto at = asked_.find(a.id);
  if (at == asked_.end() || at->second->to != &c) return;
  operation& o = *at->second;
  asked_.erase(at);
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
  std::erase_if(asked_, [this, &c](const auto& each) {
    operation& o = *each.second;
    if (o.to != &c) return false;
    o.result = status::peer_failed;
    end_piece(o, UCS_OK);
    return true;
  });
}

// ---- at the target ------------------------------------------------------------------------------------------

std::byte* ucx_fabric::own_memory(const order& what) noexcept {
  const auto at = regions_.find(what.key);
  if (at == regions_.end()) return nullptr;
  const std::uint64_t begin = at->second.address;
  const bool inside =
      what.address >= begin && what.bytes <= at->second.bytes && what.address - begin <= at->second.bytes - what.bytes;
  return inside ? reinterpret_cast<std::byte*>(what.address) : nullptr;
}

void ucx_fabric::take_put(connection& c, std::span<const std::byte> payload) noexcept {
  order what;
  if (payload.size() < sizeof what) return;
  const std::span<const std::byte> data = take(payload, what);
  std::byte* const to = own_memory(what);
  if (to == nullptr || data.size() != what.bytes) {
    c.put_error = status::transfer_failed;
  } else if (!data.empty()) {
    std::memcpy(to, data.data(), data.size());
  }
}

void ucx_fabric::take_order(connection& c, own_kind kind, std::span<const std::byte> payload) noexcept {
  order what;
  if (payload.size() != sizeof what) return;
  (void)take(payload, what);
  answer a{.id = what.id};
  if (kind == own_kind::ask_placed) {
    a.result = std::exchange(c.put_error, status::done);
    return send_own(c.peer, own_kind::result, bytes_of(a));
  }
  std::byte* const at = own_memory(what);
  if (at == nullptr || what.bytes > message_bytes - sizeof a) a.result = status::transfer_failed;
  if (kind == own_kind::ask_get) {
    const bool good = a.result == status::done;
    return send_own(c.peer, own_kind::give_get, bytes_of(a, {at, good ? what.bytes : 0}));
  }
  if (what.bytes != sizeof a.found || what.address % sizeof a.found != 0) a.result = status::transfer_failed;
  if (a.result == status::done) {
    const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
    a.found = what.operand;
    if (what.swap) {
      (void)word.compare_exchange_strong(a.found, what.desired);
    } else {
      a.found = word.fetch_add(what.operand);
    }
  }
  send_own(c.peer, own_kind::result, bytes_of(a));
}

}  // namespace rma::ucx
