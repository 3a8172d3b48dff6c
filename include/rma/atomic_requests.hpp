// SPDX-License-Identifier: Apache-2.0
/// \file
/// Atomic updates that are waited for by a Request: of single elements, and of elements whose type is known at run time
/// only. What holds for all operations of a window is said in rma/window.hpp, where the request forms of ranges are.
///
///   std::uint64_t ticket, seen;
///   rma::Request drawn = win.rfetch_and_op(1, ticket, host, counter, rma::sum);
///   rma::Request tried = win.rcompare_and_swap(free, mine, seen, host, slot);     // both are on their way
///   rma::wait_all(...);
#pragma once

#include <cstddef>
#include <source_location>
#include <type_traits>

#include "rma/detail/window_ops.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"
#include "rma/request.hpp"

namespace rma {

/// The calls, as members of every window.
template <class W, class T>
class AtomicRequests {
  using source = std::source_location;

 public:
  /// fetch_and_op without waiting for the old value.
  /// Completes  when the request does: `old`, which must stay till then, is the old value. `value` has been taken when
  ///            this returns
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
    return rfetch_and_op_as(element_of<T>, op, &value, &old, target, at, request);
  }
  /// compare_and_swap without waiting for what was there.
  /// Completes  when the request does: `old`, which must stay till then, is what was there. `expected` and `desired`
  ///            have been taken when this returns
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
    return rcompare_and_swap_as(element_of<T>, &expected, &desired, &old, target, at, request);
  }

  // ---- run-time element type, whatever T is: what shims need --------------------------------------------------

  /// `request` is pending only if the operation is.
  [[nodiscard]] status rfetch_and_op_as(element type, operation op, const void* value, void* old, int target,
                                        std::size_t at, Request& request) noexcept {
    auto args = detail::get_accumulate_args(value, old, bytes_of(type), type, op, target, at);
    args.kind = detail::call::fetch_and_op;
    return detail::with_request(view(), args, request);
  }
  [[nodiscard]] status rcompare_and_swap_as(element type, const void* expected, const void* desired, void* old,
                                            int target, std::size_t at, Request& request) noexcept {
    auto args = detail::get_accumulate_args(desired, old, bytes_of(type), type, operation::replace, target, at);
    args.kind = detail::call::compare_and_swap;
    args.compare = expected;
    return detail::with_request(view(), args, request);
  }
  /// accumulate_as; `from` may be written again when the request is complete.
  [[nodiscard]] status raccumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                      int target, std::size_t at, const Layout& to_layout, Request& request) noexcept {
    auto args = detail::layout_args(detail::call::accumulate, from, nullptr, from_layout, target, at, to_layout);
    args.type = type;
    args.op = op;
    return detail::with_request(view(), args, request);
  }
  /// get_accumulate_as; the result is there when the request is complete.
  [[nodiscard]] status rget_accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                          void* result, const Layout& result_layout, int target, std::size_t at,
                                          const Layout& target_layout, Request& request) noexcept {
    auto args = detail::layout_args(detail::call::get_accumulate, detail::operand(op, from), result, from_layout,
                                    target, at, target_layout);
    args.result_layout = &result_layout;
    args.type = type;
    args.op = op;
    return detail::with_request(view(), args, request);
  }

 private:
  friend W;
  AtomicRequests() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma
