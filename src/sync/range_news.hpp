// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks tell each other of locks of ranges by these messages.
#pragma once

#include <cstdint>

#include "window/range_state.hpp"

namespace rma::detail {

struct window_core;

enum class range_news : std::uint32_t {
  request,  ///< to the target
  release,
  died,     ///< to the target: that rank is dead (in `ticket`)
  granted,  ///< from the target
  failed,   ///< from the target: a rank that held it is dead
  count_
};

struct range_header {
  std::uint64_t window;
  std::uint64_t offset;
  std::uint64_t bytes;
  std::uint32_t ticket;
  std::uint16_t news;
  std::uint16_t kind;
};

/// A message about ranges has come. The caller holds the progress lock. False if it makes no sense.
bool on_range_news(window_core& w, int source, const range_header& h) noexcept;
/// To a rank of the team; the caller holds the progress lock.
void send_range_news(window_core& w, int target, range_news news, const range_entry& about) noexcept;
/// Gives back what this rank holds: its window is dropped.
void drop_ranges(window_core& w) noexcept;

}  // namespace rma::detail
