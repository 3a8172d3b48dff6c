// SPDX-License-Identifier: Apache-2.0
/// \file
/// Something awaited stands behind a Request that is no operation or synchronization of a window: a message, or a
/// collective. It goes on by itself with anybody's progress; its request only looks at it.
#pragma once

#include <memory>
#include <string>

#include "rma/error.hpp"

namespace rma::detail {

class awaited {
 public:
  /// `not_yet`, or how it has ended. Any thread; makes no progress.
  [[nodiscard]] virtual status state() noexcept = 0;
  /// Whether it can still end: `done`, or why not. Asked while it has not ended, and somebody has died or left or
  /// something was revoked.
  [[nodiscard]] virtual status failed() noexcept = 0;
  /// Ends it for this reason: state() says how it has ended when this returns. Without the progress lock; it may wait
  /// for what cannot be called back.
  virtual void give_up(status why) noexcept = 0;
  /// Its request is over: the user has been told, or does not want to know. It may go on; nobody looks any more. Called
  /// under the progress lock, and the last call but for those that it makes itself. Returns what must not be destroyed
  /// under the lock, or null.
  virtual std::shared_ptr<void> release() noexcept = 0;
  /// Says what it is, for errors: "[rank 0] wait for <this> at ...: peer_failed: <reason>". The reason may be empty.
  [[nodiscard]] virtual std::string describe(status ended, std::string& reason) const = 0;

 protected:
  ~awaited() = default;
};

}  // namespace rma::detail
