// SPDX-License-Identifier: Apache-2.0
/// \file
/// Atomic operations whose element type is chosen at run time, whatever the window's is: what shims need. What holds
/// for all operations of a window is said in rma/window.hpp.
#pragma once

#include <cstddef>
#include <utility>

#include "rma/detail/window_ops.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"
#include "rma/operation.hpp"

namespace rma {

/// The calls, as members of every window. All return a status, none throws.
template <class W>
class RunTimeTypes {
 public:
  /// Accumulate of `type` elements, whatever T is; layouts select whole elements.
  /// Errors     bad_type if a layout cuts one; misaligned if the target's puts one where it may not lie
  [[nodiscard]] status accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                     int target, std::size_t at, const Layout& to_layout) noexcept {
    auto args = detail::layout_args(detail::call::accumulate, from, nullptr, from_layout, target, at, to_layout);
    args.type = type;
    args.op = op;
    return detail::issue(view(), args, nullptr);
  }
  /// result = old contents, then accumulate; each side with its layout. With no_op `from` is not looked at.
  [[nodiscard]] status get_accumulate_as(element type, operation op, const void* from, const Layout& from_layout,
                                         void* result, const Layout& result_layout, int target, std::size_t at,
                                         const Layout& target_layout) noexcept {
    auto args = detail::layout_args(detail::call::get_accumulate, detail::operand(op, from), result, from_layout,
                                    target, at, target_layout);
    args.result_layout = &result_layout;
    args.type = type;
    args.op = op;
    return detail::issue(view(), args, nullptr);
  }
  [[nodiscard]] status fetch_and_op_as(element type, operation op, const void* value, void* old, int target,
                                       std::size_t at) noexcept {
    auto args = detail::get_accumulate_args(value, old, bytes_of(type), type, op, target, at);
    args.kind = detail::call::fetch_and_op;
    return detail::issue_and_wait(view(), std::move(args));
  }
  [[nodiscard]] status compare_and_swap_as(element type, const void* expected, const void* desired, void* old,
                                           int target, std::size_t at) noexcept {
    auto args = detail::get_accumulate_args(desired, old, bytes_of(type), type, operation::replace, target, at);
    args.kind = detail::call::compare_and_swap;
    args.compare = expected;
    return detail::issue_and_wait(view(), std::move(args));
  }

 private:
  friend W;
  RunTimeTypes() noexcept = default;
  [[nodiscard]] detail::window_view& view() noexcept { return *static_cast<W*>(this)->view_; }
};

}  // namespace rma
