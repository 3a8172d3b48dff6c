// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model of locks "hybrid" and "auto" whose states lock_hybrid_search_test and lock_auto_search_test search: two
/// ranks of the target's node and two of another, exclusive locks, at most one death. The words are the real ones, and
/// so are the order of a machine's stages (hybrid_machine.hpp), the steps of the network's lock and of migrations
/// (lock_hybrid.hpp), the choices of lock "auto" (lock_auto.hpp), and the manager's queue (lock_turns.hpp). Accesses to
/// the CPU word, one each, are modelled, and so is the sleep for it.
#pragma once

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "sync/lock_auto.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_model.hpp"

namespace rma::test::hybrid {

using namespace rma::detail;

/// The errors that the model can be made to have, to see that the search notices.
enum class mutation : std::uint8_t {
  none,
  forgotten_waiter,  ///< a rank that unlocks wakes nobody
  skipped_cpu_lock,  ///< the manager sends the lock to the network without taking the CPU lock
  grant_to_two,      ///< the manager grants while somebody of the node holds the lock
  lost_grant,        ///< an answer of the manager does not come while another rank waits
  silent_move,       ///< a rank that sleeps for the CPU word is not told that the lock moves
  dead_holder_kept,
  hasty_offer,   ///< the manager names who may bring the lock while another brings it away
  blind_return,  ///< a rank of another node brings the lock without a look at the CPU word
  dead_sleeper,  ///< a dead rank stays in the list of those who are woken
  skipped_leave  ///< a rank brings the lock to the CPU word without leaving the network word
};

enum class place : std::uint8_t {
  outside,  ///< wants it
  listed,   ///< in the list of those who are woken; looks once more
  asleep,
  network,       ///< by the steps of the network's lock
  network_only,  ///< the same, before an epoch of lock "auto" is deferred
  asking,        ///< has sent a request to the manager, or an epoch
  granted,       ///< the manager has it for this rank
  bringing,      ///< the manager has sent the lock to the network, with this rank
  holds_cpu,
  holds_network,
  marking,    ///< network -> CPU: holds the network word, marks the CPU word
  leaving,    ///< ... leaves the network word
  arriving,   ///< ... takes the CPU word
  returning,  ///< rank of another node: has left the network word as "away", and says so
  done,
};

struct rank_state {
  place at = place::outside;
  network_phase phase = network_phase::entering;
  std::uint64_t seen = 0;
  std::uint8_t locks = 0;
  bool dead = false;
  bool rung = false;
  bool migrates = false;  ///< this request: a rank of the node brings the lock if it finds it in the network
  bool epoch = false;     ///< epoch of lock "auto": lock, operations and unlock were sent in one message
  migration_reply reply = migration_reply::not_asked;
  bool cancels = false;  ///< a message to the manager: this rank will not bring the lock
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;    ///< 0, 1: the target's node; 2, 3: another
  static constexpr int manager = 4;  ///< the fifth that waits for the CPU word: rank 0's lock manager
  using counts = std::array<std::uint8_t, ranks>;
  using packed = packed_key<3>;

  std::uint64_t cpu = lock_counted;
  std::uint64_t net = network_away;
  std::array<rank_state, ranks> all{};
  model_turns<ranks> turns;  ///< the manager's
  place agent = place::outside;
  bool agent_rung = false;
  bool agent_migrates = false;
  bool death = false;
  bool heard = false;        ///< the manager has
  counts locks{1, 1, 1, 1};  ///< that each wants
  bool chooses = false;      ///< lock "auto"
  bool immortal = false;
  mutation broken = mutation::none;
  // Within one step of the manager, see serve().
  bool may_migrate = false;
  bool accessed = false;
  bool wakes = false;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.cpu, 4, 60);  // a writer, for whom, elsewhere, migrating
    field(s.cpu, 2, 32);  // the rank
    field(s.cpu, 1, 31);  // waiters
    network_fields(field, s.net);
    for (auto& r : s.all) {
      field(r.at, 4);
      field(r.phase, 3);
      network_fields(field, r.seen);
      field(r.locks, 2);
      field(r.dead, 1);
      field(r.rung, 1);
      field(r.migrates, 1);
      field(r.epoch, 1);
      field(r.reply, 2);
      field(r.cancels, 1);
    }
    turns_fields(s.turns, field);
    field(s.agent, 4);
    field(s.agent_rung, 1);
    field(s.agent_migrates, 1);
    field(s.death, 1);
    field(s.heard, 1);
  }
  [[nodiscard]] packed::words key() const { return key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return made_of(*this, key); }

  static std::uint64_t hold(int r) { return network_hold(r, lock_kind::exclusive); }
  static std::uint64_t tag(int r) { return lock_tag(static_cast<std::uint32_t>(r)); }
  [[nodiscard]] rank_state& of(int r) { return all[static_cast<std::size_t>(r)]; }
  [[nodiscard]] const rank_state& of(int r) const { return all[static_cast<std::size_t>(r)]; }
  static bool is_near(int r) { return r < 2; }
  [[nodiscard]] bool busy(int r) const { return !of(r).dead && of(r).at != place::done; }
  [[nodiscard]] bool holds(int r) const {
    const place at = of(r).at;
    return !of(r).dead && (at == place::granted || at == place::holds_cpu || at == place::holds_network ||
                           at == place::marking || at == place::leaving || at == place::arriving);
  }
  [[nodiscard]] std::string wrong() const {
    int holders = 0;
    for (int r = 0; r < ranks; ++r) holders += holds(r) ? 1 : 0;
    if (holders > 1) return "two hold it";
    if (!finished() || death) return {};
    const bool here = (cpu & lock_away) == 0, there = (net & network_away) == 0;
    if (here == there) return "the lock is at both places, or at none";
    if ((here && (cpu & (lock_writer | lock_readers)) != 0) || (there && network_holders(net) != 0) || turns.busy())
      return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const { return nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& to) const {
    const auto emit = [&to](const model& next) { to(next.canonical()); };
    for (int r = 0; r < ranks; ++r) {
      if (!is_near(r)) tell_manager(r, emit);
      if (!busy(r)) continue;
      advance(r, emit);
      if (!death && !immortal && r != 0) emit(died(r));
    }
    if (agent != place::asleep || agent_rung) serve(emit);
    if (!death || broken == mutation::dead_holder_kept) return;
    mend_all(emit);
    if (!heard) hear(emit);
  }

  // ---- who sleeps for the CPU word, see wake_one ------------------------------------------------------------------
  [[nodiscard]] bool sleeps(int who) const {
    const place at = who == manager ? agent : of(who).at;
    if (who != manager && of(who).dead) return broken == mutation::dead_sleeper && at == place::asleep && !of(who).rung;
    const bool rung = who == manager ? agent_rung : of(who).rung;
    return (at == place::listed || at == place::asleep) && !rung;
  }
  /// Rank 0 and its manager have one place in the list, and whoever wakes them wakes one more.
  void ring(int who) {
    for (const int each : {0, 1, manager}) {
      if (each == who || (who != 1 && sleeps(each))) (each == manager ? agent_rung : of(each).rung) = true;
    }
  }

  // ---- what lock_turns asks of its place --------------------------------------------------------------------------
  /// One access to the CPU word in each step of the manager, so that others come in between.
  lock_turn take(model_request& q) {
    if (std::exchange(accessed, true)) return lock_turn::waits;
    if (agent == place::outside && (cpu & lock_away) != 0) return lock_turn::elsewhere;
    if (agent == place::outside) agent_migrates = may_migrate;
    const bool early =
        (cpu & lock_away) == 0 && broken == (agent_migrates ? mutation::skipped_cpu_lock : mutation::grant_to_two);
    if (agent == place::asleep || !(lock_admits_writer(cpu) || early)) {
      list_agent();
      return lock_turn::waits;
    }
    const bool migrates = agent_migrates;
    cpu = lock_taken(cpu, migrates ? granted_tag(q.source) : tag(q.source) | lock_proxy);
    end_wait();
    if (migrates && broken != mutation::silent_move) wake_all();
    return migrates ? lock_turn::brings : lock_turn::holds;
  }
  static bool take_beside(const model_request&) { return false; }
  void end_wait() {
    agent = place::outside;
    agent_rung = false;
    agent_migrates = false;
  }
  static void run(const model_request&) {}
  void give_back(const model_request& q) {
    if (!lock_held_as(cpu, tag(q.source) | lock_proxy)) return;
    wakes = (cpu & lock_waiters) != 0;
    cpu = lock_released(cpu, lock_kind::exclusive);
  }
  void answer(const model_request& q, lock_answer result, int) {
    if (of(q.source).dead || (broken == mutation::lost_grant && !turns.waiting().empty())) return;
    const bool epoch = q.is_epoch;
    if (result == lock_answer::failed || (result == lock_answer::granted && epoch)) {
      *this = ended(q.source);
    } else if (epoch) {
      enter(q.source, after_epoch_answer(result == lock_answer::moved ? lock_step::moved : lock_step::migrates));
      of(q.source).epoch = true;
    } else {
      *this = turned(q.source, result == lock_answer::granted ? lock_step::held
                               : result == lock_answer::moved ? lock_step::moved
                                                              : lock_step::migrates);
    }
  }
  [[nodiscard]] bool dead(int source) const { return of(source).dead; }
  [[nodiscard]] static bool recovers() { return true; }
  void lose(const model_request&) {}

 private:
  // ---- the other node's ranks are alike -------------------------------------------------------------------------
  /// The state that stands for this one and for the one in which ranks 2 and 3 have changed their places.
  [[nodiscard]] model canonical() const {
    if (locks[2] != locks[3]) return *this;
    model next = *this;
    std::swap(next.all[2], next.all[3]);
    next.turns.lists(next.turns, [](auto& list) {
      for (model_request& q : list) q.source = other(q.source);
    });
    for (std::uint64_t* word :
         {&next.net, &next.all[0].seen, &next.all[1].seen, &next.all[2].seen, &next.all[3].seen}) {
      if (network_holders(*word) > 1) return *this;  // nobody can tell the names: there is no such state
      const int holder = network_only_holder(*word);
      if (holder >= 2) *word += hold(other(static_cast<std::uint8_t>(holder))) - hold(holder);
    }
    if ((cpu & lock_writer) != 0 && holder_of(cpu) >= 2) next.cpu ^= std::uint64_t{1} << 32;
    return next.key() < key() ? next : *this;
  }
  static std::uint8_t other(std::uint8_t r) { return r < 2 ? r : static_cast<std::uint8_t>(r ^ 1U); }

  // ---- wakes ----------------------------------------------------------------------------------------------------
  void wake_all() {
    for (int who : {0, 1, manager}) {
      if (sleeps(who)) ring(who);
    }
  }
  template <class Emit>
  void wake(bool waiters, Emit&& emit) const {
    if (waiters && broken != mutation::forgotten_waiter) return wake_one(*this, emit);
    emit(*this);
  }

  // ---- the order of a machine's stages, which is the library's --------------------------------------------------
  [[nodiscard]] hybrid_stage stage_of(int r) const {
    switch (of(r).at) {
      case place::network: return of(r).migrates ? hybrid_stage::moving : hybrid_stage::network;
      case place::network_only: return hybrid_stage::network_only;
      case place::asking: return hybrid_stage::manager;
      case place::bringing: return hybrid_stage::claiming;
      case place::marking:
      case place::leaving:
      case place::arriving: return hybrid_stage::leaving;
      default: return hybrid_stage::cpu;
    }
  }
  static place holding(lock_path path) {
    return path == lock_path::network ? place::holds_network
           : path == lock_path::agent ? place::granted
                                      : place::holds_cpu;
  }
  /// The rank's stage has ended so.
  [[nodiscard]] model turned(int r, lock_step s, bool migrates = false) const {
    const hybrid_stage last = stage_of(r);
    const hybrid_stage stage = after(last, s, {is_near(r) ? hybrid_stage::cpu : last, migrates});
    model next = *this;
    if (stage == hybrid_stage::held) {
      next.move(r, holding(path_after(last)));
    } else {
      next.enter(r, stage);
    }
    return next;
  }
  void enter(int r, hybrid_stage stage) {
    switch (stage) {
      case hybrid_stage::manager: ask(r, false); break;
      case hybrid_stage::elsewhere: ask(r, true); break;  // the epoch is deferred, and has ended
      case hybrid_stage::network:
      case hybrid_stage::moving: move(r, place::network); break;
      case hybrid_stage::network_only: move(r, place::network_only); break;
      case hybrid_stage::claiming: move(r, place::bringing); break;
      case hybrid_stage::leaving: move(r, broken == mutation::skipped_leave ? place::holds_cpu : place::marking); break;
      default: move(r, place::outside); break;  // after a pause once more
    }
    of(r).migrates = stage == hybrid_stage::moving;
  }
  void move(int r, place at) {
    rank_state& me = of(r);
    me.at = at;
    me.rung = false;
    me.phase = at == place::bringing ? network_phase::claiming : network_phase::entering;
    me.seen = 0;
  }
  [[nodiscard]] model moved_to(int r, place at) const {
    model next = *this;
    next.move(r, at);
    return next;
  }
  void ask(int r, bool epoch) {
    move(r, place::asking);
    turns.enqueue({static_cast<std::uint8_t>(r), of(r).locks, lock_kind::exclusive, epoch});
  }
  [[nodiscard]] model ended(int r) const {
    model next = moved_to(r, place::outside);
    rank_state& me = next.of(r);
    me.migrates = me.epoch = false;
    if (++me.locks >= locks[static_cast<std::size_t>(r)]) me.at = place::done;
    return next;
  }

  // ---- a rank ---------------------------------------------------------------------------------------------------
  template <class Emit>
  void advance(int r, Emit&& emit) const {
    switch (of(r).at) {
      case place::outside: return is_near(r) ? try_cpu(r, place::listed, emit) : begin_far(r, emit);
      case place::listed: return try_cpu(r, place::asleep, emit);
      case place::asleep:
        if (of(r).rung) emit(moved_to(r, place::outside));
        return;
      case place::network:
      case place::network_only:
      case place::bringing: return step_network(r, emit);
      case place::asking: return;
      case place::granted: return let_go_of_grant(r, emit);
      case place::holds_cpu: return release_cpu(r, emit);
      case place::holds_network: return release_network(r, emit);
      case place::marking: {
        model next = moved_to(r, place::leaving);
        next.cpu = migrating_tag(r) | (cpu & lock_waiters);
        return emit(next);
      }
      case place::leaving: {
        model next = moved_to(r, place::arriving);
        next.net += leave_request(r).operand;
        return emit(next);
      }
      case place::arriving: {
        model next = turned(r, lock_step::held);
        next.cpu = tag(r) | (cpu & lock_waiters);
        return emit(next);
      }
      case place::returning: return come(r, emit);
      case place::done: return;
    }
  }
  template <class Emit>
  void try_cpu(int r, place otherwise, Emit&& emit) const {
    if ((cpu & lock_away) != 0) {
      for (const bool migrates : {false, true}) emit(turned(r, lock_step::moved, migrates));
      return;
    }
    if (lock_admits_writer(cpu)) {
      model next = turned(r, lock_step::held);
      next.cpu = lock_taken(cpu, tag(r));
      return emit(next);
    }
    model next = *this;
    next.of(r).at = otherwise;
    if (otherwise == place::listed) {
      next.of(r).rung = false;
      next.cpu |= lock_waiters;
    }
    emit(next);
  }
  /// Where the rank has found the lock before, and whether the epoch may be deferred, are choices of the search.
  template <class Emit>
  void begin_far(int r, Emit&& emit) const {
    for (const lock_place known : {lock_place::cpu, lock_place::network}) {
      for (const bool deferrable : {false, true}) {
        if (deferrable && !chooses) continue;
        model next = *this;
        switch (begin_of(deferrable, known)) {
          case auto_begin::at_once:
            next.enter(r, known == lock_place::cpu ? hybrid_stage::manager : hybrid_stage::network);
            break;
          case auto_begin::network_first: next.enter(r, hybrid_stage::network_only); break;
          case auto_begin::deferred: next.enter(r, hybrid_stage::elsewhere); break;
        }
        emit(next);
      }
    }
  }
  template <class Emit>
  void step_network(int r, Emit&& emit) const {
    model next = *this;
    rank_state& me = next.of(r);
    const network_attempt a = walk({lock_kind::exclusive, me.phase, hold(r), me.seen}, next.net);
    if (a.phase == network_phase::held) {
      next = next.turned(r, lock_step::held);
    } else if (a.phase == network_phase::moved) {
      next = next.turned(r, lock_step::moved);
    } else {
      me.phase = a.phase;
      me.seen = a.seen;
    }
    emit(next);
  }
  template <class Emit>
  void release_cpu(int r, Emit&& emit) const {
    model next = ended(r);
    next.cpu = lock_released(cpu, lock_kind::exclusive);
    next.wake((cpu & lock_waiters) != 0, emit);
  }
  template <class Emit>
  void let_go_of_grant(int r, Emit&& emit) const {
    model next = *this;
    (void)next.turns.release(next, r, of(r).locks);
    next = next.ended(r);
    next.wake(std::exchange(next.wakes, false), emit);
  }
  /// Whether the rank prefers CPU mode, and whether the manager has answered fast enough, are choices of the search.
  template <class Emit>
  void release_network(int r, Emit&& emit) const {
    model next = ended(r);
    next.net -= hold(r);
    emit(next);
    if (!chooses || is_near(r) || of(r).epoch) return;
    const migration_reply reply = of(r).reply;
    const bool named =
        may_migrate_to_cpu(cpu, r) || (broken == mutation::blind_return && reply == migration_reply::yes);
    const auto_end end = end_of(reply, named);
    if (reply == migration_reply::yes) emit(next.answered_late(r));
    if (reply != migration_reply::asked) next.of(r).reply = migration_reply::not_asked;
    if (end == auto_end::request_migration && !of(r).cancels) {
      next.of(r).reply = migration_reply::asked;
      emit(next);
    } else if (end == auto_end::cancel) {
      emit(next.answered_late(r));
    } else if (end == auto_end::migrate) {
      model returns = moved_to(r, place::returning);
      returns.of(r).reply = migration_reply::not_asked;
      returns.net += leave_request(r).operand;
      emit(returns);
    } else {
      emit(next);
    }
  }
  [[nodiscard]] model answered_late(int r) const {
    model next = *this;
    next.of(r).reply = migration_reply::not_asked;
    next.of(r).cancels = true;
    return next;
  }

  // ---- the manager ----------------------------------------------------------------------------------------------
  /// Messages of a rank that wants to bring the lock. The manager's first answer comes at once, the others later.
  template <class Emit>
  void tell_manager(int r, Emit&& emit) const {
    if (of(r).dead) return;
    model next = *this;
    if (of(r).cancels) {
      next.of(r).cancels = false;
      next.cpu = migration_cancelled(cpu, r);
      return emit(next);
    }
    if (of(r).reply != migration_reply::asked) return;
    next.cpu = migration_offered(cpu, broken == mutation::hasty_offer ? net & ~network_away : net, r);
    next.of(r).reply = next.cpu != cpu ? migration_reply::yes : migration_reply::no;
    emit(next);
  }
  /// The manager hears that the lock has come.
  template <class Emit>
  void come(int r, Emit&& emit) const {
    model next = ended(r);
    next.cpu = migration_finished(cpu, net, r);
    if (next.cpu != cpu) next.wake_all();
    emit(next);
  }
  /// Whether a request makes the lock migrate is a choice of the search.
  template <class Emit>
  void serve(Emit&& emit) const {
    if (turns.waiting().empty()) return;
    for (const bool migrates : {false, true}) {
      if (migrates && agent != place::outside) break;
      model next = *this;
      next.may_migrate = migrates;
      (void)next.turns.serve(next);
      next.finish_step(emit);
    }
  }
  template <class Emit>
  void finish_step(Emit&& emit) {
    may_migrate = accessed = false;
    wake(std::exchange(wakes, false), emit);
  }
  void list_agent() {
    const bool listed = agent == place::listed;
    agent = listed ? place::asleep : place::listed;
    if (listed) return;
    agent_rung = false;
    cpu |= lock_waiters;
  }

  // ---- a death --------------------------------------------------------------------------------------------------
  [[nodiscard]] model died(int r) const {
    model next = *this;
    next.wake_all();  // everybody hears of it
    const bool listed = sleeps(r) && broken == mutation::dead_sleeper;
    next.of(r) = {.at = listed ? place::asleep : place::done, .dead = true};
    next.death = true;
    return next;
  }
  template <class Emit>
  void hear(Emit&& emit) const {
    model next = *this;
    next.heard = true;
    (void)next.turns.remove_dead_holders(next);
    next.turns.remove_dead_waiters(next);
    next.finish_step(emit);
  }
  /// The steps of a rank that sees the name of a dead rank.
  template <class Emit>
  void mend_all(Emit&& emit) const {
    const int named = holder_of(cpu);
    if ((cpu & lock_writer) != 0 && named < ranks && of(named).dead) {
      model next = *this;
      next.cpu = (cpu & lock_away) != 0 ? mended(cpu, net) : lock_abandoned(cpu);
      next.cpu |= lock_counted;  // biased towards readers or not: there are none here
      next.wake_all();
      if (next.cpu != cpu) emit(next);
    }
    const int holder = (net & network_away) != 0 ? -1 : network_only_holder(net);
    if (holder < 0 || !of(holder).dead) return;
    model next = *this;
    next.net = network_recovered(net, hold(holder)) & ~network_recoveries_mask;
    emit(next);
  }
};

inline model beginning(model::counts locks, bool at_network, bool deaths) {
  model first;
  first.locks = locks;
  first.immortal = !deaths;
  for (int r = 0; r < model::ranks; ++r) {
    if (locks[static_cast<std::size_t>(r)] == 0) first.of(r).at = place::done;
  }
  if (at_network) {
    first.cpu = granted_tag(0);
    first.net = 0;
  }
  return first;
}

constexpr const char* stuck = "a state from which the end cannot be reached";

/// Searches all states from `first`, in which nothing may be wrong; returns their number.
inline std::size_t search(const model& first, std::size_t states_max = 4'000'000) {
  const search_result r = state_search<model>().run(first, states_max);
  CAPTURE(int{first.locks[0]}, int{first.locks[1]}, int{first.locks[2]}, int{first.locks[3]}, first.cpu, first.immortal,
          r.states, r.steps);
  CHECK(r.failure == "");
  return r.states;
}
/// The failure that the search finds with the mutation.
inline std::string found(model first, mutation broken) {
  first.broken = broken;
  return state_search<model>().run(first).failure;
}

}  // namespace rma::test::hybrid
