// SPDX-License-Identifier: Apache-2.0
/// \file
/// One copy of private memory between two processes: the choice of its way, and its measurement.
#pragma once

#include <cstdint>

#include "xfer/copy_records.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

/// Up to this size copies use messages if possible: a stream of them takes less time than copies by the kernel.
inline constexpr std::uint64_t always_message_max = 1024;

/// The path of the next put or get of the last used target, if it is larger. It is counted, unless it takes the general
/// path.
plain_way next_plain_way(window_core& w, const operation_args& a) noexcept;

/// True if the way of a copy is chosen by experience, or forced to one in which the target takes part.
bool has_ways(const window_core& w, const checked_operation& o) noexcept;

/// Chooses the way by experience, unless one is forced.
class copy_trial {
 public:
  copy_trial(window_core& w, const checked_operation& o) noexcept;
  copy_trial(const copy_trial&) = delete;
  copy_trial& operator=(const copy_trial&) = delete;

  [[nodiscard]] copy_way way() const noexcept { return choice_.way; }
  [[nodiscard]] const char* why() const noexcept { return choice_.why; }
  [[nodiscard]] bool measured() const noexcept { return choice_.measured; }
  /// The measured time of a copy of this size by that way; 0 if that way is to be measured next.
  [[nodiscard]] std::int64_t estimate_ns(copy_way way) const noexcept;
  /// Notes that this copy uses memory for the first time.
  void is_first_use() noexcept { first_use_ = true; }
  /// Called when the copy was made, or refused; returns `s`.
  status over(status s) noexcept;

 private:
  platform& around_;
  copy_record* record_ = nullptr;  ///< null: it is not measured
  copy_choice choice_;
  std::uint64_t bytes_;
  std::int64_t began_ns_ = 0;
  bool first_use_ = false;
};

}  // namespace rma::detail
