// SPDX-License-Identifier: Apache-2.0
/// \file
/// A wait that lasts. Most hangs are mistakes of a program: a rank that does not come to a collective call, a signal
/// that nobody sends. Who waits for a second leaves word where it is for the ranks of its node; who waits for
/// RMA_STALL_REPORT_S tells the user where all of them are, once for the node, then after twice the time, and so on.
/// A wait that is made of pauses (for a lock that only an adapter knows of) gives each the same `long_wait`.
#pragma once

#include <cstdint>

namespace rma::detail {

class context;

class long_wait {
 public:
  explicit long_wait(context& ctx) noexcept : ctx_(ctx) {}
  long_wait(const long_wait&) = delete;
  long_wait& operator=(const long_wait&) = delete;
  ~long_wait() {
    if (said_) [[unlikely]]
      fall_silent();
  }

  /// Called now and then while it lasts; how long it has.
  std::int64_t lasts_ns(std::int64_t now_ns) noexcept {
    constexpr std::int64_t unnoticed_ns = 1'000'000'000;
    if (begin_ns_ == 0) {
      begin_ns_ = now_ns;
      due_ns_ = now_ns + unnoticed_ns;
    } else if (now_ns >= due_ns_) [[unlikely]] {
      speak(now_ns);
    }
    return now_ns - begin_ns_;
  }

  /// When it was called first; 0: never.
  [[nodiscard]] std::int64_t begin_ns() const noexcept { return begin_ns_; }

 private:
  void speak(std::int64_t now_ns) noexcept;
  void fall_silent() noexcept;

  context& ctx_;
  std::int64_t begin_ns_ = 0;
  std::int64_t due_ns_ = 0;
  bool said_ = false;  ///< where this rank is
};

}  // namespace rma::detail
