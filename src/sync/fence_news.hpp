// SPDX-License-Identifier: Apache-2.0
/// \file
/// Ranks tell each other of their fences by messages and immediates.
#pragma once

#include <cstdint>

#include "channel/immediate.hpp"
#include "window/fence_state.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

struct window_core;

/// A fence message says one of these.
enum class fence_news : std::uint32_t {
  finish,           ///< all that I put into you before this fence is there
  open,             ///< my part may be used: I have got what was for me
  ask,              ///< tell me when you are through this fence
  answer,           ///< I am through it
  neighbor_finish,  ///< finish and open of fences among neighbors
  neighbor_open,
  count_
};

struct fence_header {
  std::uint64_t window;
  std::uint32_t news;
  std::uint32_t number;
};

/// The value of an immediate: the window's slot at the target, and the fence that counts it.
constexpr unsigned fence_number_bits = 2;
constexpr std::uint32_t fence_immediate(std::uint32_t slot, std::uint32_t number) noexcept {
  return immediate_of(immediate_user::fence, slot << fence_number_bits | number % 4);
}
constexpr std::uint32_t slot_of_immediate(std::uint32_t value) noexcept { return value >> fence_number_bits; }
static_assert(user_of_immediate(fence_immediate(window_slot_max, 7)) == immediate_user::fence);
static_assert(slot_of_immediate(value_of_immediate(fence_immediate(window_slot_max, 7))) == window_slot_max);
static_assert(value_of_immediate(fence_immediate(window_slot_max, 7)) % 4 == 3);

/// So many puts of one epoch to one target have an immediate; what goes beyond is announced by one finish message, so
/// that a target's receive queue does not run dry however many puts there are.
constexpr std::uint32_t immediates_max = 32;

/// A fence message has come, or an immediate. The caller holds the progress lock.
void on_fence_news(window_core& w, int source, fence_news news, std::uint32_t number) noexcept;
/// Tells a rank of the team; the caller holds the progress lock.
void send_fence_news(window_core& w, int target, fence_news news, std::uint32_t number) noexcept;
/// This rank is through that fence: whoever asked gets to know.
void fence_is_over(window_core& w, std::uint32_t number) noexcept;

}  // namespace rma::detail
