// SPDX-License-Identifier: Apache-2.0
/// \file
/// Slots in this rank's segment that both ends of a copy reach (protocol "staged").
#pragma once

#include <atomic>
#include <cstddef>

#include "runtime/runtime_core.hpp"

namespace rma::detail {

inline constexpr std::size_t stage_slots = 4;
inline constexpr std::size_t stage_slot_bytes = std::size_t{32} << 10;

/// Holds the slots while it lives; false if another thread does, or there is no memory for them.
class staging {
 public:
  explicit staging(runtime_core& rt) noexcept : rt_(rt), held_(hold(rt)) {}
  ~staging() {
    if (held_) rt_.stage.now.store(stage_memory::state::free, std::memory_order_release);
  }
  staging(const staging&) = delete;
  staging& operator=(const staging&) = delete;

  explicit operator bool() const noexcept { return held_; }
  /// Of this rank's segment.
  [[nodiscard]] std::size_t offset_of(std::size_t slot) const noexcept {
    return rt_.stage.offset + slot * stage_slot_bytes;
  }
  [[nodiscard]] std::byte* slot(std::size_t i) const noexcept {
    return rt_.board->segment(rt_.board->me()) + offset_of(i);
  }

 private:
  static bool hold(runtime_core& rt) noexcept {
    using state = stage_memory::state;
    state was = state::free;
    if (rt.stage.now.compare_exchange_strong(was, state::held, std::memory_order_acquire)) return true;
    if (was != state::unmade || !rt.stage.now.compare_exchange_strong(was, state::held)) return false;
    const auto place = rt.take_any(stage_slots * stage_slot_bytes, shm::page_bytes);
    if (place) rt.stage.offset = *place;
    if (!place) rt.stage.now.store(state::refused);
    return place.has_value();
  }

  runtime_core& rt_;
  bool held_;
};

}  // namespace rma::detail
