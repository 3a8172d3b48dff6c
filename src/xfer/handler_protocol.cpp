// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "handler", origin's side: the operation travels in messages and the target's handler does it.
///
///   origin: pack blocks and data into messages ----> target: do it, reply what is fetched, acknowledge
///
/// Messages of one origin to one target are handled in order, which gives accumulates their order. The origin's
/// buffer is copied into the message: local completion is immediate but for results.
#include <algorithm>
#include <array>
#include <cstring>

#include "datatype/copy.hpp"
#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t blocks_max = 64;
constexpr std::size_t message_max = 4096;
constexpr std::size_t queued_max = 16384;  ///< messages that wait for room before the origin waits, too

/// Fills messages and sends them. The caller holds the progress lock.
class message_writer {
 public:
  message_writer(window_core& w, const checked_operation& o, std::uint64_t ticket) noexcept
      : w_(w), o_(o), peer_(w.ctx->peer_of(w.world_rank(o.args->target))), ticket_(ticket) {
    carries_data_ = o.args->kind == call::put || (o.atomic() && o.args->origin != nullptr);
  }

  /// A block of the target with the data for it (null where none go out).
  void add(std::uint64_t offset, const std::byte* data, std::uint64_t bytes) noexcept {
    const std::uint64_t unit = o_.atomic() ? rma::bytes_of(o_.args->type) : 1;
    while (bytes > 0) {
      const std::uint64_t part = std::min(bytes, room() / unit * unit);
      if (part == 0 || blocks_ == blocks_max) {
        send(false);
        continue;
      }
      block_[blocks_++] = {offset, part};
      if (carries_data_) {
        std::memcpy(data_.data() + used_, data, part);
        data += part;
      }
      used_ += part;
      offset += part;
      bytes -= part;
    }
  }
  /// compare_and_swap: both values.
  void add_swap(std::uint64_t offset, const void* compare, const void* desired, std::uint64_t bytes) noexcept {
    block_[blocks_++] = {offset, bytes};
    std::memcpy(data_.data(), compare, bytes);
    std::memcpy(data_.data() + bytes, desired, bytes);
    used_ = 2 * bytes;
  }
  void finish() noexcept { send(true); }

 private:
  [[nodiscard]] std::uint64_t room() const noexcept {
    const std::size_t fixed =
        sizeof(operation_header) + (blocks_ + 1) * sizeof(block_range) + sizeof(message_header_space);
    return fixed + used_ >= message_max ? 0 : message_max - fixed - used_;
  }
  void send(bool last) noexcept {
    operation_header h{};
    h.window = w_.id;
    h.ticket = ticket_;
    h.position = position_;
    h.blocks = static_cast<std::uint32_t>(blocks_);
    h.data_bytes = static_cast<std::uint32_t>(carries_data_ ? used_ : 0);
    h.signal = last ? o_.args->signal : -1;
    h.kind = o_.args->kind;
    h.op = o_.args->op;
    h.type = o_.args->type;
    h.promised = last && o_.promised ? 1 : 0;
    std::memcpy(head_.data(), &h, sizeof h);
    std::memcpy(head_.data() + sizeof h, block_.data(), blocks_ * sizeof(block_range));
    ++peer_.operations_sent;
    w_.ctx->send(w_.world_rank(o_.args->target), message::operation,
                 std::span<const std::byte>(head_.data(), sizeof h + blocks_ * sizeof(block_range)),
                 std::span<const std::byte>(data_.data(), h.data_bytes));
    position_ += used_;
    used_ = 0;
    blocks_ = 0;
  }

  struct message_header_space {
    std::uint64_t fabric;
    std::uint64_t reply[2];
  };
  window_core& w_;
  const checked_operation& o_;
  context::peer& peer_;
  std::uint64_t ticket_;
  std::uint64_t position_ = 0;
  std::uint64_t used_ = 0;
  std::size_t blocks_ = 0;
  bool carries_data_;
  std::array<block_range, blocks_max> block_;
  std::array<std::byte, message_max> data_;
  std::array<std::byte, sizeof(operation_header) + blocks_max * sizeof(block_range)> head_;
};

void write_messages(message_writer& out, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  const auto* const from = static_cast<const std::byte*>(a.origin);
  if (a.kind == call::compare_and_swap) {
    out.add_swap(o.offset, a.compare, a.origin, o.bytes);
  } else if (o.contiguous) {
    out.add(o.offset, from, o.bytes);
  } else if (a.kind == call::get || from == nullptr) {
    for_each_block(o.target, [&](std::ptrdiff_t at, std::size_t bytes) {
      out.add(o.offset + static_cast<std::uint64_t>(at), nullptr, bytes);
    });
  } else {
    for_each_pair(o.target, o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t source, std::size_t bytes) {
      out.add(o.offset + static_cast<std::uint64_t>(at), from + source, bytes);
    });
  }
  out.finish();
}

/// This rank's own part, when handlers own it: the same, without messages.
status run_own(window_core& w, const checked_operation& o) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  const operation_args& a = *o.args;
  std::vector<std::byte> from(a.origin != nullptr && a.kind != call::get ? o.bytes : 0);
  std::vector<std::byte> old(o.fetches() ? o.bytes : 0);
  if (!from.empty()) pack(from.data(), a.origin, o.origin, 0, o.bytes);
  std::uint64_t done = 0;
  status result = status::done;
  for_each_block(o.target, [&](std::ptrdiff_t at, std::size_t bytes) {
    std::byte* const place = local_range(w, o.offset + static_cast<std::uint64_t>(at), bytes);
    if (place == nullptr) {
      result = status::out_of_window;
    } else if (a.kind == call::compare_and_swap) {
      swap_owned(place, a.compare, from.data(), old.data(), bytes);
    } else if (a.kind == call::put) {
      std::memcpy(place, from.data() + done, bytes);
    } else if (a.kind == call::get) {
      std::memcpy(old.data() + done, place, bytes);
    } else {
      const status s = apply_owned(place, from.empty() ? nullptr : from.data() + done,
                                   old.empty() ? nullptr : old.data() + done, bytes, a.op, a.type);
      if (s != status::done) result = s;
    }
    done += bytes;
  });
  if (!old.empty()) unpack(a.result, old.data(), a.kind == call::get ? o.origin : o.result, 0, o.bytes);
  return result;
}

void wait_for_room(window_core& w, int peer) noexcept {
  context::peer* p = nullptr;
  {
    const std::lock_guard guard(w.ctx->lock());
    p = &w.ctx->peer_of(peer);
    if (p->waiting.size() < queued_max) return;
  }
  (void)w.ctx->wait_for_peer(peer, [&]() noexcept {
    const std::unique_lock guard(w.ctx->lock(), std::try_to_lock);
    return guard.owns_lock() && p->waiting.size() < queued_max / 2;
  });
}

}  // namespace

status run_handler(window_core& w, const checked_operation& o, request_node** request) noexcept {
  const int target = o.args->target;
  if (target == w.team->rank) return run_own(w, o);
  const int peer = w.world_rank(target);
  target_state& state = w.state_of(target);
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::operations_handler);
    engine& e = *w.team->rt->ops;
    const Layout& shape = o.args->kind == call::get ? o.origin : o.result;
    const std::uint64_t ticket = o.fetches() ? e.new_ticket(o.args->result, shape) : 0;
    message_writer out(w, o, ticket);
    write_messages(out, o);
    state.last_operation = w.ctx->peer_of(peer).operations_sent;
    if (!state.dirty) {
      state.dirty = true;
      w.dirty.push_back(target);
    }
    if (request != nullptr) *request = e.new_request(peer, state.last_operation);
  }
  if (target_view* const t = view_of(w, target)) t->flushable = 0;
  wait_for_room(w, peer);
  return status::posted;
}

}  // namespace rma::detail
