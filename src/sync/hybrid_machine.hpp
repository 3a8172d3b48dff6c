// SPDX-License-Identifier: Apache-2.0
/// \file
/// Drives lock "hybrid" (lock_hybrid.hpp): the machines of its two homes one after the other, and the migration to the
/// CPU word. Their order is a pure step, `after`.
///
///   node's rank:   cpu --moved--> network, or moving --held--> leaving --> held
///                   ^                |  moved   |  others hold it shared: network
///                   '--- pausing <---'----------'
///   other node's:  network <--moved--> manager --migrates--> claiming --> held      pausing after both
#pragma once

#include <cstdint>
#include <optional>
#include <variant>

#include "core/assert.hpp"
#include "sync/lock_agent.hpp"
#include "sync/lock_cpu.hpp"
#include "sync/lock_machine.hpp"
#include "sync/network_machine.hpp"

namespace rma::detail {

/// The stages of a rank's attempt to get a hybrid lock.
enum class hybrid_stage : std::uint8_t {
  cpu,           ///< takes the CPU word: a rank of the target's node
  manager,       ///< asks the lock manager: a rank of another node
  network,       ///< takes the network word
  network_only,  ///< takes the network word, and does not follow a migrated lock
  moving,        ///< takes the network word in order to bring the lock to the CPU word
  leaving,       ///< turns that hold into "away"
  claiming,      ///< turns "away" in the network word into its hold
  pausing,       ///< waits, since the lock is migrating
  held,
  elsewhere,
};

/// The parameters of the order of stages.
struct hybrid_way {
  hybrid_stage first = hybrid_stage::network;  ///< cpu, network or manager: also after a pause
  bool migrates = false;                       ///< a rank of the node brings the lock to the CPU word
};

/// The stage after the one whose machine has ended with this step, which is not `failed`.
constexpr hybrid_stage after(hybrid_stage now, lock_step s, hybrid_way way) noexcept {
  using enum hybrid_stage;
  RMA_ASSERT(s != lock_step::not_yet && s != lock_step::failed);
  RMA_ASSERT(now != pausing && now != held && now != elsewhere);  // these have no machine
  RMA_ASSERT(s != lock_step::migrates || now == manager);
  RMA_ASSERT(s != lock_step::occupied || now == moving);
  if (s == lock_step::held) return now == moving ? leaving : held;
  if (s == lock_step::migrates) return claiming;
  switch (now) {
    case cpu: return way.migrates ? moving : network;
    case moving: return s == lock_step::occupied ? network : pausing;
    case network: return way.first == network ? manager : pausing;
    case manager: return way.first == manager ? network : pausing;
    case claiming: return pausing;  // had to withdraw, and another rank has moved the lock since
    default: return elsewhere;
  }
}
static_assert(after(hybrid_stage::cpu, lock_step::moved, {hybrid_stage::cpu, true}) == hybrid_stage::moving);
static_assert(after(hybrid_stage::moving, lock_step::held, {hybrid_stage::cpu, true}) == hybrid_stage::leaving);
static_assert(after(hybrid_stage::network, lock_step::moved, {hybrid_stage::manager}) == hybrid_stage::pausing);

/// The path of a lock that was acquired in this stage.
constexpr lock_path path_after(hybrid_stage last) noexcept {
  switch (last) {
    case hybrid_stage::manager: return lock_path::agent;
    case hybrid_stage::network:
    case hybrid_stage::network_only:
    case hybrid_stage::claiming: return lock_path::network;
    default: return lock_path::cpu;
  }
}

class hybrid_machine final : public lock_machine {
 public:
  /// Begins at the lock's last known home; a rank of another node without one uses the adapter, which always answers.
  hybrid_machine(window_core& w, int target, lock_kind kind) noexcept;
  /// Begins with `network_only`, or with `claiming` at the lock manager's request.
  hybrid_machine(window_core& w, int target, lock_kind kind, hybrid_stage first) noexcept;

  bool may_advance() noexcept override;
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override;
  [[nodiscard]] int answers_from() const noexcept override { return at_ != nullptr ? at_->answers_from() : -1; }
  status failed() noexcept override;
  void keep_request() noexcept override;

 protected:
  lock_step go_on() noexcept override;
  void take_back() noexcept override;

 private:
  [[nodiscard]] bool is_near() const noexcept { return way_.first == hybrid_stage::cpu; }
  void enter(hybrid_stage next) noexcept;
  void pause() noexcept;
  lock_step mark_migrating() noexcept;
  lock_step leave_network_word() noexcept;
  lock_step arrive(status left) noexcept;
  void note(lock_step s) noexcept;
  void note_answer(lock_step s) noexcept;

  window_core& w_;
  int target_;
  lock_kind kind_;
  hybrid_stage stage_;
  hybrid_way way_;
  std::variant<std::monostate, cpu_machine, agent_machine, network_machine> places_;
  lock_machine* at_ = nullptr;          ///< the current machine in places_; null: pausing, or leaving
  std::optional<remote_word> leaving_;  ///< the word, while this rank turns its hold into "away"
  std::int64_t since_ns_ = 0;           ///< beginning of this stage
  std::int64_t next_ns_ = 0;            ///< end of the pause
  std::int64_t pause_ns_;               ///< length of the next pause
  status left_ = status::done;          ///< the failure to turn the hold into "away"
  bool stays_ = false;
};

}  // namespace rma::detail
