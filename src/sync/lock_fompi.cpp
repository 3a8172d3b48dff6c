// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_fompi.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "sync/lock_machine.hpp"
#include "sync/locking.hpp"
#include "sync/remote_word.hpp"
#include "window/window_core.hpp"

namespace rma::detail {
namespace {

constexpr int master = 0;  ///< the team's rank with the global word
constexpr unsigned recovery_tries = 32;
constexpr std::int64_t backoff_first_ns = 1'000;
constexpr std::int64_t backoff_max_ns = 1'000'000;
/// After a death, a word that does not change for this time may count unidentifiable dead holders.
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

/// Drives the steps: posts the atomics, waits in pauses, and handles deaths.
class fompi_machine final : public lock_machine {
 public:
  fompi_machine(window_core& w, int target, lock_kind kind) noexcept : fompi_machine(w, target, wanted(kind)) {}
  fompi_machine(window_core& w, int target, fompi_want want) noexcept
      : w_(w),
        local_(local_word(w, target)),
        peer_(w.world_rank(target)),
        first_(w.world_rank(master)),
        a_(fompi_begin(want, w.ctx->rank())) {}

  bool may_advance() noexcept override {
    return asks() ? word_of(request_of(a_)).is_answered() : w_.ctx->around().now_ns() >= next_ns_;
  }
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override { return asks() ? by_message : next_ns_; }
  /// The fabric ends every request. A suspected writer is not declared dead before its word has been read again.
  status failed() noexcept override {
    if (asks()) return status::done;
    const status s = holder_failed();
    if (suspect(s)) has_to_look_ = true;
    return has_to_look_ ? status::done : s;
  }

 protected:
  lock_step go_on() noexcept override {
    if (!may_advance()) return lock_step::not_yet;
    for (;;) {
      const status s = request();
      if (s == status::posted) return lock_step::not_yet;
      if (s != status::done) return end(s);
      if (a_.phase == fompi_phase::held) return missed() ? end(status::peer_failed) : lock_step::held;
      if (a_.phase == fompi_phase::barred || a_.phase == fompi_phase::blocked) break;
    }
    next_ns_ = w_.ctx->around().now_ns() + pause_of_contender(w_, pause_ns_);
    pause_ns_ = std::min(2 * pause_ns_, backoff_max_ns);
    return lock_step::not_yet;
  }
  /// Removes the holds of this rank, and of a dead rank that can be identified, from the words.
  void take_back() noexcept override {
    finish_request();
    if (why() == status::peer_failed && !w_.ctx->config().is(knob::lock_recovery, "off")) recover();
    std::uint64_t old = 0;
    if (const std::uint64_t mine = fompi_in_local(a_); mine != 0) (void)local_.add(std::uint64_t{0} - mine, old);
    if (const std::uint64_t mine = fompi_in_global(a_); mine != 0) (void)global().add(std::uint64_t{0} - mine, old);
  }

 private:
  [[nodiscard]] bool asks() const noexcept { return local_.asks() || (global_ && global_->asks()); }
  remote_word& global() noexcept { return global_ ? *global_ : global_.emplace(global_word(w_)); }
  remote_word& word_of(const fompi_request& r) noexcept { return r.global ? global() : local_; }
  /// Posts a request or takes its result. `posted` means that the result is not available yet.
  status request() noexcept {
    const fompi_request r = request_of(a_);
    std::uint64_t old = 0;
    const status s = word_of(r).ask_soon(r.atomic, must(), old);
    if (s == status::posted && !asks()) next_ns_ = w_.ctx->around().now_ns() + backoff_first_ns;  // there is no room
    if (s == status::posted) return s;
    has_to_look_ = false;
    if (s != status::done) return s;
    const fompi_attempt before = std::exchange(a_, step(a_, old));
    observe(before, r.global, old);
    return s;
  }
  lock_step end(status why) noexcept {
    const lock_step s = fail(why);
    take_back();
    return s;
  }
  /// True if the request must succeed, since the others would wait for ever.
  [[nodiscard]] bool must() const noexcept { return a_.phase == fompi_phase::withdrawing; }
  /// Waits for the end of a pending request.
  void finish_request() noexcept {
    if (!asks()) return;
    const fompi_request r = request_of(a_);
    std::uint64_t old = 0;
    if (word_of(r).await_answer(must(), r.atomic, old) == status::done) a_ = step(a_, old);
  }
  void observe(const fompi_attempt& before, bool global, std::uint64_t old) noexcept {
    if (before.phase != a_.phase || before.seen != a_.seen) since_ns_ = w_.ctx->around().now_ns();
    if (global) return;
    if (!seen_) recoveries_ = fompi_recoveries(old);
    seen_ = true;
    now_recovered_ = fompi_recoveries(old);
    if (fompi_writer_of(old) >= 0 && now_recovered_ == recoveries_) holder_ = fompi_writer_of(old);
  }
  /// Returns `revoked`, or `peer_failed` if the seen writer or a rank with one of the words has gone, or a counted
  /// holder may have.
  status holder_failed() noexcept {
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
  /// A rank that has gone may have released the lock before: true if the word is to be read once more.
  bool suspect(status s) noexcept {
    const int holder = writer();
    if (s != status::peer_failed || holder < 0 || holder == suspected_ || w_.ctx->gone(peer_)) return false;
    suspected_ = holder;
    return true;
  }
  /// True if another waiter has released a dead writer's hold meanwhile, which this rank must report as well.
  [[nodiscard]] bool missed() noexcept {
    if (now_recovered_ == recoveries_) return false;
    await_news_of_death(w_);
    if (w_.team->lost_member() == status::done && holder_ >= 0) w_.ctx->set_last_failed(holder_);
    return true;
  }
  void recover() noexcept {
    const int dead = writer();
    if (dead < 0 || !w_.ctx->gone(dead) || w_.ctx->gone(peer_)) return;
    std::uint64_t found = a_.seen;
    // Readers may change the word in between.
    for (unsigned tries = 0; tries < recovery_tries && fompi_writer_of(found) == dead; ++tries) {
      std::uint64_t old = 0;
      if (local_.request({false, found, fompi_recovered(found)}, old) != status::done) return;
      if (old == found) {
        (void)global().add(std::uint64_t{0} - fompi_one_exclusive, old);
        return;
      }
      found = old;
    }
  }

  window_core& w_;
  remote_word local_;
  std::optional<remote_word> global_{};  ///< made at first use
  int peer_;
  int first_;
  fompi_attempt a_;
  std::int64_t next_ns_ = 0;  ///< end of the pause
  std::int64_t pause_ns_ = backoff_first_ns;
  std::int64_t since_ns_ = 0;        ///< time since which the blocking word has not changed
  std::uint64_t recoveries_ = 0;     ///< recoveries in the local word at its first reading
  std::uint64_t now_recovered_ = 0;  ///< recoveries in the local word at its last reading
  int holder_ = -1;                  ///< the last writer
  int suspected_ = -1;               ///< a writer that has gone
  bool seen_ = false;                ///< the local word has been read
  bool has_to_look_ = false;         ///< a suspected rank's word is to be read again
};

}  // namespace

status lock_fompi(window_core& w, int target, lock_kind kind, deferral) noexcept {
  return lock_by<fompi_machine>(w, target, kind);
}

std::unique_ptr<lock_machine> begin_fompi(window_core& w, int target, lock_kind kind, status&) {
  return std::make_unique<fompi_machine>(w, target, kind);
}

status release_fompi(window_core& w, int target, lock_kind kind) noexcept {
  full_fence();  // orders the epoch's stores before the adapter's atomic
  std::uint64_t old = 0;
  const bool shared = kind == lock_kind::shared;
  const status s = local_word(w, target).add(std::uint64_t{0} - (shared ? 1 : fompi_hold(w.ctx->rank())), old);
  if (shared) return s;
  const status registered = global_word(w).add(std::uint64_t{0} - fompi_one_exclusive, old);
  return s != status::done ? s : registered;
}

status lock_fompi_all(window_core& w) noexcept {
  fompi_machine m(w, master, fompi_want::all);
  return wait_for(w, m) == lock_step::held ? status::done : m.why();
}

status release_fompi_all(window_core& w) noexcept {
  full_fence();  // orders the epoch's stores before the adapter's atomic
  std::uint64_t old = 0;
  return global_word(w).add(std::uint64_t{0} - fompi_one_all, old);
}

}  // namespace rma::detail
