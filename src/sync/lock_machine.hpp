// SPDX-License-Identifier: Apache-2.0
/// \file
/// One rank's way to one lock, step by step. lock() begins a machine and waits for it (wait_for), ilock puts one behind
/// a request; lock_protocol.hpp says which lock has which.
///
///   begin -> not_yet --advance--> held, moved, occupied, migrates, failed
///              ^   |
///              '---'  an answer, a bell or the end of a pause     failed() says that none will come: give_up
#pragma once

#include <cstdint>
#include <memory>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"

namespace rma::detail {

struct window_core;

/// A step of a lock leads to one of these.
enum class lock_step : std::uint8_t {
  not_yet,   ///< an answer, a bell or the end of a pause has to come first
  held,      ///< this rank holds the lock
  moved,     ///< the lock is elsewhere (lock "hybrid"): nothing is taken here
  occupied,  ///< another rank holds it, and this machine does not wait for that
  migrates,  ///< the lock manager sends the lock to the network with this rank
  failed,    ///< lock_machine::why says why; nothing is taken
};

class lock_machine {
 public:
  lock_machine() = default;
  lock_machine(const lock_machine&) = delete;
  lock_machine& operator=(const lock_machine&) = delete;
  virtual ~lock_machine() = default;

  /// Goes as far as it can without waiting. Not called again after it has ended.
  lock_step advance() noexcept {
    RMA_ASSERT(reached_ == lock_step::not_yet);
    reached_ = go_on();
    RMA_ASSERT((reached_ == lock_step::failed) == (why_ != status::done));
    return reached_;
  }
  /// It will not be advanced any more: takes back what it has in words and queues. It had not ended.
  void give_up(status why) noexcept {
    RMA_ASSERT(reached_ == lock_step::not_yet && why != status::done);
    why_ = why;
    reached_ = lock_step::failed;
    take_back();
  }
  [[nodiscard]] lock_step reached() const noexcept { return reached_; }
  /// Why it failed.
  [[nodiscard]] status why() const noexcept { return why_; }

  // While it has not ended. These take no part in the window: other threads may be in it.
  /// False while a step leads nowhere.
  [[nodiscard]] virtual bool may_advance() noexcept = 0;
  /// When the pause ends in which it is; or what ends the wait: a bell of the node's ranks, a message or the fabric.
  [[nodiscard]] virtual std::int64_t resumes_at_ns() const noexcept = 0;
  static constexpr std::int64_t by_bell = -1;
  static constexpr std::int64_t by_message = -2;
  /// The world rank whose program has to answer; -1 if there is none.
  [[nodiscard]] virtual int answers_from() const noexcept { return -1; }
  /// Whether it can still get the lock: `done`, or why not.
  virtual status failed() noexcept = 0;
  /// The caller does nothing but wait from now on: the lock may be handed over to it, and its times mean something.
  virtual void stay() noexcept {}

 protected:
  virtual lock_step go_on() noexcept = 0;
  virtual void take_back() noexcept = 0;
  lock_step fail(status why) noexcept {
    RMA_ASSERT(why != status::done);
    why_ = why;
    return lock_step::failed;
  }

 private:
  lock_step reached_ = lock_step::not_yet;
  status why_ = status::done;
};

/// Blocks until the machine has ended.
lock_step wait_for(window_core& w, lock_machine& m) noexcept;

/// lock(): begin, then wait. The machine lives on the stack.
template <class Machine>
status lock_by(window_core& w, int target, lock_kind kind) noexcept {
  Machine m(w, target, kind);
  const lock_step s = wait_for(w, m);
  RMA_ASSERT(s == lock_step::held || s == lock_step::failed);
  return s == lock_step::held ? status::done : m.why();
}
}  // namespace rma::detail
