// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/local_memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "core/assert.hpp"

namespace rma::verbs {
namespace {

constexpr std::size_t buffer_count = 256;
constexpr std::size_t word_count = 1024;
constexpr std::size_t copied_read_bytes = 64;  // copying is cheaper than checking for registered memory

}  // namespace

local_memory::local_memory(ibv_pd* domain, int rank, std::size_t buffer_bytes, std::size_t cache_bytes,
                           const fabric::capabilities& caps)
    : caps_(caps),
      buffers_(domain, buffer_count, buffer_bytes),
      words_(domain, word_count, sizeof(std::uint64_t)),
      regions_(domain, rank),
      cache_(regions_, registration_cache::limits{.bytes = cache_bytes}) {}

void local_memory::put_inline(slices local, send_request& o) const noexcept {
  RMA_ASSERT(local.size() <= o.pieces.size() && !o.reads());
  std::size_t n = 0;
  for (const fabric::local_slice& each : local)
    o.pieces[n++] = {reinterpret_cast<std::uint64_t>(each.at), static_cast<std::uint32_t>(each.bytes), 0};
  o.request.num_sge = static_cast<int>(n);
  o.request.send_flags |= IBV_SEND_INLINE;
}

status local_memory::prepare(const connection& c, slices local, std::size_t bytes, send_request& o) noexcept {
  const bool write = !o.reads();
  if (write && bytes <= c.inline_max.load(std::memory_order_relaxed) && local.size() <= caps_.gather_max) {
    put_inline(local, o);
    return status::done;
  }
  const bool copied_read = !write && bytes <= copied_read_bytes && local.size() == 1;
  // Data that must have been read when the call returns (capabilities) are copied if the device cannot take them
  // inline.
  const bool copied_write = write && bytes <= caps_.inline_bytes_max;
  if (!copied_read && !copied_write && describe(local, o)) return status::done;
  const bool large = bytes > buffers_.bytes();
  if (large && local.size() == 1 && lease(local[0], o)) return status::done;
  if ((large || !write) && local.size() > 1 && lease_list(local, o)) return status::done;
  if (large || (!write && local.size() != 1)) return status::not_yet;
  if (!borrow(bytes, o)) return status::retry_queue_full;
  if (write) {
    std::byte* to = buffers_.at(o.then.buffer);
    for (const fabric::local_slice& each : local) to = std::copy_n(static_cast<std::byte*>(each.at), each.bytes, to);
  } else {
    o.then.copy_to = static_cast<std::byte*>(local[0].at);
    o.then.bytes = static_cast<std::uint32_t>(bytes);
  }
  return status::done;
}

void local_memory::expect(const fabric::piece_bounds& pieces) noexcept {
  RMA_ASSERT(pieces.count != 0);
  const std::uint64_t request_bytes = pieces.in_lists ? pieces.bytes : pieces.bytes / pieces.count;
  if (request_bytes <= buffers_.bytes() || regions_.find(pieces.hull.at, pieces.hull.bytes) != nullptr) return;
  cache_.register_hull(pieces);
}

bool local_memory::describe(slices local, send_request& o) noexcept {
  if (local.size() > caps_.gather_max) return false;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const ibv_mr* const region = regions_.find(local[i].at, local[i].bytes);
    if (region == nullptr) return false;
    o.pieces[i] = {reinterpret_cast<std::uint64_t>(local[i].at), static_cast<std::uint32_t>(local[i].bytes),
                   region->lkey};
  }
  o.request.num_sge = static_cast<int>(local.size());
  return true;
}

bool local_memory::borrow(std::size_t bytes, send_request& o) noexcept {
  RMA_ASSERT(bytes <= buffers_.bytes());
  o.then.buffer = buffers_.take();
  if (o.then.buffer < 0) return false;
  o.then.bytes = static_cast<std::uint32_t>(bytes);
  describe_buffer(o);
  return true;
}

bool local_memory::borrow_word(std::uint64_t& old, send_request& o) noexcept {
  o.then.buffer = words_.take();
  if (o.then.buffer < 0) return false;
  o.then.word = true;
  o.then.copy_to = reinterpret_cast<std::byte*>(&old);
  o.then.bytes = sizeof old;
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(words_.at(o.then.buffer)), sizeof old, words_.key()};
  o.request.num_sge = 1;
  return true;
}

void local_memory::describe_buffer(send_request& o) const noexcept {
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(buffers_.at(o.then.buffer)), o.then.bytes, buffers_.key()};
  o.request.num_sge = 1;
}

// Describes memory of the program with a lease on a cached registration.
bool local_memory::lease(const fabric::local_slice& local, send_request& o) noexcept {
  o.then.lease = cache_.acquire(local.at, local.bytes);
  if (o.then.lease == nullptr) {
    regions_.complain(local.bytes);
    return false;
  }
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(local.at), static_cast<std::uint32_t>(local.bytes),
                 o.then.lease->keys().local_key};
  o.request.num_sge = 1;
  return true;
}

// Does the same for several pieces, if one registration covers those that are in no region.
bool local_memory::lease_list(slices local, send_request& o) noexcept {
  std::array<fabric::local_slice, registration_cache::group_max> strange;
  std::array<registration_cache::entry*, registration_cache::group_max> leases{};
  std::array<std::size_t, registration_cache::group_max> places{};
  std::size_t count = 0, used = 0;
  if (local.size() > caps_.gather_max || local.size() > strange.size()) return false;
  for (const fabric::local_slice& each : local) {
    if (each.bytes == 0) continue;  // an adapter would take it for 2 GiB
    const ibv_mr* const region = regions_.find(each.at, each.bytes);
    if (region == nullptr) {
      places[count] = used;
      strange[count++] = each;
    }
    o.pieces[used++] = {reinterpret_cast<std::uint64_t>(each.at), static_cast<std::uint32_t>(each.bytes),
                        region == nullptr ? 0 : region->lkey};
  }
  if (count == 0 || !cache_.acquire(std::span(strange).first(count), leases)) return false;
  const bool is_one = std::all_of(leases.begin(), leases.begin() + static_cast<std::ptrdiff_t>(count),
                                  [&](const auto* each) { return each == leases[0]; });
  for (std::size_t i = is_one ? 1 : 0; i < count; ++i) cache_.release(leases[i]);
  if (!is_one) return false;
  o.then.lease = leases[0];
  for (std::size_t i = 0; i < count; ++i) o.pieces[places[i]].lkey = leases[0]->keys().local_key;
  o.request.num_sge = static_cast<int>(used);
  return true;
}

void local_memory::undo(const completion_action& w) noexcept {
  if (w.buffer >= 0) pool_of(w).give_back(w.buffer);
  release(w);
}

void local_memory::finish(const completion_action& w, status result) noexcept {
  if (w.buffer >= 0 && w.copy_to != nullptr && result == status::done) {
    const std::byte* const from = pool_of(w).at(w.buffer);
    if (w.bytes == sizeof(std::uint64_t)) {
      std::memcpy(w.copy_to, from, sizeof(std::uint64_t));
    } else {
      std::memcpy(w.copy_to, from, w.bytes);
    }
  }
  undo(w);
}

}  // namespace rma::verbs
