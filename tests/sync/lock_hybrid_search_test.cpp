// SPDX-License-Identifier: Apache-2.0
// Goal: lock "hybrid" is held by one rank at a time, whatever way each goes and whenever the lock migrates, nobody
// waits for ever, and a death leaves nothing that is not mended. Method: all states of two ranks of the target's node
// and two of another, one or two exclusive locks each, one death, under every policy: whether a request migrates is a
// choice of the search. The words are the real ones, and so are the order of a machine's stages (hybrid_machine.hpp),
// the steps of the network's lock and what is mended; accesses to the CPU word, one each, and the manager are modelled.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "sync/hybrid_machine.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_model.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr std::uint8_t nobody = 7;

/// What the model does wrong, to see that the search notices.
enum class mutation : std::uint8_t {
  none,
  lost_wake_up,      ///< who unlocks wakes nobody
  skipped_cpu_lock,  ///< the manager sends the lock to the network without taking the CPU lock
  early_grant,       ///< the manager grants while somebody of the node holds the lock
  silent_move,       ///< who sleeps for the CPU word is not told that the lock moves
  no_mending,
  hasty_welcome,  ///< the manager names who may bring the lock home while another brings it away
  blind_return,   ///< a rank of another node brings the lock home without a look at the CPU word
  dead_sleeper,   ///< a dead rank stays in the list of those who are woken
  skipped_leave,  ///< who brings the lock to the CPU word takes it without leaving the network word
};

enum class place : std::uint8_t {
  outside,  ///< wants it
  listed,   ///< in the list of those who are woken; looks once more
  asleep,
  network,   ///< by the steps of the network's lock
  asking,    ///< has sent a request to the manager
  granted,   ///< the manager has it for this rank
  bringing,  ///< the manager has sent the lock to the network, with this rank
  holds_cpu,
  holds_network,
  marking,    ///< network -> CPU: holds the network word, marks the CPU word
  leaving,    ///< ... leaves the network word
  arriving,   ///< ... takes the CPU word
  returning,  ///< of another node: has left the network word as "away", and says so
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
  bool welcome = false;   ///< may bring the lock home
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;    ///< 0, 1: the target's node; 2, 3: another
  static constexpr int manager = 4;  ///< the fifth that waits for the CPU word: rank 0's lock manager
  using counts = std::array<std::uint8_t, ranks>;
  using packed = test::packed_key<2>;

  std::uint64_t cpu = lock_counted;
  std::uint64_t net = network_away;
  std::array<rank_state, ranks> all{};
  std::array<std::uint8_t, 2> queue{nobody, nobody};  ///< who has asked the manager
  place agent = place::outside;
  bool agent_rung = false;
  bool agent_migrates = false;
  bool death = false;
  counts locks{1, 1, 1, 1};  ///< that each wants
  bool immortal = false;
  mutation broken = mutation::none;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.cpu, 4, 60);  // a writer, for whom, elsewhere, migrating
    field(s.cpu, 2, 32);  // the rank
    field(s.cpu, 1, 31);  // waiters
    test::network_fields(field, s.net);
    for (auto& r : s.all) {
      field(r.at, 4);
      field(r.phase, 3);
      test::network_fields(field, r.seen);
      field(r.locks, 2);
      field(r.dead, 1);
      field(r.rung, 1);
      field(r.migrates, 1);
      field(r.welcome, 1);
    }
    for (auto& r : s.queue) field(r, 3);
    field(s.agent, 4);
    field(s.agent_rung, 1);
    field(s.agent_migrates, 1);
    field(s.death, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }

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
    if ((here && (cpu & (lock_writer | lock_readers)) != 0) || (there && network_holders(net) != 0))
      return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const { return test::nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& to) const {
    const auto emit = [&to](const model& next) { to(next.canonical()); };
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      advance(r, emit);
      if (!death && !immortal && r != 0) emit(died(r));
    }
    serve(emit);
    if (death) mend_all(emit);
  }

  // ---- who sleeps for the CPU word, see test::wake_one ------------------------------------------------------------
  [[nodiscard]] bool sleeps(int who) const {
    const place at = who == manager ? agent : of(who).at;
    if (who != manager && of(who).dead) return broken == mutation::dead_sleeper && at == place::asleep && !of(who).rung;
    const bool rung = who == manager ? agent_rung : of(who).rung;
    return (at == place::listed || at == place::asleep) && !rung;
  }
  void ring(int who) { (who == manager ? agent_rung : of(who).rung) = true; }

 private:
  // ---- the other node's ranks are alike -------------------------------------------------------------------------
  /// Of two states in which ranks 2 and 3 have changed their places, one stands for both.
  [[nodiscard]] model canonical() const {
    if (locks[2] != locks[3]) return *this;
    const auto rest = [](const rank_state& r) {
      return static_cast<unsigned>(r.at) | static_cast<unsigned>(r.phase) << 4 | unsigned{r.locks} << 8 |
             (r.dead ? 1U : 0U) << 12 | (r.welcome ? 1U : 0U) << 13;
    };
    const unsigned second = rest(all[2]), third = rest(all[3]);
    if (second < third || (second == third && queue[0] != 3)) return *this;
    model next = *this;
    std::swap(next.all[2], next.all[3]);
    for (std::uint8_t& r : next.queue) r = r == nobody ? nobody : other(r);
    bool named = true;
    for (std::uint64_t* word :
         {&next.net, &next.all[0].seen, &next.all[1].seen, &next.all[2].seen, &next.all[3].seen}) {
      named = named && network_holders(*word) <= 1;  // of more, nobody can tell the names: there is no such state
      const int holder = network_only_holder(*word);
      if (holder >= 2) *word += hold(other(static_cast<std::uint8_t>(holder))) - hold(holder);
    }
    if ((cpu & lock_writer) != 0 && holder_of(cpu) >= 2) next.cpu ^= std::uint64_t{1} << 32;
    return named ? next : *this;
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
    if (waiters && broken != mutation::lost_wake_up) return test::wake_one(*this, emit);
    emit(*this);
  }

  // ---- the order of a machine's stages, which is the library's --------------------------------------------------
  [[nodiscard]] hybrid_stage stage_of(int r) const {
    switch (of(r).at) {
      case place::network: return of(r).migrates ? hybrid_stage::moving : hybrid_stage::network;
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
    const hybrid_way way{is_near(r) ? hybrid_stage::cpu : last, migrates};
    const hybrid_stage stage = after(last, s, way);
    if (stage == hybrid_stage::manager) return asking(*this, r);
    model next = *this;
    switch (stage) {
      case hybrid_stage::network:
      case hybrid_stage::moving: next = moved_to(r, place::network); break;
      case hybrid_stage::claiming: next = moved_to(r, place::bringing); break;
      case hybrid_stage::leaving:
        next = moved_to(r, broken == mutation::skipped_leave ? place::holds_cpu : place::marking);
        break;
      case hybrid_stage::held: next = moved_to(r, holding(path_after(last))); break;
      default: next = moved_to(r, place::outside); break;  // after a pause once more
    }
    next.of(r).migrates = stage == hybrid_stage::moving;
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
      case place::network: return step_network(r, emit);
      case place::asking: return;
      case place::bringing: return step_network(r, emit);
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
        next.net += network_away - hold(r);
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
  [[nodiscard]] model moved_to(int r, place at) const {
    model next = *this;
    next.of(r).at = at;
    next.of(r).rung = false;
    next.of(r).phase = at == place::bringing ? network_phase::claiming : network_phase::entering;
    next.of(r).seen = 0;
    return next;
  }
  [[nodiscard]] model ended(int r) const {
    model next = moved_to(r, place::outside);
    rank_state& me = next.of(r);
    me.migrates = false;
    if (++me.locks == locks[static_cast<std::size_t>(r)]) {
      me.at = place::done;
      me.welcome = false;
    }
    return next;
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
  template <class Emit>
  void begin_far(int r, Emit&& emit) const {
    emit(moved_to(r, place::network));
    emit(asking(*this, r));  // who found it there before begins there
    // May it bring the lock home? The manager, which answers at once here, names it.
    const bool on_its_way = (net & network_away) != 0 && broken != mutation::hasty_welcome;
    if (!of(r).welcome && (cpu & lock_away) != 0 && (cpu & lock_migrating) == 0 && !on_its_way) {
      model next = *this;
      next.cpu = migrating_tag(r) | (cpu & lock_waiters);
      next.of(r).welcome = true;
      emit(next);
    }
  }
  template <class Emit>
  void step_network(int r, Emit&& emit) const {
    model next = *this;
    rank_state& me = next.of(r);
    const network_attempt a = test::walk({lock_kind::exclusive, me.phase, hold(r), me.seen}, next.net);
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
  [[nodiscard]] static model asking(const model& now, int r) {
    model next = now.moved_to(r, place::asking);
    next.queue[next.queue[0] == nobody ? 0 : 1] = static_cast<std::uint8_t>(r);
    return next;
  }
  template <class Emit>
  void release_cpu(int r, Emit&& emit) const {
    model next = ended(r);
    next.cpu = lock_released(cpu, lock_kind::exclusive);
    next.wake((cpu & lock_waiters) != 0, emit);
  }
  template <class Emit>
  void let_go_of_grant(int r, Emit&& emit) const {
    model next = ended(r);
    if ((cpu & ~lock_waiters) != (tag(r) | lock_proxy)) return emit(next);
    next.cpu = lock_released(cpu, lock_kind::exclusive);
    next.wake((cpu & lock_waiters) != 0, emit);
  }
  template <class Emit>
  void release_network(int r, Emit&& emit) const {
    model next = ended(r);
    next.net -= hold(r);
    emit(next);
    if (is_near(r) || !of(r).welcome) return;
    model returns = moved_to(r, place::returning);
    returns.of(r).welcome = false;
    if ((cpu & ~lock_waiters) != migrating_tag(r) && broken != mutation::blind_return) return;
    returns.net += network_away - hold(r);
    emit(returns);
  }
  /// The manager hears that the lock has come.
  template <class Emit>
  void come(int r, Emit&& emit) const {
    model next = ended(r);
    if ((cpu & ~lock_waiters) == migrating_tag(r) && (net & network_away) != 0) {
      next.cpu = lock_counted | (cpu & lock_waiters);
      next.wake_all();
    }
    emit(next);
  }

  // ---- the manager ----------------------------------------------------------------------------------------------
  template <class Emit>
  void serve(Emit&& emit) const {
    if (queue[0] == nobody) return;
    if (agent == place::asleep && !agent_rung) return;
    if (agent == place::outside) {
      if ((cpu & lock_away) != 0) return emit(answered(lock_step::moved));
      for (const bool migrates : {false, true}) {
        model next = *this;
        next.agent_migrates = migrates;
        next.take(emit);
      }
      return;
    }
    model next = *this;
    if (agent == place::asleep) {  // in the list again
      next.agent = place::listed;
      next.agent_rung = false;
      next.cpu |= lock_waiters;
      return emit(next);
    }
    next.take(emit);
  }
  template <class Emit>
  void take(Emit&& emit) const {
    const int r = queue[0];
    const bool is_free = lock_admits_writer(cpu);
    const bool skips = broken == mutation::skipped_cpu_lock && agent_migrates && (cpu & lock_away) == 0;
    const bool early = broken == mutation::early_grant && !agent_migrates && (cpu & lock_away) == 0;
    if (!is_free && !skips && !early) {
      model next = *this;
      next.agent = agent == place::listed ? place::asleep : place::listed;
      if (agent != place::listed) {
        next.agent_rung = false;
        next.cpu |= lock_waiters;
      }
      return emit(next);
    }
    model next = answered(agent_migrates ? lock_step::migrates : lock_step::held);
    next.cpu = lock_taken(cpu, agent_migrates ? granted_tag(r) : tag(r) | lock_proxy);
    if (agent_migrates && broken != mutation::silent_move) next.wake_all();
    emit(next);
  }
  [[nodiscard]] model answered(lock_step s) const {
    model next = turned(queue[0], s);
    next.queue = {queue[1], nobody};
    next.agent = place::outside;
    next.agent_rung = false;
    next.agent_migrates = false;
    return next;
  }

  // ---- a death --------------------------------------------------------------------------------------------------
  [[nodiscard]] model died(int r) const {
    model next = *this;
    next.wake_all();  // everybody hears of it
    const bool listed = sleeps(r) && broken == mutation::dead_sleeper;
    next.of(r) = {.at = listed ? place::asleep : place::done, .dead = true};
    next.death = true;
    if (queue[0] == r) {  // the manager forgets it
      next.queue = {queue[1], nobody};
      next.agent = place::outside;
      next.agent_rung = false;
      next.agent_migrates = false;
    } else if (queue[1] == r) {
      next.queue[1] = nobody;
    }
    return next;
  }
  /// What somebody does who sees the name of a dead rank.
  template <class Emit>
  void mend_all(Emit&& emit) const {
    if (broken == mutation::no_mending) return;
    const int named = holder_of(cpu);
    if ((cpu & lock_writer) != 0 && named < ranks && of(named).dead) {
      model next = *this;
      next.cpu = (cpu & lock_away) != 0 ? mended(cpu, net, network_away) : lock_abandoned(cpu);
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

model beginning(model::counts locks, bool at_network, bool deaths) {
  model first;
  first.locks = locks;
  first.immortal = !deaths;
  if (at_network) {
    first.cpu = granted_tag(0);
    first.net = 0;
  }
  return first;
}

/// One lock each is enough to find these.
std::string found(mutation broken, bool at_network = false) {
  model first = beginning({1, 1, 1, 1}, at_network, true);
  first.broken = broken;
  return test::state_search<model>().run(first).failure;
}

constexpr const char* stuck = "a state from which the end cannot be reached";

std::size_t search(model::counts locks, bool at_network, bool deaths, std::size_t states_max = 4'000'000) {
  const test::search_result r = test::state_search<model>().run(beginning(locks, at_network, deaths), states_max);
  CAPTURE(int{locks[0]}, int{locks[1]}, int{locks[2]}, int{locks[3]}, at_network, deaths, r.states, r.steps);
  CHECK(r.failure == "");
  return r.states;
}

}  // namespace

TEST_CASE("all states of a hybrid lock of two nodes of two ranks", "[sync][lock_hybrid]") {
  std::size_t states = 0;
  for (const bool at_network : {false, true}) states += search({1, 1, 1, 1}, at_network, true);
  states += search({1, 2, 1, 1}, false, true);
  states += search({1, 1, 2, 1}, false, true);
  states += search({1, 2, 2, 1}, false, false);
  WARN("lock hybrid: " << states << " states");
  CHECK(states >= 100'000);
}

TEST_CASE("all states of a hybrid lock, two locks each, one death", "[.][long]") {
  for (const bool at_network : {false, true}) {
    const std::size_t states = search({2, 2, 2, 2}, at_network, true, 100'000'000);
    WARN("lock hybrid, begun at the " << (at_network ? "network: " : "CPU: ") << states << " states");
  }
}

TEST_CASE("the search finds what is broken in a hybrid lock", "[sync][lock_hybrid][mutation]") {
  CHECK(found(mutation::lost_wake_up) == stuck);
  CHECK(found(mutation::skipped_cpu_lock) == "two hold it");
  CHECK(found(mutation::early_grant) == "two hold it");
  CHECK(found(mutation::silent_move) == stuck);
  CHECK(found(mutation::no_mending) == stuck);
  CHECK(found(mutation::hasty_welcome) == "two hold it");
  CHECK(found(mutation::blind_return, true) != "");
  CHECK(found(mutation::dead_sleeper) == stuck);
  CHECK(found(mutation::skipped_leave, true) != "");
}
