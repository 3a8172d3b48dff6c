// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_network.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "sync/lock_attempt.hpp"
#include "sync/locking.hpp"
#include "sync/remote_word.hpp"
#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

constexpr unsigned recovery_tries = 32;
constexpr std::int64_t pause_first_ns = 1'000;
constexpr std::int64_t pause_max_ns = 1'000'000;
constexpr std::int64_t pause_still_ns = 2 * pause_max_ns;  ///< while the word does not change
constexpr std::int64_t yield_max_ns = pause_still_ns;      ///< whoever waits has looked by then
constexpr std::int64_t drain_first_ns = 200'000;  ///< a writer keeps readers out for so long while it waits for others
constexpr std::int64_t drain_max_ns = 10'000'000;
constexpr std::int64_t withdrawn_ns = 4 * pause_max_ns;  ///< and lets them in for so long
constexpr std::int64_t long_held_ns = 100'000'000;
/// After a death, a word that stands still for so long may hold names of the dead that cannot be told apart.
constexpr std::int64_t still_ns = 500'000'000;

remote_word network_word(window_core& w, int target) noexcept {
  return remote_word(w, target, offsetof(window_block, network_lock));
}

/// One rank's wait for one lock: drives the steps, passes the pauses, sees to the dead.
class network_wait {
 public:
  network_wait(window_core& w, int target, lock_kind kind, network_phase first = network_phase::entering) noexcept
      : w_(w), word_(network_word(w, target)), peer_(w.world_rank(target)) {
    a_.kind = kind;
    a_.phase = first;
    a_.hold = network_hold(w.ctx->rank(), kind);
    if (first != network_phase::entering || kind != lock_kind::exclusive) return;
    a_.seen = std::exchange(w.state_of(target).left_wanted, 0);
    a_.phase = network_again(a_.seen);
    if (a_.phase == network_phase::yielding) yields_until_ns_ = w.ctx->around().now_ns() + yield_max_ns;
  }

  /// Gives up where it would have to wait.
  void only_once() noexcept { once_ = true; }
  status run() noexcept {
    for (;;) {
      if (a_.phase == network_phase::entering && std::exchange(withdrawn_, false)) {
        if (const status waited = pause_for(withdrawn_ns); waited != status::done) return give_up(waited);
      }
      const status s = ask();
      if (s != status::not_yet) return s;
      if (moved()) return s;
      if (!waits()) continue;
      if (once_) return give_up(status::posted);
      if (withdraws() || yielded_enough()) continue;
      if (const status waited = pause(); waited != status::done && !suspect(waited)) return give_up(waited);
    }
  }

  // ---- the same step by step: see lock_attempt --------------------------------------------------------------
  /// From now on no request is waited for: `posted` while its answer is not there.
  void go_by_steps() noexcept { by_steps_ = true; }
  [[nodiscard]] bool asks() const noexcept { return word_.asks(); }
  /// `posted`, or `not_yet`: to be called again after next_pause_ns.
  status advance() noexcept {
    if (!asks()) withdrawn_ = false;
    for (;;) {
      const status s = ask();
      if (s != status::not_yet || moved() || (waits() && !withdraws() && !yielded_enough())) return s;
      if (withdrawn_ && a_.phase == network_phase::entering) return s;
    }
  }
  std::int64_t next_pause_ns() noexcept {
    if (withdrawn_) return drawn(withdrawn_ns);
    const std::int64_t next_ns = drawn(pause_ns_);
    lengthen_pause();
    return next_ns;
  }
  /// Whom it suspects it leaves alone until it has looked again, pause or not.
  status fail_if_lost() noexcept {
    const status s = lost();
    if (suspect(s)) has_to_look_ = true;
    return s == status::done || has_to_look_ ? status::done : give_up(s);
  }
  void withdraw() noexcept { (void)give_up(status::done); }
  [[nodiscard]] bool moved() const noexcept { return a_.phase == network_phase::moved; }

 private:
  /// One request. `done`: held; `not_yet`: see the phase.
  status ask() noexcept {
    std::uint64_t old = 0;
    const status s = by_steps_ ? word_.ask_soon(request_of(a_), must(), old)
                     : must()  ? word_.add(request_of(a_).operand, old)
                               : word_.ask(request_of(a_), old);
    if (s == status::posted) return s;
    has_to_look_ = false;
    if (s != status::done) return give_up(s);
    const std::uint64_t before = a_.seen;
    a_ = step(a_, old);
    watch(before, old);
    if (a_.phase != network_phase::held) return status::not_yet;
    return missed() ? give_up(status::peer_failed) : status::done;
  }
  /// The others would wait for ever.
  [[nodiscard]] bool must() const noexcept {
    return a_.phase == network_phase::leaving || a_.phase == network_phase::claiming;
  }
  /// What was begun is done; and the lock, which is nowhere until this rank has brought it, is brought.
  void settle() noexcept {
    std::uint64_t old = 0;
    status s = status::not_yet;
    if (asks()) {
      s = word_.await_answer(must(), request_of(a_), old);
    } else if (by_steps_ && a_.phase == network_phase::claiming) {
      s = word_.add(request_of(a_).operand, old);
    }
    if (s == status::done) a_ = step(a_, old);
  }
  [[nodiscard]] bool waits() const noexcept {
    return a_.phase == network_phase::waiting || a_.phase == network_phase::draining ||
           a_.phase == network_phase::yielding;
  }
  /// Nobody has come: who wanted it has given up, or is dead.
  bool yielded_enough() noexcept {
    if (a_.phase != network_phase::yielding || w_.ctx->around().now_ns() < yields_until_ns_) return false;
    a_.phase = network_phase::entering;
    return true;
  }
  /// Uniform in [t/2, t].
  std::int64_t drawn(std::int64_t time_ns) noexcept {
    w_.rng_state = w_.rng_state * 6364136223846793005U + 1442695040888963407U;
    return time_ns / 2 + static_cast<std::int64_t>((w_.rng_state >> 33) % static_cast<std::uint64_t>(time_ns / 2 + 1));
  }
  /// What the others hold.
  [[nodiscard]] std::uint64_t others() const noexcept {
    return network_in_word(a_.phase) ? a_.seen - a_.hold : a_.seen;
  }
  void watch(std::uint64_t before, std::uint64_t old) noexcept {
    if (!watched_) recoveries_ = network_recoveries(old);
    if (!watched_ || before != a_.seen) since_ns_ = w_.ctx->around().now_ns();
    watched_ = true;
    if (network_only_holder(others()) >= 0 && network_recoveries(a_.seen) == recoveries_)
      holder_ = network_only_holder(others());
  }
  /// A writer that readers do not leave to lets the others in for a while: they may wait for each other at other
  /// targets, each holding what another writer waits for.
  bool withdraws() noexcept {
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
  status pause() noexcept {
    const status s = pause_for(pause_ns_);
    lengthen_pause();
    return s;
  }
  /// A look costs a wake-up: fewer where one rank keeps the lock for long.
  void lengthen_pause() noexcept {
    pause_ns_ = std::min(2 * pause_ns_, pause_max_ns);
    if (pause_ns_ == pause_max_ns && w_.ctx->around().now_ns() - since_ns_ > long_held_ns) pause_ns_ = pause_still_ns;
  }
  status pause_for(std::int64_t time_ns) noexcept {
    const std::int64_t part_ns = drawn(time_ns);
    ++w_.lock_pauses;
    {
      const std::lock_guard guard(w_.ctx->lock());
      w_.ctx->count(counter::lock_waits);
    }
    const window_unlock_guard out(w_);
    return w_.ctx->wait(
        {.fails_if = [this]() noexcept { return lost(); }, .deadline_ns = w_.ctx->after_ns(part_ns), .whole = &whole_});
  }
  /// `revoked`; `peer_failed` if a holder that was seen, or the target, is gone, or may be.
  status lost() noexcept {
    if (const status s = w_.revocation(); s != status::done) return s;
    const int holder = network_only_holder(others());
    if (holder >= 0 && w_.ctx->gone(holder)) {
      w_.ctx->set_last_failed(holder);
      return status::peer_failed;
    }
    if (w_.ctx->gone(peer_)) {
      w_.ctx->set_last_failed(peer_);
      return status::peer_failed;
    }
    const bool for_readers = w_.scheme == lock_scheme::agent && holder == peer_;  // of whom one may be dead
    const bool still =
        (network_holders(others()) > 1 || for_readers) && w_.ctx->around().now_ns() - since_ns_ > still_ns;
    return still ? w_.team->lost_member() : status::done;
  }
  /// Who is gone may have let go before: true if the word is to be looked at once more.
  bool suspect(status s) noexcept {
    const int holder = network_only_holder(others());
    if (s != status::peer_failed || holder < 0 || holder == suspected_ || w_.ctx->gone(peer_)) return false;
    suspected_ = holder;
    return true;
  }
  /// Another waiter has given a dead rank's hold back meanwhile: it is news for this one, too.
  [[nodiscard]] bool missed() noexcept {
    if (network_recoveries(a_.seen) == recoveries_) return false;
    await_news_of_death(w_);
    if (w_.team->lost_member() == status::done && holder_ >= 0) w_.ctx->set_last_failed(holder_);
    return true;
  }
  /// Leaves nothing in the word: nothing of this rank, and nothing of a dead one that can be named.
  status give_up(status s) noexcept {
    settle();
    if (s == status::peer_failed && !w_.ctx->config().is(knob::lock_recovery, "off")) recover();
    std::uint64_t old = 0;
    if (network_in_word(a_.phase)) (void)word_.add(std::uint64_t{0} - a_.hold, old);
    return s;
  }
  void recover() noexcept {
    const int dead = network_only_holder(others());
    if (dead < 0 || !w_.ctx->gone(dead) || w_.ctx->gone(peer_)) return;
    const bool writer = (others() & network_writer) != 0;
    const std::uint64_t hold = network_hold(dead, writer ? lock_kind::exclusive : lock_kind::shared);
    std::uint64_t found = a_.seen;
    // What comes in between is others who take their holds back.
    for (unsigned tries = 0; tries < recovery_tries; ++tries) {
      std::uint64_t old = 0;
      const std::uint64_t rest = network_in_word(a_.phase) ? found - a_.hold : found;
      if (network_only_holder(rest) != dead) return;
      if (word_.ask({false, found, network_recovered(found, hold)}, old) != status::done || old == found) return;
      found = old;
    }
  }

  window_core& w_;
  remote_word word_;
  int peer_;
  network_attempt a_;
  std::int64_t pause_ns_ = pause_first_ns;
  std::int64_t drain_ns_ = drain_first_ns;
  std::int64_t drains_since_ns_ = -1;
  bool withdrawn_ = false;
  std::int64_t yields_until_ns_ = 0;
  std::int64_t since_ns_ = 0;     ///< the word has been as it is
  std::uint64_t recoveries_ = 0;  ///< in the word when it was seen first
  int holder_ = -1;               ///< the last that was the only one
  int suspected_ = -1;            ///< a holder that is gone
  bool watched_ = false;
  bool has_to_look_ = false;  ///< since somebody is suspected
  long_wait whole_{*w_.ctx};  ///< that the pauses are parts of
  bool once_ = false;
  bool by_steps_ = false;
};

}  // namespace

status acquire_network(window_core& w, int target, lock_kind kind) noexcept {
  return network_wait(w, target, kind).run();
}

status try_network(window_core& w, int target) noexcept {
  network_wait wait(w, target, lock_kind::exclusive);
  wait.only_once();
  return wait.run();
}

status claim_network(window_core& w, int target, lock_kind kind) noexcept {
  return network_wait(w, target, kind, network_phase::claiming).run();
}

status leave_network(window_core& w, int target) noexcept {
  std::uint64_t old = 0;
  return network_word(w, target).add(network_away - network_hold(w.ctx->rank(), lock_kind::exclusive), old);
}

namespace {

/// acquire_network without waiting, neither for the word's answers nor between them.
class stepwise final : public lock_attempt {
 public:
  stepwise(window_core& w, int target, lock_kind kind, network_phase first) noexcept
      : w_(w), wait_(w, target, kind, first) {
    wait_.go_by_steps();
  }
  status advance() noexcept override {
    if (!wait_.asks() && w_.ctx->around().now_ns() < next_ns_) return status::not_yet;
    const status s = wait_.advance();
    if (s == status::posted) return status::not_yet;
    if (s == status::not_yet) next_ns_ = w_.ctx->around().now_ns() + wait_.next_pause_ns();
    return s;
  }
  status failed() noexcept override { return wait_.fail_if_lost(); }
  [[nodiscard]] bool moved() const noexcept override { return wait_.moved(); }
  void cancel() noexcept override { wait_.withdraw(); }
  [[nodiscard]] bool silent() const noexcept override { return true; }

 private:
  window_core& w_;
  network_wait wait_;
  std::int64_t next_ns_ = 0;
};

}  // namespace

std::unique_ptr<lock_attempt> attempt_network(window_core& w, int target, lock_kind kind) {
  return std::make_unique<stepwise>(w, target, kind, network_phase::entering);
}

std::unique_ptr<lock_attempt> attempt_claim(window_core& w, int target, lock_kind kind) {
  return std::make_unique<stepwise>(w, target, kind, network_phase::claiming);
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
