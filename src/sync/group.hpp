// SPDX-License-Identifier: Apache-2.0
/// \file
/// Lists of ranks, as post, start and neighbours get them.
#pragma once

#include <algorithm>
#include <cstddef>

#include "xfer/window_core.hpp"

namespace rma::detail {

/// bad_rank, bad_argument if a rank is there twice, unreachable; the message names the rank.
inline status check_group(window_core& w, const int* group, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    const int rank = group[i];
    const status s = rank < 0 || rank >= w.size()                     ? status::bad_rank
                     : std::find(group, group + i, rank) != group + i ? status::bad_argument
                     : w.is_far(rank) && w.ctx->wide() == nullptr     ? status::unreachable
                                                                      : status::done;
    if (s == status::done) continue;
    w.refused_rank = rank;
    return s;
  }
  return status::done;
}

}  // namespace rma::detail
