// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "fabric": the network's own write and read, one call for up to 64 pieces on each side if the fabric
/// supports that, else one for each contiguous piece of the target ("multi-w" of the dissertation, ch. 8); or one write
/// for a list of pieces of the origin, if the target's memory is contiguous ("write-gather", "read-scatter").
#include <algorithm>
#include <array>
#include <mutex>
#include <span>
#include <utility>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t pieces_max = 64;

/// True if the signal of an operation can be sent as soon as the operation is posted. Messages do not wait for reads:
/// after the signal the target may overwrite data that are still being read.
bool is_signaled_when_posted(const operation_args& a, const fabric::capabilities& caps) noexcept {
  return a.kind != call::get && caps.messages_after_writes;
}

/// True if the operation may be held until there is room. Not with a signal that has to wait for the operation's
/// completion, which would come after signals of later operations; copies by this processor need no room.
bool may_be_held(const operation_args& a, const fabric::capabilities& caps) noexcept {
  return !caps.copies_by_cpu && (a.signal < 0 || is_signaled_when_posted(a, caps));
}

/// The posting of one operation. The caller holds the progress lock, by `guard` unless it must not wait.
class posting {
 public:
  posting(window_core& w, const fabric::region_key& region, const checked_operation& o,
          std::unique_lock<small_lock>* guard) noexcept
      : w_(w),
        region_(region),
        o_(o),
        network_(w.ctx->network_of(o.peer)),
        caps_(network_.caps()),
        write_(o.args->kind == call::put),
        holds_(guard == nullptr || may_be_held(*o.args, caps_)),
        guard_(guard) {}

  [[nodiscard]] const fabric::capabilities& caps() const noexcept { return caps_; }
  /// Announces the pieces of the origin's layout.
  void expect_pieces(std::byte* here, bool in_lists) noexcept {
    const Layout& l = *o_.origin;
    if (l.blocks() < 2) return;
    const fabric::local_slice hull{here + l.lower(), static_cast<std::size_t>(l.upper() - l.lower())};
    network_.expect_pieces({hull, l.bytes(), l.blocks(), in_lists});
  }
  /// False if nothing more can be posted now.
  [[nodiscard]] bool goes_on() const noexcept { return result_ == status::done && !full_; }
  [[nodiscard]] std::uint64_t posted_bytes() const noexcept { return posted_bytes_; }
  /// True if the rest of the operation is held until there is room.
  [[nodiscard]] bool is_held() const noexcept { return full_; }

  /// Continues an operation that was held.
  void resume() noexcept {
    operation_ = std::exchange(o_.record, nullptr);
    RMA_ASSERT(operation_ != nullptr && operation_->state == o_.state && operation_->pieces != 0);
    posted_bytes_ = operation_->posted;
  }
  /// Queues behind operations that wait for room; an operation that must not be held waits for these.
  void line_up(std::unique_lock<small_lock>& guard) noexcept {
    if (!is_behind_others(o_)) [[likely]]
      return;
    if (holds_) {
      begin();
      full_ = true;
      return;
    }
    guard.unlock();
    result_ = await_room(w_, o_.args->target);
    guard.lock();
  }

  /// Makes one call of the fabric, when there is room. After a failure, or without room, nothing more is posted.
  [[gnu::always_inline]] void post(std::span<const fabric::local_slice> local,
                                   std::span<const fabric::remote_slice> remote) noexcept {
    if (!goes_on()) return;
    requests_ += remote.size();
    const auto attempt = [=, this]() noexcept { return try_to_post(local, remote); };
    const status s = holds_ ? attempt() : w_.ctx->until_posted(*guard_, o_.peer, attempt);
    if (s == status::not_supported && remote.size() > 1) return post_each(local, remote);
    if (s == status::posted) {
      posted_bytes_ += remote[0].bytes;
      for (std::size_t i = 1; i < remote.size(); ++i) posted_bytes_ += remote[i].bytes;
      return;
    }
    if (s == status::retry_queue_full) {
      requests_ -= remote.size();
      full_ = true;
      return;
    }
    if (s == status::peer_failed || s == status::transfer_failed) w_.ctx->set_last_failed(o_.peer);
    result_ = s;
  }
  /// Finishes the posting of the operation, see engine::finish_posting. `go_on` posts the rest.
  status end(bool now, request_node** request, resume_function go_on) noexcept {
    w_.ctx->count(counter::operations_fabric);
    if (!o_.contiguous) w_.ctx->count(counter::layout_requests, requests_);
    announce();
    if (operation_ == nullptr) return result_;
    keep_track();
    RMA_ASSERT(operation_->state == o_.state && operation_->pieces != 0);
    RMA_ASSERT(!full_ || ok(result_));
    engine& e = *w_.team->rt->ops;
    if (full_) [[unlikely]] {
      hold_for_room(w_, o_, *operation_, posted_bytes_, go_on);
      return e.leave_operation(*guard_, *operation_, w_, o_.peer, now, request);
    }
    if (!ok(result_)) [[unlikely]] {
      (void)e.finish_posting(*guard_, *operation_, w_, o_.peer, now, nullptr);
      return result_;
    }
    return e.finish_posting(*guard_, *operation_, w_, o_.peer, now, request);
  }
  /// Does the same for an operation that was held.
  status end_resumed() noexcept {
    operation_->posted = posted_bytes_;
    if (full_) return status::retry_queue_full;
    w_.team->rt->ops->end_piece(*operation_, result_);
    return status::posted;
  }
  /// Called if the put is one write, so that an immediate can notify the target.
  void tell_by_immediate() noexcept {
    told_by_it_ = write_ && w_.terms.immediates && caps_.write_with_immediate && o_.args->signal < 0 &&
                  w_.epochs->immediate(w_, o_, immediate_);
  }
  /// Copies the origin's data, since the fabric may read them after the call's return.
  std::byte* copy(const void* from, std::size_t bytes) noexcept {
    begin();
    return operation_->keep(from, bytes);
  }

 private:
  [[gnu::noinline]] void post_each(std::span<const fabric::local_slice> local,
                                   std::span<const fabric::remote_slice> remote) noexcept {
    requests_ -= remote.size();
    for (std::size_t i = 0; i < remote.size(); ++i) post(local.subspan(i, 1), remote.subspan(i, 1));
  }
  void begin() noexcept {
    if (operation_ != nullptr) return;
    engine& e = *w_.team->rt->ops;
    operation_ = &e.record_of(o_.record);
    e.track(*operation_, *o_.state, write_);
    e.trace_operation(*operation_, w_, o_);
  }
  status try_to_post(std::span<const fabric::local_slice> local,
                     std::span<const fabric::remote_slice> remote) noexcept {
    const bool direct = caps_.copies_by_cpu;  // complete when it returns: no record is needed
    if (!direct) begin();
    const std::uint64_t token = direct ? 0 : token_of(*operation_);
    const status s = !write_       ? network_.read(o_.peer, local, region_, remote, token)
                     : told_by_it_ ? write_with_immediate(local, remote[0], token)
                                   : network_.write(o_.peer, local, region_, remote, token);
    if (s == status::posted) ++operation_->pieces;
    return s == status::done && !direct ? status::posted : s;
  }
  /// Records the put for the end of the epoch, which has to announce it. A held put is posted without an
  /// immediate.
  void announce() noexcept {
    if (write_ && w_.terms.counts) w_.epochs->written(w_, o_, told_by_it_ && ok(result_) && !full_);
  }
  /// Falls back to a write without an immediate if the fabric does not support it for this memory.
  [[gnu::noinline]] status write_with_immediate(std::span<const fabric::local_slice> local, fabric::remote_slice remote,
                                                std::uint64_t token) noexcept {
    const status s = network_.write(o_.peer, local, region_, {&remote, 1}, token, fabric::with_immediate(immediate_));
    if (s == status::not_supported) {
      told_by_it_ = false;
      return network_.write(o_.peer, local, region_, {&remote, 1}, token);
    }
    if (ok(s) && operation_ != nullptr) operation_->immediate = true;
    return s;
  }
  void keep_track() noexcept {
    mark_dirty(w_, o_.args->target, *o_.state);
    if (o_.far == nullptr || !write_) return;
    if (caps_.write_means != fabric::write_completion::placed) o_.far->unplaced = true;
  }

  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  fabric::network& network_;
  const fabric::capabilities& caps_;
  const bool write_;
  const bool holds_;         ///< it is held if there is no room
  bool full_ = false;        ///< there is no room
  bool told_by_it_ = false;  ///< the write has an immediate
  std::uint32_t immediate_ = 0;
  std::uint64_t requests_ = 0;
  std::unique_lock<small_lock>* guard_;
  operation_record* operation_ = nullptr;
  std::uint64_t posted_bytes_ = 0;
  status result_ = status::done;
};

/// The pieces of a layout, or of a range that is larger than one transfer.
class piece_list {
 public:
  explicit piece_list(posting& to) noexcept
      : to_(to), room_(std::min(pieces_max, to.caps().remote_slices_max)), most_(to.caps().transfer_bytes_max) {}

  void add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
    for (; bytes > most_; bytes -= most_) {
      add(here, there, most_);
      here += most_;
      there += most_;
    }
    local_[count_] = {here, bytes};
    remote_[count_] = {there, bytes};
    if (++count_ == room_) flush();
  }
  void flush() noexcept {
    if (count_ != 0) to_.post({local_.data(), count_}, {remote_.data(), count_});
    count_ = 0;
  }

 private:
  posting& to_;
  std::size_t room_, most_;
  std::size_t count_ = 0;
  std::array<fabric::local_slice, pieces_max> local_;
  std::array<fabric::remote_slice, pieces_max> remote_;
};

/// Posts the operation from byte `first` on.
[[gnu::noinline]] void post_pieces(posting& to, const checked_operation& o, std::byte* here, std::uint64_t there,
                                   std::uint64_t first) noexcept {
  piece_list pieces(to);
  if (o.contiguous) {
    pieces.add(here + first, there + first, o.bytes - first);
  } else {
    cursor target(*o.target, first);
    cursor origin(*o.origin, first);
    while (target.remaining() != 0 && to.goes_on()) {
      const block at = target.front();
      const block local = origin.front();
      const std::size_t bytes = std::min(at.bytes, local.bytes);
      pieces.add(here + local.offset, there + static_cast<std::uint64_t>(at.offset), bytes);
      target.advance_in_block(bytes);
      origin.advance_in_block(bytes);
    }
  }
  pieces.flush();
}

/// Posts the origin's blocks from byte `first` of the operation on, in lists of the network's limit, for contiguous
/// memory at the target.
void post_lists(posting& to, const checked_operation& o, std::byte* here, std::uint64_t there,
                std::uint64_t first) noexcept {
  const bool put = o.args->kind == call::put;
  const std::size_t room = std::min(pieces_max, put ? to.caps().gather_max : to.caps().scatter_max);
  std::array<fabric::local_slice, pieces_max> list;
  std::size_t count = 0;
  fabric::remote_slice slice{there + static_cast<std::uint64_t>(o.target->lower()) + first, 0};
  const auto flush = [&] {
    if (count != 0) to.post({list.data(), count}, {&slice, 1});
    slice = {slice.address + slice.bytes, 0};
    count = 0;
  };
  for (cursor origin(*o.origin, first); origin.remaining() != 0 && to.goes_on();) {
    const block at = origin.front();
    const std::size_t part = std::min(at.bytes, to.caps().transfer_bytes_max - slice.bytes);
    list[count++] = {here + at.offset, part};
    slice.bytes += part;
    origin.advance_in_block(part);
    if (count == room || slice.bytes == to.caps().transfer_bytes_max) flush();
  }
  flush();
}

std::uint64_t target_address(const window_core& w, const fabric::region_key& region,
                             const checked_operation& o) noexcept {
  return (w.kind == call::create_dynamic ? 0 : region.address) + o.offset;
}

std::byte* origin_address(const operation_args& a) noexcept {
  return static_cast<std::byte*>(a.kind == call::put ? const_cast<void*>(a.origin) : a.result);
}

enum class cut : std::uint8_t { pairs, lists };

status resume(window_core& w, const checked_operation& o, cut how) noexcept {
  const fabric::region_key region = known_region(w, o);
  posting to(w, region, o, nullptr);
  to.resume();
  const auto post_rest = how == cut::lists ? post_lists : post_pieces;
  post_rest(to, o, origin_address(*o.args), target_address(w, region, o), to.posted_bytes());
  const bool is_signaled = o.args->signal >= 0 && to.goes_on();
  const status s = to.end_resumed();
  if (is_signaled) notify_locked(w, o.args->target, counter_kind::signal, static_cast<std::uint32_t>(o.args->signal));
  return s;
}
status resume_pairs(window_core& w, const checked_operation& o) noexcept { return resume(w, o, cut::pairs); }
status resume_lists(window_core& w, const checked_operation& o) noexcept { return resume(w, o, cut::lists); }

/// Sends the signal of an operation that has been posted.
[[gnu::noinline]] status raise_signal(window_core& w, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  if (!is_signaled_when_posted(a, w.ctx->network_of(o.peer).caps())) {
    if (const status placed = complete_target(w, a.target); placed != status::done) return placed;
  }
  notify(w, a.target, counter_kind::signal, static_cast<std::uint32_t>(a.signal));
  return status::posted;
}

/// Posts the operation and its signal, unless the rest of it waits for room: then its signal waits with it.
status run(window_core& w, const fabric::region_key& region, const checked_operation& o, cut how,
           request_node** request) noexcept {
  const operation_args& a = *o.args;
  std::unique_lock guard(w.ctx->lock());
  posting to(w, region, o, &guard);
  to.line_up(guard);
  const bool put = a.kind == call::put;
  std::byte* here = origin_address(a);
  const std::uint64_t there = target_address(w, region, o);
  bool read_already = a.by_value && put && o.contiguous && o.bytes <= to.caps().inline_bytes_max && to.goes_on();
  if (a.by_value && !read_already && put && o.contiguous && !to.caps().copies_by_cpu && o.bytes <= copied_bytes_max) {
    here = to.copy(here, o.bytes);
    read_already = true;
  }
  if (o.contiguous && o.bytes <= to.caps().transfer_bytes_max) [[likely]] {
    const fabric::local_slice local{here, o.bytes};
    const fabric::remote_slice remote{there, o.bytes};
    to.tell_by_immediate();
    to.post({&local, 1}, {&remote, 1});
  } else if (how == cut::lists) {
    to.expect_pieces(here, true);
    post_lists(to, o, here, there, 0);
  } else {
    if (!o.contiguous) to.expect_pieces(here, false);
    post_pieces(to, o, here, there, 0);
  }
  read_already = read_already && (to.goes_on() || o.bytes <= copied_bytes_max);  // a short held value is a copy
  const status s = to.end(a.by_value && !read_already, request, how == cut::lists ? resume_lists : resume_pairs);
  if (a.signal < 0) [[likely]]
    return s;
  if (guard.owns_lock()) guard.unlock();
  return !ok(s) || to.is_held() ? s : raise_signal(w, o);
}

}  // namespace

[[gnu::noinline]] status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o,
                                    request_node** request) noexcept {
  return run(w, region, o, cut::pairs, request);
}

status run_fabric_lists(window_core& w, const fabric::region_key& region, const checked_operation& o,
                        request_node** request) noexcept {
  return run(w, region, o, cut::lists, request);
}

namespace {

struct fabric_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    return only_by_handler(w, at, o);
  }
  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    if (o.trial != nullptr) return o.trial->estimate_ns(copy_way::fabric);
    return transfer_estimate_ns(w, o);
  }
  /// Puts of one origin to one location take effect in order, also by different protocols.
  static status start(window_core& w, const placement& at, const checked_operation& o,
                      request_node** request) noexcept {
    RMA_ASSERT(!o.atomic() && at.region != nullptr);
    if (o.far != nullptr) return run_fabric(w, *at.region, o, request);
    if (!promised_are_over(*o.state)) {
      if (const status s = complete_promised(w, o.args->target); s != status::done) return s;
    }
    const status s = run_fabric(w, *at.region, o, request);
    if (s == status::peer_failed) w.ctx->report_lost(o.peer);
    return s;
  }
  static const char* why(const window_core& w, const placement&, const checked_operation& o) noexcept {
    if (o.far != nullptr) return "the target is on another node";
    if (!w.intranode) return "RMA_INTRANODE=off";
    if (w.team->rt->ops->forced() == user_memory::cma) return "RMA_USER_MEMORY=cma";
    if (o.trial != nullptr && o.trial->way() == copy_way::fabric) return o.trial->why();
    return o.contiguous ? "the target computes or sleeps" : "many rows, or the target computes or sleeps";
  }
};

}  // namespace

const protocol fabric_protocol{layout_scheme::automatic, "fabric",          false,          fabric_row::refuses,
                               fabric_row::estimate_ns,  fabric_row::start, fabric_row::why};

}  // namespace rma::detail
