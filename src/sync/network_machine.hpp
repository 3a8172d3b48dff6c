// SPDX-License-Identifier: Apache-2.0
/// \file
/// Drives the steps of lock "network" (lock_network.hpp): asks the adapter, passes the pauses, sees to the dead.
#pragma once

#include <cstdint>

#include "sync/lock_machine.hpp"
#include "sync/lock_network.hpp"
#include "sync/remote_word.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

class network_machine final : public lock_machine {
 public:
  /// `first`: entering; or claiming, by the rank that brings the lock to the network.
  network_machine(window_core& w, int target, lock_kind kind, network_phase first = network_phase::entering) noexcept;
  /// Ends as `occupied` where it would have to wait for other holders.
  void only_once() noexcept { once_ = true; }
  /// True if it has had to wait for another rank.
  [[nodiscard]] bool has_paused() const noexcept { return paused_; }

  bool may_advance() noexcept override;
  [[nodiscard]] std::int64_t resumes_at_ns() const noexcept override { return word_.asks() ? by_message : next_ns_; }
  status failed() noexcept override;

 protected:
  lock_step go_on() noexcept override;
  void take_back() noexcept override;

 private:
  status request() noexcept;
  [[nodiscard]] bool must() const noexcept {
    return a_.phase == network_phase::leaving || a_.phase == network_phase::claiming;
  }
  [[nodiscard]] bool waits() const noexcept {
    return a_.phase == network_phase::waiting || a_.phase == network_phase::draining ||
           a_.phase == network_phase::yielding;
  }
  lock_step end(status why) noexcept;
  void finish_request() noexcept;
  bool yielded_enough() noexcept;
  bool withdraws() noexcept;
  void pause(std::int64_t time_ns) noexcept;
  [[nodiscard]] std::uint64_t others() const noexcept;
  void observe(std::uint64_t before, std::uint64_t old) noexcept;
  status holder_failed() noexcept;
  bool suspect(status s) noexcept;
  bool missed() noexcept;
  void recover() noexcept;

  window_core& w_;
  remote_word word_;
  int peer_;
  network_attempt a_;
  std::int64_t next_ns_ = 0;   ///< when the pause is over
  std::int64_t pause_ns_ = 0;  ///< the next one's length
  std::int64_t drain_ns_ = 0;
  std::int64_t drains_since_ns_ = -1;
  std::int64_t yields_until_ns_ = 0;
  std::int64_t since_ns_ = 0;     ///< the word has been as it is
  std::uint64_t recoveries_ = 0;  ///< in the word when it was seen first
  int holder_ = -1;               ///< the last that was the only one
  int suspected_ = -1;            ///< a holder that is gone
  bool seen_ = false;             ///< the word has been
  bool has_to_look_ = false;      ///< since somebody is suspected
  bool withdrawn_ = false;
  bool paused_ = false;
  bool once_ = false;
};

/// The target's word.
remote_word network_word(window_core& w, int target) noexcept;

}  // namespace rma::detail
