// SPDX-License-Identifier: Apache-2.0
/// \file
/// A death at a step of the protocols of messages.
#pragma once

#include <cstdint>
#include <functional>
#include <utility>

#include "p2p/messenger.hpp"
#include "rma/rma.hpp"
#include "runtime/runtime_core.hpp"

namespace p2p_steps {

/// Counts the steps of this rank's messages, and calls `die` at one of them.
class step_counter {
 public:
  step_counter(rma::Runtime& rt, std::uint64_t last, std::function<void()> die)
      : messages_(*rt.core().messages), last_(last), die_(std::move(die)) {
    messages_.watch_steps({[](void* self) noexcept { static_cast<step_counter*>(self)->count(); }, this});
  }
  step_counter(const step_counter&) = delete;
  step_counter& operator=(const step_counter&) = delete;
  ~step_counter() { messages_.watch_steps({}); }
  [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }

 private:
  void count() {
    if (++steps_ == last_) die_();
  }

  rma::detail::messenger& messages_;
  std::uint64_t last_, steps_ = 0;
  std::function<void()> die_;
};

}  // namespace p2p_steps
