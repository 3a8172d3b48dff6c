// SPDX-License-Identifier: Apache-2.0
/// \file
/// One public call on something else than a window: who is where, for surroundings that keep accounts and for waits
/// that last, and that time passes in it.
#pragma once

#include <string_view>

#include "channel/context.hpp"

namespace rma::detail {

/// What this rank waits for, if it waits for long: the outermost call, or one of several threads'.
class named_wait {
 public:
  named_wait(context& ctx, const char* name) noexcept : ctx_(ctx), outermost_(ctx.call() == nullptr) {
    if (outermost_) ctx.set_call(name);
  }
  ~named_wait() {
    if (outermost_) ctx_.set_call(nullptr);
  }
  named_wait(const named_wait&) = delete;
  named_wait& operator=(const named_wait&) = delete;

 private:
  context& ctx_;
  bool outermost_;
};

class call_scope {
 public:
  /// `call`: a literal.
  call_scope(context& ctx, std::string_view call, int target = -1) noexcept
      : name_(ctx, call.data()), around_(ctx.keeps_accounts() ? &ctx.around() : nullptr) {
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
  named_wait name_;
  surroundings* around_;
};

}  // namespace rma::detail
