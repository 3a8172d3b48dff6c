// SPDX-License-Identifier: Apache-2.0
/// \file
/// The step machine by which a rank acquires a lock. lock() begins a machine and waits for it (wait_for), ilock puts
/// one behind a request; lock_protocol.hpp names the machine of each lock.
///
///   begin -> not_yet --advance--> held, moved, occupied, migrates, failed
///              ^   |
///              '---'  after a reply, a bell or a pause            failed() reports that none will come: give_up
#pragma once

#include <cstdint>
#include <memory>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "rma/error.hpp"

namespace rma::detail {

struct window_core;

/// The results of a step.
enum class lock_step : std::uint8_t {
  not_yet,   ///< it needs a reply, a bell or the end of a pause first
  held,      ///< this rank holds the lock
  moved,     ///< the lock's home is elsewhere (lock "hybrid"): nothing is taken here
  occupied,  ///< another rank holds it, and this machine does not wait
  migrates,  ///< the lock manager makes this rank move the lock to the network
  failed,    ///< lock_machine::why gives the reason; nothing is taken
};

class lock_machine {
 public:
  lock_machine() = default;
  lock_machine(const lock_machine&) = delete;
  lock_machine& operator=(const lock_machine&) = delete;
  virtual ~lock_machine() = default;

  /// Advances as far as it can without waiting. It is not called again after the end.
  lock_step advance() noexcept {
    RMA_ASSERT(reached_ == lock_step::not_yet);
    reached_ = go_on();
    RMA_ASSERT((reached_ == lock_step::failed) == (why_ != status::done));
    return reached_;
  }
  /// Cancels a machine that has not ended: removes it from words and queues.
  void give_up(status why) noexcept {
    RMA_ASSERT(reached_ == lock_step::not_yet && why != status::done);
    why_ = why;
    reached_ = lock_step::failed;
    take_back();
  }
  [[nodiscard]] lock_step reached() const noexcept { return reached_; }
  /// The reason of its failure.
  [[nodiscard]] status why() const noexcept { return why_; }

  // Only before the end. These do not use the window: other threads may be in it.
  /// False while a step would have no effect.
  [[nodiscard]] virtual bool may_advance() noexcept = 0;
  /// The end of its pause; or the source that ends its wait: a bell of the node's ranks, a message or the fabric.
  [[nodiscard]] virtual std::int64_t resumes_at_ns() const noexcept = 0;
  static constexpr std::int64_t by_bell = -1;
  static constexpr std::int64_t by_message = -2;
  /// The world rank whose progress it needs; -1 if there is none.
  [[nodiscard]] virtual int answers_from() const noexcept { return -1; }
  /// `done` while it can still get the lock, else the reason why not.
  virtual status failed() noexcept = 0;
  /// Notes that the caller only waits from now on: the lock may be handed over to it, and its times are meaningful.
  virtual void keep_request() noexcept {}

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

/// lock(): begins a machine, which lives on the stack, and waits for it.
template <class Machine>
status lock_by(window_core& w, int target, lock_kind kind) noexcept {
  Machine m(w, target, kind);
  const lock_step s = wait_for(w, m);
  RMA_ASSERT(s == lock_step::held || s == lock_step::failed);
  return s == lock_step::held ? status::done : m.why();
}
}  // namespace rma::detail
