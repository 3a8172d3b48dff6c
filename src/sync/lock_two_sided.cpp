// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_two_sided.hpp"

#include <cstring>
#include <utility>

#include "sync/lock_agent.hpp"
#include "sync/lock_hybrid.hpp"
#include "xfer/message_maker.hpp"

namespace rma::detail {
namespace {

/// Calls `take(message)` for each message of the epoch.
template <class Take>
void for_each_message(const deferred_epoch& epoch, Take&& take) {
  for (std::size_t at = 0; at < epoch.messages.size();) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, epoch.messages.data() + at, sizeof bytes);
    take(std::span(epoch.messages).subspan(at, sizeof bytes + bytes));
    at += sizeof bytes + bytes;
  }
}

}  // namespace

lock_request& send_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late) {
  const std::lock_guard guard(w.ctx->lock());
  lock_request& request = begin_request(w, target);
  std::span<const std::byte> piece;
  for_each_message(epoch, [&](std::span<const std::byte> message) {
    if (piece.size() + message.size() > operation_message_max - sizeof(lock_header)) {
      tell_agent(w, target, lock_word::epoch, request.number, epoch.kind, false, piece, late);
      piece = {};
    }
    piece = piece.empty() ? message : std::span(piece.data(), piece.size() + message.size());
  });
  tell_agent(w, target, lock_word::epoch, request.number, epoch.kind, true, piece, late);
  return request;
}

status send_deferred_before(window_core& w, int target) noexcept {
  while (!w.deferred.empty() && w.deferred.front() != target) {
    const int first = w.deferred.front();
    if (const status s = send_deferred(w, first); s != status::done) return s;
    // What this epoch does next may go another way than these messages, and must not overtake them.
    if (const status s = complete_target(w, first); s != status::done) return s;
  }
  return status::done;
}

void begin_deferred(window_core& w, int target, lock_kind kind) {
  w.deferred.push_back(target);
  target_state& state = w.state_of(target);
  state.epoch = std::make_unique<deferred_epoch>();
  state.epoch->kind = kind;
}

std::unique_ptr<deferred_epoch> take_deferred(window_core& w, int target) {
  std::erase(w.deferred, target);
  return std::exchange(w.state_of(target).epoch, nullptr);
}

status acquire_two_sided(window_core& w, int target, lock_kind kind) noexcept {
  // Of several threads none asks for what another one wants: its own thread is not at hand to let go of it.
  if (w.crowded) return acquire_by_agent(w, target, kind);
  if (target == w.team->rank) {
    if (const status s = send_deferred_before(w, -1); s != status::done) return s;
    return acquire_by_agent(w, target, kind);
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
  if (w.failed()) return status::done;  // abandoned: nothing of it happens
  return await_epoch(w, target, *epoch, 0, nullptr);
}

status await_epoch(window_core& w, int target, const deferred_epoch& epoch, std::uint32_t late,
                   lock_request** request) noexcept {
  const int peer = w.world_rank(target);
  std::uint32_t protests = 0;
  {
    const std::lock_guard guard(w.ctx->lock());
    protests = w.ctx->peer_of(peer).protests.load();
  }
  lock_request& sent = send_epoch(w, target, epoch, late);
  if (request != nullptr) *request = &sent;
  status s = await_answer(w, target, sent);
  if (s == status::done) {
    const std::lock_guard guard(w.ctx->lock());
    if (w.ctx->peer_of(peer).protests.load() != protests) s = status::transfer_failed;
  }
  if (s == status::transfer_failed) w.ctx->blame(peer);
  return s;
}

status send_deferred(window_core& w, int target) noexcept {
  if (w.state_of(target).epoch == nullptr) return status::done;
  if (const status s = send_deferred_before(w, target); s != status::done) return s;
  const lock_kind kind = w.state_of(target).epoch->kind;
  const status s = w.defers_far ? acquire_hybrid(w, target, kind) : acquire_by_agent(w, target, kind);
  if (s != status::done) return s;
  const std::unique_ptr<deferred_epoch> epoch = take_deferred(w, target);
  if (epoch->count != 0) send_operations(w, target, *epoch);
  return status::done;
}

void send_operations(window_core& w, int target, const deferred_epoch& epoch) {
  const std::lock_guard guard(w.ctx->lock());
  const int to = w.world_rank(target);
  context::peer& peer = w.ctx->peer_of(to);
  for_each_message(epoch, [&](std::span<const std::byte> message) {
    ++peer.operations_sent;
    w.ctx->send(to, message::operation, message.subspan(sizeof(std::uint32_t)), {});
  });
  mark_sent(w, target, w.state_of(target), peer);
}

}  // namespace rma::detail
