// SPDX-License-Identifier: Apache-2.0
/// \file
/// A fence for other processes: the call makes every running thread of all registered processes execute a full fence.
/// So the frequent side needs only a plain store, and the rare side takes some microseconds.
#pragma once

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rma::detail {

/// Registers this process. False if the kernel does not support it, or forbids it.
inline bool join_membarrier() noexcept {
  return ::syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

/// Stores of other processes before this call are visible after it, and their loads after it see stores before it.
inline void fence_for_others() noexcept { (void)::syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0); }

}  // namespace rma::detail
