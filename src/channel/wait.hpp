// SPDX-License-Identifier: Apache-2.0
/// \file
/// The argument of context::wait says what a wait is for, what ends it early, and what wakes it up.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "rma/error.hpp"

namespace rma::detail {

class long_wait;

/// Refers to a callable without arguments, which lives as long as the wait: a lambda in the call is fine.
template <class Result>
class wait_question {
 public:
  constexpr wait_question() noexcept = default;
  template <class F>
    requires(!std::same_as<std::remove_cvref_t<F>, wait_question>)
  wait_question(F&& f) noexcept  // NOLINT(google-explicit-constructor): that is what it is for
      : self_(const_cast<void*>(static_cast<const void*>(std::addressof(f)))), ask_([](void* self) noexcept {
          return static_cast<Result>((*static_cast<std::remove_reference_t<F>*>(self))());
        }) {
    static_assert(noexcept(f()));
  }
  [[nodiscard]] bool given() const noexcept { return ask_ != nullptr; }
  Result operator()() const noexcept { return ask_(self_); }

 private:
  void* self_ = nullptr;
  Result (*ask_)(void*) noexcept = nullptr;
};

/// The event that makes a wait's condition true.
enum class wakes : std::uint8_t {
  message,  ///< only this rank's progress: the fabric is driven from the first turn on. Whatever ends it rings
  memory,   ///< another rank's store, for which it looks a few times first, and which rings, too
  nobody,   ///< a store that does not ring: a sleep lasts an eighth of the time it has waited, 4 ms at most
  service,  ///< nothing that the program waits for: the progress thread, which serves others
};

inline constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

struct wait_spec {
  /// Ends it with `done`. It may take what is waited for (a lock, a message): it is not asked again after it was true.
  /// Without one only time ends the wait.
  wait_question<bool> until{};
  /// Whether it can no longer become true: `done`, or why. Asked when somebody has died or left, or something was
  /// revoked. Without it: `peer_failed` when `peer` is gone.
  wait_question<status> fails_if{};
  wakes woken_by = wakes::message;
  std::int64_t deadline_ns = no_deadline;  ///< on the platform's clock; when it has passed the wait is `done`
  int peer = -1;                           ///< the rank that it is for, if it is for one
  long_wait* whole = nullptr;              ///< the wait that this is a part of, if it is made of several
};

}  // namespace rma::detail
