// SPDX-License-Identifier: Apache-2.0
/// \file
/// What is posted, and how it leaves.
#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/tcp/tcp_fabric.hpp"

namespace rma::tcp {
namespace {

constexpr std::uint32_t unflushed_max = 512;  // writes that one question ends
constexpr std::size_t slices_max = 40;        // of one transfer

std::size_t bytes_in(std::span<const fabric::local_slice> slices) noexcept {
  std::size_t bytes = 0;
  for (const fabric::local_slice& each : slices) bytes += each.bytes;
  return bytes;
}

}  // namespace

// ---- questions ----------------------------------------------------------------------------------------------

operation& tcp_fabric::new_operation() noexcept {
  if (free_operation_ == nullptr) {
    operations_.push_back(std::make_unique<operation>());
    free_operation_ = operations_.back().get();
  }
  operation& o = *std::exchange(free_operation_, free_operation_->next);
  o.next = nullptr;
  return o;
}

void tcp_fabric::free(operation& o) noexcept {
  o.written.clear();
  o.into.clear();
  o.old = nullptr;
  o.bytes = 0;
  o.next = std::exchange(free_operation_, &o);
}

void tcp_fabric::ask(connection& c, operation& o) noexcept {
  (c.last == nullptr ? c.first : c.last->next) = &o;
  c.last = &o;
  ++c.questions;
  ++under_way_;
  c.asked_bytes += o.bytes;
}

void tcp_fabric::end_first(connection& c, status result) noexcept {
  operation& o = *c.first;
  c.first = o.next;
  if (c.first == nullptr) c.last = nullptr;
  --c.questions;
  --under_way_;
  c.asked_bytes -= o.bytes;
  end(o.token, result);
  for (const std::uint64_t token : o.written) end(token, result);
  free(o);
}

// ---- operations ---------------------------------------------------------------------------------------------

// What waits for the kernel is little, or nothing more is taken.
bool tcp_fabric::has_room(connection& c) noexcept {
  if (c.out.size() < out_bytes_max && c.questions < under_way_max) [[likely]]
    return true;
  flush(c);
  return c.out.size() < out_bytes_max && c.questions < under_way_max;
}

status tcp_fabric::write_here(slices from, const fabric::region_key& region, std::uint64_t to,
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

void tcp_fabric::put(connection& c, slices from, const fabric::region_key& region, std::uint64_t to,
                     std::uint64_t token) noexcept {
  if (token != 0) c.written.push_back(token);
  ++c.unflushed;
  if (!std::exchange(c.listed, true)) unplaced_.push_back(&c);
  ++puts_;
  const placement where{region.key, to};
  transmit_data(c, own_kind::put, bytes_of(where), from, departure::soon);
}

status tcp_fabric::write(int peer, slices from, const fabric::region_key& region,
                         std::span<const fabric::remote_slice> to, std::uint64_t token,
                         fabric::write_flags how) noexcept {
  RMA_ASSERT(how.kind != fabric::write_kind::silent);
  const bool tells = how.kind == fabric::write_kind::immediate;
  if (peer == how_.rank) {
    const auto bytes = bytes_of(how.immediate);
    if (tells) arrivals_.push_back({static_cast<std::uint16_t>(own_kind::immediate), {bytes.begin(), bytes.end()}});
    return write_here(from, region, to[0].address, token);
  }
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (c->unflushed >= unflushed_max) start_flush(*c);
  if (!has_room(*c)) return status::retry_queue_full;
  put(*c, from, region, to[0].address, token);
  if (tells)
    transmit(*c, static_cast<std::uint16_t>(own_kind::immediate), bytes_of(how.immediate), {}, departure::soon);
  return status::posted;
}

status tcp_fabric::read(int peer, slices to, const fabric::region_key& region,
                        std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept {
  const question asked{.key = region.key, .address = from[0].address, .bytes = bytes_in(to)};
  if (peer == how_.rank) {
    const std::byte* at = own_memory(region.key, asked.address, asked.bytes);
    end(token, at != nullptr || asked.bytes == 0 ? status::done : status::transfer_failed);
    for (const fabric::local_slice& each : to) {
      if (at == nullptr || each.bytes == 0) continue;
      std::memmove(each.at, at, each.bytes);
      at += each.bytes;
    }
    return status::posted;
  }
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (!has_room(*c) || (c->questions != 0 && c->asked_bytes + asked.bytes > asked_bytes_max))
    return status::retry_queue_full;
  operation& o = new_operation();
  o.answered_by = own_kind::give_get;
  o.token = token;
  o.into.assign(to.begin(), to.end());
  o.bytes = asked.bytes;
  ask(*c, o);
  ++gets_;
  transmit(*c, static_cast<std::uint16_t>(own_kind::ask_get), bytes_of(asked), {},
           c->questions == 1 ? departure::now : departure::soon);
  return status::posted;
}

status tcp_fabric::atomic(int peer, const question& asked, std::uint64_t& old, std::uint64_t token) noexcept {
  if (peer == how_.rank) {
    std::byte* const at = own_memory(asked.key, asked.address, sizeof old);
    end(token, at != nullptr ? status::done : status::transfer_failed);
    if (at != nullptr) old = apply(asked, at);
    return status::posted;
  }
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (!has_room(*c)) return status::retry_queue_full;
  operation& o = new_operation();
  o.answered_by = own_kind::result;
  o.token = token;
  o.old = &old;
  ask(*c, o);
  ++atomics_;
  transmit(*c, static_cast<std::uint16_t>(own_kind::ask_atomic), bytes_of(asked), {},
           c->questions == 1 ? departure::now : departure::soon);
  return status::posted;
}

status tcp_fabric::fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                             std::uint64_t& old, std::uint64_t token, fabric::posting) noexcept {
  return atomic(peer, {region.key, address, sizeof operand, operand, 0, 0}, old, token);
}

status tcp_fabric::compare_swap(int peer, const fabric::region_key& region, std::uint64_t address,
                                std::uint64_t expected, std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                                fabric::posting) noexcept {
  return atomic(peer, {region.key, address, sizeof expected, expected, desired, 1}, old, token);
}

// Behind the writes, so that they are placed when the answer comes.
void tcp_fabric::start_flush(connection& c) noexcept {
  operation& o = new_operation();
  o.answered_by = own_kind::result;
  o.token = 0;
  o.written.swap(c.written);
  c.unflushed = 0;
  ask(c, o);
  transmit(c, static_cast<std::uint16_t>(own_kind::ask_placed), {}, {}, departure::now);
}

void tcp_fabric::start_flushes() noexcept {
  for (connection* c : unplaced_) {
    c->listed = false;
    if (c->unflushed != 0) start_flush(*c);
  }
  unplaced_.clear();
}

status tcp_fabric::send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                        std::span<const std::byte> payload) noexcept {
  if (peer == how_.rank) {
    std::vector<std::byte> bytes(header.begin(), header.end());
    bytes.insert(bytes.end(), payload.begin(), payload.end());
    arrivals_.push_back({kind, std::move(bytes)});
    return status::done;
  }
  connection* c = nullptr;
  const status s = reach(peer, c);
  if (s != status::done) return s == status::retry_queue_full ? s : status::done;  // nothing is sent to the dead
  if (!has_room(*c)) return status::retry_queue_full;
  transmit(*c, kind, header, payload, departure::now);
  return status::done;
}

// ---- how it leaves ------------------------------------------------------------------------------------------

// Where so many bytes behind the message's front go. `end_message` follows.
std::byte* tcp_fabric::begin_message(connection& c, std::uint16_t kind, std::size_t bytes) noexcept {
  const front f{static_cast<std::uint32_t>(bytes), kind, 0};
  if (c.out.size() + sizeof f + bytes > batch_bytes && !c.waits_for_room) flush(c);
  std::byte* const at = c.out.room(sizeof f + bytes);
  std::memcpy(at, &f, sizeof f);
  c.out.append(sizeof f + bytes);
  ++c.batched;
  ++messages_;
  if (!std::exchange(c.in_batches, true)) batches_.push_back(&c);
  return at + sizeof f;
}

void tcp_fabric::end_message(connection& c, departure when) noexcept {
  if (when == departure::now || c.batched >= batch_messages) flush(c);
}

void tcp_fabric::transmit(connection& c, std::uint16_t kind, std::span<const std::byte> head,
                          std::span<const std::byte> rest, departure when) noexcept {
  std::byte* const to = begin_message(c, kind, head.size() + rest.size());
  if (!head.empty()) std::memcpy(to, head.data(), head.size());
  if (!rest.empty()) std::memcpy(to + head.size(), rest.data(), rest.size());
  end_message(c, when);
}

void tcp_fabric::transmit_data(connection& c, own_kind kind, std::span<const std::byte> head, slices data,
                               departure when) noexcept {
  const std::size_t bytes = bytes_in(data);
  if (bytes <= straight_bytes || data.size() > slices_max) {
    std::byte* to = begin_message(c, static_cast<std::uint16_t>(kind), head.size() + bytes);
    std::memcpy(to, head.data(), head.size());
    to += head.size();
    for (const fabric::local_slice& each : data) {
      if (each.bytes != 0) std::memcpy(to, each.at, each.bytes);
      to += each.bytes;
    }
    return end_message(c, when);
  }
  // The front says how much follows that is not in the batch.
  const front f{static_cast<std::uint32_t>(head.size() + bytes), static_cast<std::uint16_t>(kind), 0};
  c.out.append(&f, sizeof f);
  c.out.append(head.data(), head.size());
  ++messages_;
  send_straight(c, data, bytes);
}

// The batch, and behind it data from where they are. What the kernel does not take now is copied.
void tcp_fabric::send_straight(connection& c, slices data, std::size_t bytes) noexcept {
  std::size_t taken = 0;
  if (c.line && !c.waits_for_room) {
    std::array<iovec, slices_max + 1> pieces;
    std::size_t count = 0;
    pieces[count++] = {c.out.data(), c.out.size()};
    for (const fabric::local_slice& each : data) pieces[count++] = {each.at, each.bytes};
    msghdr all{};
    all.msg_iov = pieces.data();
    all.msg_iovlen = count;
    c.batched = 0;
    ++batches_sent_;
    const ssize_t n = ::sendmsg(c.line.get(), &all, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) return c.out.clear();  // as in `flush`
    taken = static_cast<std::size_t>(std::max<ssize_t>(n, 0));
  }
  const std::size_t of_batch = std::min(taken, c.out.size());
  c.out.consume(of_batch);
  std::size_t skipped = taken - of_batch;
  if (skipped == bytes) return;
  for (const fabric::local_slice& each : data) {
    const std::size_t gone = std::min(skipped, each.bytes);
    skipped -= gone;
    c.out.append(static_cast<const std::byte*>(each.at) + gone, each.bytes - gone);
  }
  if (!std::exchange(c.in_batches, true)) batches_.push_back(&c);
  watch_room(c, true);
}

void tcp_fabric::flush(connection& c) noexcept {
  c.batched = 0;
  if (!c.line) return;
  while (!c.out.empty()) {
    ++batches_sent_;
    const ssize_t n = ::send(c.line.get(), c.out.data(), c.out.size(), MSG_NOSIGNAL);
    if (n < 0) {
      if (errno == EINTR) continue;
      if (errno == EAGAIN || errno == EWOULDBLOCK) return watch_room(c, true);
      c.out.clear();  // nobody reads it any more; what the peer has sent before is still to be received, and then its
                      // end
      break;
    }
    c.out.consume(static_cast<std::size_t>(n));
  }
  watch_room(c, false);
}

void tcp_fabric::flush_batches() noexcept {
  for (std::size_t i = 0; i < batches_.size(); ++i) {
    connection& c = *batches_[i];
    c.in_batches = false;
    if (c.batched != 0 && !c.waits_for_room) flush(c);
  }
  batches_.clear();
}

}  // namespace rma::tcp
