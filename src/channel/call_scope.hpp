// SPDX-License-Identifier: Apache-2.0
/// \file
/// The scope of a public call that is not on a window: it records the call for reports of long waits, tells platforms
/// that keep accounts, and lets virtual time pass.
#pragma once

#include <string_view>

#include "channel/context.hpp"

namespace rma::detail {

/// Reports of long waits name this call: the outermost one, or that of one of several threads.
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
  /// `call` is a string literal, measured only when it is reported. With `traces_itself` the caller adds its own, more
  /// detailed event to the trace.
  call_scope(context& ctx, const char* call, int target = -1, bool traces_itself = false) noexcept
      : name_(ctx, call),
        around_(ctx.keeps_accounts() ? &ctx.around() : nullptr),
        trace_(traces_itself ? nullptr : ctx.trace()) {
    if (around_ != nullptr) [[unlikely]]
      around_->enter(call, target);
    if (trace_ != nullptr) [[unlikely]]
      begin(ctx, call, target);
  }
  ~call_scope() {
    if (around_ != nullptr) [[unlikely]]
      around_->exit();
    if (trace_ != nullptr) [[unlikely]]
      end();
  }
  call_scope(const call_scope&) = delete;
  call_scope& operator=(const call_scope&) = delete;

 private:
  [[gnu::cold]] void begin(context& ctx, const char* call, int target) noexcept {
    ctx_ = &ctx;
    call_ = call;
    target_ = target;
    begin_ns_ = ctx.around().now_ns();
  }
  [[gnu::cold]] void end() noexcept {
    trace_->add({call_, {}, target_, 0, {}, {}, begin_ns_, ctx_->around().now_ns()});
  }

  named_wait name_;
  platform* around_;
  trace_file* trace_;
  // Set only where there is a trace.
  context* ctx_;
  const char* call_;
  int target_;
  std::int64_t begin_ns_;
};

}  // namespace rma::detail
