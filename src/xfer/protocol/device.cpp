// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "device": atomic operations by the network's adapter, which owns the atomicity of a window in mode device.
/// All ranks use this protocol, even the target itself and its neighbors: an adapter's atomics are not atomic with
/// respect to a processor's.
///
///   sum of 64-bit integers, and atomic reads   fetch_add, posted and counted; results go straight to the caller;
///                                              those of several words in chains, with one doorbell for each
///   compare_and_swap of 64 bits                compare_swap
///   everything else                            a loop: read the word, compute here, compare_swap until it hits
#include <algorithm>
#include <array>
#include <cstring>
#include <mutex>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "xfer/complete.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

/// True if each word of it is one fetch_add.
bool is_added(const operation_args& a) noexcept {
  return (a.type == element::u64 || a.type == element::i64) && (a.op == operation::sum || a.op == operation::no_op);
}

/// True if all of it is posted at once, and may be held for room: other operations are loops that wait for each word.
bool is_posted(const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  if (!o.contiguous || a.signal >= 0) return false;
  if (a.kind == call::compare_and_swap) return o.bytes == word_bytes;
  return is_added(a);
}

status resume_device(window_core& w, const checked_operation& o) noexcept;

/// The atomics of one operation.
class device_run {
 public:
  device_run(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept
      : w_(w),
        region_(region),
        o_(o),
        peer_(o.peer),
        state_(*o.state),
        holds_(is_posted(o)),
        chains_(o.bytes > word_bytes && is_added(*o.args)),
        guard_(w.ctx->lock(), std::defer_lock),
        network_(*w.ctx->wide()) {}

  /// Queues behind operations that wait for room; an operation that must not be held waits for these.
  status line_up() noexcept {
    if (!is_behind_others(o_)) [[likely]]
      return status::done;
    if (!holds_) return await_room(w_, o_.args->target);
    guard_.lock();
    begin();
    full_ = true;
    return status::done;
  }
  /// Continues an operation that was held; the caller holds the progress lock.
  void resume() noexcept {
    resumed_ = true;
    operation_ = std::exchange(o_.record, nullptr);
    posted_bytes_ = operation_->posted;
  }
  [[nodiscard]] std::uint64_t posted_bytes() const noexcept { return posted_bytes_; }
  status end_resumed(status result) noexcept {
    operation_->posted = posted_bytes_;
    if (full_) return status::retry_queue_full;
    w_.team->rt->ops->end_piece(*operation_, result);
    return status::posted;
  }

  /// `count` bytes at `offset` of the window. `from` may be null for no_op, `old` if it is not needed.
  status range(std::uint64_t offset, const std::byte* from, std::byte* old, std::uint64_t count) noexcept {
    const operation_args& a = *o_.args;
    if (is_added(a)) {
      status s = status::done;
      if (a.op == operation::no_op) from = nullptr;
      for (std::uint64_t i = 0; i < count && s == status::done && !full_; i += word_bytes) {
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
      std::uint64_t& result = old != nullptr ? *old : op.value;  // null if its request was dropped
      return network_.compare_swap(peer_, region_, region_.address + o_.offset, expected, desired, result, token_of(op),
                                   when());
    });
  }

  /// Finishes the posting of the operation, see engine::finish_posting.
  status end(status result, bool now, request_node** request) noexcept {
    if (operation_ == nullptr) return result;
    if (!guard_.owns_lock()) guard_.lock();
    if (full_) {
      hold_for_room(w_, o_, *operation_, posted_bytes_, resume_device);
      const bool is_long_value = o_.args->by_value && o_.bytes > copied_bytes_max;
      return w_.team->rt->ops->leave_operation(guard_, *operation_, w_, peer_, now || is_long_value, request);
    }
    const status s = w_.team->rt->ops->finish_posting(guard_, *operation_, w_, peer_, now && ok(result),
                                                      ok(result) ? request : nullptr);
    return ok(result) ? s : result;
  }

 private:
  template <class Post>
  [[gnu::always_inline]] status post(Post call) noexcept {
    if (full_) return status::done;
    if (!resumed_ && !guard_.owns_lock()) guard_.lock();
    begin();
    const auto attempt = [=, this]() noexcept {
      const status posted = call(*operation_);
      if (posted == status::posted) ++operation_->pieces;
      return posted;
    };
    const status s = holds_ ? attempt() : w_.ctx->until_posted(guard_, peer_, attempt);
    if (s == status::peer_failed) w_.ctx->set_last_failed(peer_);
    full_ = s == status::retry_queue_full;
    if (full_) return status::done;
    posted_bytes_ += word_bytes;
    return s == status::posted ? status::done : s;
  }
  /// more_follow if another atomic to this target is posted after the present one.
  [[nodiscard]] fabric::posting when() const noexcept {
    const bool more = (chains_ && posted_bytes_ + word_bytes < o_.bytes) || w_.schedule.more_follow;
    return more ? fabric::posting::more_follow : fabric::posting::now;
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
      return network_.fetch_add(peer_, region_, region_.address + offset, operand, result, token_of(op), when());
    });
  }

  /// Reads the word at `offset`, lets `change` modify a copy, and swaps it in; repeats that if another rank was faster.
  /// If `change` returns false, the word is not written.
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
  const bool holds_;      ///< it is held if there is no room
  const bool chains_;     ///< it is several words, posted without a wait between them
  bool full_ = false;     ///< there is no room
  bool resumed_ = false;  ///< the caller holds the lock
  std::uint64_t posted_bytes_ = 0;
  std::unique_lock<small_lock> guard_;  ///< held from the first post to the end, except in waits
  fabric::network& network_;
  operation_record* operation_ = nullptr;
};

/// Runs operations with layouts by contiguous copies, and waits if data are fetched, since that is rare.
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

status resume_device(window_core& w, const checked_operation& o) noexcept {
  const fabric::region_key region = known_region(w, o);
  const operation_args& a = *o.args;
  device_run run(w, region, o);
  run.resume();
  if (a.kind == call::compare_and_swap) return run.end_resumed(run.swap());
  const std::uint64_t first = run.posted_bytes();
  const auto* const from = static_cast<const std::byte*>(a.origin);
  auto* const old = o.fetches() ? static_cast<std::byte*>(a.result) : nullptr;
  return run.end_resumed(run.range(o.offset + first, from != nullptr ? from + first : nullptr,
                                   old != nullptr ? old + first : nullptr, o.bytes - first));
}

}  // namespace

status run_device(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept {
  const operation_args& a = *o.args;
  if (rma::bytes_of(a.type) > word_bytes) return status::bad_type;  // an adapter's atomics have 8 bytes
  status s = status::done;
  {
    device_run run(w, region, o);
    if (const status ready = run.line_up(); ready != status::done) return ready;
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

namespace {

struct device_row {
  static const char* refuses(const window_core& w, const placement&, const checked_operation& o) noexcept {
    return o.atomic() && w.mode == accumulate_mode::direct ? nullptr : "the adapter does not own atomicity";
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return 0; }
  static status start(window_core& w, const placement& at, const checked_operation& o,
                      request_node** request) noexcept {
    RMA_ASSERT(o.atomic() && at.region != nullptr);
    return run_device(w, *at.region, o, request);
  }
  static const char* why(const window_core&, const placement&, const checked_operation&) noexcept {
    return "the adapter owns atomicity";
  }
};

}  // namespace

const protocol device_protocol{layout_scheme::automatic, "device",          false,          device_row::refuses,
                               device_row::estimate_ns,  device_row::start, device_row::why};

}  // namespace rma::detail
