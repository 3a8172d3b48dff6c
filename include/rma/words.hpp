// SPDX-License-Identifier: Apache-2.0
/// \file
/// Calls that wait until an element of this rank's own part has a value, for example a flag written after data, or a
/// counter. The headings of rma/window.hpp hold for them.
///
///   win.put(data, right, 0);                 // rank 0 ...
///   win.flush(right);                        // (the flag must not overtake them)
///   win.put(ready, right, flag);
///   win.flush(right);
///   win.wait_until(flag, [](auto value) { return value == ready; });     // rank 1
///
/// A signal (rma/signals.hpp) does the same with one operation, and wakes the waiting rank.
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

/// Types that can be waited for: those that one store writes in whole.
template <class E>
concept awaitable =
    std::is_trivially_copyable_v<E> && std::atomic_ref<E>::is_always_lock_free && sizeof(E) <= sizeof(std::uint64_t);

/// The calls, as members of every window. On an untyped window name the element type: `win.wait_until<int>(...)`.
template <class W, class T>
class Words {
  using source = std::source_location;

 public:
  /// Blocks until `ready(value)` is true for the element at `at` of this rank's part, and returns that value. Needs no
  /// epoch. This thread calls `ready` often; it must not call the library, and an exception from it ends the wait.
  /// `from`: the rank expected to write it, so that only its death is an error; -1: any rank of the team.
  /// Memory     data that the origin flushed to this rank before it wrote the element are visible to plain loads
  /// Errors     out_of_window; misaligned; bad_rank (`from`); peer_failed, also if all others of the team have left
  /// Cost       mapped memory: a store wakes no rank, so the call polls for RMA_SPIN_US, and then in growing intervals:
  ///            an eighth of the time it has waited, 4 ms at most. A message wakes it
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  E wait_until(std::size_t at, Ready&& ready, int from = -1, source where = source::current()) {
    detail::watch<E, Ready> watching(ready);
    const status s = detail::wait_until(view(), at, sizeof(E), from, watching.test());
    detail::require(view(), detail::call::wait_until, s, from, at, sizeof(E), where);
    return watching.result();
  }
  /// `value`: the element's value if the status is done. Exceptions from `ready` pass through.
  template <class E = T, std::predicate<E> Ready>
    requires awaitable<E>
  [[nodiscard]] status wait_until_nothrow(std::size_t at, Ready&& ready, E& value, int from = -1) {
    detail::watch<E, Ready> watching(ready);
    const status s = detail::wait_until(view(), at, sizeof(E), from, watching.test());
    if (ok(s)) value = watching.result();
    return s;
  }
  /// As `wait_until` without waiting; makes a step of progress if the element is not ready.
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
