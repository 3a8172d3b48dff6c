// SPDX-License-Identifier: Apache-2.0
/// \file
/// The object behind a Request that is no operation or synchronization of a window: a message, or a collective.
/// Progress of any thread advances it; its request only reads its state.
#pragma once

#include <memory>
#include <string>

#include "rma/error.hpp"

namespace rma::detail {

class awaited {
 public:
  /// `not_yet`, or its result. Any thread; makes no progress.
  [[nodiscard]] virtual status state() noexcept = 0;
  /// `done` while it can still complete, else the reason why not. Called before its end, after deaths, departures and
  /// revocations.
  [[nodiscard]] virtual status failed() noexcept = 0;
  /// Ends it for this reason: state() has its result when this returns. Called without the progress lock; it may wait
  /// for transfers that cannot be cancelled.
  virtual void give_up(status why) noexcept = 0;
  /// Called when its request has reported the end, or was dropped. It may continue unobserved. Called under the
  /// progress lock, as the last call except those that it makes itself. Returns an object that must not be destroyed
  /// under the lock, or null.
  virtual std::shared_ptr<void> release() noexcept = 0;
  /// Its name for errors: "[rank 0] wait for <this> at ...: peer_failed: <reason>". The reason may be empty.
  [[nodiscard]] virtual std::string describe(status ended, std::string& reason) const = 0;

 protected:
  ~awaited() = default;
};

}  // namespace rma::detail
