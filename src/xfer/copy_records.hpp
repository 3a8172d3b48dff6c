// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a rank keeps what it knows of large copies, for all its threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "xfer/copy_experience.hpp"

namespace rma::detail {

/// Of one class. When two copies end at once, what one has taught may be lost.
class copy_record {
 public:
  [[nodiscard]] copy_experience load() const noexcept {
    copy_experience e;
    for (std::size_t way = 0; way < e.figures.size(); ++way)
      e.figures[way] = figures_[way].load(std::memory_order_relaxed);
    e.copies = copies_.load(std::memory_order_relaxed);
    return e;
  }
  /// What has been learned of one way.
  void store(const copy_experience& e, copy_way way) noexcept {
    const auto index = static_cast<std::size_t>(way);
    figures_[index].store(e.figures[index], std::memory_order_relaxed);
  }
  void count() noexcept { copies_.store(copies_.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed); }

 private:
  static_assert(std::atomic<copy_figure>::is_always_lock_free);
  std::array<std::atomic<copy_figure>, 3> figures_{};
  std::atomic<std::uint32_t> copies_ = 0;
};

/// Of puts and of gets, of each class.
using copy_records = std::array<std::array<copy_record, copy_classes>, 2>;

}  // namespace rma::detail
