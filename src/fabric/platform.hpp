// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's platform offers to its waits time, sleep, and news of deaths. One for real machines
/// (src/fabric/shm/node_platform), one for the simulator.
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

/// How a wait passes its time.
struct patience {
  unsigned first_spins = 1;          ///< looks at the condition before the fabric is driven
  unsigned turns_per_look = 16;      ///< turns between two looks at the clock, which costs more than one at the rings
  std::int64_t spin_ns = 0;          ///< without news, before it sleeps
  unsigned looks_before_sleep = 64;  ///< if spin_ns is 0: yields, cheaper than a sleep where cores are short
  unsigned cores = 0;                ///< that the node's ranks share, if they are short; 0: they are not
};

/// These cost a rank's processor time that virtual time must show. Of a message, `send` and `handler` are the copies at
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

  /// All ranks are there; the program goes on.
  virtual void begin() {}
  [[nodiscard]] virtual std::int64_t now_ns() noexcept = 0;
  /// The same for the program. Virtual time passes by each look, so that a loop which waits for a time comes to an end.
  [[nodiscard]] virtual std::int64_t read_clock_ns() noexcept { return now_ns(); }
  /// The program computes for so long: virtual time passes, real time does not.
  virtual void compute(std::int64_t work_ns) noexcept = 0;
  /// This rank is inside the library and runs handlers, or has gone back to the program.
  virtual void inside(bool yes) noexcept = 0;
  /// Lets another rank on this core run.
  virtual void yield() noexcept = 0;
  /// From here on whoever has news rings the doorbell; `serves`: who has a message, or something for a lock manager.
  /// Look once more for news, then `sleep` with what this returns.
  virtual std::uint32_t arm(bool serves) noexcept = 0;
  /// Until the doorbell rings after that `arm`, at most so long; all threads of this rank that sleep are woken.
  /// `retract` instead if news was found after `arm`.
  virtual void sleep(std::uint32_t armed, std::int64_t timeout_ns) noexcept = 0;
  virtual void retract() noexcept = 0;
  /// `sleep` ends, too, when this descriptor is readable. Given before the first sleep.
  virtual void watch(int /*descriptor*/) {}
  /// This rank has waited there for long (empty: no longer): for the others of its node to read.
  virtual void say_where(std::string_view /*call*/) noexcept {}
  /// Tells the user where the ranks of the node are, since this one has waited for so long; nothing if that was done
  /// less than `every_ns` ago.
  virtual void tell_stall(std::int64_t /*waited_ns*/, std::int64_t /*every_ns*/) noexcept {}
  /// Rings the doorbell of a rank on this node. A full fence lies between the news and this call.
  virtual void ring(int world_rank) noexcept = 0;
  /// Appends ranks whose death was seen since the last call.
  virtual void look_for_deaths(std::vector<int>& died) noexcept = 0;
  /// True if this rank has left in good order.
  [[nodiscard]] virtual bool has_left(int world_rank) noexcept = 0;
  /// `spin_ns` is what the user wants where cores suffice.
  [[nodiscard]] virtual patience waits(std::int64_t spin_ns) const noexcept = 0;
  /// How waits pass their time and why, for people.
  [[nodiscard]] virtual std::string why_waits(std::int64_t spin_ns) const = 0;
  [[nodiscard]] virtual std::unique_ptr<helper_thread> start(std::function<void()> run) = 0;
  /// The thread that runs, as `start` makes them: never 0.
  [[nodiscard]] virtual std::uintptr_t thread() noexcept { return ::pthread_self(); }
  /// Takes a lock that a thread may keep over waits: lets the others run until it is free.
  virtual void take(small_lock& lock) noexcept { lock.lock(); }

  /// True if time is virtual: then everything that takes a processor's time has to be charged, calls that could be
  /// inlined must not be, and memory of another rank is touched by library functions only.
  [[nodiscard]] virtual bool keeps_accounts() const noexcept { return false; }
  /// Ranks are fibers of one process: nothing may block its threads.
  [[nodiscard]] virtual bool is_simulated() const noexcept { return false; }
  /// This rank's processor has done that. Time passes at `settle` or at the next wait.
  virtual void charge(cost_kind, std::uint64_t /*bytes*/) noexcept {}
  /// Lets the others live through what this rank was charged. Not under the progress lock.
  virtual void settle() noexcept {}
  /// The program is in this public call from here on (the text stays), until it leaves it: then time passes, so that a
  /// program that calls again and again sees what the others do.
  virtual void enter(std::string_view /*call*/, int /*target*/) noexcept {}
  virtual void leave() noexcept {}
};

}  // namespace rma::detail
