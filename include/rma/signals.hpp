// SPDX-License-Identifier: Apache-2.0
/// \file
/// Notified operations: they raise a signal at the target when the data are in its memory. The headings of
/// rma/window.hpp hold for them.
///
///   win.put_signal(halo, right, at, 0);      // rank 0 ...
///   win.wait_signal(0);                      // rank 1: now the halo is in its memory
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <utility>

#include "rma/detail/window_ops.hpp"
#include "rma/detail/word_ops.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window. A window has Hints::signals counters on each rank, numbered from 0. Other
/// ranks only add to them. There is no remote set: signals are not ordered, so that it could erase one that was raised
/// before it, or be increased by one that it overtakes. Set a word of the window instead: `atomic_store` it at the
/// target after a flush of the data; the target waits for it with `wait_until` (rma/words.hpp).
template <class W, class T>
class Signals {
  using source = std::source_location;

 public:
  /// As `put`, and raises `signal` at the target by one once these data are in its memory, so that the target can wait
  /// for them. Without data it only raises the signal.
  /// Completes  as put: `from` may be reused after the next flush_local, flush, or end of the epoch
  /// Memory     a rank that has taken the signal sees these data. Other operations are not ordered by it: signals of
  ///            one origin may overtake each other. With a flush of the target between them they arrive in order
  /// Errors     as put, so that an epoch is needed; bad_argument if the window has no such signal
  /// Cost       between nodes one message after the data; on fabrics whose messages may overtake writes (UCX) it first
  ///            waits for the writes
  void put_signal(std::span<const T> from, int target, std::size_t at, unsigned signal,
                  source where = source::current()) {
    const status s = try_put_signal(from, target, at, signal);
    require(detail::call::put_signal, s, target, at, from.size(), signal, where);
  }
  [[nodiscard]] status try_put_signal(std::span<const T> from, int target, std::size_t at, unsigned signal) noexcept {
    return issue(detail::put_args(from.data(), from.size_bytes(), target, at), signal);
  }
  /// As `put_signal`, of one element, which is copied before the call returns. `{}` means no data.
  template <class V>
    requires(std::convertible_to<const V&, T> && !std::convertible_to<const V&, std::span<const T>>)
  void put_signal(const V& value, int target, std::size_t at, unsigned signal, source where = source::current()) {
    const status s = try_put_signal(value, target, at, signal);
    require(detail::call::put_signal, s, target, at, std::size_t{1}, signal, where);
  }
  template <class V>
    requires(std::convertible_to<const V&, T> && !std::convertible_to<const V&, std::span<const T>>)
  [[nodiscard]] status try_put_signal(const V& value, int target, std::size_t at, unsigned signal) noexcept {
    const T converted = static_cast<T>(value);
    auto args = detail::put_args(&converted, sizeof(T), target, at);
    args.signal = detail::signal_number(signal);
    return detail::issue_and_wait(view(), std::move(args));
  }
  /// As `put_signal`, with a layout on each side: raises the signal once, when all data are in the target's memory.
  /// Errors     bad_size if the layouts have different numbers of bytes; then no signal is raised
  void put_signal(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
                  unsigned signal, source where = source::current()) {
    const status s = try_put_signal(from, from_layout, target, at, to_layout, signal);
    require(detail::call::put_signal, s, target, at, to_layout, signal, where);
  }
  [[nodiscard]] status try_put_signal(const T* from, const Layout& from_layout, int target, std::size_t at,
                                      const Layout& to_layout, unsigned signal) noexcept {
    return issue(detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout), signal);
  }
  /// As `get`, and raises `signal` at the target when its data have been read, so that it may overwrite them.
  /// Errors     as put_signal
  /// Cost       between nodes one message, which is sent when the data have arrived
  void get_signal(std::span<T> to, int target, std::size_t at, unsigned signal, source where = source::current()) {
    const status s = try_get_signal(to, target, at, signal);
    require(detail::call::get_signal, s, target, at, to.size(), signal, where);
  }
  [[nodiscard]] status try_get_signal(std::span<T> to, int target, std::size_t at, unsigned signal) noexcept {
    return issue(detail::get_args(to.data(), to.size_bytes(), target, at), signal);
  }
  /// As `get_signal`, with a layout on each side.
  void get_signal(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
                  unsigned signal, source where = source::current()) {
    const status s = try_get_signal(to, to_layout, target, at, from_layout, signal);
    require(detail::call::get_signal, s, target, at, from_layout, signal, where);
  }
  [[nodiscard]] status try_get_signal(T* to, const Layout& to_layout, int target, std::size_t at,
                                      const Layout& from_layout, unsigned signal) noexcept {
    return issue(detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout), signal);
  }
  /// As `accumulate`, and raises `signal` at the target when all elements have been updated.
  /// Errors     as put_signal, and accumulate
  void accumulate_signal(std::span<const T> from, int target, std::size_t at, operation op, unsigned signal,
                         source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate_signal(from, target, at, op, signal);
    require(detail::call::accumulate_signal, s, target, at, from.size(), signal, where);
  }
  [[nodiscard]] status try_accumulate_signal(std::span<const T> from, int target, std::size_t at, operation op,
                                             unsigned signal) noexcept
    requires accumulable<T>
  {
    return issue(detail::accumulate_args(from.data(), from.size_bytes(), element_of<T>, op, target, at), signal);
  }
  /// As `accumulate_signal`, with a layout on each side.
  void accumulate_signal(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
                         operation op, unsigned signal, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate_signal(from, from_layout, target, at, to_layout, op, signal);
    require(detail::call::accumulate_signal, s, target, at, to_layout, signal, where);
  }
  [[nodiscard]] status try_accumulate_signal(const T* from, const Layout& from_layout, int target, std::size_t at,
                                             const Layout& to_layout, operation op, unsigned signal) noexcept
    requires accumulable<T>
  {
    return accumulate_signal_as(element_of<T>, op, from, from_layout, target, at, to_layout, signal);
  }
  /// As `accumulate_signal`, of elements of type `type`, independently of T.
  /// Errors     as accumulate_as
  [[nodiscard]] status accumulate_signal_as(element type, operation op, const void* from, const Layout& from_layout,
                                            int target, std::size_t at, const Layout& to_layout,
                                            unsigned signal) noexcept {
    return issue(detail::accumulate_args(from, from_layout, type, op, target, at, to_layout), signal);
  }

  /// Blocks until the counter of `signal` on this rank is at least `count`, and subtracts `count`. Needs no epoch.
  /// `from`: the rank expected to raise it, so that only its death is an error; -1: any rank of the team.
  /// Memory     the data of those notified operations are visible to plain loads
  /// Errors     bad_argument if the window has no such signal; bad_rank (`from`); peer_failed, also if all other ranks
  ///            of the team have left: nothing is subtracted
  void wait_signal(unsigned signal, std::uint64_t count = 1, int from = -1, source where = source::current()) {
    const status s = wait_signal_nothrow(signal, count, from);
    detail::require(view(), detail::call::wait_signal, s, from, signal, count, where);
  }
  [[nodiscard]] status wait_signal_nothrow(unsigned signal, std::uint64_t count = 1, int from = -1) noexcept {
    return detail::wait_signal(view(), signal, count, from);
  }
  /// As `wait_signal` without waiting: true if the counter was at least `count`, which has been subtracted.
  [[nodiscard]] bool test_signal(unsigned signal, std::uint64_t count = 1, source where = source::current()) {
    const status s = try_test_signal(signal, count);
    if (!ok(s) && s != status::not_yet) detail::raise(view(), detail::call::test_signal, s, -1, signal, count, where);
    return s == status::done;
  }
  /// done, not_yet, or an error.
  [[nodiscard]] status try_test_signal(unsigned signal, std::uint64_t count = 1) noexcept {
    return detail::test_signal(view(), signal, count);
  }
  /// As `wait_signal` for any of `signals`: returns the index of the one that was taken, the first in the list if there
  /// are several. Returns 0 at once for an empty list. Needs no epoch.
  /// `from`: as for wait_signal
  /// Memory     as wait_signal, for the signal that was taken
  /// Errors     as wait_signal; bad_argument if any of them is no signal of the window
  /// Fairness   none: a signal that is raised all the time hides those after it. Rotate the list, or use test_signal
  /// Cost       as wait_signal, and one load for each signal
  std::size_t wait_any_signal(std::span<const unsigned> signals, std::uint64_t count = 1, int from = -1,
                              source where = source::current()) {
    std::size_t which = 0;
    const status s = wait_any_signal_nothrow(signals, which, count, from);
    if (!ok(s)) [[unlikely]]
      detail::raise(view(), detail::call::wait_signal, s, from, at(signals, which), count, where);
    return which;
  }
  /// `which`: the index of the signal if the status is done; for bad_argument that of the first invalid one.
  [[nodiscard]] status wait_any_signal_nothrow(std::span<const unsigned> signals, std::size_t& which,
                                               std::uint64_t count = 1, int from = -1) noexcept {
    return detail::wait_any_signal(view(), signals, count, from, which);
  }
  /// As `wait_any_signal` without waiting: nothing if no counter is high enough, after one step of progress.
  [[nodiscard]] std::optional<std::size_t> test_any_signal(std::span<const unsigned> signals, std::uint64_t count = 1,
                                                           source where = source::current()) {
    std::size_t which = 0;
    const status s = try_test_any_signal(signals, which, count);
    if (s == status::not_yet) return std::nullopt;
    if (!ok(s)) [[unlikely]]
      detail::raise(view(), detail::call::test_signal, s, -1, at(signals, which), count, where);
    return which;
  }
  /// done, not_yet (always of an empty list), or an error.
  [[nodiscard]] status try_test_any_signal(std::span<const unsigned> signals, std::size_t& which,
                                           std::uint64_t count = 1) noexcept {
    return detail::test_any_signal(view(), signals, count, which);
  }
  /// As `wait_signal`, but blocks until `ready(value)` is true for the counter, takes nothing away, and returns that
  /// value. A counter may pass a value between two looks: compare with at least, not with equal, unless one raise at a
  /// time is under way. This thread calls `ready` often; it must not call the library, and an exception from it ends
  /// the wait.
  /// `from`: as for wait_signal
  /// Memory     as wait_signal, for the signals that `value` counts
  /// Errors     as wait_signal
  template <std::predicate<std::uint64_t> Ready>
  std::uint64_t wait_signal_until(unsigned signal, Ready&& ready, int from = -1, source where = source::current()) {
    detail::watch<std::uint64_t, Ready> watching(ready);
    const status s = detail::wait_signal_until(view(), signal, from, watching.test());
    detail::require(view(), detail::call::wait_signal, s, from, signal, std::uint64_t{1}, where);
    return watching.result();
  }
  /// `value`: the counter's value if the status is done. Exceptions from `ready` pass through.
  template <std::predicate<std::uint64_t> Ready>
  [[nodiscard]] status wait_signal_until_nothrow(unsigned signal, Ready&& ready, std::uint64_t& value, int from = -1) {
    detail::watch<std::uint64_t, Ready> watching(ready);
    const status s = detail::wait_signal_until(view(), signal, from, watching.test());
    if (ok(s)) value = watching.result();
    return s;
  }
  /// Sets the counter of `signal` on this rank to `value` and returns what it was, in one atomic step. Local; needs no
  /// epoch. Signals that have been raised here are replaced, and the returned count has them; those under way are added
  /// to `value` when they come. So reset a signal when none is under way, for example after a barrier that follows the
  /// waits.
  /// Memory     the data of the signals that it has replaced are visible to plain loads
  /// Threads    waits of other threads for this signal see the value: it ends them if it is high enough. A set
  ///            and a wait of another thread at the same time take effect one after the other
  /// Errors     bad_argument if the window has no such signal: nothing is set
  /// Cost       one atomic instruction, and a call to the kernel if a thread sleeps
  std::uint64_t set_signal(unsigned signal, std::uint64_t value, source where = source::current()) {
    std::uint64_t before = 0;
    const status s = try_set_signal(signal, value, before);
    detail::require(view(), detail::call::set_signal, s, -1, signal, value, where);
    return before;
  }
  /// `before`: what the counter was if the status is done.
  [[nodiscard]] status try_set_signal(unsigned signal, std::uint64_t value, std::uint64_t& before) noexcept {
    return detail::set_signal(view(), signal, value, before);
  }
  /// How often it has been raised here and not been taken away; 0 for one that the window does not have. Makes no
  /// progress.
  [[nodiscard]] std::uint64_t signal_value(unsigned signal) const noexcept {
    return detail::signal_value(*static_cast<const W*>(this)->view_, signal);
  }

 private:
  friend W;
  Signals() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }

  /// A signal that the window does not have is what a message is about instead of the place.
  /// `amount`: how many elements, or where they lie at the target.
  template <class Amount>
  void require(detail::call what, status s, int target, std::size_t at, const Amount& amount, unsigned signal,
               const source& where) {
    detail::require(view(), what, s, target, s == status::bad_argument ? signal : at, amount, where);
  }

  static unsigned at(std::span<const unsigned> signals, std::size_t index) noexcept {
    return index < signals.size() ? signals[index] : 0;
  }

  status issue(detail::operation_args args, unsigned signal) noexcept {
    args.signal = detail::signal_number(signal);
    return detail::issue(view(), args, nullptr);
  }
};

}  // namespace rma

#pragma GCC visibility pop
