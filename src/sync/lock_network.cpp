// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_network.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sync/lock_protocol.hpp"
#include "sync/locking.hpp"
#include "sync/network_machine.hpp"
#include "window/window_core.hpp"

namespace rma::detail {
namespace {

constexpr unsigned recovery_tries = 32;
constexpr std::int64_t pause_first_ns = 1'000;
constexpr std::int64_t pause_max_ns = 1'000'000;
constexpr std::int64_t pause_still_ns = 2 * pause_max_ns;  ///< while the word does not change
constexpr std::int64_t yield_max_ns = pause_still_ns;      ///< all waiters have polled by then
constexpr std::int64_t drain_first_ns = 200'000;  ///< a writer excludes readers for so long while it waits for others
constexpr std::int64_t drain_max_ns = 10'000'000;
constexpr std::int64_t withdrawn_ns = 4 * pause_max_ns;  ///< and admits them for so long
constexpr std::int64_t long_held_ns = 100'000'000;
/// After a death, a word that does not change for so long may have several holders, of which a dead one cannot be
/// identified.
constexpr std::int64_t still_ns = 500'000'000;

}  // namespace

remote_word network_word(window_core& w, int target) noexcept {
  return remote_word(w, target, offsetof(window_block, network_lock));
}

network_machine::network_machine(window_core& w, int target, lock_kind kind, network_phase first) noexcept
    : w_(w),
      word_(network_word(w, target)),
      peer_(w.world_rank(target)),
      pause_ns_(pause_first_ns),
      drain_ns_(drain_first_ns) {
  RMA_ASSERT(first == network_phase::entering || first == network_phase::claiming);
  a_.kind = kind;
  a_.phase = first;
  a_.hold = network_hold(w.ctx->rank(), kind);
  if (first != network_phase::entering || kind != lock_kind::exclusive) return;
  a_.seen = std::exchange(w.state_of(target).left_wanted, 0);
  a_.phase = network_again(a_.seen);
  if (a_.phase == network_phase::yielding) yields_until_ns_ = w.ctx->around().now_ns() + yield_max_ns;
}

bool network_machine::may_advance() noexcept {
  return word_.asks() ? word_.is_answered() : w_.ctx->around().now_ns() >= next_ns_;
}

lock_step network_machine::go_on() noexcept {
  RMA_ASSERT(a_.phase != network_phase::held && a_.phase != network_phase::moved);
  if (!may_advance()) return lock_step::not_yet;
  if (!word_.asks()) withdrawn_ = false;
  for (;;) {
    const status s = request();
    if (s == status::posted) return lock_step::not_yet;
    RMA_ASSERT(!word_.asks());  // the adapter has answered
    if (s != status::done) return end(s);
    if (a_.phase == network_phase::moved) return lock_step::moved;
    if (a_.phase == network_phase::held) return missed() ? end(status::peer_failed) : lock_step::held;
    const bool comes_back = withdrawn_ && a_.phase == network_phase::entering;
    if (!comes_back && (!waits() || withdraws() || yielded_enough())) continue;
    if (once_ && !comes_back) {
      take_back();
      return lock_step::occupied;
    }
    pause(withdrawn_ ? withdrawn_ns : pause_ns_);
    return lock_step::not_yet;
  }
}

/// Posts a request or takes its result. `posted` means that the result is not available yet.
status network_machine::request() noexcept {
  std::uint64_t old = 0;
  const status s = word_.ask_soon(request_of(a_), must(), old);
  if (s == status::posted && !word_.asks()) next_ns_ = w_.ctx->around().now_ns() + pause_first_ns;  // there is no room
  if (s == status::posted) return s;
  has_to_look_ = false;
  if (s != status::done) return s;
  const std::uint64_t before = a_.seen;
  a_ = step(a_, old);
  observe(before, old);
  return s;
}

lock_step network_machine::end(status why) noexcept {
  const lock_step s = fail(why);
  take_back();
  return s;
}

/// Waits for the end of a pending request, and completes the migration of a lock that this rank is bringing.
void network_machine::finish_request() noexcept {
  std::uint64_t old = 0;
  status s = status::not_yet;
  if (word_.asks()) {
    s = word_.await_answer(must(), request_of(a_), old);
  } else if (a_.phase == network_phase::claiming && why() != status::transfer_failed) {
    s = word_.add(request_of(a_).operand, old);
  }
  if (s == status::done) a_ = step(a_, old);
}

/// True if this rank has yielded for long enough: the rank that wanted the lock has given up, or is dead.
bool network_machine::yielded_enough() noexcept {
  if (a_.phase != network_phase::yielding || w_.ctx->around().now_ns() < yields_until_ns_) return false;
  a_.phase = network_phase::entering;
  return true;
}

/// A writer for which readers do not leave admits others for a while: ranks may wait for each other at several targets,
/// each holding a lock that another one waits for.
bool network_machine::withdraws() noexcept {
  const std::int64_t now = w_.ctx->around().now_ns();
  if (a_.phase != network_phase::draining) {
    drains_since_ns_ = -1;
    return false;
  }
  if (drains_since_ns_ < 0) drains_since_ns_ = now;
  if (now - drains_since_ns_ < drain_ns_ || network_only_holder(a_.seen) >= 0) return false;
  drains_since_ns_ = -1;
  drain_ns_ = std::min(2 * drain_ns_, drain_max_ns);
  a_.phase = network_phase::leaving;
  withdrawn_ = true;
  return true;
}

/// Each reading of the word costs a wake-up: they are rarer if one rank holds the lock for long.
void network_machine::pause(std::int64_t time_ns) noexcept {
  const std::int64_t now = w_.ctx->around().now_ns();
  next_ns_ = now + pause_of_contender(w_, time_ns);
  paused_ = true;
  if (withdrawn_) return;
  pause_ns_ = std::min(2 * pause_ns_, pause_max_ns);
  if (pause_ns_ == pause_max_ns && now - since_ns_ > long_held_ns) pause_ns_ = pause_still_ns;
}

/// The word without this rank's hold.
std::uint64_t network_machine::others() const noexcept {
  return network_in_word(a_.phase) ? a_.seen - a_.hold : a_.seen;
}

void network_machine::observe(std::uint64_t before, std::uint64_t old) noexcept {
  if (!seen_) recoveries_ = network_recoveries(old);
  if (!seen_ || before != a_.seen) since_ns_ = w_.ctx->around().now_ns();
  seen_ = true;
  if (network_only_holder(others()) >= 0 && network_recoveries(a_.seen) == recoveries_)
    holder_ = network_only_holder(others());
}

/// The fabric ends every request. A suspected rank is not declared dead before the word has been read again.
status network_machine::failed() noexcept {
  if (word_.asks()) return status::done;
  const status s = holder_failed();
  if (suspect(s)) has_to_look_ = true;
  return has_to_look_ ? status::done : s;
}

/// Returns `revoked`, or `peer_failed` if the seen holder or the target has gone, or an unidentified holder may have.
status network_machine::holder_failed() noexcept {
  if (const status s = w_.revocation(); s != status::done) return s;
  const int holder = network_only_holder(others());
  const int gone = holder >= 0 && w_.ctx->gone(holder) ? holder : w_.ctx->gone(peer_) ? peer_ : -1;
  if (gone >= 0) {
    w_.ctx->set_last_failed(gone);
    return status::peer_failed;
  }
  const bool for_readers =
      w_.lock_row->duty == manager_duty::counts_readers && holder == peer_;  // one of which may be dead
  const bool still = (network_holders(others()) > 1 || for_readers) && w_.ctx->around().now_ns() - since_ns_ > still_ns;
  return still ? w_.team->lost_member() : status::done;
}

/// A rank that has gone may have released the lock before: true if the word is to be read once more.
bool network_machine::suspect(status s) noexcept {
  const int holder = network_only_holder(others());
  if (s != status::peer_failed || holder < 0 || holder == suspected_ || w_.ctx->gone(peer_)) return false;
  suspected_ = holder;
  return true;
}

/// True if another waiter has released a dead rank's hold meanwhile, which this rank must report as well.
bool network_machine::missed() noexcept {
  if (network_recoveries(a_.seen) == recoveries_) return false;
  await_news_of_death(w_);
  if (w_.team->lost_member() == status::done && holder_ >= 0) w_.ctx->set_last_failed(holder_);
  return true;
}

/// Removes the holds of this rank, and of a dead rank that can be identified, from the word.
void network_machine::take_back() noexcept {
  finish_request();
  if (why() == status::peer_failed && !w_.ctx->config().is(knob::lock_recovery, "off")) recover();
  std::uint64_t old = 0;
  if (network_in_word(a_.phase)) (void)word_.add(std::uint64_t{0} - a_.hold, old);
}

void network_machine::recover() noexcept {
  const int dead = network_only_holder(others());
  if (dead < 0 || !w_.ctx->gone(dead) || w_.ctx->gone(peer_)) return;
  const bool writer = (others() & network_writer) != 0;
  const std::uint64_t hold = network_hold(dead, writer ? lock_kind::exclusive : lock_kind::shared);
  std::uint64_t found = a_.seen;
  // Others may change the word in between.
  for (unsigned tries = 0; tries < recovery_tries; ++tries) {
    std::uint64_t old = 0;
    const std::uint64_t rest = network_in_word(a_.phase) ? found - a_.hold : found;
    if (network_only_holder(rest) != dead) return;
    if (word_.request({false, found, network_recovered(found, hold)}, old) != status::done || old == found) return;
    found = old;
  }
}

status leave_network(window_core& w, int target) noexcept {
  std::uint64_t old = 0;
  return network_word(w, target).add(leave_request(w.ctx->rank()).operand, old);
}

status release_network(window_core& w, int target, lock_kind kind) noexcept {
  std::uint64_t old = 0;
  const std::uint64_t hold = network_hold(w.ctx->rank(), kind);
  const status s = network_word(w, target).add(std::uint64_t{0} - hold, old);
  const bool wanted = s == status::done && kind == lock_kind::exclusive && (old & network_wanted) != 0;
  w.state_of(target).left_wanted = wanted ? old - hold : 0;
  return s;
}

operation_record* start_release_network(window_core& w, int target) noexcept {
  return network_word(w, target).start_add(std::uint64_t{0} - network_hold(w.ctx->rank(), lock_kind::shared));
}

status finish_release_network(window_core& w, int target, operation_record* started) noexcept {
  std::uint64_t old = 0;
  return network_word(w, target).finish_add(started, std::uint64_t{0} - network_hold(w.ctx->rank(), lock_kind::shared),
                                            old);
}

}  // namespace rma::detail
