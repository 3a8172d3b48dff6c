// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations that their origin holds until the end of an epoch: the rules of fence "def" and of deferred locks.
#pragma once

#include <vector>

#include "xfer/protocols.hpp"

namespace rma::detail {

/// The rule of fence "def": holds the operation until the fence; if it must be done now, the operations held for its
/// target are issued first, when the target has left the previous fence.
admission hold_for_fence(window_core& w, const checked_operation& o, bool requested) noexcept;
/// Issues the operations that are held until the fence for `target` (-1: all). The last operation to each target may be
/// marked as the last one; `flagged` gets those targets.
status issue_deferred(window_core& w, int target, std::vector<int>* flagged) noexcept;

/// The rule of a target with a deferred lock: holds the operation until the end of the epoch; if it cannot wait, the
/// lock is acquired and the held operations are issued first.
admission hold_for_unlock(window_core& w, const checked_operation& o, bool requested) noexcept;

}  // namespace rma::detail
