// SPDX-License-Identifier: Apache-2.0
/// \file
/// Atomic updates of single elements that are waited for by a Request. What holds for all operations of a window is
/// said in rma/window.hpp, where the request forms of ranges are.
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
    return detail::with_request(view(), detail::fetch_args(element_of<T>, op, &value, &old, target, at), request);
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
    return detail::with_request(view(), detail::swap_args(element_of<T>, &expected, &desired, &old, target, at),
                                request);
  }

 private:
  friend W;
  AtomicRequests() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma
