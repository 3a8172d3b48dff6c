// SPDX-License-Identifier: Apache-2.0
/// \file
/// The model of lock "cpu" whose states lock_cpu_search_test searches: two ranks of the target's node, which take the
/// word themselves, and two of another, for which the target's lock manager takes it; at most one death. The words and
/// the records are the real ones, and so are the steps on them, what wakes a waiter (lock_cpu.hpp) and the manager's
/// queue (lock_turns.hpp). Modelled, one access at a time: which access comes after which in a wait, and the sleep.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>

#include "sync/lock_model.hpp"

namespace rma::test::cpu {

using namespace rma::detail;

constexpr std::uint8_t nothing = 0;
constexpr auto reads = static_cast<std::uint8_t>(lock_kind::shared);
constexpr auto holds_alone = static_cast<std::uint8_t>(lock_kind::exclusive);

/// The errors that the model can be made to have, to see that the search notices.
enum class mutation : std::uint8_t {
  none,
  forgotten_waiter,  ///< a rank that unlocks wakes nobody
  careless_wake,     ///< a rank that has woken the last waiter does not look whether another has come
  careless_mark,     ///< ... and who finds one does not ring the writer that may have missed a reader's leave
  grant_to_two,      ///< the manager does not look whether the lock is free
  lost_grant,        ///< an answer of the manager does not come while another rank waits
  blind_reader,      ///< a reader writes its record and does not look at the word again
  deaf_writer,       ///< a writer does not wait for the readers that only their records name
  quiet_leaver,      ///< a biased reader goes without a look at who waits for that
  dead_holder_kept,
  hasty_return,  ///< a writer that gives up forgets that readers' records may hold the lock
};

enum class place : std::uint8_t {
  outside,     ///< wants it; in a wait from the first time that it has found it held
  noting,      ///< reader: has seen that the word is biased, writes its record
  looking,     ///< ... has written it, looks at the word again
  backing,     ///< ... has taken it back, looks who waits for that
  trying,      ///< counted reader: its record says "unsure"
  confirming,  ///< ... and it is in the word
  taking,      ///< writer: its record says "unsure"
  draining,    ///< writer: has the word, looks for readers' records
  listing,     ///< is in the list, looks whether the word says so
  drain_listing,
  asleep,
  drain_asleep,
  holds_biased,
  holds_shared,
  holds_word,
  parting,  ///< biased reader: has left, looks who waits for that
  leaving,  ///< counted reader: its record says "unsure", and it is in the word
  asking,   ///< rank of the other node: has sent a request to the manager
  granted,
};

struct rank_state {
  place at = place::outside;
  std::uint8_t says = nothing;          ///< its record
  wake_stage wakes = wake_stage::over;  ///< wakes others before it goes on
  std::uint8_t done = 0;                ///< acquisitions, or attempts that were told of a death
  bool dead = false;
  bool listed = false;
  bool looks = false;  ///< has seen that the word says so, and looks once more
  bool rung = false;
  bool waits = false;
  bool knew = false;  ///< when it began to wait, what the dead rank held had been given back
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;    ///< 0, 1: the target's node; 2, 3: another
  static constexpr int manager = 4;  ///< the fifth that waits: rank 0's lock manager
  using counts = std::array<std::uint8_t, ranks>;
  using packed = packed_key<4>;

  std::uint64_t cpu = 0;
  std::array<rank_state, ranks> all{};
  model_turns<ranks> turns;  ///< the manager's
  rank_state agent;          ///< state of the first that waits there; draining: it has the word
  wake_stage agent_wakes = wake_stage::over;
  bool death = false;
  std::uint8_t kinds = 0;    ///< see kind_of
  counts locks{2, 2, 1, 1};  ///< that each wants
  mutation broken = mutation::none;
  // Within one step of the manager, see serve().
  bool beside = false;
  bool accessed = false;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    field(s.cpu, 2, 62);  // a writer, by the manager
    field(s.cpu, 2, 32);  // for whom
    field(s.cpu, 2, 30);  // waiters, counted
    field(s.cpu, 3);      // readers
    const auto rank = [&field](auto& r) {
      field(r.at, 5);
      field(r.says, 2);
      field(r.says, 2, 4);
      field(r.says, 1, 7);
      field(r.wakes, 3);
      field(r.done, 2);
      field(r.dead, 1);
      field(r.listed, 1);
      field(r.looks, 1);
      field(r.rung, 1);
      field(r.waits, 1);
      field(r.knew, 1);
    };
    for (auto& r : s.all) rank(r);
    rank(s.agent);
    field(s.agent_wakes, 3);
    turns_fields(s.turns, field);
    field(s.death, 1);
  }
  [[nodiscard]] packed::words key() const { return key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return made_of(*this, key); }

  static std::uint64_t tag(int r) { return lock_tag(static_cast<std::uint32_t>(r)); }
  static bool is_near(int r) { return r < 2; }
  [[nodiscard]] rank_state& of(int who) { return who == manager ? agent : all[static_cast<std::size_t>(who)]; }
  [[nodiscard]] const rank_state& of(int who) const {
    return who == manager ? agent : all[static_cast<std::size_t>(who)];
  }
  [[nodiscard]] bool busy(int r) const {
    return !of(r).dead && (of(r).done < locks[static_cast<std::size_t>(r)] || of(r).wakes != wake_stage::over);
  }
  [[nodiscard]] bool writes(int r) const { return kind_of(kinds, r, of(r).done) == lock_kind::exclusive; }
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
    if (finished() && !death && ((cpu & (lock_writer | lock_readers)) != 0 || turns.busy())) return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const { return nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      if (of(r).wakes != wake_stage::over) {
        wake(r, emit);
      } else {
        is_near(r) ? advance(r, emit) : advance_far(r, emit);
      }
      if (death && is_near(r)) look_for_dead(r, emit);
      if (!death && r != 0) emit(died(r));  // without the target there is no lock
    }
    if (agent_wakes != wake_stage::over) return wake(manager, emit);  // under the progress lock
    if (!turns.waiting().empty()) manage(emit);
    if (death && broken != mutation::dead_holder_kept) remove_dead(emit);
  }

  // ---- what lock_turns asks of its place ------------------------------------------------------------------------
  /// One access in each step of the manager, so that others come in between.
  lock_turn take(model_request& q) {
    const std::uint64_t proxy = tag(q.source) | lock_proxy;
    const bool exclusively = q.kind == lock_kind::exclusive;
    if (beside || std::exchange(accessed, true)) return lock_turn::waits;
    if (agent.at == place::draining) {
      if (!readers_gone()) return wait_for(place::draining, place::drain_asleep);
      if (lock_held_as(cpu, proxy)) return served();
      agent.at = place::outside;  // the rank is dead, and somebody has freed the lock of it
      return lock_turn::waits;
    }
    const bool early = broken == mutation::grant_to_two;
    if (!early && !(exclusively ? lock_admits_writer(cpu) : lock_admits_reader(cpu)))
      return wait_for(place::outside, place::asleep);
    const bool drains = exclusively && lock_drains(cpu) && !early;
    cpu = exclusively ? lock_taken(cpu, proxy) : cpu + 1;
    if (!drains) return served();
    agent.at = place::draining;
    agent.looks = false;
    return lock_turn::waits;
  }
  /// Behind a writer that waits, not one that has the word.
  bool take_beside(const model_request&) {
    if (!beside || std::exchange(accessed, true) || !lock_admits_reader(cpu)) return false;
    ++cpu;
    return true;
  }
  void end_wait() {
    if (has_word(agent.at)) {
      give_word_back(tag(turns.waiting().front().source) | lock_proxy);
      wake_all();
    }
    agent = {};
  }
  static void run(const model_request&) {}
  void give_back(const model_request& q) {
    // A waiter may have given it back.
    if (q.kind == lock_kind::exclusive && !lock_held_as(cpu, tag(q.source) | lock_proxy)) return;
    begin_wakes(manager, (cpu & lock_waiters) != 0);
    cpu = lock_released(cpu, q.kind);
  }
  void answer(const model_request& q, lock_answer result, int) {
    if (of(q.source).dead || (broken == mutation::lost_grant && !turns.waiting().empty())) return;
    if (result == lock_answer::granted) {
      of(q.source).at = place::granted;
    } else {
      *this = ended(q.source);
    }
  }
  [[nodiscard]] bool dead(int source) const { return of(source).dead; }
  [[nodiscard]] static bool recovers() { return true; }
  void lose(const model_request&) {}

 private:
  /// A death rings all; a sleeper stays in the list.
  void ring_all() {
    for (const int who : {0, 1, manager}) {
      if (of(who).waits) of(who).rung = true;
    }
  }

  // ---- wakes, whose stages are the library's --------------------------------------------------------------------
  [[nodiscard]] wake_stage& wakes_of(int who) { return who == manager ? agent_wakes : of(who).wakes; }
  void begin_wakes(int who, bool waiters) {
    if (waiters && broken != mutation::forgotten_waiter) wakes_of(who) = wake_stage::ring;
  }
  [[nodiscard]] bool nobody_listed() const { return !of(0).listed && !of(1).listed && !agent.listed; }
  template <class Emit>
  void wake(int who, Emit&& emit) const {
    model next = *this;
    wake_stage& at = next.wakes_of(who);
    const wake_stage now = at;
    bool yes = false;
    switch (now) {
      case wake_stage::ring: at = after(now, false); return next.wake_any(emit);
      case wake_stage::look: yes = nobody_listed(); break;
      case wake_stage::unmark: next.cpu &= ~lock_waiters; break;
      case wake_stage::look_again: yes = nobody_listed() || broken == mutation::careless_wake; break;
      case wake_stage::mark:
        yes = (cpu & (lock_writer | lock_readers)) != 0;
        next.cpu |= lock_waiters;
        break;
      case wake_stage::tell:
        if (broken != mutation::careless_mark) next.ring_writer();
        break;
      case wake_stage::over: break;
    }
    at = after(now, yes);
    emit(next);
  }
  /// Whichever is the next. Rank 0 and its manager have one place in the list, and who wakes them wakes one more.
  template <class Emit>
  void wake_any(Emit&& emit) const {
    for (const int who : {0, 1, manager}) {
      if (!of(who).listed) continue;
      model next = *this;
      next.ring(who);
      emit(next);
    }
    if (nobody_listed()) emit(*this);
  }
  void ring(int who) {
    for (const int each : {0, 1, manager}) {
      if (!of(each).listed || (who == 1 && each != 1)) continue;
      of(each).listed = false;
      of(each).rung = true;
    }
  }
  /// By a writer that may not have seen all readers leave.
  void give_word_back(std::uint64_t tag) {
    if (!lock_held_as(cpu, tag)) return;
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
    return broken == mutation::deaf_writer || (of(0).says != shared_biased && of(1).says != shared_biased);
  }
  [[nodiscard]] bool has_recovered() const {
    const int dead = dead_rank();
    return dead >= 0 && (of(dead).says & record_recovered) != 0;
  }
  /// Found it held: into the list, a look at the word and one look more, then to sleep.
  [[nodiscard]] model waiting(int who, place again, place sleeping) const {
    model next = *this;
    rank_state& me = next.of(who);
    if (!me.waits) me.knew = has_recovered();
    me.waits = true;
    me.at = me.looks ? sleeping : again == place::draining ? place::drain_listing : place::listing;
    if (me.looks) return next;
    me.rung = false;
    me.listed = me.looks = true;
    return next;
  }
  [[nodiscard]] model marked(int who) const {
    model next = *this;
    rank_state& me = next.of(who);
    me.at = me.at == place::drain_listing ? place::draining : place::outside;
    next.cpu |= lock_waiters;
    return next;
  }
  static bool has_word(place at) {
    return at == place::draining || at == place::drain_asleep || at == place::drain_listing;
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
      case place::outside: return emit(writes(r) ? note_writer(r) : take_shared(r));
      case place::noting:
        me.says = shared_biased;
        me.at = place::looking;
        return emit(next);
      case place::looking:
        if ((cpu & lock_counted) == 0 || broken == mutation::blind_reader)
          return emit(got_shared(r, place::holds_biased));
        me.says = nothing;
        me.at = place::backing;
        return emit(next);
      case place::backing: next.ring_writer(); return emit(next.waiting(r, place::outside, place::asleep));
      case place::trying: return emit(count_in(r));
      case place::confirming: return confirm(r, emit);
      case place::taking: return emit(take_word(r));
      case place::draining: return drain(r, emit);
      case place::listing:
      case place::drain_listing: return emit(marked(r));
      case place::asleep:
      case place::drain_asleep:
        if (!me.rung) return;
        me.rung = me.looks = false;
        me.at = me.at == place::asleep ? place::outside : place::draining;
        return emit(next);
      case place::holds_biased:
        me.says = nothing;
        me.at = place::parting;
        return emit(next);
      case place::parting: next.ring_writer(); return emit(next.ended(r));
      case place::holds_shared:
        me.says = reads | record_unsure;
        me.at = place::leaving;
        return emit(next);
      case place::leaving: return emit(released(r, lock_kind::shared));
      case place::holds_word:
        if (me.says != (holds_alone | record_unsure)) {
          me.says = holds_alone | record_unsure;
          return emit(next);
        }
        return emit(released(r, lock_kind::exclusive));
      case place::asking:
      case place::granted: return;
    }
  }
  [[nodiscard]] model take_shared(int r) const {
    model next = *this;
    rank_state& me = next.of(r);
    if ((cpu & lock_counted) != 0 && (cpu & lock_writer) != 0) return waiting(r, place::outside, place::asleep);
    const bool biased = (cpu & lock_counted) == 0;
    if (!biased) me.says = reads | record_unsure;
    me.at = biased ? place::noting : place::trying;
    return next;
  }
  [[nodiscard]] model count_in(int r) const {
    model next = *this;
    rank_state& me = next.of(r);
    if (!lock_admits_reader(cpu)) {
      me.says = nothing;
      return next.waiting(r, place::outside, place::asleep);
    }
    next.cpu += 1;
    me.at = place::confirming;
    return next;
  }
  template <class Emit>
  void confirm(int r, Emit&& emit) const {
    model next = *this;
    next.of(r).says = reads;
    emit(next.got_shared(r, place::holds_shared));
    next.cpu &= ~lock_counted;  // enough readers without a writer: the bias is back
    emit(next.got_shared(r, place::holds_shared));
  }
  [[nodiscard]] model got_shared(int r, place how) const {
    model next = has_got(r, how);
    next.begin_wakes(r, of(r).waits && (cpu & lock_waiters) != 0);
    return next;
  }
  [[nodiscard]] model note_writer(int r) const {
    model next = *this;
    next.of(r).says = holds_alone | record_unsure;
    next.of(r).at = place::taking;
    return next;
  }
  [[nodiscard]] model take_word(int r) const {
    if (!lock_admits_writer(cpu)) {
      model next = *this;
      next.of(r).says = nothing;
      return next.waiting(r, place::outside, place::asleep);
    }
    const bool drains = lock_drains(cpu);
    model next = drains ? *this : has_got(r, place::holds_word);
    next.cpu = lock_taken(cpu, tag(r));
    next.of(r).says = holds_alone;
    if (!drains) return next;
    next.of(r).at = place::draining;
    next.of(r).looks = false;
    return next;
  }
  template <class Emit>
  void drain(int r, Emit&& emit) const {
    if (readers_gone()) return emit(has_got(r, place::holds_word));
    emit(waiting(r, place::draining, place::drain_asleep));
    model next = *this;  // has waited for long: lets readers in for a while
    next.cpu = lock_abandoned(cpu);
    next.of(r).says = nothing;
    next.of(r).at = place::outside;
    next.wake_all();
    emit(next);
  }
  [[nodiscard]] model released(int r, lock_kind kind) const {
    model next = ended(r);
    next.cpu = lock_released(cpu, kind);
    next.begin_wakes(r, (cpu & lock_waiters) != 0);
    return next;
  }

  // ---- a rank of another node, and the manager ------------------------------------------------------------------
  template <class Emit>
  void advance_far(int r, Emit&& emit) const {
    model next = *this;
    if (of(r).at == place::outside) {
      const lock_kind kind = kind_of(kinds, r, of(r).done);
      next.of(r).at = place::asking;
      next.turns.enqueue({static_cast<std::uint8_t>(r), of(r).done, kind, false});
      next.agent.rung = true;
      return emit(next);
    }
    if (of(r).at != place::granted || agent_wakes != wake_stage::over) return;
    (void)next.turns.release(next, r, of(r).done);
    next = next.ended(r);
    if (!turns.waiting().empty()) next.agent.rung = true;
    emit(next);
  }
  lock_turn wait_for(place again, place sleeping) {
    *this = waiting(manager, again, sleeping);
    return lock_turn::waits;
  }
  lock_turn served() {
    agent = {};
    return lock_turn::holds;
  }
  template <class Emit>
  void manage(Emit&& emit) const {
    model next = *this;
    if (agent.at == place::listing || agent.at == place::drain_listing) return emit(marked(manager));
    const bool sleeps = agent.at == place::asleep || agent.at == place::drain_asleep;
    if (sleeps && agent.rung) {
      next.agent.rung = next.agent.looks = false;
      next.agent.at = agent.at == place::asleep ? place::outside : place::draining;
      return emit(next);
    }
    if (!sleeps) {
      (void)next.turns.serve(next);
      next.accessed = false;
      emit(next);
    }
    if (!agent.listed) return;
    next = *this;  // a reader passes a writer that waits
    next.beside = true;
    (void)next.turns.serve(next);
    next.beside = next.accessed = false;
    emit(next);
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
  /// Gives back the locks that a dead rank of the node held; false if it held none.
  bool recover(int dead) {
    if (broken == mutation::dead_holder_kept) return false;
    rank_state& it = of(dead);
    const dead_hold hold = dead_hold_of(it.says, lock_held_as(cpu, tag(dead)));
    if (hold == dead_hold::none) return false;
    if (hold == dead_hold::given_back) return true;
    if (hold == dead_hold::word) give_word_back(tag(dead));
    if (hold == dead_hold::counted) cpu = lock_released(cpu, lock_kind::shared);
    if (hold != dead_hold::unknown) it.says = record_after_recovery(it.says);
    ring_all();
    return true;
  }
  /// A rank of the node that waits.
  template <class Emit>
  void look_for_dead(int r, Emit&& emit) const {
    const place at = of(r).at;
    if (at != place::asleep && at != place::drain_asleep && at != place::draining) return;
    if (of(r).wakes != wake_stage::over) return;
    const int dead = dead_rank();
    model next = *this;
    bool had = false;
    if (is_near(dead)) {
      had = next.recover(dead);
    } else if (lock_held_as(cpu, tag(dead) | lock_proxy) && broken != mutation::dead_holder_kept) {
      next.give_word_back(tag(dead) | lock_proxy);
      next.ring_all();
      had = true;
    }
    if (!had) return;
    if (is_near(dead) && of(r).knew) return emit(next);  // no news
    next = next.ended(r);
    if (at == place::asleep) {
      next.begin_wakes(r, (next.cpu & lock_waiters) != 0);
    } else {
      next.give_word_back(tag(r));
      next.wake_all();
    }
    emit(next);
  }
  template <class Emit>
  void remove_dead(Emit&& emit) const {
    const int dead = dead_rank();
    model next = *this;
    if (!is_near(dead)) {
      (void)next.turns.remove_dead_holders(next);
      next.turns.remove_dead_waiters(next);
      return emit(next);
    }
    if (!agent.waits || !next.recover(dead)) return;
    if (!agent.knew) (void)next.turns.fail_waiting(next, dead);
    emit(next);
  }
};

}  // namespace rma::test::cpu
