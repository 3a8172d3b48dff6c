// SPDX-License-Identifier: Apache-2.0
/// \file
/// Checks of the ranks that calls get: lists (post, start, neighbors), and those that may be any rank.
#pragma once

#include <algorithm>
#include <cstddef>

#include "window/window_core.hpp"

namespace rma::detail {

/// Checks `from` of the waits for words and signals: a rank of the team, or -1 for any.
inline bool is_rank_or_any(const window_core& w, int from) noexcept { return from >= -1 && from < w.size(); }

/// Checks a list: bad_rank, bad_argument if a rank occurs twice, unreachable; the message names the rank.
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
