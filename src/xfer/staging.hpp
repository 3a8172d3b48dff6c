// SPDX-License-Identifier: Apache-2.0
/// \file
/// Slots in this rank's segment that both ends of a copy map (protocol "staged").
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <tuple>

#include "core/assert.hpp"
#include "runtime/runtime_core.hpp"

namespace rma::detail {

/// There are many more slots than are in use at a time, and they are used in turn: when a slot is reused, its lines
/// have left the second-level caches, so that a write does not have to fetch them from the processor that has read them
/// (docs/decisions/0021).
inline constexpr std::size_t stage_slots_max = std::tuple_size_v<decltype(stage_memory::used_bytes)>;
inline constexpr std::size_t stage_slots_min = 4;
inline constexpr std::size_t stage_slot_bytes = std::size_t{32} << 10;

/// Holds the slots during its lifetime; false if another thread holds them, or there is no memory for them.
class staging {
 public:
  explicit staging(runtime_core& rt) noexcept : rt_(rt), held_(hold(rt)) {}
  ~staging() {
    if (held_) rt_.stage.now.store(stage_memory::state::free, std::memory_order_release);
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  explicit operator bool() const noexcept { return held_; }
  /// The offset of the next slot in this rank's segment. At most stage_slots_min may be in use.
  [[nodiscard]] std::size_t next_slot(std::size_t bytes) noexcept {
    RMA_ASSERT(held_ && bytes <= stage_slot_bytes);
    const std::uint32_t slot = rt_.stage.next;
    RMA_ASSERT(slot < rt_.stage.slots);
    std::uint32_t& used_bytes = rt_.stage.used_bytes[slot];
    fresh_ = fresh_ || bytes > used_bytes;
    used_bytes = std::max(used_bytes, static_cast<std::uint32_t>(bytes));
    rt_.stage.next = slot + 1 < rt_.stage.slots ? slot + 1 : 0;
    return rt_.stage.offset + std::size_t{slot} * stage_slot_bytes;
  }
  /// True if more of a slot was used than ever before: the processes had to find its pages.
  [[nodiscard]] bool was_fresh() const noexcept { return fresh_; }
  [[nodiscard]] std::byte* at(std::size_t offset) const noexcept {
    return rt_.board->segment(rt_.board->me()) + offset;
  }

 private:
  static bool hold(runtime_core& rt) noexcept {
    using state = stage_memory::state;
    state was = state::free;
    if (rt.stage.now.compare_exchange_strong(was, state::held, std::memory_order_acquire)) return true;
    if (was != state::unmade || !rt.stage.now.compare_exchange_strong(was, state::held)) return false;
    for (std::uint32_t slots = stage_slots_max; slots >= stage_slots_min; slots /= 2) {
      const auto offset = rt.take_any(slots * stage_slot_bytes, shm::page_bytes);
      if (!offset) continue;
      rt.stage.offset = *offset;
      rt.stage.slots = slots;
      return true;
    }
    rt.stage.now.store(state::refused);
    return false;
  }

  runtime_core& rt_;
  bool held_;
  bool fresh_ = false;
};

}  // namespace rma::detail
