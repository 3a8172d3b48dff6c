// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations with a Request each, to wait for them one by one. rma/window.hpp documents all operations of a window,
/// rma/request.hpp the Request.
///
///   std::uint64_t ticket, seen;
///   rma::Request drawn = win.rfetch_and_op(1, ticket, host, counter, rma::sum);
///   rma::Request tried = win.rcompare_and_swap(free, mine, seen, host, slot);     // both are pending
///   rma::wait_all(...);
///
/// The `try_` forms return the Request by reference; it is empty after an error, and where the operation is complete.
#pragma once

#include <cstddef>
#include <source_location>
#include <span>
#include <type_traits>

#include "rma/detail/window_ops.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"
#include "rma/request.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window.
template <class W, class T>
class RequestForms {
  using source = std::source_location;

 public:
  /// As `put`, with a Request.
  [[nodiscard]] Request rput(std::span<const T> from, int target, std::size_t at, source where = source::current()) {
    Request request;
    const status s = try_rput(from, target, at, request);
    detail::require(view(), detail::call::put, s, target, at, from.size(), where);
    return request;
  }
  [[nodiscard]] status try_rput(std::span<const T> from, int target, std::size_t at, Request& request) noexcept {
    return detail::with_request(view(), detail::put_args(from.data(), from.size_bytes(), target, at), request);
  }
  /// As `rput`, with a layout on each side.
  [[nodiscard]] Request rput(const T* from, const Layout& from_layout, int target, std::size_t at,
                             const Layout& to_layout, source where = source::current()) {
    Request request;
    const status s = try_rput(from, from_layout, target, at, to_layout, request);
    detail::require(view(), detail::call::put, s, target, at, to_layout, where);
    return request;
  }
  [[nodiscard]] status try_rput(const T* from, const Layout& from_layout, int target, std::size_t at,
                                const Layout& to_layout, Request& request) noexcept {
    const auto args = detail::layout_args(detail::call::put, from, nullptr, from_layout, target, at, to_layout);
    return detail::with_request(view(), args, request);
  }

  /// As `get`, with a Request.
  [[nodiscard]] Request rget(std::span<T> to, int target, std::size_t at, source where = source::current()) {
    Request request;
    detail::require(view(), detail::call::get, try_rget(to, target, at, request), target, at, to.size(), where);
    return request;
  }
  [[nodiscard]] status try_rget(std::span<T> to, int target, std::size_t at, Request& request) noexcept {
    return detail::with_request(view(), detail::get_args(to.data(), to.size_bytes(), target, at), request);
  }
  /// As `rget`, with a layout on each side.
  [[nodiscard]] Request rget(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
                             source where = source::current()) {
    Request request;
    const status s = try_rget(to, to_layout, target, at, from_layout, request);
    detail::require(view(), detail::call::get, s, target, at, from_layout, where);
    return request;
  }
  [[nodiscard]] status try_rget(T* to, const Layout& to_layout, int target, std::size_t at, const Layout& from_layout,
                                Request& request) noexcept {
    const auto args = detail::layout_args(detail::call::get, nullptr, to, to_layout, target, at, from_layout);
    return detail::with_request(view(), args, request);
  }

  /// As `accumulate`, with a Request.
  [[nodiscard]] Request raccumulate(std::span<const T> from, int target, std::size_t at, operation op,
                                    source where = source::current())
    requires accumulable<T>
  {
    Request request;
    const status s = try_raccumulate(from, target, at, op, request);
    detail::require(view(), detail::call::accumulate, s, target, at, from.size(), where);
    return request;
  }
  [[nodiscard]] status try_raccumulate(std::span<const T> from, int target, std::size_t at, operation op,
                                       Request& request) noexcept
    requires accumulable<T>
  {
    const auto args = detail::accumulate_args(from.data(), from.size_bytes(), element_of<T>, op, target, at);
    return detail::with_request(view(), args, request);
  }
  /// As `raccumulate`, with a layout on each side.
  [[nodiscard]] Request raccumulate(const T* from, const Layout& from_layout, int target, std::size_t at,
                                    const Layout& to_layout, operation op, source where = source::current())
    requires accumulable<T>
  {
    Request request;
    const status s = try_raccumulate(from, from_layout, target, at, to_layout, op, request);
    detail::require(view(), detail::call::accumulate, s, target, at, to_layout, where);
    return request;
  }
  [[nodiscard]] status try_raccumulate(const T* from, const Layout& from_layout, int target, std::size_t at,
                                       const Layout& to_layout, operation op, Request& request) noexcept
    requires accumulable<T>
  {
    const auto args = detail::accumulate_args(from, from_layout, element_of<T>, op, target, at, to_layout);
    return detail::with_request(view(), args, request);
  }

  /// As `get_accumulate`, with a Request.
  [[nodiscard]] Request rget_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at,
                                        operation op, source where = source::current())
    requires accumulable<T>
  {
    Request request;
    const status s = try_rget_accumulate(from, result, target, at, op, request);
    detail::require(view(), detail::call::get_accumulate, s, target, at, result.size(), where);
    return request;
  }
  [[nodiscard]] status try_rget_accumulate(std::span<const T> from, std::span<T> result, int target, std::size_t at,
                                           operation op, Request& request) noexcept
    requires accumulable<T>
  {
    request = Request();
    if (op != operation::no_op && from.size() != result.size()) return status::bad_size;
    const auto args = detail::get_accumulate_args(detail::operand(op, from.data()), result.data(), result.size_bytes(),
                                                  element_of<T>, op, target, at);
    return detail::with_request(view(), args, request);
  }

  /// As `fetch_and_op`, without waiting for the old value.
  /// Completes  when the request does: it writes the old value to `old`, which must live until then. `value` may be
  ///            reused when this returns
  /// Errors     as fetch_and_op
  /// Cost       mapped memory: a locked instruction, and an empty request; else a message, or an adapter's atomic
  [[nodiscard]] Request rfetch_and_op(const T& value, T& old, int target, std::size_t at, operation op,
                                      source where = source::current())
    requires accumulable<T>
  {
    Request request;
    const status s = try_rfetch_and_op(value, old, target, at, op, request);
    detail::require(view(), detail::call::fetch_and_op, s, target, at, 1, where);
    return request;
  }
  [[nodiscard]] status try_rfetch_and_op(const T& value, T& old, int target, std::size_t at, operation op,
                                         Request& request) noexcept
    requires accumulable<T>
  {
    return detail::with_request(view(), detail::fetch_args(element_of<T>, op, &value, &old, target, at), request);
  }
  /// As `compare_and_swap`, without waiting for the old value.
  /// Completes  when the request does: it writes the old value to `old`, which must live until then. `expected` and
  ///            `desired` may be reused when this returns
  /// Errors     as compare_and_swap
  /// Cost       as rfetch_and_op
  [[nodiscard]] Request rcompare_and_swap(const T& expected, const T& desired, T& old, int target, std::size_t at,
                                          source where = source::current())
    requires accumulable<T>
  {
    Request request;
    const status s = try_rcompare_and_swap(expected, desired, old, target, at, request);
    detail::require(view(), detail::call::compare_and_swap, s, target, at, 1, where);
    return request;
  }
  [[nodiscard]] status try_rcompare_and_swap(const T& expected, const T& desired, T& old, int target, std::size_t at,
                                             Request& request) noexcept
    requires accumulable<T>
  {
    static_assert(std::is_integral_v<T>, "rcompare_and_swap needs an integer window");
    return detail::with_request(view(), detail::swap_args(element_of<T>, &expected, &desired, &old, target, at),
                                request);
  }

 private:
  friend W;
  RequestForms() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma

#pragma GCC visibility pop
