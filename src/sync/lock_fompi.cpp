// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_fompi.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "sync/lock_attempt.hpp"
#include "sync/locking.hpp"
#include "sync/remote_word.hpp"
#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

constexpr int master = 0;  ///< of the team: where the global word is
constexpr unsigned recovery_tries = 32;
constexpr std::int64_t backoff_first_ns = 1'000;
constexpr std::int64_t backoff_max_ns = 1'000'000;
/// After a death, a word that stands still for so long may count dead holders, whom nobody can name.
constexpr std::int64_t still_ns = 500'000'000;

remote_word local_word(window_core& w, int target) noexcept {
  return remote_word(w, target, offsetof(window_block, network_lock));
}
remote_word global_word(window_core& w) noexcept {
  return remote_word(w, master, offsetof(window_block, network_global));
}

fompi_want wanted(lock_kind kind) noexcept {
  return kind == lock_kind::shared ? fompi_want::shared : fompi_want::exclusive;
}

/// One rank's wait for one lock: drives the steps, passes the pauses, sees to the dead.
class fompi_wait {
 public:
  fompi_wait(window_core& w, int target, fompi_want want) noexcept
      : w_(w),
        local_(local_word(w, target)),
        peer_(w.world_rank(target)),
        first_(w.world_rank(master)),
        a_(fompi_begin(want, w.ctx->rank())) {}

  status run() noexcept {
    for (;;) {
      const status s = advance();
      if (s != status::not_yet) return s;
      if (const status waited = pause(); waited != status::done && !suspect(waited)) return give_up(waited);
    }
  }

  /// From now on no request is waited for: `posted` while its answer is not there.
  void go_by_steps() noexcept { by_steps_ = true; }
  [[nodiscard]] bool asks() const noexcept { return local_.asks() || (global_ && global_->asks()); }
  /// What the words answer. `posted`, or `not_yet`: to be called again after a pause.
  status advance() noexcept {
    for (;;) {
      const status s = ask();
      if (s != status::not_yet || a_.phase == fompi_phase::barred || a_.phase == fompi_phase::blocked) return s;
    }
  }
  std::int64_t next_pause_ns() noexcept {
    const std::int64_t next_ns = drawn(pause_ns_);
    pause_ns_ = std::min(2 * pause_ns_, backoff_max_ns);
    return next_ns;
  }
  /// Whom it suspects it leaves alone until it has looked again, pause or not.
  status fail_if_lost() noexcept {
    const status s = lost();
    if (suspect(s)) has_to_look_ = true;
    return s == status::done || has_to_look_ ? status::done : give_up(s);
  }
  void withdraw() noexcept { (void)give_up(status::done); }

 private:
  /// One request. `done`: held; `not_yet`: see the phase.
  status ask() noexcept {
    const fompi_request r = request_of(a_);
    remote_word& word = r.global ? global() : local_;
    std::uint64_t old = 0;
    const status s = by_steps_ ? word.ask_soon(r.atomic, must(), old)
                     : must()  ? word.add(r.atomic.operand, old)
                               : word.ask(r.atomic, old);
    if (s == status::posted) return s;
    has_to_look_ = false;
    if (s != status::done) return give_up(s);
    const fompi_attempt before = std::exchange(a_, step(a_, old));
    watch(before, r.global, old);
    if (a_.phase != fompi_phase::held) return status::not_yet;
    return missed() ? give_up(status::peer_failed) : status::done;
  }
  remote_word& global() noexcept { return global_ ? *global_ : global_.emplace(global_word(w_)); }
  /// The others would wait for ever.
  [[nodiscard]] bool must() const noexcept { return a_.phase == fompi_phase::withdrawing; }
  /// What was begun is done.
  void settle() noexcept {
    if (!asks()) return;
    const fompi_request r = request_of(a_);
    std::uint64_t old = 0;
    if ((r.global ? global() : local_).await_answer(must(), r.atomic, old) == status::done) a_ = step(a_, old);
  }
  std::int64_t drawn(std::int64_t time_ns) noexcept {
    w_.rng_state = w_.rng_state * 6364136223846793005U + 1442695040888963407U;
    return time_ns / 2 + static_cast<std::int64_t>((w_.rng_state >> 33) % static_cast<std::uint64_t>(time_ns / 2 + 1));
  }
  void watch(const fompi_attempt& before, bool global, std::uint64_t old) noexcept {
    if (before.phase != a_.phase || before.seen != a_.seen) since_ns_ = w_.ctx->around().now_ns();
    if (global) return;
    if (!watched_) recoveries_ = fompi_recoveries(old);
    watched_ = true;
    now_recovered_ = fompi_recoveries(old);
    if (fompi_writer_of(old) >= 0 && now_recovered_ == recoveries_) holder_ = fompi_writer_of(old);
  }
  status pause() noexcept {
    const std::int64_t part_ns = next_pause_ns();
    ++w_.lock_pauses;
    {
      const std::lock_guard guard(w_.ctx->lock());
      w_.ctx->count(counter::lock_waits);
    }
    const window_unlock_guard out(w_);
    return w_.ctx->wait(
        {.fails_if = [this]() noexcept { return lost(); }, .deadline_ns = w_.ctx->after_ns(part_ns), .whole = &whole_});
  }
  /// `revoked`; `peer_failed` if the writer that was seen, or whoever has a word, is gone, or who is counted may be.
  status lost() noexcept {
    if (const status s = w_.revocation(); s != status::done) return s;
    const int holder = writer();
    const int gone = holder >= 0 && w_.ctx->gone(holder)                     ? holder
                     : w_.ctx->gone(peer_)                                   ? peer_
                     : a_.want != fompi_want::shared && w_.ctx->gone(first_) ? first_
                                                                             : -1;
    if (gone >= 0) {
      w_.ctx->set_last_failed(gone);
      return status::peer_failed;
    }
    return w_.ctx->around().now_ns() - since_ns_ > still_ns ? w_.team->lost_member() : status::done;
  }
  [[nodiscard]] int writer() const noexcept { return a_.phase == fompi_phase::blocked ? fompi_writer_of(a_.seen) : -1; }
  /// Who is gone may have let go before: true if the word is to be looked at once more.
  bool suspect(status s) noexcept {
    const int holder = writer();
    if (s != status::peer_failed || holder < 0 || holder == suspected_ || w_.ctx->gone(peer_)) return false;
    suspected_ = holder;
    return true;
  }
  /// Another waiter has given a dead writer's hold back meanwhile: it is news for this one, too.
  [[nodiscard]] bool missed() noexcept {
    if (now_recovered_ == recoveries_) return false;
    await_news_of_death(w_);
    if (w_.team->lost_member() == status::done && holder_ >= 0) w_.ctx->set_last_failed(holder_);
    return true;
  }
  /// Leaves nothing in the words: nothing of this rank, and nothing of a dead one that can be named.
  status give_up(status s) noexcept {
    settle();
    if (s == status::peer_failed && !w_.ctx->config().is(knob::lock_recovery, "off")) recover();
    std::uint64_t old = 0;
    if (const std::uint64_t mine = fompi_in_local(a_); mine != 0) (void)local_.add(std::uint64_t{0} - mine, old);
    if (const std::uint64_t mine = fompi_in_global(a_); mine != 0) (void)global().add(std::uint64_t{0} - mine, old);
    return s;
  }
  void recover() noexcept {
    const int dead = writer();
    if (dead < 0 || !w_.ctx->gone(dead) || w_.ctx->gone(peer_)) return;
    std::uint64_t found = a_.seen;
    // What comes in between is readers.
    for (unsigned tries = 0; tries < recovery_tries && fompi_writer_of(found) == dead; ++tries) {
      std::uint64_t old = 0;
      if (local_.ask({false, found, fompi_recovered(found)}, old) != status::done) return;
      if (old == found) {
        (void)global().add(std::uint64_t{0} - fompi_one_exclusive, old);
        return;
      }
      found = old;
    }
  }

  window_core& w_;
  remote_word local_;
  std::optional<remote_word> global_{};  ///< once it is asked for
  int peer_;
  int first_;
  fompi_attempt a_;
  std::int64_t pause_ns_ = backoff_first_ns;
  std::int64_t since_ns_ = 0;        ///< the word that keeps it out has been as it is
  std::uint64_t recoveries_ = 0;     ///< in the local word when it was seen first
  std::uint64_t now_recovered_ = 0;  ///< and last
  int holder_ = -1;                  ///< the last writer
  int suspected_ = -1;               ///< a writer that is gone
  bool watched_ = false;
  bool has_to_look_ = false;  ///< since somebody is suspected
  bool by_steps_ = false;
  long_wait whole_{*w_.ctx};  ///< that the pauses are parts of
};

/// acquire_fompi without waiting, neither for the words' answers nor between them.
class stepwise final : public lock_attempt {
 public:
  stepwise(window_core& w, int target, lock_kind kind) noexcept : w_(w), wait_(w, target, wanted(kind)) {
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
  void cancel() noexcept override { wait_.withdraw(); }
  [[nodiscard]] bool silent() const noexcept override { return true; }

 private:
  window_core& w_;
  fompi_wait wait_;
  std::int64_t next_ns_ = 0;
};

}  // namespace

std::unique_ptr<lock_attempt> attempt_fompi(window_core& w, int target, lock_kind kind) {
  return std::make_unique<stepwise>(w, target, kind);
}

status acquire_fompi(window_core& w, int target, lock_kind kind) noexcept {
  return fompi_wait(w, target, wanted(kind)).run();
}

status release_fompi(window_core& w, int target, lock_kind kind) noexcept {
  std::uint64_t old = 0;
  const bool shared = kind == lock_kind::shared;
  const status s = local_word(w, target).add(std::uint64_t{0} - (shared ? 1 : fompi_hold(w.ctx->rank())), old);
  if (shared) return s;
  const status registered = global_word(w).add(std::uint64_t{0} - fompi_one_exclusive, old);
  return s != status::done ? s : registered;
}

status acquire_fompi_all(window_core& w) noexcept { return fompi_wait(w, master, fompi_want::all).run(); }

status release_fompi_all(window_core& w) noexcept {
  std::uint64_t old = 0;
  return global_word(w).add(std::uint64_t{0} - fompi_one_all, old);
}

}  // namespace rma::detail
