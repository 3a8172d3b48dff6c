// SPDX-License-Identifier: Apache-2.0
/// \file
/// The platform of a rank: time, sleep and the detection of deaths, for its waits. There is one for real machines
/// (src/fabric/shm/node_platform) and one for the simulator.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/small_lock.hpp"

namespace rma::detail {

/// The waiting policy.
struct patience {
  unsigned first_spins = 1;      ///< tests of the condition before the fabric is driven
  unsigned turns_per_look = 16;  ///< turns between two readings of the clock, which cost more than a poll of the rings
  std::int64_t spin_ns = 0;      ///< time without an event before it sleeps
  unsigned looks_before_sleep = 64;  ///< if spin_ns is 0: yields, cheaper than a sleep where cores are short
  unsigned cores = 0;                ///< the cores that the node's ranks share, if there are too few; 0: enough
};

/// These cost a rank's processor time that virtual time must show. `send` and `handler` are a message's copies at
/// either end: into a ring or a registered buffer, and out of it.
enum class cost_kind : std::uint8_t { copy, poll, send, handler };

/// A second thread of a rank.
class helper_thread {
 public:
  virtual ~helper_thread() = default;
  virtual void join() noexcept = 0;
};

class platform {
 public:
  virtual ~platform() = default;

  /// Called when all ranks have joined and the program continues.
  virtual void begin() {}
  [[nodiscard]] virtual std::int64_t now_ns() noexcept = 0;
  /// The same for the program. Virtual time passes by each look, so that a loop which waits for a time comes to an end.
  [[nodiscard]] virtual std::int64_t read_clock_ns() noexcept { return now_ns(); }
  /// Advances virtual time as if the program computed for that time; real time does not pass.
  virtual void compute(std::int64_t work_ns) noexcept = 0;
  /// Notes that this rank is in the library and runs handlers, or has returned to the program.
  virtual void inside(bool yes) noexcept = 0;
  /// Lets another rank on this core run.
  virtual void yield() noexcept = 0;
  /// Arms the doorbell: every later event rings it; with `serves` only messages and requests to a lock manager do.
  /// Poll once more, then call `sleep` with the result.
  virtual std::uint32_t arm(bool serves) noexcept = 0;
  /// Sleeps until the doorbell rings after that `arm`, up to a limit; all sleeping threads of this rank are woken.
  /// Call `retract` instead if the poll after `arm` found an event.
  virtual void sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept = 0;
  virtual void retract() noexcept = 0;
  /// Also ends `sleep` when this descriptor is readable. Called before the first sleep.
  virtual void watch(int /*descriptor*/) {}
  /// Publishes the call in which this rank has waited for long (empty: none) to the others of its node.
  virtual void say_where(std::string_view /*call*/) noexcept {}
  /// Reports the calls of the node's ranks to the user, since this one has waited for long; not if that was done less
  /// than `every_ns` ago.
  virtual void tell_stall(std::int64_t /*waited_ns*/, std::int64_t /*every_ns*/) noexcept {}
  /// Rings the doorbell of a rank on this node, after a full fence that follows the store for it.
  virtual void ring(int world_rank) noexcept = 0;
  /// Appends ranks whose death was seen since the last call.
  virtual void look_for_deaths(std::vector<int>& died) noexcept = 0;
  /// True if this rank has left in good order.
  [[nodiscard]] virtual bool has_left(int world_rank) noexcept = 0;
  /// `spin_ns`: the user's setting, used where there are enough cores.
  [[nodiscard]] virtual patience waits(std::int64_t spin_ns) const noexcept = 0;
  /// The waiting policy and its reason, for reports.
  [[nodiscard]] virtual std::string why_waits(std::int64_t spin_ns) const = 0;
  [[nodiscard]] virtual std::unique_ptr<helper_thread> start(std::function<void()> run) = 0;
  /// The thread that runs, as `start` makes them: never 0.
  [[nodiscard]] virtual std::uintptr_t thread() noexcept { return ::pthread_self(); }
  /// Acquires a lock that a thread may keep during waits: lets other threads run until it is free.
  virtual void take(small_lock& lock) noexcept { lock.lock(); }

  /// True if time is virtual: then everything that takes a processor's time has to be charged, calls that could be
  /// inlined must not be, and memory of another rank is touched by library functions only.
  [[nodiscard]] virtual bool keeps_accounts() const noexcept { return false; }
  /// True if ranks are fibers of one process, whose threads must not block.
  [[nodiscard]] virtual bool is_simulated() const noexcept { return false; }
  /// Charges this rank for work of its processor. Time passes at `pass_charged_time` or at the next wait.
  virtual void charge(cost_kind, std::uint64_t /*bytes*/) noexcept {}
  /// Lets the time pass that this rank was charged. Not under the progress lock.
  virtual void pass_charged_time() noexcept {}
  /// Notes the public call in which the program is (the text must live on), until it returns: then time passes, so that
  /// a program that repeats calls sees the effects of other ranks.
  virtual void enter(std::string_view /*call*/, int /*target*/) noexcept {}
  virtual void exit() noexcept {}
};

}  // namespace rma::detail
