// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "shared": a large copy between private memory of two processes, made by both.
///
///   origin: "copy the second half" ----> target: copies it, acknowledges
///           copies the first half        (with the fabric's own read or write, like the origin)
///
/// The copy is a system call, most of which is not copying but finding pages: two processors take half the time. The
/// target must be certain to handle the message, and the origin stays until it has: then the buffer is free.
#include <algorithm>
#include <cstring>

#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t shared_bytes_min = std::uint64_t{32} << 10;  ///< below, the message costs what the half saves
/// How long a target's handler may be kept busy at a time.
constexpr std::uint64_t piece_bytes_max = std::uint64_t{1} << 20;
constexpr std::uint64_t page_bytes = 4096;

std::byte* buffer_of(const checked_operation& o) noexcept {
  return static_cast<std::byte*>(o.args->kind == call::put ? const_cast<void*>(o.args->origin) : o.args->result);
}

/// Bytes [first, first + bytes) of the operation, by this rank alone.
status copy_here(window_core& w, const fabric::region_key& region, const checked_operation& o, std::uint64_t first,
                 std::uint64_t bytes) noexcept {
  operation_args args = *o.args;
  if (args.kind == call::put) {
    args.origin = buffer_of(o) + first;
  } else {
    args.result = buffer_of(o) + first;
  }
  checked_operation part = o;
  part.args = &args;
  part.offset += first;
  part.bytes = bytes;
  const status s = run_fabric(w, region, part, nullptr);
  if (s == status::peer_failed) w.ctx->lost(w.world_rank(args.target));
  return s;
}

/// What the target was asked to copy.
struct asked {
  context::peer* peer = nullptr;
  std::uint64_t number = 0;    ///< of the message
  std::uint32_t refusals = 0;  ///< of the peer before
  [[nodiscard]] bool is_over() const noexcept { return peer->operations_done.load() >= number; }
  [[nodiscard]] bool refused() const noexcept { return peer->refusals.load() != refusals; }
};

/// Asks the target to copy these bytes; false if it is not certain to answer.
bool ask(window_core& w, const checked_operation& o, std::uint64_t first, std::uint64_t bytes, asked& of) noexcept {
  const int to = w.world_rank(o.args->target);
  const std::lock_guard guard(w.ctx->lock());
  if (w.ctx->promise(to, sizeof(share_header)) != fabric::prospect::certain) return false;
  context::peer& peer = w.ctx->peer_of(to);
  of = {&peer, ++peer.operations_sent, peer.refusals.load()};
  const auto address = reinterpret_cast<std::uint64_t>(buffer_of(o) + first);
  w.ctx->send_record(to, message::share,
                     share_header{w.id, o.offset + first, address, bytes, o.args->kind == call::put ? 1U : 0U});
  w.ctx->count(counter::operations_handler);
  return true;
}

}  // namespace

status run_shared(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept {
  if (!o.contiguous || o.bytes < shared_bytes_min ||
      !w.ctx->network_of(w.world_rank(o.args->target)).caps().copies_by_cpu) {
    return status::not_supported;
  }
  const int to = w.world_rank(o.args->target);
  status s = status::done;
  for (std::uint64_t first = 0; s == status::done && first < o.bytes;) {
    const std::uint64_t bytes = std::min(o.bytes - first, piece_bytes_max);
    const std::uint64_t mine = bytes / 2 / page_bytes * page_bytes;
    asked half;
    if (!ask(w, o, first + mine, bytes - mine, half)) {
      return first == 0 ? status::not_supported : copy_here(w, region, o, first, o.bytes - first);
    }
    if (mine != 0) s = copy_here(w, region, o, first, mine);
    if (const status over = w.ctx->wait_for_peer(to, [&]() noexcept { return half.is_over(); }); !ok(over)) {
      w.ctx->blame(to);
      return over;
    }
    if (s == status::done && half.refused()) s = copy_here(w, region, o, first + mine, bytes - mine);
    first += bytes;
  }
  return s;
}

void serve_share(engine& e, int source, std::span<const std::byte> payload) noexcept {
  e.ctx().owe(source);
  share_header h{};
  if (payload.size() != sizeof h) return e.refuse(source, message::share, payload, nonsense::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  const window_core* const w = e.find(h.window);
  std::byte* const place = w == nullptr ? nullptr : local_range(*w, h.offset, h.bytes);
  status s = status::out_of_window;
  if (place != nullptr) {
    const fabric::local_slice here{place, h.bytes};
    const fabric::remote_slice there{h.address, h.bytes};
    const fabric::region_key region{h.address, h.bytes, 0};
    fabric::network& network = e.ctx().network_of(source);
    s = h.is_put != 0 ? network.read(source, {&here, 1}, region, {&there, 1}, 0)
                      : network.write(source, {&here, 1}, region, {&there, 1}, 0);
  }
  if (s != status::done) e.ctx().send(source, message::refuse, {}, {});
}

}  // namespace rma::detail
