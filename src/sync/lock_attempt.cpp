// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_attempt.hpp"

#include <utility>

#include "sync/lock_agent.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_network.hpp"
#include "sync/lock_two_sided.hpp"
#include "sync/locking.hpp"

namespace rma::detail {
namespace {

/// Came to nothing before it began.
class failed_attempt final : public lock_attempt {
 public:
  explicit failed_attempt(status why) noexcept : why_(why) {}
  status advance() noexcept override { return why_; }
  status failed() noexcept override { return status::done; }
  void cancel() noexcept override {}
  [[nodiscard]] bool silent() const noexcept override { return false; }

 private:
  status why_;
};

/// A request to the target's lock manager.
class by_agent final : public lock_attempt {
 public:
  by_agent(window_core& w, int target, lock_kind kind) noexcept
      : w_(w), target_(target), kind_(kind), request_(ask_agent(w, target, kind)) {}
  status advance() noexcept override {
    if (claim_ != nullptr) return claim_->advance();
    if (request_.answered.load() != request_.number) return status::not_yet;
    const status s = await_answer(w_, target_, request_);
    moved_ = s == status::not_yet;
    if (s != status::posted) return s;
    claim_ = attempt_claim(w_, target_, kind_);
    return claim_->advance();
  }
  status failed() noexcept override {
    if (claim_ != nullptr) return claim_->failed();
    const int peer = w_.world_rank(target_);
    if (target_ == w_.team->rank || !w_.ctx->gone(peer)) {
      const status s = w_.revocation();
      if (s != status::done) cancel();
      return s;
    }
    w_.ctx->set_last_failed(peer);
    return status::peer_failed;
  }
  void cancel() noexcept override {
    if (claim_ != nullptr) return claim_->cancel();
    if (!moved_) release_by_agent(w_, target_);
  }
  [[nodiscard]] bool moved() const noexcept override { return moved_; }
  [[nodiscard]] bool silent() const noexcept override { return claim_ != nullptr; }
  /// The manager has sent the lock to the network, with this rank.
  [[nodiscard]] bool brings() const noexcept { return claim_ != nullptr; }

 private:
  window_core& w_;
  int target_;
  lock_kind kind_;
  lock_request& request_;
  bool moved_ = false;
  std::unique_ptr<lock_attempt> claim_;  ///< null: the manager has it
};

/// Where the lock is; it does not migrate for an attempt of the target's node.
class hybrid_attempt final : public lock_attempt {
 public:
  /// Begins where the lock was last; a rank of another node that does not know asks the adapter, which always answers.
  hybrid_attempt(window_core& w, int target, lock_kind kind) noexcept
      : w_(w),
        target_(target),
        kind_(kind),
        by_network_(w.block_of(target) == nullptr && w.state_of(target).experience.place != lock_place::cpu) {}
  status advance() noexcept override {
    for (int homes = 0; homes < 2; ++homes) {
      if (at_ == nullptr) begin();
      const status s = at_->advance();
      if (s == status::done) w_.state_of(target_).path = path();
      if (s != status::not_yet || !at_->moved()) return s;
      at_->cancel();
      at_ = nullptr;
      by_network_ = !by_network_;
    }
    if (w_.block_of(target_) != nullptr) (void)mend(w_, target_);
    return status::not_yet;  // on its way from one to the other
  }
  status failed() noexcept override { return at_ == nullptr ? status::done : at_->failed(); }
  void cancel() noexcept override {
    if (at_ != nullptr) at_->cancel();
  }
  [[nodiscard]] bool silent() const noexcept override { return at_ == nullptr || at_->silent(); }

 private:
  void begin() {
    agent_ = nullptr;
    if (by_network_) {
      at_ = attempt_network(w_, target_, kind_);
    } else if (w_.block_of(target_) != nullptr) {
      at_ = attempt_cpu(w_, target_, kind_);
    } else {
      auto asked = std::make_unique<by_agent>(w_, target_, kind_);
      agent_ = asked.get();
      at_ = std::move(asked);
    }
  }
  [[nodiscard]] lock_path path() const noexcept {
    if (by_network_ || (agent_ != nullptr && agent_->brings())) return lock_path::network;
    return agent_ != nullptr ? lock_path::agent : lock_path::cpu;
  }

  window_core& w_;
  int target_;
  lock_kind kind_;
  bool by_network_;
  std::unique_ptr<lock_attempt> at_;
  by_agent* agent_ = nullptr;  ///< at_, if it is one
};

}  // namespace

std::unique_ptr<lock_attempt> attempt_lock(window_core& w, int target, lock_kind kind) {
  if (w.locks != lock_protocol::cpu || !maps_lock(w, target)) ++(w.is_far(target) ? w.counts.remote : w.counts.local);
  if (w.defers_far) {
    if (const status s = send_deferred_before(w, -1); s != status::done) return std::make_unique<failed_attempt>(s);
  }
  switch (w.locks) {
    case lock_protocol::network:
      if (w.scheme == lock_scheme::fompi) return attempt_fompi(w, target, kind);
      if (counted_by_agent(w, kind)) return std::make_unique<by_agent>(w, target, kind);
      return attempt_network(w, target, kind);
    case lock_protocol::hybrid: return std::make_unique<hybrid_attempt>(w, target, kind);
    case lock_protocol::two_sided:
      if (const status s = send_deferred_before(w, -1); s != status::done) return std::make_unique<failed_attempt>(s);
      return std::make_unique<by_agent>(w, target, kind);
    default: break;
  }
  if (maps_lock(w, target)) return attempt_cpu(w, target, kind);
  return std::make_unique<by_agent>(w, target, kind);
}

}  // namespace rma::detail
