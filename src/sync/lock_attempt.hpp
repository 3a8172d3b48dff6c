// SPDX-License-Identifier: Apache-2.0
/// \file
/// Taking a lock without waiting for it, step by step: what ilock stands on.
#pragma once

#include <memory>

#include "rma/epoch.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

class lock_attempt {
 public:
  virtual ~lock_attempt() = default;
  /// `done`: it is held. `not_yet`, or why it never will be.
  virtual status advance() noexcept = 0;
  /// `peer_failed` if a rank that held it, or the target, is dead.
  virtual status failed() noexcept = 0;
  /// After `not_yet`: the lock is elsewhere (lock "hybrid"), and this attempt will not get it.
  [[nodiscard]] virtual bool moved() const noexcept { return false; }
  /// It is wanted no more, and not held.
  virtual void cancel() noexcept = 0;
  /// True if whoever gives the lock back does not ring this rank.
  [[nodiscard]] virtual bool silent() const noexcept = 0;
};

/// By whatever lock the window has.
std::unique_ptr<lock_attempt> attempt_lock(window_core& w, int target, lock_kind kind);
std::unique_ptr<lock_attempt> attempt_cpu(window_core& w, int target, lock_kind kind);
std::unique_ptr<lock_attempt> attempt_fompi(window_core& w, int target, lock_kind kind);
std::unique_ptr<lock_attempt> attempt_network(window_core& w, int target, lock_kind kind);
/// The same for a lock that this rank is to bring to the network, see claim_network.
std::unique_ptr<lock_attempt> attempt_claim(window_core& w, int target, lock_kind kind);

}  // namespace rma::detail
