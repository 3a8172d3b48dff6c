// SPDX-License-Identifier: Apache-2.0
/// \file
/// Notified operations: a signal at the target is raised when the data are there. What holds for all operations of a
/// window is said in rma/window.hpp.
///
///   win.put_signal(halo, right, at, 0);      // rank 0 ...
///   win.wait_signal(0);                      // ... and the one to its right: the halo is there
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <utility>

#include "rma/detail/window_ops.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window. A window has Hints::signals counters on each rank, numbered from 0.
template <class W, class T>
class Signals {
  using source = std::source_location;

 public:
  /// `put` whose arrival the target can wait for: raises `signal` there by one once these data are in its memory.
  /// Without data only the signal is raised.
  /// Completes  as put: `from` may be written again after the next flush_local, flush, or end of the epoch
  /// Memory     who has taken the signal sees these data; nothing is said of other operations, before or after: signals
  ///            of one origin may overtake each other. With a flush of the target between them they come in order
  /// Errors     as put, so that an epoch is needed; bad_argument if the window has no such signal
  /// Cost       between nodes a message behind the data; by fabrics whose messages may overtake writes (UCX) it waits
  ///            for these first
  void put_signal(std::span<const T> from, int target, std::size_t at, unsigned signal,
                  source where = source::current()) {
    const status s = try_put_signal(from, target, at, signal);
    require(detail::call::put_signal, s, target, at, from.size(), signal, where);
  }
  [[nodiscard]] status try_put_signal(std::span<const T> from, int target, std::size_t at, unsigned signal) noexcept {
    return issue(detail::put_args(from.data(), from.size_bytes(), target, at), signal);
  }
  /// A `put_signal` of one element, which is taken before the call returns. `{}` means no data.
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
  /// A `put_signal` of what `from_layout` selects of `from`, to where `to_layout` says: one signal, when all is there.
  /// Errors     bad_size if the layouts have not equally many bytes; nothing is raised then
  void put_signal(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
                  unsigned signal, source where = source::current()) {
    const status s = try_put_signal(from, from_layout, target, at, to_layout, signal);
    require(detail::call::put_signal, s, target, at, to_layout, signal, where);
  }
  [[nodiscard]] status try_put_signal(const T* from, const Layout& from_layout, int target, std::size_t at,
                                      const Layout& to_layout, unsigned signal) noexcept {
    return issue(detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout), signal);
  }
  /// `get` whose signal tells the target that its data have been read: it may write there again.
  /// Errors     as put_signal
  /// Cost       between nodes a message behind the data, which it waits for
  void get_signal(std::span<T> to, int target, std::size_t at, unsigned signal, source where = source::current()) {
    const status s = try_get_signal(to, target, at, signal);
    require(detail::call::get_signal, s, target, at, to.size(), signal, where);
  }
  [[nodiscard]] status try_get_signal(std::span<T> to, int target, std::size_t at, unsigned signal) noexcept {
    return issue(detail::get_args(to.data(), to.size_bytes(), target, at), signal);
  }
  /// A `get_signal` of what `from_layout` selects there, to where `to_layout` says here.
  void get_signal(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
                  unsigned signal, source where = source::current()) {
    const status s = try_get_signal(to, to_layout, target, at, from_layout, signal);
    require(detail::call::get_signal, s, target, at, from_layout, signal, where);
  }
  [[nodiscard]] status try_get_signal(T* to, const Layout& to_layout, int target, std::size_t at,
                                      const Layout& from_layout, unsigned signal) noexcept {
    return issue(detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout), signal);
  }
  /// `accumulate` likewise: the signal is raised when all elements have been updated.
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
  /// An `accumulate_signal` of what layouts select on both sides.
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
  /// An `accumulate_signal` of `type` elements, whatever T is.
  /// Errors     as accumulate_as
  [[nodiscard]] status accumulate_signal_as(element type, operation op, const void* from, const Layout& from_layout,
                                            int target, std::size_t at, const Layout& to_layout,
                                            unsigned signal) noexcept {
    return issue(detail::accumulate_args(from, from_layout, type, op, target, at, to_layout), signal);
  }

  /// Blocks until `signal` has been raised `count` times here, and takes these away. Needs no epoch.
  /// `from`: the rank expected to raise it, so that only its death is an error; -1: any of the team, no other number.
  /// Memory     the data of those notified operations are visible to plain loads
  /// Errors     bad_argument if the window has no such signal; bad_rank (`from`); peer_failed, also if all others of
  ///            the team have left: nothing is taken away
  void wait_signal(unsigned signal, std::uint64_t count = 1, int from = -1, source where = source::current()) {
    const status s = wait_signal_nothrow(signal, count, from);
    detail::require(view(), detail::call::wait_signal, s, from, signal, count, where);
  }
  [[nodiscard]] status wait_signal_nothrow(unsigned signal, std::uint64_t count = 1, int from = -1) noexcept {
    return detail::wait_signal(view(), signal, count, from);
  }
  /// As `wait_signal` without waiting: true if they were there (and are taken away).
  [[nodiscard]] bool test_signal(unsigned signal, std::uint64_t count = 1, source where = source::current()) {
    const status s = try_test_signal(signal, count);
    if (!ok(s) && s != status::not_yet) detail::raise(view(), detail::call::test_signal, s, -1, signal, count, where);
    return s == status::done;
  }
  /// done, not_yet, or an error.
  [[nodiscard]] status try_test_signal(unsigned signal, std::uint64_t count = 1) noexcept {
    return detail::test_signal(view(), signal, count);
  }
  /// Blocks until one of `signals` has been raised `count` times here, takes these away, and returns its place in the
  /// list: the first, if there are several. Of an empty list 0, at once. Needs no epoch.
  /// `from`: as for wait_signal
  /// Memory     as wait_signal, of the signal that was taken
  /// Errors     as wait_signal; bad_argument, too, if only one of them is no signal of the window
  /// Fairness   none: what is raised all the time hides those behind it. Turn the list, or look with test_signal
  /// Cost       as wait_signal, and a look at each of them
  std::size_t wait_any_signal(std::span<const unsigned> signals, std::uint64_t count = 1, int from = -1,
                              source where = source::current()) {
    std::size_t which = 0;
    const status s = wait_any_signal_nothrow(signals, which, count, from);
    if (!ok(s)) [[unlikely]]
      detail::raise(view(), detail::call::wait_signal, s, from, at(signals, which), count, where);
    return which;
  }
  /// `which`: its place, if the status is done; of bad_argument that of the first that the window does not have.
  [[nodiscard]] status wait_any_signal_nothrow(std::span<const unsigned> signals, std::size_t& which,
                                               std::uint64_t count = 1, int from = -1) noexcept {
    return detail::wait_any_signal(view(), signals, count, from, which);
  }
  /// As `wait_any_signal` without waiting: nothing if none of them was raised so often. Makes a step of progress then.
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
  /// How often it has been raised here and not been taken away; 0 for one that the window does not have.
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

  static unsigned at(std::span<const unsigned> signals, std::size_t place) noexcept {
    return place < signals.size() ? signals[place] : 0;
  }

  status issue(detail::operation_args args, unsigned signal) noexcept {
    args.signal = detail::signal_number(signal);
    return detail::issue(view(), args, nullptr);
  }
};

}  // namespace rma

#pragma GCC visibility pop
