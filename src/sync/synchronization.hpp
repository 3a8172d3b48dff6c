// SPDX-License-Identifier: Apache-2.0
/// \file
/// A runtime's synchronizations hear from other ranks by messages about locks, fences and ranges, and by immediates of
/// fences; and the duty of lock managers that have something to look after.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "xfer/engine.hpp"

namespace rma::detail {

/// Registers its handlers for as long as the context lives.
class synchronization {
 public:
  explicit synchronization(engine& windows);
  synchronization(const synchronization&) = delete;
  synchronization& operator=(const synchronization&) = delete;

  // The caller holds the progress lock.
  /// The window's lock manager has something to do from now on.
  void busy(window_core& w);
  /// A window goes away.
  void remove(const window_core& w) noexcept { std::erase(busy_, &w); }

 private:
  static void on_lock(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_fence(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_range(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_immediate(void* self, int source, std::uint32_t value) noexcept;
  static unsigned on_duty(void* self) noexcept;

  engine& windows_;
  std::vector<window_core*> busy_;  ///< windows whose lock managers have pending work
};

}  // namespace rma::detail
