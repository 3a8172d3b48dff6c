// SPDX-License-Identifier: Apache-2.0
/// \file
/// What goes into the send queues. Entries are signalled now and then: reads and atomics, which somebody waits for, the
/// first eight of a burst of writes, and every eighth other one. If nothing else follows, `poll` asks for the end of
/// the rest with an empty write: after a long burst, not after a short one or one of a multiple of eight. A message,
/// whose end nobody waits for, is silent as long as there are buffers.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/verbs/verbs_fabric.hpp"

namespace rma::verbs {
namespace {

constexpr std::uint32_t signal_every = 8;      // less than the shortest queue has entries
constexpr std::size_t copied_read_bytes = 64;  // cheaper to copy than to look whether they lie in registered memory

std::size_t bytes_of(std::span<const fabric::local_slice> local) noexcept {
  std::size_t bytes = 0;
  for (const fabric::local_slice& each : local) bytes += each.bytes;
  return bytes;
}

/// Of entry `number` of the connection's send queue.
std::uint64_t label_of(const connection& c, std::uint32_t number) noexcept {
  return (std::uint64_t{1} << 63) | (std::uint64_t{c.index} << 32) | number;
}

}  // namespace

// Of a write, or of the last of several that are posted together. Entries that say nothing fill at most half of the
// completion queue: were it all of it, nothing would ever make room.
[[gnu::always_inline]] inline bool verbs_fabric::signals_write(connection& c, bool must,
                                                               std::uint32_t count) const noexcept {
  if (c.head - c.tail == c.silent) c.burst = c.head;  // nothing is under way that somebody waits for
  return must || c.unsignalled + count >= signal_every || c.head - c.burst < signal_every ||
         2 * under_way_ > under_way_max_;
}

// A silent message keeps its buffer until something behind it is signalled: at most half of them are kept so.
bool verbs_fabric::signals_silent(const connection& c) const noexcept {
  return c.unsignalled + 1 >= signal_every || 2 * buffers_->free() < buffers_->size() ||
         2 * under_way_ > under_way_max_;
}

// Inlined: a sixth of its instructions would be the call.
[[gnu::always_inline]] inline status verbs_fabric::post(connection& c, send_request& o) noexcept {
  const bool signalled = o.then.silent ? signals_silent(c) : signals_write(c, o.must_signal, 1);
  o.request.wr_id = label_of(c, c.head);
  o.request.sg_list = o.pieces.data();
  if (signalled) o.request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (::ibv_post_send(c.queue_pair, &o.request, &refused) != 0) {
    if (o.then.buffer >= 0 && !o.then.message) (o.then.word ? *words_ : *buffers_).give_back(o.then.buffer);
    return status::retry_queue_full;
  }
  c.at(c.head++) = o.then;
  ++posted_[static_cast<std::size_t>(o.request.opcode) % posted_.size()];
  ++under_way_;
  c.unsignalled = signalled ? 0 : c.unsignalled + 1;
  if (o.then.silent) {
    ++c.silent;
  } else if (!signalled && !std::exchange(c.listed, true)) {
    tails_.push_back(&c);
  }
  return status::posted;
}

// What an entry that was not posted has taken.
void verbs_fabric::undo(send_request& o) noexcept {
  if (o.then.buffer >= 0) buffers_->give_back(o.then.buffer);
  if (o.then.lease != nullptr) cache_->release(o.then.lease);
}

status verbs_fabric::post_chain(connection& c, std::span<send_request> all) noexcept {
  if (post_list(c, all)) return status::posted;
  for (send_request& o : all) undo(o);
  return status::retry_queue_full;
}

// All by one call, which is one system call and one doorbell. The last one tells the end of all. False if nothing has
// been posted.
bool verbs_fabric::post_list(connection& c, std::span<send_request> all) noexcept {
  const auto count = static_cast<std::uint32_t>(all.size());
  const bool signalled = signals_write(c, all.back().must_signal, count);
  for (std::uint32_t i = 0; i < count; ++i) {
    ibv_send_wr& request = all[i].request;
    request.wr_id = label_of(c, c.head + i);
    request.sg_list = all[i].pieces.data();
    request.next = i + 1 == count ? nullptr : &all[i + 1].request;
  }
  if (signalled) all.back().request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (::ibv_post_send(c.queue_pair, &all.front().request, &refused) != 0) {
    if (refused == &all.front().request) return false;
    manager_->give_up(c);  // a part of it is under way: `abandon` ends it, and what was not posted with it
  }
  for (const send_request& o : all) {
    c.at(c.head++) = o.then;
    ++posted_[static_cast<std::size_t>(o.request.opcode) % posted_.size()];
  }
  ++lists_;
  listed_ += count;
  under_way_ += count;
  c.unsignalled = signalled ? 0 : c.unsignalled + count;
  if (!signalled && !std::exchange(c.listed, true)) tails_.push_back(&c);
  return true;
}

// Entries whose end nobody would tell: an empty write behind them does.
void verbs_fabric::ask_for_tails() noexcept {
  std::erase_if(tails_, [&](connection* c) {
    if (c->unsignalled != 0 && c->state.load() == connection_state::ready) {
      if (!has_room(*c)) return false;  // what fills the queue was signalled
      send_request o;
      o.request.opcode = IBV_WR_RDMA_WRITE;
      o.must_signal = true;
      if (post(*c, o) != status::posted) return false;
      ++tail_writes_;
    }
    c->listed = false;
    return true;
  });
}

// Asked before the end of the job: silent messages, too, are to be over. Those to who has left it are.
bool verbs_fabric::quiet() noexcept {
  std::uint32_t unheard = 0;
  for (connection* const c : by_index_) {
    if (under_way_ == 0 || c == nullptr) continue;
    if (c->left.load(std::memory_order_relaxed)) {
      unheard += c->head - c->tail;
    } else if (c->unsignalled != 0 && !std::exchange(c->listed, true)) {
      tails_.push_back(c);
    }
  }
  return under_way_ == unheard && queued_.count == 0 && unsent_.empty() && stages_.empty() && doubted_.empty() &&
         bulk_sends_ == 0;
}

// ---- memory of this side ------------------------------------------------------------------------------------

// True if all of it is registered.
bool verbs_fabric::describe_local(slices local, send_request& o) noexcept {
  if (local.size() > caps_.gather_max) return false;
  for (std::size_t i = 0; i < local.size(); ++i) {
    const ibv_mr* const region = memory_->find(local[i].at, local[i].bytes);
    if (region == nullptr) return false;
    o.pieces[i] = {reinterpret_cast<std::uint64_t>(local[i].at), static_cast<std::uint32_t>(local[i].bytes),
                   region->lkey};
  }
  o.request.num_sge = static_cast<int>(local.size());
  return true;
}

bool verbs_fabric::borrow(std::size_t bytes, send_request& o) noexcept {
  o.then.buffer = buffers_->take();
  if (o.then.buffer < 0) return false;
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(buffers_->at(o.then.buffer)), static_cast<std::uint32_t>(bytes),
                 buffers_->key()};
  o.request.num_sge = 1;
  return true;
}

// Memory of the program's that it may use again.
bool verbs_fabric::lease(const fabric::local_slice& local, send_request& o) noexcept {
  o.then.lease = cache_->acquire(local.at, local.bytes);
  if (o.then.lease == nullptr) {
    memory_->complain(local.bytes);
    return false;
  }
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(local.at), static_cast<std::uint32_t>(local.bytes),
                 o.then.lease->keys().local_key};
  o.request.num_sge = 1;
  return true;
}

// The same of several pieces, as far as one registration covers those that are not registered anyway.
bool verbs_fabric::lease_list(slices local, send_request& o) noexcept {
  std::array<fabric::local_slice, registration_cache::group_max> strange;
  std::array<registration_cache::entry*, registration_cache::group_max> leases{};
  std::array<std::size_t, registration_cache::group_max> places{};
  std::size_t count = 0, used = 0;
  if (local.size() > caps_.gather_max || local.size() > strange.size()) return false;
  for (const fabric::local_slice& each : local) {
    if (each.bytes == 0) continue;  // an adapter takes it for one of 2 GiB
    const ibv_mr* const region = memory_->find(each.at, each.bytes);
    if (region == nullptr) {
      places[count] = used;
      strange[count++] = each;
    }
    o.pieces[used++] = {reinterpret_cast<std::uint64_t>(each.at), static_cast<std::uint32_t>(each.bytes),
                        region == nullptr ? 0 : region->lkey};
  }
  if (count == 0 || !cache_->acquire(std::span(strange).first(count), leases)) return false;
  const bool is_one = std::all_of(leases.begin(), leases.begin() + static_cast<std::ptrdiff_t>(count),
                                  [&](const auto* each) { return each == leases[0]; });
  for (std::size_t i = is_one ? 1 : 0; i < count; ++i) cache_->release(leases[i]);
  if (!is_one) return false;
  o.then.lease = leases[0];
  for (std::size_t i = 0; i < count; ++i) o.pieces[places[i]].lkey = leases[0]->keys().local_key;
  o.request.num_sge = static_cast<int>(used);
  return true;
}

// Where the data are for the device: in the entry itself, in registered memory, or in a buffer. `not_yet`: it has to go
// in stages.
status verbs_fabric::choose_buffer(const connection& c, slices local, std::size_t bytes, send_request& o) noexcept {
  const bool write = o.request.opcode != IBV_WR_RDMA_READ;
  if (write && bytes <= c.inline_max.load(std::memory_order_relaxed) && local.size() <= caps_.gather_max) {
    std::size_t n = 0;
    for (const fabric::local_slice& each : local)
      o.pieces[n++] = {reinterpret_cast<std::uint64_t>(each.at), static_cast<std::uint32_t>(each.bytes), 0};
    o.request.num_sge = static_cast<int>(n);
    o.request.send_flags |= IBV_SEND_INLINE;
    return status::done;
  }
  const bool copied_read = !write && bytes <= copied_read_bytes && local.size() == 1;
  // What is promised to be read when the call returns (capabilities) is copied if the device cannot take it inline.
  const bool copied_write = write && bytes <= caps_.inline_bytes_max;
  if (!copied_read && !copied_write && describe_local(local, o)) return status::done;
  const bool large = bytes > buffers_->bytes();
  if (large && local.size() == 1 && lease(local[0], o)) return status::done;
  if ((large || !write) && local.size() > 1 && lease_list(local, o)) return status::done;
  if (large || (!write && local.size() != 1)) return status::not_yet;
  if (!borrow(bytes, o)) return status::retry_queue_full;
  if (write) {
    std::byte* to = buffers_->at(o.then.buffer);
    for (const fabric::local_slice& each : local) to = std::copy_n(static_cast<std::byte*>(each.at), each.bytes, to);
  } else {
    o.then.copy_to = static_cast<std::byte*>(local[0].at);
    o.then.bytes = static_cast<std::uint32_t>(bytes);
  }
  return status::done;
}

status verbs_fabric::transfer(int peer, slices local, send_request& o) noexcept {
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  const bool write = o.request.opcode != IBV_WR_RDMA_READ;
  if (queues(*c, local, o)) return queue(*c, local[0], o);
  if (is_blocked(*c)) return status::retry_queue_full;
  if (write && local.size() == 1 && local[0].bytes <= c->inline_max.load(std::memory_order_relaxed)) [[likely]] {
    o.pieces[0] = {reinterpret_cast<std::uint64_t>(local[0].at), static_cast<std::uint32_t>(local[0].bytes), 0};
    o.request.num_sge = 1;
    o.request.send_flags |= IBV_SEND_INLINE;
    return post(*c, o);
  }
  const status placed = choose_buffer(*c, local, bytes_of(local), o);
  if (placed == status::not_yet) return stage(*c, local, o);
  if (placed != status::done) return placed;
  const status s = post(*c, o);
  if (s != status::posted && o.then.lease != nullptr) cache_->release(o.then.lease);
  return s;
}

// An entry for each pair of pieces. What has to go in stages is refused: the caller sends the pieces one by one.
status verbs_fabric::transfer_pieces(int peer, slices local, std::span<const fabric::remote_slice> remote,
                                     const send_request& like) noexcept {
  if (local.size() != remote.size() || local.size() > chain_.size()) return status::not_supported;
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (is_blocked(*c, local.size())) return status::retry_queue_full;
  for (std::size_t i = 0; i < local.size(); ++i) {
    send_request& o = chain_[i];
    o.request = like.request;
    o.request.wr.rdma.remote_addr = remote[i].address;
    o.then = like.then;
    o.must_signal = like.must_signal;
    if (i + 1 != local.size()) {
      o.then.token = 0;
      o.must_signal = false;
    }
    const status placed = local[i].bytes == remote[i].bytes ? choose_buffer(*c, local.subspan(i, 1), local[i].bytes, o)
                                                            : status::not_supported;
    if (placed == status::done) continue;
    for (send_request& before : std::span(chain_).first(i)) undo(before);
    return placed == status::not_yet ? status::not_supported : placed;
  }
  return post_chain(*c, std::span(chain_).first(local.size()));
}

// ---- stages -------------------------------------------------------------------------------------------------

status verbs_fabric::stage(connection& c, slices local, const send_request& o) noexcept {
  bounced s{};
  s.to = &c;
  s.write = o.request.opcode != IBV_WR_RDMA_READ;
  s.local.assign(local.begin(), local.end());
  s.address = o.request.wr.rdma.remote_addr;
  s.key = o.request.wr.rdma.rkey;
  s.token = o.then.token;
  ++c.stages;
  stages_.emplace(next_stage_++, std::move(s));
  go_on_with_stages();
  return status::posted;
}

void verbs_fabric::go_on_with_stages() noexcept {
  for (auto& [id, s] : stages_) {
    while (!s.all_posted() && post_stage(id, s)) {}
  }
}

// The next piece: one buffer of one slice.
bool verbs_fabric::post_stage(std::uint64_t id, bounced& s) noexcept {
  connection& c = *s.to;
  if (!has_room(c)) return false;
  const fabric::local_slice& slice = s.local[s.slice];
  const std::size_t bytes = std::min(slice.bytes - s.offset, buffers_->bytes());
  std::byte* const here = static_cast<std::byte*>(slice.at) + s.offset;
  send_request o;
  if (!borrow(bytes, o)) return false;
  if (s.write) {
    std::memcpy(buffers_->at(o.then.buffer), here, bytes);
  } else {
    o.then.copy_to = here;
    o.then.bytes = static_cast<std::uint32_t>(bytes);
  }
  o.request.opcode = s.write ? IBV_WR_RDMA_WRITE : IBV_WR_RDMA_READ;
  o.request.wr.rdma.remote_addr = s.address;
  o.request.wr.rdma.rkey = s.key;
  o.then.token = id;
  o.then.piece = true;
  o.must_signal = !s.write || s.offset + bytes == slice.bytes;
  if (post(c, o) != status::posted) return false;
  ++s.under_way;
  s.address += bytes;
  s.offset += bytes;
  if (s.offset == slice.bytes) {
    ++s.slice;
    s.offset = 0;
  }
  return true;
}

// ---- the fabric's calls -------------------------------------------------------------------------------------

status verbs_fabric::write(int peer, slices from, const fabric::region_key& region,
                           std::span<const fabric::remote_slice> to, std::uint64_t token,
                           fabric::write_flags how) noexcept {
  const bool tells = how.kind == fabric::write_kind::immediate;
  if (tells && bytes_of(from) > buffers_->bytes()) {  // the immediate must not come before the last piece
    send_request probe;
    if (!describe_local(from, probe)) return status::not_supported;
  }
  send_request o;
  o.request.opcode = tells ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  o.request.imm_data = htonl(how.immediate);
  o.request.wr.rdma.remote_addr = to[0].address;
  o.request.wr.rdma.rkey = static_cast<std::uint32_t>(region.key);
  o.then.token = token;
  o.then.silent = how.kind == fabric::write_kind::silent;
  const status s = to.size() == 1 ? transfer(peer, from, o) : transfer_pieces(peer, from, to, o);
  if (s != status::posted || !o.then.silent) return s;
  ++word_writes_;
  return status::done;
}

status verbs_fabric::read(int peer, slices to, const fabric::region_key& region,
                          std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept {
  send_request o;
  o.request.opcode = IBV_WR_RDMA_READ;
  o.request.wr.rdma.remote_addr = from[0].address;
  o.request.wr.rdma.rkey = static_cast<std::uint32_t>(region.key);
  o.must_signal = true;
  o.then.token = token;
  return from.size() == 1 ? transfer(peer, to, o) : transfer_pieces(peer, to, from, o);
}

status verbs_fabric::atomic(int peer, const fabric::region_key& region, std::uint64_t address, send_request& o,
                            std::uint64_t& old, fabric::posting when) noexcept {
  if (!caps_.atomics) return status::not_supported;
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  const bool chained = chains(*c, when);
  if (!chained && is_blocked(*c)) return status::retry_queue_full;
  if (chained && queued_.count == chain_of(*c) && !post_queued()) return status::retry_queue_full;
  o.then.buffer = words_->take();
  if (o.then.buffer < 0) return status::retry_queue_full;
  o.then.word = true;
  o.then.copy_to = reinterpret_cast<std::byte*>(&old);
  o.then.bytes = sizeof old;
  o.pieces[0] = {reinterpret_cast<std::uint64_t>(words_->at(o.then.buffer)), sizeof old, words_->key()};
  o.request.num_sge = 1;
  o.request.wr.atomic.remote_addr = address;
  o.request.wr.atomic.rkey = static_cast<std::uint32_t>(region.key);
  o.must_signal = true;
  return chained ? add_to_chain(*c, o, when) : post(*c, o);
}

status verbs_fabric::fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                               std::uint64_t& old, std::uint64_t token, fabric::posting when) noexcept {
  send_request o;
  o.request.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD;
  o.request.wr.atomic.compare_add = operand;
  o.then.token = token;
  return atomic(peer, region, address, o, old, when);
}

status verbs_fabric::compare_swap(int peer, const fabric::region_key& region, std::uint64_t address,
                                  std::uint64_t expected, std::uint64_t desired, std::uint64_t& old,
                                  std::uint64_t token, fabric::posting when) noexcept {
  send_request o;
  o.request.opcode = IBV_WR_ATOMIC_CMP_AND_SWP;
  o.request.wr.atomic.compare_add = expected;
  o.request.wr.atomic.swap = desired;
  o.then.token = token;
  return atomic(peer, region, address, o, old, when);
}

// Kind and number go in the immediate. The text stays in a buffer until it has come through: see abandon.
status verbs_fabric::send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                          std::span<const std::byte> payload) noexcept {
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s == status::retry_queue_full ? s : status::done;
  if (is_blocked(*c)) return status::retry_queue_full;
  send_request o;
  const std::size_t bytes = header.size() + payload.size();
  if (!borrow(bytes, o)) return status::retry_queue_full;
  std::byte* const to = buffers_->at(o.then.buffer);
  if (!header.empty()) std::memcpy(to, header.data(), header.size());
  if (!payload.empty()) std::memcpy(to + header.size(), payload.data(), payload.size());
  o.then.bytes = static_cast<std::uint32_t>(bytes);
  o.then.token = (std::uint64_t{c->sent} << 16) | kind;
  if (post_message(*c, o) != status::posted) {
    buffers_->give_back(o.then.buffer);
    return status::retry_queue_full;
  }
  ++c->sent;
  return status::done;
}

status verbs_fabric::post_message(connection& c, send_request& o) noexcept {
  o.request.opcode = IBV_WR_SEND_WITH_IMM;
  o.request.imm_data = htonl(static_cast<std::uint32_t>(o.then.token));
  o.then.message = true;
  o.then.silent = true;
  if (o.then.bytes <= c.inline_max.load(std::memory_order_relaxed)) o.request.send_flags |= IBV_SEND_INLINE;
  return post(c, o);
}

// First what the last generation of the connection may have lost.
status verbs_fabric::send_again(connection& c) noexcept {
  while (!c.resend.empty()) {
    if (!has_room(c)) return status::retry_queue_full;
    send_request o;
    o.then = c.resend.front();
    o.pieces[0] = {reinterpret_cast<std::uint64_t>(buffers_->at(o.then.buffer)), o.then.bytes, buffers_->key()};
    o.request.num_sge = 1;
    if (post_message(c, o) != status::posted) return status::retry_queue_full;
    c.resend.erase(c.resend.begin());
  }
  return status::done;
}

// By whoever polls: the sender may do nothing else than wait for the answer.
void verbs_fabric::go_on_with_unsent() noexcept {
  std::erase_if(unsent_, [&](connection* c) {
    const connection_state state = c->state.load(std::memory_order_acquire);
    if (state == connection_state::dead || c->left.load(std::memory_order_relaxed)) return true;
    return state == connection_state::ready && send_again(*c) == status::done;
  });
}

}  // namespace rma::verbs
