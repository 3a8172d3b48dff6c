// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a window keeps for its fences between calls: how many puts have been announced as finished, and what `def` has
/// put off.
///
/// Fences of a window are numbered. What comes for fence n is counted at n mod 4: a rank may be one fence ahead of
/// another, and the count of fence n is cleared at fence n - 2, when nothing can come for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/dissemination.hpp"
#include "channel/immediate.hpp"
#include "rma/detail/view.hpp"
#include "rma/detail/word.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

struct window_core;
struct checked_operation;

/// What a fence message says.
enum class fence_news : std::uint32_t {
  finish,            ///< all that I put into you before this fence is there
  open,              ///< my part may be used: I have got what was for me
  ask,               ///< tell me when you are through this fence
  answer,            ///< I am through it
  neighbour_finish,  ///< finish and open of fences among neighbours
  neighbour_open,
  count_
};

struct fence_header {
  std::uint64_t window;
  std::uint32_t news;
  std::uint32_t number;
};

/// Counts of one kind of news, by the number of the fence modulo 4. Written by handlers.
class fence_counts {
 public:
  void add(std::uint32_t number) noexcept {
    word32& count = of_[number % 4];
    count.store(count.load(std::memory_order_relaxed) + 1);
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t number) const noexcept { return of_[number % 4].load(); }
  void clear(std::uint32_t number) noexcept { of_[number % 4].store(0); }

 private:
  std::array<word32, 4> of_{};
};

struct fence_state {
  std::uint32_t slot = 0;    ///< what this window is called in immediates to this rank
  std::uint32_t number = 0;  ///< of the fence before this epoch
  word32 over{};             ///< of the last fence that this rank is through
  fence_counts arrived{};    ///< finish messages and immediates
  fence_counts opened{};
  dissemination::seat seat{};                           ///< of its barriers
  std::vector<int> channels{};                          ///< targets of this epoch's puts by the fabric
  std::vector<std::uint32_t> counts{};                  ///< room for what the ranks tell each other
  std::vector<std::pair<int, std::uint32_t>> askers{};  ///< world rank, fence; guarded by the progress lock
  std::unordered_map<int, std::uint32_t> answers{};     ///< by world rank: it is through that fence; guarded alike

  bool issuing = false;  ///< of "def": operations that were held until the fence are being issued

  // Fences among neighbours, which are given once.
  bool has_neighbours = false;
  std::vector<int> neighbour_targets{}, neighbour_origins{};
  std::uint32_t neighbour_number = 0;
  std::unordered_map<int, std::uint32_t> neighbour_arrived{}, neighbour_opened{};  ///< the last, guarded, by world rank
  bool no_put_promised = false;                                                    ///< by the last fence
};

/// The value of an immediate: the window's slot at the target, and the fence that counts it.
constexpr unsigned fence_number_bits = 2;
constexpr unsigned fence_slot_bits = immediate_value_bits - fence_number_bits;
constexpr std::uint32_t fence_slot_max = (std::uint32_t{1} << fence_slot_bits) - 1;
constexpr std::uint32_t fence_immediate(std::uint32_t slot, std::uint32_t number) noexcept {
  return immediate_of(immediate_user::fence, slot << fence_number_bits | number % 4);
}
constexpr std::uint32_t slot_of_immediate(std::uint32_t value) noexcept { return value >> fence_number_bits; }
static_assert(user_of_immediate(fence_immediate(fence_slot_max, 7)) == immediate_user::fence);
static_assert(slot_of_immediate(value_of_immediate(fence_immediate(fence_slot_max, 7))) == fence_slot_max);
static_assert(value_of_immediate(fence_immediate(fence_slot_max, 7)) % 4 == 3);

/// So many puts of one epoch to one target have an immediate; what goes beyond is announced by one finish message, so
/// that a target's receive queue does not run dry however many puts there are.
constexpr std::uint32_t immediates_max = 32;

/// A fence message has come, or an immediate. The caller holds the progress lock.
void on_fence_news(window_core& w, int source, fence_news news, std::uint32_t number) noexcept;
/// Tells a rank of the team; the caller holds the progress lock.
void send_fence_news(window_core& w, int target, fence_news news, std::uint32_t number) noexcept;
/// This rank is through that fence: whoever asked gets to know.
void fence_is_over(window_core& w, std::uint32_t number) noexcept;

/// In operation_args::signal and the header of a message: the last one for fence (this - signal) modulo 4.
inline constexpr int last_of_fence = -2;
/// Carried by the target's handler in one message, where `def` issues it.
bool is_small_for_def(bool contiguous, std::uint64_t bytes) noexcept;

/// What `def` does with an operation that was checked: it is put off (`posted`), or has to be done now (`done`), behind
/// those that were put off for its target and after the target has left the fence before.
status defer(window_core& w, const checked_operation& o, bool requested) noexcept;
/// Issues all that was put off for `target` (-1: for anybody); the last operation to each target may say that it is the
/// last. `flagged`: the targets whose last operation says so.
status issue_deferred(window_core& w, int target, std::vector<int>* flagged) noexcept;

}  // namespace rma::detail
