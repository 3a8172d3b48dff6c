// SPDX-License-Identifier: Apache-2.0
/// \file
/// Atomic operations whose element type is chosen at run time, independently of the window's: for shims. The headings
/// of rma/window.hpp hold for them.
#pragma once

#include <cstddef>
#include <span>

#include "rma/detail/window_ops.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"
#include "rma/request.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The calls, as members of every window. All return a status, none throws. An invalid operator or element type, or an
/// operator that is not defined for the type, gives bad_type, even without data.
template <class W>
class RunTimeTypes {
 public:
  /// Accumulates elements of type `type`, independently of T; layouts must select whole elements.
  /// Errors     bad_type if a layout splits an element; misaligned if the target's layout misaligns one
  [[nodiscard]] status accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                     int target, std::size_t at, const Layout& to_layout) noexcept {
    return detail::issue(view(), detail::accumulate_args(from, from_layout, type, op, target, at, to_layout), nullptr);
  }
  /// As `accumulate_as`, for contiguous elements on both sides. One element of mapped memory costs one indirect call.
  /// Errors     as accumulate_as; bad_size unless `from` is a number of whole elements
  [[nodiscard]] status accumulate_as(element type, operation op, std::span<const std::byte> from, int target,
                                     std::size_t at) noexcept {
    if (from.size() == bytes_of(type) && is_of_bytes() &&
        detail::fetch_one(view(), type, op, from.data(), nullptr, target, at))
      return status::done;
    return detail::issue(view(), detail::accumulate_args(from.data(), from.size(), type, op, target, at), nullptr);
  }
  /// As `accumulate_as`; `from` may be reused when the request is complete. In all request forms here the request is
  /// pending only if the operation is.
  [[nodiscard]] status raccumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                      int target, std::size_t at, const Layout& to_layout, Request& request) noexcept {
    return detail::with_request(view(), detail::accumulate_args(from, from_layout, type, op, target, at, to_layout),
                                request);
  }
  /// Adds `factor` (of type `type`) times each element, as in accumulate_as with sum: target += factor * from.
  /// `room` holds the products, at least from_layout.bytes() bytes, and must not change until the operation is complete
  /// (at the next flush_local, flush or end of the epoch, or with its request); `from` may be reused at once.
  /// Errors     as accumulate_as; bad_size if `room` is too short
  /// Cost       one pass over the data more than accumulate_as
  [[nodiscard]] status accumulate_scaled_as(element type, const void* factor, const void* from,
                                            const Layout& from_layout, int target, std::size_t at,
                                            const Layout& to_layout, std::span<std::byte> room) noexcept {
    if (const status s = detail::scale(type, factor, from, from_layout, room); !ok(s)) return s;
    const Layout products = Layout::contiguous<std::byte>(from_layout.bytes());
    return accumulate_as(type, operation::sum, room.data(), products, target, at, to_layout);
  }
  /// As `accumulate_scaled_as`, with a request.
  [[nodiscard]] status raccumulate_scaled_as(element type, const void* factor, const void* from,
                                             const Layout& from_layout, int target, std::size_t at,
                                             const Layout& to_layout, std::span<std::byte> room,
                                             Request& request) noexcept {
    request = Request();
    if (const status s = detail::scale(type, factor, from, from_layout, room); !ok(s)) return s;
    const Layout products = Layout::contiguous<std::byte>(from_layout.bytes());
    return raccumulate_as(type, operation::sum, room.data(), products, target, at, to_layout, request);
  }
  /// Stores the old contents in `result`, then accumulates; each side has its layout. With no_op `from` is not read.
  [[nodiscard]] status get_accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                         void* result, const Layout& result_layout, int target, std::size_t at,
                                         const Layout& target_layout) noexcept {
    const auto args =
        detail::get_accumulate_args(from, from_layout, result, result_layout, type, op, target, at, target_layout);
    return detail::issue(view(), args, nullptr);
  }
  /// As `get_accumulate_as`; the result is available when the request is complete.
  [[nodiscard]] status rget_accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                          void* result, const Layout& result_layout, int target, std::size_t at,
                                          const Layout& target_layout, Request& request) noexcept {
    const auto args =
        detail::get_accumulate_args(from, from_layout, result, result_layout, type, op, target, at, target_layout);
    return detail::with_request(view(), args, request);
  }
  /// As `fetch_and_op`, with a type and operator given at run time.
  [[nodiscard]] status fetch_and_op_as(element type, operation op, const void* value, void* old, int target,
                                       std::size_t at) noexcept {
    if (is_of_bytes() && detail::fetch_one(view(), type, op, value, old, target, at)) return status::done;
    return detail::issue_and_wait(view(), detail::fetch_args(type, op, value, old, target, at));
  }
  /// As `fetch_and_op_as`, with a request.
  [[nodiscard]] status rfetch_and_op_as(element type, operation op, const void* value, void* old, int target,
                                        std::size_t at, Request& request) noexcept {
    return detail::with_request(view(), detail::fetch_args(type, op, value, old, target, at), request);
  }
  /// As `compare_and_swap`, with a type given at run time.
  [[nodiscard]] status compare_and_swap_as(element type, const void* expected, const void* desired, void* old,
                                           int target, std::size_t at) noexcept {
    if (is_of_bytes() && detail::swap_one(view(), type, expected, desired, old, target, at)) return status::done;
    return detail::issue_and_wait(view(), detail::swap_args(type, expected, desired, old, target, at));
  }
  /// As `compare_and_swap_as`, with a request.
  [[nodiscard]] status rcompare_and_swap_as(element type, const void* expected, const void* desired, void* old,
                                            int target, std::size_t at, Request& request) noexcept {
    return detail::with_request(view(), detail::swap_args(type, expected, desired, old, target, at), request);
  }

 private:
  friend W;
  RunTimeTypes() noexcept = default;
  [[nodiscard]] static constexpr bool is_of_bytes() noexcept { return sizeof(typename W::value_type) == 1; }
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma

#pragma GCC visibility pop
