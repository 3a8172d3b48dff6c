// SPDX-License-Identifier: Apache-2.0
/// \file
/// Aggregate handles combine many small operations, of any shape and to any targets, into as few transfers as possible.
///
///   auto held = win.lock_all();
///   {
///     auto batch = win.aggregate();
///     for (const edge& e : edges) batch.accumulate(e.weight, e.owner, e.place, rma::sum);
///     batch.get(std::span(seen), owner, place);
///     batch.wait();                              // complete at the origin: `seen` is valid
///   }
///   held.flush();                                // complete at the targets
///
/// Operations of up to 2 KiB on memory that is not mapped are held. Those to one target go in one message when the
/// handle ends, at its wait(), or when a message is full. Larger operations and those on mapped memory are issued at
/// once, as without a handle. Where the network adapter carries out atomic operations (accumulate_mode::direct), those
/// to one target are posted together: one doorbell for a chain of them. Every call that completes operations, and the
/// end of their epoch, sends held operations as well. Source: dissertation, 9.2 (aggregate handles).
#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <type_traits>
#include <utility>

#include "rma/detail/aggregate_ops.hpp"
#include "rma/detail/window_ops.hpp"
#include "rma/epoch_scope.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// Window::aggregate returns an Aggregate. All calls need an open epoch, as those of the window do.
/// Shape      local; the targets' handlers carry out the messages, so the targets must make progress
/// Completes  at the origin with wait(), at the targets with the window's flush or the end of the epoch
/// Memory     as the window's operations: only accumulates to one location keep their order
/// Errors     as the window's operations; those of messages are reported by the call that completes them
/// Threads    as for operations
/// Lifetime   within that of its window. Buffers of puts, accumulates and gets are in use until wait(), or the call
///            that completes the operations; values are copied. During an exception its destructor sends nothing
template <class T>
class [[nodiscard]] Aggregate {
  using source = std::source_location;

 public:
  /// Made by Window::aggregate.
  explicit Aggregate(detail::window_view& view) noexcept : view_(&view) { detail::begin_aggregate(view); }
  Aggregate(Aggregate&& other) noexcept : view_(std::exchange(other.view_, nullptr)), exceptions_(other.exceptions_) {}
  Aggregate& operator=(Aggregate&&) = delete;
  ~Aggregate() {
    if (view_ != nullptr && !exceptions_.thrown()) (void)detail::end_aggregate(*view_, false);
  }

  /// As Window::put, held until the handle sends.
  void put(const T& value, int target, std::size_t at, source where = source::current()) {
    detail::require(view(), detail::call::put, try_put(value, target, at), target, at, 1, where);
  }
  [[nodiscard]] status try_put(const T& value, int target, std::size_t at) noexcept {
    detail::operation_args a = detail::put_args(&value, sizeof(T), target, at);
    a.by_value = true;
    return detail::issue_aggregated(view(), a);
  }
  /// As Window::put, held until the handle sends.
  void put(std::span<const T> from, int target, std::size_t at, source where = source::current()) {
    detail::require(view(), detail::call::put, try_put(from, target, at), target, at, from.size(), where);
  }
  [[nodiscard]] status try_put(std::span<const T> from, int target, std::size_t at) noexcept {
    return detail::issue_aggregated(view(), detail::put_args(from.data(), from.size_bytes(), target, at));
  }
  /// As Window::put, held until the handle sends.
  void put(const T* from, const Layout& from_layout, int target, std::size_t at, const Layout& to_layout,
           source where = source::current()) {
    const status s = try_put(from, from_layout, target, at, to_layout);
    detail::require(view(), detail::call::put, s, target, at, to_layout, where);
  }
  [[nodiscard]] status try_put(const T* from, const Layout& from_layout, int target, std::size_t at,
                               const Layout& to_layout) noexcept {
    return detail::issue_aggregated(
        view(), detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout));
  }

  /// As Window::get, held until the handle sends.
  void get(std::span<T> to, int target, std::size_t at, source where = source::current()) {
    detail::require(view(), detail::call::get, try_get(to, target, at), target, at, to.size(), where);
  }
  [[nodiscard]] status try_get(std::span<T> to, int target, std::size_t at) noexcept {
    return detail::issue_aggregated(view(), detail::get_args(to.data(), to.size_bytes(), target, at));
  }
  /// As Window::get, held until the handle sends.
  void get(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
           source where = source::current()) {
    const status s = try_get(to, to_layout, target, at, from_layout);
    detail::require(view(), detail::call::get, s, target, at, from_layout, where);
  }
  [[nodiscard]] status try_get(T* to, const Layout& to_layout, int target, std::size_t at,
                               const Layout& from_layout) noexcept {
    return detail::issue_aggregated(
        view(), detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout));
  }

  /// As Window::accumulate, held until the handle sends.
  void accumulate(const T& value, int target, std::size_t at, operation op, source where = source::current())
    requires accumulable<T>
  {
    detail::require(view(), detail::call::accumulate, try_accumulate(value, target, at, op), target, at, 1, where);
  }
  [[nodiscard]] status try_accumulate(const T& value, int target, std::size_t at, operation op) noexcept
    requires accumulable<T>
  {
    return detail::issue_aggregated(view(), detail::accumulate_args(&value, sizeof(T), element_of<T>, op, target, at));
  }
  /// As Window::accumulate, held until the handle sends.
  void accumulate(std::span<const T> from, int target, std::size_t at, operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_accumulate(from, target, at, op);
    detail::require(view(), detail::call::accumulate, s, target, at, from.size(), where);
  }
  [[nodiscard]] status try_accumulate(std::span<const T> from, int target, std::size_t at, operation op) noexcept
    requires accumulable<T>
  {
    return detail::issue_aggregated(
        view(), detail::accumulate_args(from.data(), from.size_bytes(), element_of<T>, op, target, at));
  }

  /// Writes the old value to `old`, which must live until wait() or the call that completes the operations.
  void fetch_and_op(const T& value, T& old, int target, std::size_t at, operation op, source where = source::current())
    requires accumulable<T>
  {
    const status s = try_fetch_and_op(value, old, target, at, op);
    detail::require(view(), detail::call::fetch_and_op, s, target, at, 1, where);
  }
  [[nodiscard]] status try_fetch_and_op(const T& value, T& old, int target, std::size_t at, operation op) noexcept
    requires accumulable<T>
  {
    return detail::issue_aggregated(view(), detail::fetch_args(element_of<T>, op, &value, &old, target, at));
  }
  void compare_and_swap(const T& expected, const T& desired, T& old, int target, std::size_t at,
                        source where = source::current())
    requires accumulable<T>
  {
    const status s = try_compare_and_swap(expected, desired, old, target, at);
    detail::require(view(), detail::call::compare_and_swap, s, target, at, 1, where);
  }
  [[nodiscard]] status try_compare_and_swap(const T& expected, const T& desired, T& old, int target,
                                            std::size_t at) noexcept
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "compare_and_swap needs an integer window");
    return detail::issue_aggregated(view(), detail::swap_args(element_of<T>, &expected, &desired, &old, target, at));
  }

  /// Sends the held operations.
  void send(source where = source::current()) {
    detail::require(view(), detail::call::flush_local_all, detail::end_aggregate(view(), false), -1, 0, 0, where);
  }
  /// Sends the held operations, and waits until all operations of this rank in the window are complete at the origin:
  /// buffers may be reused, results are available.
  void wait(source where = source::current()) {
    detail::require(view(), detail::call::flush_local_all, wait_nothrow(), -1, 0, 0, where);
  }
  [[nodiscard]] status wait_nothrow() noexcept { return detail::end_aggregate(view(), true); }

 private:
  /// The view of a freed window after a move: its calls report window_freed.
  [[nodiscard]] detail::window_view& view() const noexcept { return view_ != nullptr ? *view_ : *detail::no_window(); }

  detail::window_view* view_;
  detail::exception_watch exceptions_;
};

}  // namespace rma

#pragma GCC visibility pop
