// SPDX-License-Identifier: Apache-2.0
/// \file
/// The turns at a lock manager (lock_agent.hpp): the requests that wait, in the order in which they came, and
/// those that hold. The steps touch no memory and send nothing themselves: a `Actions` does that for them, lock_agent
/// or a model that tests search.
///
///   waiting --the place takes the lock for it--> holding --leave, or its rank is dead--> given back
///      |  '--for an epoch: run, given back; then answered, as the holder is
///      '--the lock is not here, a holder is dead--> answered
///
/// A shared request passes writers that wait: its rank may hold other locks, for which they wait in a cycle.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <utility>

#include "core/assert.hpp"
#include "rma/epoch.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// Whether who asks for `kind` may have it beside so many holders, of which `writers` are exclusive.
constexpr bool agent_grants(std::size_t holders, std::size_t writers, lock_kind kind) noexcept {
  return holders == 0 || (kind == lock_kind::shared && writers == 0);
}
static_assert(agent_grants(0, 0, lock_kind::exclusive) && agent_grants(2, 0, lock_kind::shared));
static_assert(!agent_grants(2, 0, lock_kind::exclusive) && !agent_grants(1, 1, lock_kind::shared));

/// The first request that waits has come to one of these.
enum class lock_turn : std::uint8_t {
  waits,
  holds,
  brings,    ///< its rank brings the lock to the network word (lock "hybrid")
  elsewhere  ///< the lock is in the network
};

/// List: a deque of requests with `source` (a rank), `number`, `kind` and `is_epoch`. The Place must have:
///
///   lock_turn take(request&)       tries to take the lock for the first that waits
///   bool take_beside(request&)     the same for a shared one behind a writer that waits
///   void end_wait()                takes back what it has begun for the first, which waits no more
///   void run(request&), give_back(request&), answer(request&, lock_answer, int blamed)
///   bool dead(int source)          true if this rank has died
///   bool recovers()                false: what the dead held stays
///   void lose(request&)            is told of a dead holder, before its hold is given back
template <class List>
class lock_turns {
 public:
  using request = typename List::value_type;

  [[nodiscard]] const List& waiting() const noexcept { return waiting_; }
  [[nodiscard]] const List& holders() const noexcept { return holders_; }
  [[nodiscard]] bool busy() const noexcept { return !waiting_.empty() || !holders_.empty(); }

  void enqueue(request&& r) { waiting_.push_back(std::move(r)); }

  /// Whether the managed lock, if it is nothing but this queue, admits one more of this kind.
  [[nodiscard]] bool admits(lock_kind kind) const noexcept {
    const auto writers = std::count_if(holders_.begin(), holders_.end(),
                                       [](const request& h) { return h.kind == lock_kind::exclusive; });
    return agent_grants(holders_.size(), static_cast<std::size_t>(writers), kind);
  }

  /// Serves whose turn it is, one after the other; returns how many.
  template <class Actions>
  unsigned serve(Actions& actions) noexcept {
    unsigned served = 0;
    while (!waiting_.empty()) {
      auto next = waiting_.begin();
      lock_turn turn = actions.take(*next);
      if (turn == lock_turn::waits) {
        next = std::find_if(std::next(next), waiting_.end(), [&](const request& r) { return passes(actions, r); });
        if (next == waiting_.end()) break;
        turn = lock_turn::holds;
      }
      request r = std::move(*next);
      waiting_.erase(next);
      ++served;
      finish(actions, std::move(r), turn);
    }
    return served;
  }

  /// The holder of this request lets go, or who waits gives it up. False if it does neither.
  template <class Actions>
  bool release(Actions& actions, int source, std::uint32_t number) noexcept {
    const auto is_it = [&](const request& r) { return r.source == source && r.number == number; };
    if (const auto held = std::find_if(holders_.begin(), holders_.end(), is_it); held != holders_.end()) {
      actions.give_back(*held);
      holders_.erase(held);
      return true;
    }
    const auto waits = std::find_if(waiting_.begin(), waiting_.end(), is_it);
    if (waits == waiting_.end()) return false;
    if (waits == waiting_.begin()) actions.end_wait();
    waiting_.erase(waits);
    return true;
  }

  /// Gives back what dead ranks held, and tells all that wait; returns how many.
  template <class Actions>
  unsigned remove_dead_holders(Actions& actions) noexcept {
    unsigned answered = 0;
    for (auto held = holders_.begin(); held != holders_.end();) {
      if (!actions.dead(held->source)) {
        ++held;
        continue;
      }
      const int dead = held->source;
      if (actions.recovers()) {
        actions.lose(*held);
        actions.give_back(*held);
        held = holders_.erase(held);
      } else {
        ++held;
      }
      answered += fail_waiting(actions, dead);
    }
    return answered;
  }

  /// Dead ranks wait no more.
  template <class Actions>
  void remove_dead_waiters(Actions& actions) noexcept {
    if (!waiting_.empty() && actions.dead(waiting_.front().source)) actions.end_wait();
    for (auto waits = waiting_.begin(); waits != waiting_.end();)
      waits = actions.dead(waits->source) ? waiting_.erase(waits) : std::next(waits);
  }

  /// Tells all that wait that they will not get it, because of this rank; returns how many.
  template <class Actions>
  unsigned fail_waiting(Actions& actions, int blamed) noexcept {
    actions.end_wait();
    List waiting;  // which is not exchanged: the list may have no memory yet, and cannot be cleared then
    waiting.swap(waiting_);
    for (const request& r : waiting) actions.answer(r, lock_answer::failed, blamed);
    return static_cast<unsigned>(waiting.size());
  }

  /// Ends all waits, and forgets all holders.
  template <class Actions>
  void close(Actions& actions, int blamed) noexcept {
    (void)fail_waiting(actions, blamed);
    List held;
    held.swap(holders_);
    for (const request& r : held) actions.give_back(r);
    RMA_ASSERT(!busy());
  }

  /// For tests, which keep what they have seen of it.
  template <class Self, class F>
  static void lists(Self& self, F&& f) {
    f(self.waiting_);
    f(self.holders_);
  }
  bool operator==(const lock_turns&) const = default;

 private:
  template <class Actions>
  bool passes(Actions& actions, const request& r) noexcept {
    return r.kind == lock_kind::shared && waiting_.front().kind == lock_kind::exclusive && actions.take_beside(r);
  }
  template <class Actions>
  void finish(Actions& actions, request&& r, lock_turn turn) noexcept {
    RMA_ASSERT(turn != lock_turn::waits);
    if (turn != lock_turn::holds)
      return actions.answer(r, turn == lock_turn::brings ? lock_answer::migrates : lock_answer::moved, -1);
    if (r.is_epoch) {
      actions.run(r);
      actions.give_back(r);
    } else {
      holders_.push_back(r);
    }
    actions.answer(r, lock_answer::granted, -1);
  }

  List waiting_;
  List holders_;
};

}  // namespace rma::detail
