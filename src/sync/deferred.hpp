// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations that wait at their origin for the end of an epoch: what fence "def" and deferred locks answer the engine.
#pragma once

#include <vector>

#include "xfer/protocols.hpp"

namespace rma::detail {

/// Of fence "def": the operation is held until the fence, or has to be done now: then those go that were held for its
/// target, when the target has left the fence before.
admission hold_for_fence(window_core& w, const checked_operation& o, bool requested) noexcept;
/// Issues all that is held for `target` until the fence (-1: for anybody); the last operation to each target may say
/// that it is the last. `flagged`: the targets whose last operation says so.
status issue_deferred(window_core& w, int target, std::vector<int>* flagged) noexcept;

/// Of a target whose lock is deferred: the operation is held until its end, or cannot wait: then the lock is taken and
/// what was held is done before it.
admission hold_for_unlock(window_core& w, const checked_operation& o, bool requested) noexcept;

}  // namespace rma::detail
