// SPDX-License-Identifier: Apache-2.0
// Goal: lock "cpu" keeps writers alone, forgets nobody and goes on after a death: ranks of the target's node take the
// word themselves, readers by their records while it is biased towards them; the target's lock manager takes it for
// others. Method: all states of two ranks each, two locks each, of which one may die at any moment. The words are the
// real ones, and so are the steps on them (lock_cpu.hpp); records and sleep are modelled, one access at a time.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "sync/lock_agent.hpp"
#include "sync/lock_model.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr int acquisitions = 2;
constexpr std::uint8_t nobody = 7;

/// What the model does wrong, to see that the search notices.
enum class mutation : std::uint8_t {
  none,
  lost_wake_up,  ///< who unlocks wakes nobody
  early_grant,   ///< the manager does not look whether the lock is free
  blind_reader,  ///< a reader writes its record and does not look at the word again
  deaf_writer,   ///< a writer does not wait for the readers that only their records name
  quiet_leaver,  ///< a biased reader goes without a look at who waits for that
  no_recovery,   ///< what the dead held stays
  hasty_return,  ///< a writer that gives up forgets that readers' records may hold the lock
};

enum class place : std::uint8_t {
  outside,     ///< wants it; in a wait from the first time that it has found it held
  noting,      ///< reader: has seen that the word is biased, writes its record
  looking,     ///< ... has written it, looks at the word again
  backing,     ///< ... has taken it back, looks who waits for that
  trying,      ///< counted reader: its record says "unsure"
  confirming,  ///< ... and it is in the word
  draining,    ///< writer: has the word, looks for readers' records
  asleep,
  drain_asleep,
  holds_biased,
  holds_shared,
  holds_word,
  parting,  ///< biased reader: has left, looks who waits for that
  leaving,  ///< counted reader: its record says "unsure", and it is in the word
  asking,   ///< of the other node: has sent a request to the manager
  granted,
};

enum class record : std::uint8_t { none, biased, unsure, shared, exclusive, settled };

struct rank_state {
  place at = place::outside;
  record says = record::none;
  std::uint8_t done = 0;  ///< acquisitions, or attempts that were told of a death
  bool dead = false;
  bool listed = false;
  bool rung = false;
  bool waits = false;
  bool knew = false;  ///< when it began to wait, what the dead rank held had been given back
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;    ///< 0, 1: the target's node; 2, 3: another
  static constexpr int manager = 4;  ///< the fifth that waits: rank 0's lock manager
  using packed = test::packed_key<2>;

  std::uint64_t cpu = 0;
  std::array<rank_state, ranks> all{};
  std::array<std::uint8_t, 2> queue{nobody, nobody};  ///< who has asked the manager
  rank_state agent;                                   ///< of the first of them; holds_word, draining: it has the word
  bool death = false;
  std::uint8_t kinds = 0;  ///< see test::kind_of
  mutation broken = mutation::none;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.cpu, 2, 62);  // a writer, by the manager
    field(s.cpu, 2, 32);  // for whom
    field(s.cpu, 2, 30);  // waiters, counted
    field(s.cpu, 3);      // readers
    const auto rank = [&field](auto& r) {
      field(r.at, 4);
      field(r.says, 3);
      field(r.done, 2);
      field(r.dead, 1);
      field(r.listed, 1);
      field(r.rung, 1);
      field(r.waits, 1);
      field(r.knew, 1);
    };
    for (auto& r : s.all) rank(r);
    rank(s.agent);
    for (auto& r : s.queue) field(r, 3);
    field(s.death, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }

  static std::uint64_t tag(int r) { return lock_tag(static_cast<std::uint32_t>(r)); }
  static bool is_near(int r) { return r < 2; }
  [[nodiscard]] rank_state& of(int who) { return who == manager ? agent : all[static_cast<std::size_t>(who)]; }
  [[nodiscard]] const rank_state& of(int who) const {
    return who == manager ? agent : all[static_cast<std::size_t>(who)];
  }
  [[nodiscard]] bool busy(int r) const { return !of(r).dead && of(r).done < acquisitions; }
  [[nodiscard]] bool writes(int r) const { return test::kind_of(kinds, r, of(r).done) == lock_kind::exclusive; }
  [[nodiscard]] int dead_rank() const {
    for (int r = 0; r < ranks; ++r) {
      if (of(r).dead) return r;
    }
    return -1;
  }
  [[nodiscard]] bool holds(int r) const {
    const place at = of(r).at;
    return busy(r) && (at == place::holds_biased || at == place::holds_shared || at == place::holds_word ||
                       at == place::leaving || at == place::granted);
  }
  [[nodiscard]] std::string wrong() const {
    int holders = 0, writers = 0;
    for (int r = 0; r < ranks; ++r) {
      if (!holds(r)) continue;
      ++holders;
      if (writes(r)) ++writers;
    }
    if (writers != 0 && holders > 1) return "a writer is not alone";
    if (finished() && !death && (cpu & (lock_writer | lock_readers)) != 0) return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const { return test::nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      is_near(r) ? advance(r, emit) : advance_far(r, emit);
      if (death && is_near(r)) look_for_dead(r, emit);
      if (!death && r != 0) emit(died(r));  // without the target there is no lock
    }
    if (queue[0] != nobody) manage(emit);
    if (death) remove_dead(emit);
  }

  // ---- who sleeps for the word, see test::wake_one --------------------------------------------------------------
  [[nodiscard]] bool sleeps(int who) const { return of(who).listed; }
  /// Rank 0 and its manager have one place in the list, and whoever wakes them wakes one more.
  void ring(int who) {
    for (const int each : {0, 1, manager}) {
      if (!of(each).listed || (who == 1 && each != 1)) continue;
      of(each).listed = false;
      of(each).rung = true;
    }
  }

 private:
  /// Of a death: who sleeps stays in the list.
  void ring_all() {
    for (const int who : {0, 1, manager}) {
      if (of(who).waits) of(who).rung = true;
    }
  }
  template <class Emit>
  void wake(bool waiters, Emit&& emit) const {
    if (waiters && broken != mutation::lost_wake_up) return test::wake_one(*this, emit);
    emit(*this);
  }
  /// By a writer that may not have seen all readers leave.
  void give_word_back(std::uint64_t tag) {
    if ((cpu & ~lock_waiters) != tag) return;
    cpu = broken == mutation::hasty_return ? lock_released(cpu, lock_kind::exclusive) : lock_abandoned(cpu);
  }
  void wake_all() {
    for (const int who : {0, 1, manager}) ring(who);
  }
  /// By a reader that is not in the word: the writer that waits for its record.
  void ring_writer() {
    if ((cpu & lock_writer) == 0 || (cpu & lock_waiters) == 0 || broken == mutation::quiet_leaver) return;
    rank_state& writer = of((cpu & lock_proxy) != 0 ? manager : holder_of(cpu));
    if (!writer.dead) writer.rung = true;
  }
  [[nodiscard]] bool readers_gone() const {
    return broken == mutation::deaf_writer || (of(0).says != record::biased && of(1).says != record::biased);
  }
  [[nodiscard]] bool has_recovered() const {
    const int dead = dead_rank();
    return dead >= 0 && of(dead).says == record::settled;
  }
  /// Found it held: into the list and one look more, then to sleep.
  [[nodiscard]] model waiting(int who, place again, place sleeping) const {
    model next = *this;
    rank_state& me = next.of(who);
    if (!me.waits) me.knew = has_recovered();
    me.waits = true;
    me.at = me.listed ? sleeping : again;
    if (me.listed) return next;
    me.listed = true;
    me.rung = false;
    next.cpu |= lock_waiters;
    return next;
  }
  [[nodiscard]] model has_got(int r, place how) const {
    model next = *this;
    const rank_state& me = of(r);
    next.of(r) = {.at = how, .says = me.says, .done = me.done};
    return next;
  }
  [[nodiscard]] model ended(int r) const {
    model next = *this;
    next.of(r) = {.done = static_cast<std::uint8_t>(of(r).done + 1)};
    return next;
  }

  // ---- a rank of the node ---------------------------------------------------------------------------------------
  template <class Emit>
  void advance(int r, Emit&& emit) const {
    model next = *this;
    rank_state& me = next.of(r);
    switch (me.at) {
      case place::outside: return emit(writes(r) ? take_word(r) : take_shared(r));
      case place::noting:
        me.says = record::biased;
        me.at = place::looking;
        return emit(next);
      case place::looking:
        if ((cpu & lock_counted) == 0 || broken == mutation::blind_reader)
          return got_shared(r, place::holds_biased, emit);
        me.says = record::none;
        me.at = place::backing;
        return emit(next);
      case place::backing: next.ring_writer(); return emit(next.waiting(r, place::outside, place::asleep));
      case place::trying: return emit(count_in(r));
      case place::confirming: return confirm(r, emit);
      case place::draining: return drain(r, emit);
      case place::asleep:
      case place::drain_asleep:
        if (!me.rung) return;
        me.rung = false;
        me.at = me.at == place::asleep ? place::outside : place::draining;
        return emit(next);
      case place::holds_biased:
        me.says = record::none;
        me.at = place::parting;
        return emit(next);
      case place::parting: next.ring_writer(); return emit(next.ended(r));
      case place::holds_shared:
        me.says = record::unsure;
        me.at = place::leaving;
        return emit(next);
      case place::leaving: return next.release(r, lock_kind::shared, emit);
      case place::holds_word: return next.release(r, lock_kind::exclusive, emit);
      case place::asking:
      case place::granted: return;
    }
  }
  [[nodiscard]] model take_shared(int r) const {
    model next = *this;
    rank_state& me = next.of(r);
    if ((cpu & lock_counted) != 0 && (cpu & lock_writer) != 0) return waiting(r, place::outside, place::asleep);
    const bool biased = (cpu & lock_counted) == 0;
    if (!biased) me.says = record::unsure;
    me.at = biased ? place::noting : place::trying;
    return next;
  }
  [[nodiscard]] model count_in(int r) const {
    model next = *this;
    rank_state& me = next.of(r);
    if (!lock_admits_reader(cpu)) {
      me.says = record::none;
      return next.waiting(r, place::outside, place::asleep);
    }
    next.cpu += 1;
    me.at = place::confirming;
    return next;
  }
  template <class Emit>
  void confirm(int r, Emit&& emit) const {
    model next = *this;
    next.of(r).says = record::shared;
    next.got_shared(r, place::holds_shared, emit);
    next.cpu &= ~lock_counted;  // enough readers without a writer: the bias is back
    next.got_shared(r, place::holds_shared, emit);
  }
  template <class Emit>
  void got_shared(int r, place how, Emit&& emit) const {
    const bool passes = of(r).waits && (cpu & lock_waiters) != 0;
    has_got(r, how).wake(passes, emit);
  }
  /// The record is written together with the word: which of the two comes first matters to nobody who is alive.
  [[nodiscard]] model take_word(int r) const {
    if (!lock_admits_writer(cpu)) return waiting(r, place::outside, place::asleep);
    const bool drains = lock_drains(cpu);
    model next = drains ? *this : has_got(r, place::holds_word);
    next.cpu = lock_taken(cpu, tag(r));
    next.of(r).says = record::exclusive;
    if (drains) next.of(r).at = place::draining;
    return next;
  }
  template <class Emit>
  void drain(int r, Emit&& emit) const {
    if (readers_gone()) return emit(has_got(r, place::holds_word));
    emit(waiting(r, place::draining, place::drain_asleep));
    model next = *this;  // has waited for long: lets readers in for a while
    next.cpu = lock_abandoned(cpu);
    next.of(r).says = record::none;
    next.of(r).at = place::outside;
    next.wake_all();
    emit(next);
  }
  template <class Emit>
  void release(int r, lock_kind kind, Emit&& emit) const {
    model next = ended(r);
    next.cpu = lock_released(cpu, kind);
    next.wake((cpu & lock_waiters) != 0, emit);
  }

  // ---- a rank of another node, and the manager ------------------------------------------------------------------
  template <class Emit>
  void advance_far(int r, Emit&& emit) const {
    if (of(r).at == place::granted) return ended(r).release_proxy(r, writes(r), emit);
    if (of(r).at != place::outside) return;
    model next = *this;
    next.of(r).at = place::asking;
    next.queue[next.queue[0] == nobody ? 0 : 1] = static_cast<std::uint8_t>(r);
    next.agent.rung = true;
    emit(next);
  }
  template <class Emit>
  void release_proxy(int r, bool exclusively, Emit&& emit) const {
    model next = *this;
    if (queue[0] != nobody) next.agent.rung = true;
    // A waiter may have given it back.
    if (exclusively && (cpu & ~lock_waiters) != (tag(r) | lock_proxy)) return emit(next);
    next.cpu = lock_released(cpu, exclusively ? lock_kind::exclusive : lock_kind::shared);
    next.wake((cpu & lock_waiters) != 0, emit);
  }
  template <class Emit>
  void manage(Emit&& emit) const {
    model next = *this;
    if (agent.at == place::asleep || agent.at == place::drain_asleep) {
      if (!agent.rung) return;
      next.agent.rung = false;
      next.agent.at = agent.at == place::asleep ? place::outside : place::draining;
      return emit(next);
    }
    const int r = queue[0];
    if (agent.at == place::draining) {
      if (readers_gone()) return emit(answered(0));
      return emit(waiting(manager, place::draining, place::drain_asleep));
    }
    const bool admitted = writes(r) ? lock_admits_writer(cpu) : lock_admits_reader(cpu);
    if (admitted || broken == mutation::early_grant) {
      const bool drains = writes(r) && lock_drains(cpu) && broken != mutation::early_grant;
      next = drains ? *this : answered(0);
      next.cpu = writes(r) ? lock_taken(cpu, tag(r) | lock_proxy) : cpu + 1;
      if (drains) next.agent.at = place::draining;
      return emit(next);
    }
    if (agent.listed && queue[1] != nobody && writes(r) && !writes(queue[1]) && lock_admits_reader(cpu)) {
      next = answered(1);  // a reader passes a writer that waits
      next.cpu = cpu + 1;
      return emit(next);
    }
    emit(waiting(manager, place::outside, place::asleep));
  }
  [[nodiscard]] model answered(std::size_t i) const {
    model next = *this;
    next.of(queue[i]).at = place::granted;
    next.take_out(i);
    return next;
  }
  void take_out(std::size_t i) {
    if (i == 0) {
      queue[0] = queue[1];
      agent = {};
    }
    queue[1] = nobody;
  }

  // ---- a death --------------------------------------------------------------------------------------------------
  [[nodiscard]] model died(int r) const {
    model next = *this;
    const rank_state& me = of(r);
    if (is_near(r)) {
      next.of(r) = {.says = me.says, .dead = true};
    } else {
      next.of(r).dead = true;
    }
    next.death = true;
    next.ring_all();
    return next;
  }
  /// What a dead rank of the node held is given back; false if it held nothing.
  bool recover(int dead) {
    rank_state& it = of(dead);
    if (it.says == record::none || broken == mutation::no_recovery) return false;
    if (it.says == record::exclusive) give_word_back(tag(dead));
    if (it.says == record::shared) cpu = lock_released(cpu, lock_kind::shared);
    if (it.says != record::unsure) it.says = record::settled;
    ring_all();
    return true;
  }
  /// A rank of the node that waits.
  template <class Emit>
  void look_for_dead(int r, Emit&& emit) const {
    const place at = of(r).at;
    if (at != place::asleep && at != place::drain_asleep && at != place::draining) return;
    const int dead = dead_rank();
    model next = *this;
    bool had = false;
    if (is_near(dead)) {
      had = next.recover(dead);
    } else if ((cpu & ~lock_waiters) == (tag(dead) | lock_proxy) && broken != mutation::no_recovery) {
      next.give_word_back(tag(dead) | lock_proxy);
      next.ring_all();
      had = true;
    }
    if (!had) return;
    if (is_near(dead) && of(r).knew) return emit(next);  // no news
    next = next.ended(r);
    if (at == place::asleep) return next.wake((next.cpu & lock_waiters) != 0, emit);
    next.give_word_back(tag(r));
    next.wake_all();
    emit(next);
  }
  template <class Emit>
  void remove_dead(Emit&& emit) const {
    if (broken == mutation::no_recovery) return;
    const int dead = dead_rank();
    model next = *this;
    if (is_near(dead)) {
      if (agent.waits && next.recover(dead)) agent.knew ? emit(next) : next.tell_all(emit);
      return;
    }
    if (of(dead).at == place::asking) {
      if (queue[0] == dead) next.end_wait();
      next.take_out(queue[0] == dead ? 0 : 1);
      next.of(dead).at = place::outside;
      return emit(next);
    }
    if (of(dead).at != place::granted) return;
    next.of(dead).at = place::outside;
    next.release_proxy(dead, test::kind_of(kinds, dead, of(dead).done) == lock_kind::exclusive,
                       [&emit](const model& given) { given.tell_all(emit); });
  }
  /// All who have asked the manager.
  template <class Emit>
  void tell_all(Emit&& emit) const {
    if (queue[0] == nobody) return emit(*this);
    model next = ended(queue[0]);
    if (queue[1] != nobody) next = next.ended(queue[1]);
    next.end_wait();
    next.take_out(1);
    next.take_out(0);
    emit(next);
  }
  /// The first who has asked gets nothing.
  void end_wait() {
    if (agent.at != place::draining && agent.at != place::drain_asleep) return;
    give_word_back(tag(queue[0]) | lock_proxy);
    agent.listed = false;
    wake_all();
  }
};

test::search_result search(std::uint8_t kinds, mutation broken = mutation::none) {
  model first;
  first.kinds = kinds;
  first.broken = broken;
  return test::state_search<model>().run(first);
}

std::string found(std::uint8_t kinds, mutation broken) { return search(kinds, broken).failure; }

constexpr std::uint8_t writers = 0b11'11'11'11;
constexpr std::uint8_t mixed = 0b01'10'11'00;  // 0 reads, 1 writes, 2 reads and writes, 3 writes and reads
constexpr std::uint8_t readers_near = 0b11'01'10'00;
constexpr const char* stuck = "a state from which the end cannot be reached";
constexpr const char* not_alone = "a writer is not alone";

}  // namespace

TEST_CASE("all states of a lock of the CPU with a lock manager, two locks each, one death", "[sync][lock_cpu]") {
  std::size_t states = 0;
  for (const std::uint8_t kinds : {mixed, writers, readers_near}) {
    const test::search_result r = search(kinds);
    CAPTURE(int{kinds}, r.states, r.steps);
    CHECK(r.failure == "");
    states += r.states;
  }
  WARN("lock cpu: " << states << " states");
  CHECK(states >= 100'000);
}

// The two ranks of the other node are alike.
TEST_CASE("all states of a lock of the CPU, all kinds of locks", "[.][long]") {
  std::size_t states = 0;
  for (unsigned kinds = 0; kinds <= writers; ++kinds) {
    if (((kinds >> 4) & 3U) > ((kinds >> 6) & 3U)) continue;
    const test::search_result r = search(static_cast<std::uint8_t>(kinds));
    CAPTURE(kinds, r.states, r.steps);
    REQUIRE(r.failure == "");
    states += r.states;
  }
  WARN("lock cpu: " << states << " states, all kinds of locks");
}

TEST_CASE("the search finds what is broken in a lock of the CPU", "[sync][lock_cpu][mutation]") {
  CHECK(found(writers, mutation::lost_wake_up) == stuck);
  CHECK(found(mixed, mutation::early_grant) == not_alone);
  CHECK(found(mixed, mutation::blind_reader) == not_alone);
  CHECK(found(mixed, mutation::deaf_writer) == not_alone);
  CHECK(found(mixed, mutation::quiet_leaver) == stuck);
  CHECK(found(writers, mutation::no_recovery) == stuck);
  CHECK(found(mixed, mutation::hasty_return) == not_alone);
}
