// SPDX-License-Identifier: Apache-2.0
/// \file
/// One public call, for surroundings that keep accounts: who is where, and that time passes in it.
#pragma once

#include <string_view>

#include "channel/context.hpp"

namespace rma::detail {

/// Costs one test where time is real.
class call_scope {
 public:
  call_scope(context& ctx, std::string_view call, int target = -1) noexcept
      : around_(ctx.keeps_accounts() ? &ctx.around() : nullptr) {
    if (around_ != nullptr) [[unlikely]]
      around_->enter(call, target);
  }
  ~call_scope() {
    if (around_ != nullptr) [[unlikely]]
      around_->leave();
  }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

 private:
  surroundings* around_;
};

}  // namespace rma::detail
