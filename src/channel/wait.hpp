// SPDX-License-Identifier: Apache-2.0
/// \file
/// The argument of context::wait: its condition, the reasons to end it early, and the source of wake-ups.
#pragma once

#include <concepts>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "rma/error.hpp"

namespace rma::detail {

class long_wait;

/// A reference to a callable without arguments, which must live as long as the wait: a lambda in the call does.
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
  message,  ///< progress of this rank: it drives the fabric from the first turn on, and every source rings
  memory,   ///< another rank's store, which rings: it polls a few times before it drives the fabric
  nobody,   ///< a store that does not ring: each sleep lasts an eighth of the time waited so far, 4 ms at most
  service,  ///< none that the program waits for: the progress thread, which serves other ranks
};

inline constexpr std::int64_t no_deadline = std::numeric_limits<std::int64_t>::max();

struct wait_spec {
  /// The condition, which ends the wait with `done`. It may have side effects (take a lock, a message): it is not
  /// called again after it was true. Without one only the deadline ends the wait.
  wait_question<bool> until{};
  /// `done` while the condition can still become true, else the reason. Called after deaths, departures and
  /// revocations. Without it the reason is `peer_failed` when `peer` is gone.
  wait_question<status> fails_if{};
  wakes woken_by = wakes::message;
  std::int64_t deadline_ns = no_deadline;  ///< on the platform's clock; the wait is `done` when it has passed
  int peer = -1;                           ///< the rank that is waited for, if there is one
  int replies = -1;                        ///< the rank whose reply it waits for, also after the death of that rank
  bool for_lock = false;                   ///< `peer` answers when it grants a lock, which another rank may hold
  long_wait* whole = nullptr;              ///< the long wait that this is a part of, if any
};

}  // namespace rma::detail
