// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library functions behind rma/synchronization.hpp. Those with a `node` set it if and only if the call is not
/// complete.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rma/detail/view.hpp"
#include "rma/request.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

status ifence(window_view& window, assertion promises, request_node*& node) noexcept;
status ilock(window_view& window, lock_kind kind, int target, request_node*& node) noexcept;
status iunlock(window_view& window, int target, request_node*& node) noexcept;
/// `target` -1 means all targets.
status iflush(window_view& window, int target, request_node*& node) noexcept;
/// As iflush, for completion at the origin of the operations issued so far.
status issued_to(window_view& window, int target, request_node*& node) noexcept;
status icomplete(window_view& window, request_node*& node) noexcept;

status lock_range(window_view& window, lock_kind kind, int target, std::uint64_t offset, std::uint64_t bytes) noexcept;
status unlock_range(window_view& window, int target, std::uint64_t offset, std::uint64_t bytes) noexcept;

status set_neighbors(window_view& window, const int* targets, std::size_t target_count, const int* origins,
                     std::size_t origin_count) noexcept;
status fence_neighbors(window_view& window, assertion promises) noexcept;

fence_kind fence_of(const window_view& window) noexcept;

}  // namespace rma::detail

#pragma GCC visibility pop
