// SPDX-License-Identifier: Apache-2.0
/// \file
/// The messages and immediates of fences.
#pragma once

#include <cstdint>

#include "channel/immediate.hpp"
#include "window/fence_state.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

struct window_core;

/// The kinds of fence messages.
enum class fence_news : std::uint32_t {
  finish,           ///< the sender's puts before this fence are in the receiver's memory
  open,             ///< the sender has received all puts: its part may be accessed again
  request,          ///< asks for an answer when the receiver has completed this fence
  answer,           ///< the sender has completed it
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

/// Upper bound on the puts with an immediate of one epoch to one target. Further ones are announced by one finish
/// message, so that a target's receive queue does not run dry.
constexpr std::uint32_t immediates_max = 32;

/// Handle a fence message, or an immediate. The caller holds the progress lock.
void on_fence_news(window_core& w, int source, fence_news news, std::uint32_t number) noexcept;
/// Sends a fence message to a rank of the team; the caller holds the progress lock.
void send_fence_news(window_core& w, int target, fence_news news, std::uint32_t number) noexcept;
/// Notes that this rank has completed that fence, and answers the ranks that have asked.
void fence_is_over(window_core& w, std::uint32_t number) noexcept;

}  // namespace rma::detail
