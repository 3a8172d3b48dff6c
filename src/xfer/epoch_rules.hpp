// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a window's epochs answer the engine, which knows none of them by name. src/sync has the answers.
#pragma once

#include "rma/error.hpp"

namespace rma::detail {

struct window_core;

struct epoch_rules {
  /// An operation wants to go to a target that this epoch has not used: opens the epoch towards it, or refuses.
  status (*admit)(window_core& w, int target) noexcept;
  /// An operation of the epoch was refused: what it may have opened towards the target is closed.
  void (*refused)(window_core& w, int target) noexcept;
  /// An operation cannot wait with those that are held for the end of the epoch: these go now.
  status (*send_held)(window_core& w, int target) noexcept;
};

}  // namespace rma::detail
