// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waiting for an element of this rank's own part, whoever writes it: a flag behind the data, a counter. What holds for
/// all calls of a window is said in rma/window.hpp.
///
///   win.put(data, right, 0);                 // rank 0 ...
///   win.flush(right);                        // (the flag must not overtake them)
///   win.put(ready, right, flag);
///   win.flush(right);
///   win.wait_until(flag, [](auto value) { return value == ready; });     // ... and the one to its right
///
/// A signal (rma/signals.hpp) says the same by one operation, and wakes who waits.
#pragma once

#include <atomic>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <source_location>
#include <type_traits>
#include <utility>

#include "rma/detail/word_ops.hpp"
#include "rma/error.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// Plain values that are written at once can be waited for.
template <class E>
concept awaitable =
    std::is_trivially_copyable_v<E> && std::atomic_ref<E>::is_always_lock_free && sizeof(E) <= sizeof(std::uint64_t);

/// The calls, as members of every window. An untyped one names the element: `win.wait_until<int>(...)`.
template <class W, class T>
class Words {
  using source = std::source_location;

 public:
  /// Blocks until `ready(value)` is true of the element at `at` of this rank's part, and returns that value. Needs no
  /// epoch. `ready` is called by this thread, often, and must not call the library; what it throws ends the wait.
  /// `from`: the rank expected to write it, so that only its death is an error; -1: any of the team, no other number.
  /// Memory     what its origin had flushed to this rank before it wrote the element is visible to plain loads
  /// Errors     out_of_window; misaligned; bad_rank (`from`); peer_failed, also if all others of the team have left
  /// Cost       mapped memory: nobody rings for a store, so that this looks all the time for RMA_SPIN_US, then again
  ///            after an eighth of the time it has waited, 4 ms at most. A message wakes it
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  E wait_until(std::size_t at, Ready&& ready, int from = -1, source where = source::current()) {
    detail::watch<E, Ready> watching(ready);
    const status s = detail::wait_until(view(), at, sizeof(E), from, watching.test());
    detail::require(view(), detail::call::wait_until, s, from, at, sizeof(E), where);
    return watching.result();
  }
  /// `value`: what was found, if the status is done. What `ready` throws passes through here, too.
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  [[nodiscard]] status wait_until_nothrow(std::size_t at, Ready&& ready, E& value, int from = -1) {
    detail::watch<E, Ready> watching(ready);
    const status s = detail::wait_until(view(), at, sizeof(E), from, watching.test());
    if (ok(s)) value = watching.result();
    return s;
  }
  /// As `wait_until` without waiting: makes a step of progress if it is not ready.
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  [[nodiscard]] bool test_until(std::size_t at, Ready&& ready, source where = source::current()) {
    const status s = try_test_until<E>(at, std::forward<Ready>(ready));
    if (s == status::not_yet) return false;
    detail::require(view(), detail::call::test_until, s, -1, at, sizeof(E), where);
    return true;
  }
  /// done, not_yet, or an error.
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  [[nodiscard]] status try_test_until(std::size_t at, Ready&& ready) {
    detail::watch<E, Ready> watching(ready);
    const status s = detail::test_until(view(), at, sizeof(E), watching.test());
    if (s == status::done) (void)watching.result();
    return s;
  }

 private:
  friend W;
  Words() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma

#pragma GCC visibility pop
