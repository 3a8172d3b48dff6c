// SPDX-License-Identifier: Apache-2.0
/// \file
/// The calls of the fabric: they post operations, or refuse them while a connection is blocked.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>

#include "fabric/verbs/verbs_fabric.hpp"

namespace rma::verbs {

status verbs_fabric::transfer(int peer, slices local, send_request& o) noexcept {
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  const bool write = !o.reads();
  if (queued_.takes(*c, local, o)) return queued_.add(*c, local[0], o);
  if (queued_.is_blocked(*c)) return status::retry_queue_full;
  if (write && local.size() == 1 && local[0].bytes <= c->inline_max.load(std::memory_order_relaxed)) [[likely]] {
    o.pieces[0] = {reinterpret_cast<std::uint64_t>(local[0].at), static_cast<std::uint32_t>(local[0].bytes), 0};
    o.request.num_sge = 1;
    o.request.send_flags |= IBV_SEND_INLINE;
    return sends_.post(*c, o);
  }
  const status placed = memory_.prepare(*c, local, bytes_of(local), o);
  if (placed == status::not_yet) {
    bounced_.add(*c, local, o);
    return status::posted;
  }
  if (placed != status::done) return placed;
  const status s = sends_.post(*c, o);
  if (s != status::posted) memory_.undo(o.then);
  return s;
}

// Posts an entry for each pair of pieces. Pieces that would be bounced are refused: the caller sends them one by one.
status verbs_fabric::transfer_pieces(int peer, slices local, std::span<const fabric::remote_slice> remote,
                                     const send_request& like) noexcept {
  if (local.size() != remote.size() || local.size() > chain_.size()) return status::not_supported;
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (queued_.is_blocked(*c, local.size())) return status::retry_queue_full;
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
    const status placed = local[i].bytes == remote[i].bytes
                              ? memory_.prepare(*c, local.subspan(i, 1), local[i].bytes, o)
                              : status::not_supported;
    if (placed == status::done) continue;
    for (const send_request& before : std::span(chain_).first(i)) memory_.undo(before.then);
    return placed == status::not_yet ? status::not_supported : placed;
  }
  return post_pieces(*c, local.size());
}

status verbs_fabric::post_pieces(connection& c, std::size_t count) noexcept {
  const auto all = std::span(chain_).first(count);
  if (sends_.post_list(c, all)) return status::posted;
  for (const send_request& o : all) memory_.undo(o.then);
  return status::retry_queue_full;
}

// ---- the fabric's calls -------------------------------------------------------------------------------------

status verbs_fabric::write(int peer, slices from, const fabric::region_key& region,
                           std::span<const fabric::remote_slice> to, std::uint64_t token,
                           fabric::write_flags how) noexcept {
  const bool tells = how.kind == fabric::write_kind::immediate;
  if (tells && bytes_of(from) > memory_.buffer_bytes()) {  // the immediate must not arrive before the last piece
    send_request probe;
    if (!memory_.describe(from, probe)) return status::not_supported;
  }
  send_request o;
  o.request.opcode = tells ? IBV_WR_RDMA_WRITE_WITH_IMM : IBV_WR_RDMA_WRITE;
  o.request.imm_data = htonl(how.immediate);
  o.request.wr.rdma.remote_addr = to[0].address;
  o.request.wr.rdma.rkey = static_cast<std::uint32_t>(region.key);
  o.then.token = token;
  o.then.silent = how.kind == fabric::write_kind::silent;
  o.unsignaled = how.unsignaled;
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
  const bool chained = queued_.chains(*c, when);
  if (!(chained ? queued_.has_room_in_chain(*c) : !queued_.is_blocked(*c))) return status::retry_queue_full;
  if (!memory_.borrow_word(old, o)) return status::retry_queue_full;
  o.request.wr.atomic.remote_addr = address;
  o.request.wr.atomic.rkey = static_cast<std::uint32_t>(region.key);
  o.must_signal = true;
  if (chained) return queued_.add_to_chain(*c, o, when);
  const status s = sends_.post(*c, o);
  if (s != status::posted) memory_.undo(o.then);
  return s;
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

// The immediate has kind and number. The text stays in a buffer until it has arrived: see broken_connections.
status verbs_fabric::send(int peer, std::uint16_t kind, std::span<const std::byte> header,
                          std::span<const std::byte> payload) noexcept {
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s == status::retry_queue_full ? s : status::done;
  if (queued_.is_blocked(*c)) return status::retry_queue_full;
  send_request o;
  const std::size_t bytes = header.size() + payload.size();
  if (!memory_.borrow(bytes, o)) return status::retry_queue_full;
  std::byte* const to = memory_.buffer(o);
  if (!header.empty()) std::memcpy(to, header.data(), header.size());
  if (!payload.empty()) std::memcpy(to + header.size(), payload.data(), payload.size());
  o.then.token = (std::uint64_t{c->sent} << 16) | kind;
  if (post_message(sends_, *c, o) != status::posted) {
    memory_.undo(o.then);
    return status::retry_queue_full;
  }
  ++c->sent;
  return status::done;
}

// ---- the bulk channel ---------------------------------------------------------------------------------------

status verbs_fabric::send_bulk(int peer, slices from, std::uint64_t token) noexcept {
  return bulk_.send(peer, from, token);
}

status verbs_fabric::post_bulk_receive(int peer, slices to, std::uint64_t token) noexcept {
  return bulk_.post_receive(peer, to, token);
}

}  // namespace rma::verbs
