// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_two_sided.hpp"
#include "core/assert.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "sync/hybrid_machine.hpp"
#include "sync/lock_auto.hpp"
#include "sync/locking.hpp"
#include "xfer/complete.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/message_maker.hpp"

namespace rma::detail {
namespace {

/// Collects an epoch's operation messages into pieces that fit one lock message.
class epoch_pieces {
 public:
  epoch_pieces(window_core& w, int target, lock_kind kind, std::uint32_t number, std::uint32_t late)
      : w_(w),
        target_(target),
        kind_(kind),
        number_(number),
        late_(late),
        bytes_max_(operation_message_max_to(w, w.world_rank(target)) - sizeof(lock_header)) {}

  void add(std::span<const std::byte> head, std::span<const std::byte> data) {
    const auto bytes = static_cast<std::uint32_t>(head.size() + data.size());
    if (sizeof bytes + bytes > bytes_max_ - used_) send(false);
    append(std::as_bytes(std::span(&bytes, 1)));
    append(head);
    append(data);
  }
  void send(bool last) {
    tell_agent(w_, target_, lock_word::epoch, number_, kind_, last, std::span(room_).first(used_), late_);
    used_ = 0;
  }

 private:
  void append(std::span<const std::byte> bytes) {
    std::copy(bytes.begin(), bytes.end(), room_.begin() + static_cast<std::ptrdiff_t>(used_));
    used_ += bytes.size();
  }

  window_core& w_;
  int target_;
  lock_kind kind_;
  std::uint32_t number_, late_;
  std::size_t bytes_max_;
  std::array<std::byte, operation_message_max - sizeof(lock_header)> room_;
  std::size_t used_ = 0;
};

constexpr std::size_t framing_bytes = sizeof(lock_header) + sizeof(std::uint32_t);

/// The reason of a deferral, for the trace.
const lock_explanation& explain_deferred(bool by_auto, deferral by) noexcept {
  static constexpr lock_explanation by_lock_auto[] = {
      {"two-sided:deferred", ""},
      {"two-sided:deferred", "auto: the lock manager has answered well; the call is deferrable"},
      {"two-sided:deferred", "auto: the lock manager has answered well; Hints::lock is deferred"},
      {"two-sided:deferred", "auto: the lock manager has answered well; RMA_LOCK=auto:deferred"},
  };
  static constexpr lock_explanation by_request[] = {
      {"two-sided:deferred", ""},
      {"two-sided:deferred", "the call is deferrable"},
      {"two-sided:deferred", "Hints::lock is deferred"},
      {"two-sided:deferred", "RMA_LOCK=two-sided:deferred"},
  };
  return (by_auto ? by_lock_auto : by_request)[static_cast<std::size_t>(by)];
}

}  // namespace

void end_epoch(window_core& w, int target) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  drop_held(w, w.state_of(target));
}

lock_request& send_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late) {
  const std::lock_guard guard(w.ctx->lock());
  engine& e = *w.team->rt->ops;
  lock_request& request = begin_request(w, target);
  epoch_pieces pieces(w, target, epoch.kind, request.number, late);
  target_state& state = w.state_of(target);
  const std::size_t bytes_max = operation_message_max_to(w, w.world_rank(target));
  for (operation_record& op : state.held) {
    operation_args args;
    const checked_operation o = recall(w, state, op, args);
    message_maker made(w, o, bytes_max - framing_bytes, e.scratch(bytes_max));
    for (bool last = false; !last;) {
      last = made.make();
      pieces.add(made.head(ticket_of(o, op)), made.data());
    }
  }
  pieces.send(true);
  return request;
}

status send_deferred_before(window_core& w, int target) noexcept {
  while (!w.deferred.empty() && w.deferred.front() != target) {
    const int first = w.deferred.front();
    if (const status s = send_deferred(w, first); s != status::done) return s;
    // Later operations of this epoch may use another protocol than these messages, and must not overtake them.
    if (const status s = complete_target(w, first); s != status::done) return s;
  }
  return status::done;
}

void begin_deferred(window_core& w, int target, lock_kind kind) {
  target_state& state = w.state_of(target);
  RMA_ASSERT(state.epoch == nullptr && std::ranges::find(w.deferred, target) == w.deferred.end());
  w.deferred.push_back(target);
  state.epoch = std::make_unique<deferred_epoch>();
  state.epoch->kind = kind;
  state.lock_explained = &explain_deferred(w.defers_far, state.deferrable);
}

std::unique_ptr<deferred_epoch> take_deferred(window_core& w, int target) {
  std::erase(w.deferred, target);
  return std::exchange(w.state_of(target).epoch, nullptr);
}

status lock_two_sided(window_core& w, int target, lock_kind kind, deferral by) noexcept {
  // With several threads no lock is deferred: another thread might acquire it while its own thread is not there to
  // release it.
  if (w.shared_by_threads) return lock_by<agent_machine>(w, target, kind);
  if (by == deferral::none || target == w.team->rank) {
    if (const status s = send_deferred_before(w, -1); s != status::done) return s;
    return lock_by<agent_machine>(w, target, kind);
  }
  begin_deferred(w, target, kind);
  return status::done;
}

status release_two_sided(window_core& w, int target) noexcept {
  target_state& state = w.state_of(target);
  if (state.epoch == nullptr) {
    release_by_agent(w, target);
    return status::done;
  }
  const std::unique_ptr<deferred_epoch> epoch = take_deferred(w, target);
  // The operations of an abandoned epoch are dropped.
  const status s = w.failed() ? status::done : await_epoch(w, target, *epoch, 0).why;
  end_epoch(w, target);
  return s;
}

epoch_end await_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late) noexcept {
  const int peer = w.world_rank(target);
  std::uint32_t malformed_notices = 0;
  {
    const std::lock_guard guard(w.ctx->lock());
    malformed_notices = w.ctx->peer_of(peer).malformed_notices.load();
  }
  lock_request& sent = send_epoch(w, target, epoch, late);
  agent_machine m(w, target, sent);
  epoch_end end{wait_for(w, m), m.why(), &sent};
  if (end.step == lock_step::held) {
    const std::lock_guard guard(w.ctx->lock());
    if (w.ctx->peer_of(peer).malformed_notices.load() != malformed_notices) end.why = status::transfer_failed;
  }
  if (end.why == status::transfer_failed) w.ctx->set_last_failed(peer);
  return end;
}

status send_deferred(window_core& w, int target) noexcept {
  if (w.state_of(target).epoch == nullptr) return status::done;
  if (const status s = send_deferred_before(w, target); s != status::done) return s;
  const lock_kind kind = w.state_of(target).epoch->kind;
  const status s = w.defers_far ? lock_by<hybrid_machine>(w, target, kind) : lock_by<agent_machine>(w, target, kind);
  if (s != status::done) return s;
  target_state& state = w.state_of(target);
  state.lock_explained = nullptr;
  if (w.defers_far) explain_path(state);
  (void)take_deferred(w, target);
  send_operations(w, target);
  return status::done;
}

void send_operations(window_core& w, int target) {
  const std::lock_guard guard(w.ctx->lock());
  engine& e = *w.team->rt->ops;
  const int to = w.world_rank(target);
  context::peer& peer = w.ctx->peer_of(to);
  target_state& state = w.state_of(target);
  const std::size_t bytes_max = operation_message_max_to(w, to);
  while (!state.held.empty()) {
    operation_args args;
    const checked_operation o = recall(w, state, take_held(w, state), args);
    message_maker made(w, o, bytes_max, e.scratch(bytes_max));
    operation_record& op = record_by_message(w, o, o.record, peer);
    for (bool last = false; !last;) {
      last = made.make();
      ++peer.operations_sent;
      w.ctx->send(to, message::operation, made.head(ticket_of(o, op)), made.data());
    }
    mark_sent(w, target, state, peer);
    e.await_acknowledgement(op, peer, &state);
  }
  RMA_ASSERT(state.held.empty());
}

}  // namespace rma::detail
