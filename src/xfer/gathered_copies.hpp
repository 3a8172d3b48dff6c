// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies between private memory of two processes that are held until one system call makes all of them.
///
///     put, get ----> gathered: the eighth, a flush, the end of the epoch, or any other operation of the window
///                       |
///                       +----> copied, in the order of their calls
///
/// A call of the kernel costs 0.4 us for one copy and 0.16 us a copy for eight (docs/decisions/0021). Until it is made
/// the origin's buffers must stay, as they must until the adapter has read or written them between nodes.
#pragma once

#include <cstdint>

namespace rma::detail {

struct window_core;

/// The copies of one window: all are puts to, or all are gets from one target.
struct gathered_copies {
  static constexpr std::uint32_t count_max = 8;

  std::uint32_t count = 0;  ///< in the queue of `target`
  int target = -1;
  bool write = false;

  [[nodiscard]] bool wait_for(int some_target) const noexcept { return count != 0 && target == some_target; }
};

struct near_target;
struct operation_args;

/// Holds a contiguous copy that is `offset` bytes from the start of the target's part.
void gather_copy(window_core& w, const near_target& near, const operation_args& a, std::uint64_t offset);

/// Makes all copies. The call that completes the target reports failures.
void copy_gathered(window_core& w) noexcept;

}  // namespace rma::detail
