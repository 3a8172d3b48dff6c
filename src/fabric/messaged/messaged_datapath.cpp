// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations are posted here, and leave.
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/messaged/messaged_fabric.hpp"

namespace rma::messaged {
namespace {

using fabric::bytes_of;

constexpr std::size_t alone_bytes = 32 << 10;  // a message of so many does not wait for others

}  // namespace

// ---- questions ----------------------------------------------------------------------------------------------

unanswered& messaged_fabric::new_question(own_kind answered_by, std::uint64_t token) noexcept {
  if (free_question_ == nullptr) {
    questions_.push_back(std::make_unique<unanswered>());
    free_question_ = questions_.back().get();
  }
  unanswered& o = *std::exchange(free_question_, free_question_->next);
  o.next = nullptr;
  o.answered_by = answered_by;
  o.token = token;
  return o;
}

void messaged_fabric::send_request(peer& p, unanswered& o) noexcept {
  RMA_ASSERT(o.next == nullptr && (p.first == nullptr) == (p.last == nullptr));
  (p.last == nullptr ? p.first : p.last->next) = &o;
  p.last = &o;
  ++p.questions;
  ++under_way_;
  p.asked_bytes += o.bytes;
}

void messaged_fabric::end_first(peer& p, status result) noexcept {
  RMA_ASSERT(p.first != nullptr && p.questions != 0 && under_way_ != 0);
  unanswered& o = *p.first;
  RMA_ASSERT(p.asked_bytes >= o.bytes);
  p.first = o.next;
  if (p.first == nullptr) p.last = nullptr;
  --p.questions;
  --under_way_;
  p.asked_bytes -= o.bytes;
  end(o.token, result);
  for (const std::uint64_t token : o.written) end(token, result);
  o.written.clear();
  o.into.clear();
  o.old = nullptr;
  o.bytes = 0;
  o.next = std::exchange(free_question_, &o);
}

/// One alone goes at once. While others are not answered yet, more of them travel together.
departure messaged_fabric::departure_of_question(const peer& p) noexcept {
  return p.questions == 1 ? departure::now : departure::soon;
}

// ---- operations ---------------------------------------------------------------------------------------------

status messaged_fabric::write_here(slices from, const fabric::region_key& region, std::uint64_t to,
                                   std::uint64_t token) noexcept {
  std::byte* at = own_memory(region.key, to, bytes_in(from));
  end(token, at != nullptr || bytes_in(from) == 0 ? status::done : status::transfer_failed);
  for (const fabric::local_slice& each : from) {
    if (at == nullptr || each.bytes == 0) continue;
    std::memmove(at, each.at, each.bytes);
    at += each.bytes;
  }
  return status::posted;
}

status messaged_fabric::read_here(slices to, const question& asked, std::uint64_t token) noexcept {
  const std::byte* at = own_memory(asked.key, asked.address, asked.bytes);
  end(token, at != nullptr || asked.bytes == 0 ? status::done : status::transfer_failed);
  for (const fabric::local_slice& each : to) {
    if (at == nullptr || each.bytes == 0) continue;
    std::memmove(each.at, at, each.bytes);
    at += each.bytes;
  }
  return status::posted;
}

status messaged_fabric::write(int to_rank, slices from, const fabric::region_key& region,
                              std::span<const fabric::remote_slice> to, std::uint64_t token,
                              fabric::write_flags how) noexcept {
  RMA_ASSERT(how.kind != fabric::write_kind::silent && !to.empty());
  constexpr auto immediate = static_cast<std::uint16_t>(own_kind::immediate);
  const bool tells = how.kind == fabric::write_kind::immediate;
  if (to_rank == rank_) {
    const auto bytes = bytes_of(how.immediate);
    if (tells) arrivals_.push_back({rank_, immediate, {bytes.begin(), bytes.end()}});
    return write_here(from, region, to[0].address, token);
  }
  peer* p = nullptr;
  if (const status s = reach(to_rank, p); s != status::done) return s;
  if (p->unflushed >= unflushed_max) start_flush(*p);
  if (!has_room(*p)) return status::retry_queue_full;
  if (token != 0) p->written.push_back(token);
  list_unflushed(*p);
  ++puts_;
  const placement where{region.key, to[0].address};
  transmit_data(*p, static_cast<std::uint16_t>(own_kind::put), bytes_of(where), from, departure::soon);
  if (tells) transmit(*p, immediate, bytes_of(how.immediate), {}, departure::soon);
  return status::posted;
}

status messaged_fabric::read(int from_rank, slices to, const fabric::region_key& region,
                             std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept {
  RMA_ASSERT(!from.empty());
  const question asked{.key = region.key, .address = from[0].address, .bytes = bytes_in(to)};
  if (from_rank == rank_) return read_here(to, asked, token);
  peer* p = nullptr;
  if (const status s = reach(from_rank, p); s != status::done) return s;
  if (!has_room(*p) || (p->questions != 0 && p->asked_bytes + asked.bytes > asked_bytes_max))
    return status::retry_queue_full;
  unanswered& o = new_question(own_kind::give_get, token);
  o.into.assign(to.begin(), to.end());
  o.bytes = asked.bytes;
  send_request(*p, o);
  ++gets_;
  transmit(*p, own_kind::ask_get, bytes_of(asked), departure_of_question(*p));
  return status::posted;
}

status messaged_fabric::atomic(int rank, const question& asked, std::uint64_t& old, std::uint64_t token) noexcept {
  if (rank == rank_) {
    std::byte* const at = own_memory(asked.key, asked.address, sizeof old);
    end(token, at != nullptr ? status::done : status::transfer_failed);
    if (at != nullptr) old = messaged::apply(asked, at);
    return status::posted;
  }
  peer* p = nullptr;
  if (const status s = reach(rank, p); s != status::done) return s;
  if (!has_room(*p)) return status::retry_queue_full;
  unanswered& o = new_question(own_kind::result, token);
  o.old = &old;
  send_request(*p, o);
  ++atomics_;
  transmit(*p, own_kind::ask_atomic, bytes_of(asked), departure_of_question(*p));
  return status::posted;
}

status messaged_fabric::fetch_add(int rank, const fabric::region_key& region, std::uint64_t address,
                                  std::uint64_t operand, std::uint64_t& old, std::uint64_t token,
                                  fabric::posting) noexcept {
  return atomic(rank, {region.key, address, sizeof operand, operand, 0, 0}, old, token);
}

status messaged_fabric::compare_swap(int rank, const fabric::region_key& region, std::uint64_t address,
                                     std::uint64_t expected, std::uint64_t desired, std::uint64_t& old,
                                     std::uint64_t token, fabric::posting) noexcept {
  return atomic(rank, {region.key, address, sizeof expected, expected, desired, 1}, old, token);
}

void messaged_fabric::list_unflushed(peer& p) noexcept {
  ++p.unflushed;
  if (!std::exchange(p.listed, true)) unflushed_.push_back(&p);
}

// Behind the writes, so that they are placed when the answer comes.
void messaged_fabric::start_flush(peer& p) noexcept {
  unanswered& o = new_question(own_kind::result, 0);
  o.written.swap(p.written);
  p.unflushed = 0;
  send_request(p, o);
  transmit(p, own_kind::ask_placed, {}, departure::now);
}

void messaged_fabric::start_flushes() noexcept {
  for (peer* p : unflushed_) {
    p->listed = false;
    if (p->unflushed != 0) start_flush(*p);
  }
  unflushed_.clear();
}

status messaged_fabric::send(int rank, std::uint16_t kind, std::span<const std::byte> header,
                             std::span<const std::byte> payload) noexcept {
  if (rank == rank_) {
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    arrivals_.push_back({rank_, kind, std::move(bytes)});
    return status::done;
  }
  peer* p = nullptr;
  const status s = reach(rank, p);
  if (s != status::done) return s == status::retry_queue_full ? s : status::done;  // nothing is sent to the dead
  if (!has_room(*p)) return status::retry_queue_full;
  transmit(*p, kind, header, payload, departure::now);
  return status::done;
}

// ---- how it leaves ------------------------------------------------------------------------------------------

std::byte* messaged_fabric::begin_message(peer& p, std::uint16_t kind, std::size_t bytes) noexcept {
  std::byte* const at = room_for(p, kind, bytes);
  ++p.batched;
  ++messages_;
  list_batch(p);
  return at;
}

void messaged_fabric::end_message(peer& p, departure when) noexcept {
  if (when == departure::now || p.batched >= batch_messages) send_batch(p);
}

void messaged_fabric::transmit(peer& p, std::uint16_t kind, std::span<const std::byte> head,
                               std::span<const std::byte> rest, departure when) noexcept {
  std::byte* const to = begin_message(p, kind, head.size() + rest.size());
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  if (!rest.empty()) std::memcpy(to + head.size(), rest.data(), rest.size());
  end_message(p, when);
}

void messaged_fabric::transmit_data(peer& p, std::uint16_t kind, std::span<const std::byte> head, slices data,
                                    departure when) noexcept {
  const std::size_t bytes = bytes_in(data);
  if (bytes > straight_bytes_ && data.size() <= straight_slices_max)
    return transmit_straight(p, kind, head, data, bytes);
  std::byte* to = begin_message(p, kind, head.size() + bytes);
  std::memcpy(to, head.data(), head.size());
  to += head.size();
  for (const fabric::local_slice& each : data) {
    if (each.bytes != 0) fetch(to, each.at, each.bytes);
    to += each.bytes;
  }
  end_message(p, bytes >= alone_bytes ? departure::now : when);
}

// Messages to oneself may bring answers meanwhile, which are sent, too.
void messaged_fabric::send_batches() noexcept {
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    peer& p = *batches_[i];
    p.in_batches = false;
    if (p.batched != 0) send_batch(p);
  }
  batches_.clear();
}

}  // namespace rma::messaged
