// SPDX-License-Identifier: Apache-2.0
/// \file
/// The reason of an Error with wrong_epoch: the epoch that is open or missing, and the one call to make.
#pragma once

#include <cstdint>
#include <string>

#include "rma/detail/window_ops.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// A call on a window that was refused with wrong_epoch. `offset` and `bytes` are the range of lock_range.
struct misplaced_call {
  call what;
  int target;
  std::uint64_t offset;
  std::uint64_t bytes;
};

/// "rank 1 is locked; call unlock(1) first"
std::string wrong_epoch_reason(const window_core& w, const misplaced_call& c);

}  // namespace rma::detail
