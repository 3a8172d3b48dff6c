// SPDX-License-Identifier: Apache-2.0
/// \file
/// One copy of private memory between two processes: which way it goes, and what is learned from it.
#pragma once

#include <cstdint>

#include "xfer/copy_records.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

/// Up to here a copy goes in a message if it can: a stream of them takes less time than one by the kernel each.
inline constexpr std::uint64_t always_message_max = 1024;

/// How the next put or get of the target used last goes, if it is larger. It is counted, but for the general way.
plain_way next_plain_way(window_core& w, const operation_args& a) noexcept;

/// Whether a copy goes by experience, or by a forced way that takes part of the target.
bool has_ways(const window_core& w, const checked_operation& o) noexcept;

/// Goes by experience, unless a way is forced.
class copy_trial {
 public:
  copy_trial(window_core& w, const checked_operation& o) noexcept;
  copy_trial(const copy_trial&) = delete;
  copy_trial& operator=(const copy_trial&) = delete;

  [[nodiscard]] copy_way way() const noexcept { return choice_.way; }
  [[nodiscard]] const char* why() const noexcept { return choice_.why; }
  [[nodiscard]] bool measured() const noexcept { return choice_.measured; }
  /// A copy of this size has taken so long by that way; 0: it is that way's turn.
  [[nodiscard]] std::int64_t estimate_ns(copy_way way) const noexcept;
  /// This copy uses memory for the first time.
  void is_first_use() noexcept { first_use_ = true; }
  /// It was made, or refused; returns `s`.
  status over(status s) noexcept;

 private:
  platform& around_;
  copy_record* record_ = nullptr;  ///< null: nothing is learned
  copy_choice choice_;
  std::uint64_t bytes_;
  std::int64_t began_ns_ = 0;
  bool first_use_ = false;
};

}  // namespace rma::detail
