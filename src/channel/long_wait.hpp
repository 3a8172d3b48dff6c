// SPDX-License-Identifier: Apache-2.0
/// \file
/// Reports of long waits. Most hangs are errors of a program: a rank that does not make a collective call, a signal
/// that no rank raises. A rank that waits for a second publishes its call to the ranks of its node; one that waits for
/// RMA_STALL_REPORT_S reports the calls of all of them to the user, once for the node, then after twice the time, etc.
/// A wait that consists of pauses (for a lock that only an adapter knows) uses one `long_wait` for all of them.
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

  /// Called now and then during the wait; returns its duration so far.
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

  /// The time of the first call; 0: none.
  [[nodiscard]] std::int64_t begin_ns() const noexcept { return begin_ns_; }

 private:
  void speak(std::int64_t now_ns) noexcept;
  void fall_silent() noexcept;

  context& ctx_;
  std::int64_t begin_ns_ = 0;
  std::int64_t due_ns_ = 0;
  bool said_ = false;  ///< this rank's call is published
};

}  // namespace rma::detail
