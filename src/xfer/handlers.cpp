// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "handler", target's side. Runs under the progress lock. Everything that comes from another rank is
/// checked: a message that makes no sense is dropped and acknowledged, and nobody else notices.
#include <algorithm>
#include <array>
#include <cstring>

#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct incoming {
  operation_header head;
  std::span<const std::byte> blocks;
  std::span<const std::byte> data;
};

bool parse(std::span<const std::byte> payload, incoming& in) noexcept {
  if (payload.size() < sizeof in.head) return false;
  std::memcpy(&in.head, payload.data(), sizeof in.head);
  const std::size_t list = std::size_t{in.head.blocks} * sizeof(block_range);
  const std::size_t rest = payload.size() - sizeof in.head;
  if (list > rest || in.head.data_bytes != rest - list) return false;
  in.blocks = payload.subspan(sizeof in.head, list);
  in.data = payload.subspan(sizeof in.head + list);
  return static_cast<std::size_t>(in.head.op) < operation_count &&
         static_cast<std::size_t>(in.head.type) < element_count;
}

block_range block_at(const incoming& in, std::size_t i) noexcept {
  block_range b{};
  std::memcpy(&b, in.blocks.data() + i * sizeof b, sizeof b);
  return b;
}

/// Does one block; appends what was fetched. False if the message lies.
bool serve_block(const window_core& w, const incoming& in, const block_range& b, std::uint64_t done,
                 std::byte* fetched) noexcept {
  std::byte* const place = local_range(w, b.offset, b.bytes);
  if (place == nullptr) return false;
  const bool carries = !in.data.empty();
  const std::byte* const from = carries ? in.data.data() + done : nullptr;
  switch (in.head.kind) {
    case call::put:
      if (!carries || done + b.bytes > in.data.size()) return false;
      std::memcpy(place, from, b.bytes);
      return true;
    case call::get: std::memcpy(fetched + done, place, b.bytes); return true;
    case call::compare_and_swap:
      if (in.data.size() != 2 * b.bytes) return false;
      swap_owned(place, in.data.data(), in.data.data() + b.bytes, fetched, b.bytes);
      return true;
    default:
      if ((carries && done + b.bytes > in.data.size()) || (!carries && in.head.op != operation::no_op)) return false;
      if (!defined_for(in.head.op, in.head.type) || b.bytes % bytes_of(in.head.type) != 0) return false;
      return ok(
          apply_owned(place, from, in.head.ticket != 0 ? fetched + done : nullptr, b.bytes, in.head.op, in.head.type));
  }
}

void serve(engine& e, window_core& w, int source, const incoming& in) noexcept {
  std::array<std::byte, 4096> fetched;
  std::uint64_t done = 0;
  for (std::size_t i = 0; i < in.head.blocks; ++i) {
    const block_range b = block_at(in, i);
    if (b.bytes > fetched.size() - done) return;
    if (!serve_block(w, in, b, done, fetched.data())) return;
    done += b.bytes;
  }
  if (in.head.ticket != 0) {
    e.ctx().send_record(source, message::reply, reply_header{in.head.ticket, in.head.position},
                        std::span(fetched.data(), done));
  }
  if (in.head.signal >= 0 && static_cast<unsigned>(in.head.signal) < w.hints.signals) {
    w.array<word64>(w.my_block(), w.layout.signals_at)[in.head.signal].fetch_add(1);
  }
}

}  // namespace

void serve_operation(engine& e, int source, std::span<const std::byte> payload) noexcept {
  e.ctx().owe(source);
  incoming in{};
  const bool whole = parse(payload, in);
  if (in.head.promised != 0) e.ctx().network().promise_kept();
  if (!whole) return;
  window_core* const w = e.find(in.head.window);
  if (w != nullptr) serve(e, *w, source, in);
}

std::byte* local_range(const window_core& w, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (w.kind != call::create_dynamic) {
    return offset <= w.local_bytes && bytes <= w.local_bytes - offset ? w.local_base + offset : nullptr;
  }
  for (const attachment& a : w.attachments) {
    if (offset >= a.address && offset - a.address <= a.bytes && bytes <= a.bytes - (offset - a.address)) {
      return reinterpret_cast<std::byte*>(offset);
    }
  }
  return nullptr;
}

}  // namespace rma::detail
