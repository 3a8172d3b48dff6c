// SPDX-License-Identifier: Apache-2.0
/// \file
/// One large copy of private memory between two processes: which way it goes, and what is learned from it.
#pragma once

#include <cstdint>

#include "xfer/copy_records.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

/// Goes by experience, unless a way is forced.
class copy_trial {
 public:
  copy_trial(window_core& w, const checked_operation& o) noexcept;
  copy_trial(const copy_trial&) = delete;
  copy_trial& operator=(const copy_trial&) = delete;

  [[nodiscard]] copy_way way() const noexcept { return choice_.way; }
  [[nodiscard]] const char* why() const noexcept { return choice_.why; }
  /// It goes by experience.
  [[nodiscard]] bool learns() const noexcept { return record_ != nullptr; }
  /// This copy uses memory for the first time.
  void is_first_use() noexcept { first_use_ = true; }
  /// It was made, or refused; returns `s`.
  status over(status s) noexcept;

 private:
  [[nodiscard]] copy_experience experience() const noexcept {
    copy_experience e = record_->load();
    e.ways = ways_of(copy_class(bytes_));
    return e;
  }

  surroundings& around_;
  copy_record* record_ = nullptr;  ///< null: nothing is learned
  copy_choice choice_;
  std::uint64_t bytes_;
  std::int64_t began_ns_ = 0;
  bool first_use_ = false;
};

}  // namespace rma::detail
