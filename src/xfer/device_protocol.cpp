// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "device": atomic operations by the network's adapter, which owns the atomicity of a window in mode device.
/// All ranks go this way, the target itself and its neighbours, too: an adapter's atomics are not atomic to a
/// processor's.
///
///   sum of 64-bit integers, and atomic reads   fetch_add, posted and counted; results go straight to the caller
///   compare_and_swap of 64 bits                compare_swap
///   everything else                            a loop: read the word, compute here, compare_swap until it hits
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "datatype/copy.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

/// The atomics of one operation.
class device_run {
 public:
  device_run(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept
      : w_(w),
        region_(region),
        o_(o),
        peer_(o.peer),
        state_(*o.state),
        guard_(w.ctx->lock(), std::defer_lock),
        network_(*w.ctx->wide()) {}

  /// `count` bytes at `offset` of the window. `from` may be null for no_op, `old` if nobody wants it.
  status range(std::uint64_t offset, const std::byte* from, std::byte* old, std::uint64_t count) noexcept {
    const operation_args& a = *o_.args;
    const bool whole = (a.type == element::u64 || a.type == element::i64);
    if (whole && (a.op == operation::sum || a.op == operation::no_op)) {
      status s = status::done;
      if (a.op == operation::no_op) from = nullptr;
      for (std::uint64_t i = 0; i < count && s == status::done; i += word_bytes) {
        s = post_add(offset + i, from != nullptr ? from + i : nullptr, old != nullptr ? old + i : nullptr);
      }
      return s;
    }
    return update_range(offset, from, old, count);
  }

  status swap() noexcept {
    const operation_args& a = *o_.args;
    if (o_.bytes != word_bytes) return swap_part();
    std::uint64_t expected = 0;
    std::uint64_t desired = 0;
    std::memcpy(&expected, a.compare, word_bytes);
    std::memcpy(&desired, a.origin, word_bytes);
    auto* const old = reinterpret_cast<std::uint64_t*>(a.result);
    return post([=, this](operation_record& op) noexcept {
      return network_.compare_swap(peer_, region_, region_.address + o_.offset, expected, desired, *old, token_of(op));
    });
  }

  /// What becomes of what is under way, see engine::finish_posting.
  status end(status result, bool now, request_node** request) noexcept {
    if (operation_ == nullptr) return result;
    if (!guard_.owns_lock()) guard_.lock();
    const status s = w_.team->rt->ops->finish_posting(guard_, *operation_, w_, peer_, now && ok(result),
                                                      ok(result) ? request : nullptr);
    return ok(result) ? s : result;
  }

 private:
  template <class Post>
  [[gnu::always_inline]] status post(Post call) noexcept {
    if (!guard_.owns_lock()) guard_.lock();
    begin();
    const status s = w_.ctx->until_posted(guard_, peer_, [=, this]() noexcept {
      const status posted = call(*operation_);
      if (posted == status::posted) ++operation_->pieces;
      return posted;
    });
    if (s == status::peer_failed) w_.ctx->blame(peer_);
    return s == status::posted ? status::done : s;
  }
  void begin() noexcept {
    if (operation_ != nullptr) return;
    engine& e = *w_.team->rt->ops;
    operation_ = &e.record_of(o_.record);
    e.track(*operation_, state_, false);
    e.trace_operation(*operation_, w_, o_);
    w_.ctx->count(counter::operations_fabric);
    mark_dirty(w_, o_.args->target, state_);
  }

  status post_add(std::uint64_t offset, const std::byte* from, std::byte* old) noexcept {
    std::uint64_t operand = 0;
    if (from != nullptr) std::memcpy(&operand, from, word_bytes);
    return post([=, this](operation_record& op) noexcept {
      std::uint64_t& result = old != nullptr ? *reinterpret_cast<std::uint64_t*>(old) : op.value;
      return network_.fetch_add(peer_, region_, region_.address + offset, operand, result, token_of(op));
    });
  }

  /// Reads the word at `offset`, lets `change` make a new one of it, and puts it there if nobody was faster. False from
  /// `change`: it shall stay as it is.
  template <class Change>
  status exchange(std::uint64_t offset, Change&& change) noexcept {
    if (guard_.owns_lock()) guard_.unlock();
    engine& e = *w_.team->rt->ops;
    const std::uint64_t address = region_.address + offset;
    std::uint64_t seen = 0;
    status s = remote_swap(e, network_, peer_, region_, address, 0, 0, seen);  // an atomic read
    while (s == status::done) {
      std::uint64_t wanted = seen;
      if (!change(reinterpret_cast<std::byte*>(&wanted))) break;
      std::uint64_t found = 0;
      s = remote_swap(e, network_, peer_, region_, address, seen, wanted, found);
      if (found == seen) break;
      seen = found;
    }
    return s;
  }

  status update_range(std::uint64_t offset, const std::byte* from, std::byte* old, std::uint64_t count) noexcept {
    status s = status::done;
    while (count != 0 && s == status::done) {
      const std::uint64_t part = std::min(count, word_bytes - offset % word_bytes);
      s = update(offset, from, old, part);
      offset += part;
      count -= part;
      if (from != nullptr) from += part;
      if (old != nullptr) old += part;
    }
    return s;
  }
  status update(std::uint64_t offset, const std::byte* from, std::byte* old, std::uint64_t bytes) noexcept {
    const std::uint64_t within = offset % word_bytes;
    return exchange(offset - within, [&](std::byte* word) noexcept {
      (void)apply_owned(word + within, from, old, bytes, o_.args->op, o_.args->type);
      return o_.args->op != operation::no_op;
    });
  }

  status swap_part() noexcept {
    const operation_args& a = *o_.args;
    const std::uint64_t within = o_.offset % word_bytes;
    return exchange(o_.offset - within, [&](std::byte* word) noexcept {
      swap_owned(word + within, a.compare, a.origin, a.result, o_.bytes);
      return std::memcmp(a.result, a.compare, o_.bytes) == 0;
    });
  }

  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  int peer_;
  target_state& state_;
  std::unique_lock<small_lock> guard_;  ///< held from the first post to the end, but where it waits
  fabric::network& network_;
  operation_record* operation_ = nullptr;
};

/// Shapes: through contiguous copies, and waited for where something is fetched, since that is rare.
status run_shapes(device_run& run, const checked_operation& o, request_node** request) noexcept {
  const operation_args& a = *o.args;
  std::vector<std::byte> from(o.bytes);
  if (a.origin != nullptr) pack(from.data(), a.origin, *o.origin, 0, o.bytes);
  std::vector<std::byte> old(o.result != nullptr ? o.bytes : 0);
  std::uint64_t done = 0;
  status result = status::done;
  for_each_block(*o.target, [&](std::ptrdiff_t at, std::size_t bytes) {
    if (result != status::done) return;
    result = run.range(o.offset + static_cast<std::uint64_t>(at), from.data() + done,
                       old.empty() ? nullptr : old.data() + done, bytes);
    done += bytes;
  });
  result = run.end(result, !old.empty(), request);
  if (!old.empty() && result == status::done) unpack(a.result, old.data(), *o.result, 0, o.bytes);
  return result;
}

}  // namespace

status run_device(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept {
  const operation_args& a = *o.args;
  if (rma::bytes_of(a.type) > word_bytes) return status::bad_type;  // an adapter's atomics have 8 bytes
  status s = status::done;
  {
    device_run run(w, region, o);
    const bool now = a.by_value && o.fetches();
    if (a.kind == call::compare_and_swap) {
      s = run.end(run.swap(), now, request);
    } else if (o.contiguous) {
      auto* const old = o.fetches() ? static_cast<std::byte*>(a.result) : nullptr;
      s = run.end(run.range(o.offset, static_cast<const std::byte*>(a.origin), old, o.bytes), now, request);
    } else {
      s = run_shapes(run, o, request);
    }
  }
  if (!ok(s) || a.signal < 0) return s;
  if (const status done = complete_target(w, a.target); done != status::done) return done;
  notify(w, a.target, counter_kind::signal, static_cast<std::uint32_t>(a.signal));
  return s;
}

}  // namespace rma::detail
