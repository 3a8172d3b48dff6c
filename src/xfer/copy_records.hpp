// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's experience with large copies, shared by all its threads.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "datatype/copy_experience.hpp"

namespace rma::detail {

/// The path of a copy that fits a message: in a message or by the kernel at once, or, if it is measured or the fast
/// path is not allowed, the general path.
enum class plain_way : std::uint8_t { message, kernel, general };

/// The record of one class. If two copies end at the same time, the measurement of one may be lost.
class copy_record {
 public:
  [[nodiscard]] copy_experience load() const noexcept {
    copy_experience e;
    for (std::size_t way = 0; way < e.figures.size(); ++way) {
      const shared_figure& figure = figures_[way];
      e.figures[way] = {figure.cost_ns.load(relaxed), figure.left.load(relaxed), figure.again_at.load(relaxed)};
    }
    e.copies = copies_.load(relaxed);
    return e;
  }
  /// Stores the experience with one way.
  void store(const copy_experience& e, copy_way way) noexcept {
    const copy_figure& learned = e.figures[static_cast<std::size_t>(way)];
    shared_figure& figure = figures_[static_cast<std::size_t>(way)];
    figure.cost_ns.store(learned.cost_ns, relaxed);
    figure.left.store(learned.left, relaxed);
    figure.again_at.store(learned.again_at, relaxed);
  }
  [[nodiscard]] std::uint32_t copies() const noexcept { return copies_.load(relaxed); }
  /// The path of copies that fit a message, until the experience is evaluated again.
  [[nodiscard]] plain_way settled() const noexcept { return settled_.load(relaxed); }
  void decide(plain_way way) noexcept { settled_.store(way, relaxed); }
  void count() noexcept { copies_.store(copies_.load(relaxed) + 1, relaxed); }

 private:
  static constexpr std::memory_order relaxed = std::memory_order_relaxed;
  struct shared_figure {
    std::atomic<std::uint32_t> cost_ns = 0, left = 0, again_at = 0;
  };

  std::array<shared_figure, 3> figures_{};
  std::atomic<std::uint32_t> copies_ = 0;
  std::atomic<plain_way> settled_ = plain_way::general;
};

/// The records of puts and of gets, for each class.
using copy_records = std::array<std::array<copy_record, copy_classes>, 2>;

}  // namespace rma::detail
