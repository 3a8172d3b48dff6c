// SPDX-License-Identifier: Apache-2.0
/// \file
/// A function with a stack of its own, which runs until it suspends itself.
///
/// Many of them share one thread. A suspended fiber may be destroyed: its memory is freed, but its stack is not
/// unwound. The death of a process has the same effect: locks stay taken.
#pragma once

#include <cstddef>
#include <functional>

#include "core/refusals.hpp"

namespace rma::sim {

/// Pages below a guard page: a stack that overflows ends the process instead of writing into its neighbor.
class stack_memory {
 public:
  /// Throws Error(out_of_memory). The size is rounded up to whole pages; only touched pages take memory.
  explicit stack_memory(std::size_t bytes);
  ~stack_memory();
  stack_memory(const stack_memory&) = delete;
  stack_memory& operator=(const stack_memory&) = delete;

  [[nodiscard]] std::byte* bottom() const noexcept { return bottom_; }
  [[nodiscard]] std::byte* top() const noexcept { return bottom_ + bytes_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Keeps the stack's memory for ever: the leak check does not report objects that only the stack refers to.
  void abandon() noexcept { abandoned_ = true; }

 private:
  std::byte* bottom_;
  std::size_t bytes_;
  bool abandoned_ = false;
};

/// Resumed and destroyed by the thread that made it.
class fiber {
 public:
  /// `run` must not throw. Throws Error(out_of_memory).
  fiber(std::size_t stack_bytes, std::function<void()> run);
  ~fiber();
  fiber(const fiber&) = delete;
  fiber& operator=(const fiber&) = delete;

  /// Runs it until it suspends or ends. Exceptions in flight belong to the fiber that has thrown them.
  void resume() noexcept;
  /// Returns to the context that resumed the fiber; called from inside.
  void suspend() noexcept;
  [[nodiscard]] bool finished() const noexcept { return finished_; }

 private:
  struct switches;
  void swap_exceptions() noexcept;
  void leave_for_ever() noexcept;

  stack_memory stack_;
  std::function<void()> run_;
  void* inside_ = nullptr;   ///< context to resume the fiber
  void* outside_ = nullptr;  ///< context of its resumer
  exceptions_now others_;    ///< while it runs those of its resumer, else its own
  newest_refusal others_refusal_;
  bool finished_ = false;
  // The sanitizers need to know these; unused without them.
  void* outside_fake_stack_ = nullptr;
  void* inside_fake_stack_ = nullptr;
  const void* outside_bottom_ = nullptr;
  std::size_t outside_bytes_ = 0;
  void* inside_history_ = nullptr;
  void* outside_history_ = nullptr;
};

}  // namespace rma::sim
