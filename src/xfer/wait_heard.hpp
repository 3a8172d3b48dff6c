// SPDX-License-Identifier: Apache-2.0
/// \file
/// A wait for synchronization requests, some of which have to be polled.
#pragma once

#include <algorithm>
#include <cstdint>

#include "channel/context.hpp"

namespace rma::detail {

/// Waits until `ready()`; polls in growing intervals while `silent()` reports that no event wakes this rank.
template <class Silent, class Ready>
status wait_heard(context& ctx, Silent&& silent, Ready&& ready) noexcept {
  constexpr std::int64_t pause_first_ns = 1'000, pause_max_ns = 100'000;
  bool end = false;
  const auto look = [&]() noexcept { return end = ready(); };
  status s = status::done;
  long_wait whole(ctx);
  while (ok(s) && !end) {
    if (!silent()) s = ctx.wait({.until = [&]() noexcept { return look() || silent(); }});
    for (std::int64_t pause_ns = pause_first_ns; ok(s) && !end && silent() && !look();
         pause_ns = std::min(2 * pause_ns, pause_max_ns))
      s = ctx.wait({.deadline_ns = ctx.after_ns(pause_ns), .whole = &whole});
  }
  return s;
}

}  // namespace rma::detail
