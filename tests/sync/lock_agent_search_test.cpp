// SPDX-License-Identifier: Apache-2.0
// Goal: the lock manager of lock "network", scheme "agent", keeps writers out while readers read, lets each of them in
// in its turn, loses no grant and no request, and goes on after a death. Method: all states of two readers and two
// writers of a fifth rank's lock, two locks each, of which one may die at any moment and the manager hears of it at any
// later one. The manager's queue (lock_turns.hpp), its hold of the network word (reader_hold.hpp) and the writers'
// steps (lock_network.hpp) are the library's; an atomic's answer comes any time after the adapter has done it.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>
#include <utility>

#include "sync/lock_model.hpp"
#include "sync/reader_hold.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr int acquisitions = 2;

/// The errors that the model can be made to have, to see that the search notices.
enum class mutation : std::uint8_t {
  none,
  lost_grant,        ///< an answer does not come while another reader waits
  grant_to_two,      ///< readers are let in before the manager has the word
  forgotten_waiter,  ///< the word is not asked for while readers wait
  early_leave,       ///< ... or given back while they read
  dead_holder_kept,
  quiet_death,  ///< the word of a dead writer is left to other writers
};

enum class place : std::uint8_t { outside, asked, reads };

struct reader_state {
  place at = place::outside;
  std::uint8_t rounds = 0;  ///< locks, or attempts that were told of a death
  bool dead = false;
  bool operator==(const reader_state&) const = default;
};
struct writer_state {
  network_phase phase = network_phase::entering;
  std::uint64_t seen = 0;
  std::uint8_t rounds = 0;
  bool dead = false;
  bool operator==(const writer_state&) const = default;
};

struct model {
  static constexpr int readers = 2, ranks = 4, manager = 4;  ///< 2, 3: writers
  using packed = test::packed_key<2>;

  std::uint64_t word = 0;
  readers_phase phase = readers_phase::none;
  network_phase attempt = network_phase::entering;
  std::uint64_t seen = 0;
  std::uint64_t dead_hold = 0;
  bool bereft = false;
  bool under_way = false;     ///< the adapter has done an atomic of the manager
  std::uint64_t answers = 0;  ///< ... and says that it found this
  test::model_turns<readers> turns;
  std::array<reader_state, readers> read{};
  std::array<writer_state, ranks - readers> write{};
  bool death = false;
  bool heard = false;  ///< the manager has
  mutation broken = mutation::none;
  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    for (auto* each : {&s.word, &s.seen, &s.dead_hold, &s.answers}) test::network_fields(field, *each);
    field(s.phase, 3);
    field(s.attempt, 3);
    field(s.bereft, 1);
    field(s.under_way, 1);
    test::turns_fields(s.turns, field);
    for (auto& r : s.read) {
      field(r.at, 2);
      field(r.rounds, 2);
      field(r.dead, 1);
    }
    for (auto& w : s.write) {
      field(w.phase, 3);
      test::network_fields(field, w.seen);
      field(w.rounds, 2);
      field(w.dead, 1);
    }
    field(s.death, 1);
    field(s.heard, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }
  [[nodiscard]] static std::uint64_t hold(int rank) { return network_hold(rank, lock_kind::exclusive); }
  [[nodiscard]] reader_state& reader(int r) { return read[static_cast<std::size_t>(r)]; }
  [[nodiscard]] const reader_state& reader(int r) const { return read[static_cast<std::size_t>(r)]; }
  [[nodiscard]] writer_state& writer(int r) { return write[static_cast<std::size_t>(r - readers)]; }
  [[nodiscard]] const writer_state& writer(int r) const { return write[static_cast<std::size_t>(r - readers)]; }
  [[nodiscard]] bool is_dead(int r) const { return r < readers ? reader(r).dead : writer(r).dead; }
  [[nodiscard]] bool busy(int r) const {
    return !is_dead(r) && (r < readers ? reader(r).rounds : writer(r).rounds) < acquisitions;
  }

  [[nodiscard]] std::string wrong() const {
    int writing = 0, reading = 0;
    for (int r = 0; r < readers; ++r) reading += busy(r) && reader(r).at == place::reads ? 1 : 0;
    for (int r = readers; r < ranks; ++r) writing += busy(r) && writer(r).phase == network_phase::held ? 1 : 0;
    if (writing > 1 || (writing == 1 && reading != 0)) return "a writer is not alone";
    if (finished() && !death && ((word & ~network_wanted) != 0 || turns.busy())) return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const {
    return test::nobody_is_busy(*this) && phase == readers_phase::none && !under_way;
  }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      r < readers ? step_reader(r, emit) : step_writer(r, emit);
      if (!death) emit(died(r));
    }
    work(emit);
    if (!death || heard) return;
    model next = *this;
    next.heard = true;
    next.serve();
    emit(next);
  }

  // ---- what lock_turns asks of its place ------------------------------------------------------------------------
  [[nodiscard]] lock_turn take(test::model_request&) const {
    const bool early = broken == mutation::grant_to_two && phase == readers_phase::asking;
    return early || readers_enter(state()) ? lock_turn::holds : lock_turn::waits;
  }
  static bool take_beside(const test::model_request&) { return false; }
  void end_wait() {}
  void run(const test::model_request&) {}
  void give_back(const test::model_request&) {}
  void answer(const test::model_request& q, lock_answer result, int) {
    reader_state& r = reader(q.source);
    if (r.dead || (broken == mutation::lost_grant && !turns.waiting().empty())) return;
    r.at = result == lock_answer::granted ? place::reads : place::outside;
    if (result != lock_answer::granted) ++r.rounds;
  }
  [[nodiscard]] bool dead(int source) const { return heard && is_dead(source); }
  [[nodiscard]] static bool recovers() { return true; }
  void lose(const test::model_request&) { bereft = bereft || phase != readers_phase::leaving; }  // see reader_hold

 private:
  [[nodiscard]] readers_word state() const {
    readers_word r = readers_of(manager);
    r.phase = phase;
    r.attempt.phase = attempt;
    r.attempt.seen = seen;
    r.bereft = bereft;
    r.dead_hold = dead_hold;
    return r;
  }
  void set(const readers_word& r) {
    phase = r.phase;
    attempt = r.attempt.phase;
    seen = r.attempt.seen & ~network_recoveries_mask;
    bereft = r.bereft;
    dead_hold = r.dead_hold;
  }
  [[nodiscard]] model with(const readers_word& r) const {
    model next = *this;
    next.set(r);
    return next;
  }

  // ---- readers and writers --------------------------------------------------------------------------------------
  template <class Emit>
  void step_reader(int r, Emit&& emit) const {
    model next = *this;
    reader_state& me = next.reader(r);
    if (me.at == place::asked) return;
    if (me.at == place::outside) {
      me.at = place::asked;
      next.turns.enqueue({static_cast<std::uint8_t>(r), me.rounds, lock_kind::shared, false});
    } else {
      (void)next.turns.release(next, r, me.rounds);
      me.at = place::outside;
      ++me.rounds;
    }
    next.serve();
    emit(next);
  }
  template <class Emit>
  void step_writer(int r, Emit&& emit) const {
    model next = *this;
    writer_state& me = next.writer(r);
    if (me.phase == network_phase::held) {
      next.word -= hold(r);
      ++me.rounds;
      me.phase = network_again(next.word);
      me.seen = me.phase == network_phase::yielding ? next.word : 0;
      return emit(next);
    }
    if (me.phase == network_phase::yielding) {  // long enough
      model enters = next;
      enters.writer(r).phase = network_phase::entering;
      emit(enters);
    }
    const int holder = network_only_holder(word);
    if (me.phase == network_phase::waiting && holder >= readers && holder < ranks && is_dead(holder)) {
      model mends = next;
      mends.word = network_recovered(word, hold(holder)) & ~network_recoveries_mask;
      emit(mends);
    }
    const network_attempt a = test::walk({lock_kind::exclusive, me.phase, hold(r), me.seen}, next.word);
    me.phase = a.phase;
    me.seen = a.seen;
    emit(next);
  }
  [[nodiscard]] model died(int r) const {
    model next = *this;
    (r < readers ? next.reader(r).dead : next.writer(r).dead) = true;
    next.death = true;
    return next;
  }

  // ---- the manager ----------------------------------------------------------------------------------------------
  /// As lock_agent::work and reader_hold::advance: when times are over is a choice of the search.
  template <class Emit>
  void work(Emit&& emit) const {
    const auto served = [&emit](model next) {
      next.serve();
      emit(next);
    };
    if (under_way) {
      model next = with(step(state(), answers));
      next.under_way = false;
      next.answers = 0;
      return served(next);
    }
    const bool reads = !turns.holders().empty() && broken != mutation::early_leave;
    const bool asked = !turns.waiting().empty() && broken != mutation::forgotten_waiter;
    const readers_word r = step(state(), readers_want(state(), reads, asked));
    served(with(step(r, readers_event::turn)));
    served(with(step(step(r, readers_event::yielded), readers_event::turn)));
    model next = with(r);
    if (readers_ask(r)) {
      next.under_way = true;
      next.answers = word;
      const network_request q = request_of(r);
      if (q.add || word == q.expected) next.word = (q.add ? word + q.operand : q.operand) & ~network_recoveries_mask;
    }
    served(next);
  }
  /// As lock_agent::serve.
  void serve() {
    if (heard && broken != mutation::dead_holder_kept) {
      (void)turns.remove_dead_holders(*this);
      if (broken != mutation::quiet_death) remove_dead_writer();
    }
    turns.remove_dead_waiters(*this);
    (void)turns.serve(*this);
  }
  void remove_dead_writer() {
    const int holder = phase == readers_phase::pausing ? network_only_holder(seen) : -1;
    if (holder < readers || holder >= ranks || !is_dead(holder)) return;
    dead_hold = hold(holder);
    phase = readers_phase::asking;
    (void)turns.fail_waiting(*this, holder);
  }
};

test::search_result search(mutation broken = mutation::none) {
  model first;
  first.broken = broken;
  return test::state_search<model>().run(first);
}

constexpr const char* stuck = "a state from which the end cannot be reached";

}  // namespace

TEST_CASE("all states of lock network:agent, two readers and two writers, one death", "[sync][lock_agent]") {
  const test::search_result r = search();
  CAPTURE(r.steps);
  CHECK(r.failure == "");
  WARN("lock network:agent: " << r.states << " states");
  CHECK(r.states >= 100'000);
}

TEST_CASE("the search finds what is broken in lock network:agent", "[sync][lock_agent][mutation]") {
  CHECK(search(mutation::lost_grant).failure == stuck);
  CHECK(search(mutation::grant_to_two).failure == "a writer is not alone");
  CHECK(search(mutation::forgotten_waiter).failure == stuck);
  CHECK(search(mutation::early_leave).failure == "a writer is not alone");
  CHECK(search(mutation::dead_holder_kept).failure == stuck);
  CHECK(search(mutation::quiet_death).failure == stuck);
}
