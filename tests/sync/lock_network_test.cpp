// SPDX-License-Identifier: Apache-2.0
// Goal: the steps of lock "network" keep writers alone, lose nobody, and let the living go on after a death.
// Method: all states that four ranks with two acquisitions each can reach, of which one may die at any moment; then
// every (phase, word) pair by itself.
#include "sync/lock_network.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <string>

#include "sync/lock_model.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

constexpr int acquisitions = 2;

/// The errors that the model can be made to have, to see that the search notices.
enum class mutation : std::uint8_t { none, early_grant, blind_reader, hold_stays, no_recovery, yields_for_ever };

struct rank_state {
  network_phase phase = network_phase::entering;
  std::uint64_t seen = 0;
  std::uint8_t done = 0;  ///< acquisitions, or attempts that were told of a death
  bool dead = false;
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;
  using packed = test::packed_key<2>;

  std::uint64_t word = 0;
  std::array<rank_state, ranks> all{};
  std::uint8_t kinds = 0;  ///< see test::kind_of
  mutation broken = mutation::none;
  bool death = false;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    const auto word = [&field](auto& w) {
      test::network_fields(field, w);
      field(w, 4, network_recoveries_shift);
    };
    word(s.word);
    for (auto& r : s.all) {
      word(r.seen);
      field(r.phase, 3);
      field(r.done, 2);
      field(r.dead, 1);
    }
    field(s.death, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }
  [[nodiscard]] lock_kind kind_of(int r) const { return test::kind_of(kinds, r, all[index(r)].done); }
  [[nodiscard]] static std::size_t index(int r) { return static_cast<std::size_t>(r); }
  [[nodiscard]] bool busy(int r) const { return !all[index(r)].dead && all[index(r)].done < acquisitions; }

  [[nodiscard]] std::string wrong() const {
    int writers = 0, holders = 0;
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r) || all[index(r)].phase != network_phase::held) continue;
      ++holders;
      if (kind_of(r) == lock_kind::exclusive) ++writers;
    }
    if (writers != 0 && holders > 1) return "a writer is not alone";
    if (finished() && !death && (word & ~network_wanted) != 0) return "something is left in the word";
    return {};
  }
  [[nodiscard]] bool finished() const { return test::nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      emit(all[index(r)].phase == network_phase::held ? released(r) : stepped(r));
      if (all[index(r)].phase == network_phase::yielding && broken != mutation::yields_for_ever) emit(yielded(r));
      if (!death) emit(died(r));
      if (death) recover(r, emit);
    }
  }

 private:
  [[nodiscard]] std::uint64_t hold_of(int r) const { return network_hold(r, kind_of(r)); }
  [[nodiscard]] model stepped(int r) const {
    model next = *this;
    rank_state& me = next.all[index(r)];
    network_attempt a = test::walk({kind_of(r), me.phase, hold_of(r), me.seen}, next.word);
    if (broken == mutation::early_grant && a.phase == network_phase::draining) a.phase = network_phase::held;
    if (broken == mutation::blind_reader && a.phase == network_phase::leaving) a.phase = network_phase::held;
    me.phase = a.phase;
    me.seen = a.seen;
    return next;
  }
  [[nodiscard]] model ended(int r) const {
    model next = *this;
    rank_state& me = next.all[index(r)];
    if (network_in_word(me.phase) && broken != mutation::hold_stays) next.word -= hold_of(r);
    ++me.done;
    me.phase = network_phase::entering;
    me.seen = 0;
    return next;
  }
  [[nodiscard]] model released(int r) const {
    const bool exclusively = kind_of(r) == lock_kind::exclusive;
    const bool wanted = (word & network_wanted) != 0;
    model next = ended(r);
    rank_state& me = next.all[index(r)];
    if (!exclusively || !wanted || me.done == acquisitions || next.kind_of(r) == lock_kind::shared) return next;
    me.phase = network_again(next.word);
    me.seen = next.word;
    return next;
  }
  /// Has waited for long enough for others who want it.
  [[nodiscard]] model yielded(int r) const {
    model next = *this;
    next.all[index(r)].phase = network_phase::entering;
    return next;
  }
  [[nodiscard]] model died(int r) const {
    model next = *this;
    next.all[index(r)].dead = true;
    next.death = true;
    return next;
  }
  /// The steps of a waiter that sees a dead rank's name alone in the word that it looked at.
  template <class Emit>
  void recover(int r, Emit&& emit) const {
    const rank_state& me = all[index(r)];
    if (me.phase != network_phase::waiting && me.phase != network_phase::draining) return;
    const std::uint64_t others = network_in_word(me.phase) ? me.seen - hold_of(r) : me.seen;
    const int holder = network_only_holder(others);
    if (holder < 0 || !all[index(holder)].dead || broken == mutation::no_recovery) return;
    const bool writer = (others & network_writer) != 0;
    model next = *this;
    if (word == me.seen) {
      next.word = network_recovered(word, network_hold(holder, writer ? lock_kind::exclusive : lock_kind::shared));
    }
    emit(next.ended(r));
  }
};

test::search_result search(std::uint8_t kinds, mutation broken = mutation::none) {
  model first;
  first.kinds = kinds;
  first.broken = broken;
  return test::state_search<model>().run(first);
}

constexpr std::uint8_t mixed = 0b01'10'11'00;
constexpr std::uint8_t writers = 0b11'11'11'11;

}  // namespace

TEST_CASE("all states of four ranks, two locks each, one death", "[sync][lock_network]") {
  std::size_t states = 0;
  for (const std::uint8_t kinds : {std::uint8_t{0b11'11'00'11}, std::uint8_t{0b11'11'11'01}, writers}) {
    const test::search_result r = search(kinds);
    CAPTURE(int{kinds}, r.states, r.steps);
    CHECK(r.failure == "");
    states += r.states;
  }
  WARN("lock network: " << states << " states");
  CHECK(states >= 100'000);
}

// The ranks are alike: which of them wants which kinds does not matter.
TEST_CASE("all states of four ranks, all kinds of locks", "[.][long]") {
  std::size_t states = 0;
  for (unsigned kinds = 0; kinds <= writers; ++kinds) {
    const auto of = [kinds](unsigned r) { return (kinds >> 2 * r) & 3U; };
    if (of(0) > of(1) || of(1) > of(2) || of(2) > of(3)) continue;
    const test::search_result r = search(static_cast<std::uint8_t>(kinds));
    CAPTURE(kinds, r.states, r.steps);
    REQUIRE(r.failure == "");
    states += r.states;
  }
  WARN("lock network: " << states << " states, all kinds of locks");
}

TEST_CASE("the search finds what is broken", "[sync][lock_network][mutation]") {
  CHECK(search(mixed, mutation::early_grant).failure == "a writer is not alone");
  CHECK(search(mixed, mutation::blind_reader).failure == "a writer is not alone");
  CHECK(search(writers, mutation::hold_stays).failure != "");
  CHECK(search(writers, mutation::no_recovery).failure == "a state from which the end cannot be reached");
  CHECK(search(writers, mutation::yields_for_ever).failure == "a state from which the end cannot be reached");
}

TEST_CASE("every phase with every kind of word", "[sync][lock_network]") {
  constexpr std::uint64_t writer = network_hold(7, lock_kind::exclusive);
  constexpr std::uint64_t reader = network_hold(9, lock_kind::shared);
  const std::array<std::uint64_t, 5> words{0, reader, writer, writer + reader, network_away};
  for (const lock_kind kind : {shared, exclusive}) {
    const std::uint64_t mine = network_hold(2, kind);
    for (const network_phase phase :
         {network_phase::entering, network_phase::leaving, network_phase::waiting, network_phase::draining}) {
      if (kind == shared && phase == network_phase::draining) continue;
      if (kind == exclusive && phase == network_phase::leaving) continue;
      for (const std::uint64_t others : words) {
        if (phase == network_phase::draining && (others & (network_writer | network_away)) != 0) continue;
        const std::uint64_t old = network_in_word(phase) ? others + mine : others;
        const network_attempt a = step({kind, phase, mine, old}, old);
        CAPTURE(int(kind), int(phase), others, int(a.phase));
        const bool away = (others & network_away) != 0;
        const bool blocked = (others & network_writer) != 0;
        if (phase == network_phase::draining) {
          CHECK((a.phase == network_phase::held) == (others == 0));
        } else if (phase != network_phase::entering) {
          CHECK(a.phase == (away ? network_phase::moved : blocked ? network_phase::waiting : network_phase::entering));
        } else if (kind == shared) {
          CHECK(a.phase == (away || blocked ? network_phase::leaving : network_phase::held));
        }
      }
    }
  }
}

TEST_CASE("who wants a writer's lock is seen, and let in", "[sync][lock_network]") {
  const std::uint64_t first = network_hold(3, exclusive);
  network_attempt waits{exclusive, network_phase::entering, network_hold(5, exclusive), 0};
  std::uint64_t word = first;
  waits = step(waits, word);  // finds the writer
  CHECK(waits.phase == network_phase::waiting);
  word = request_of(waits).operand;
  waits = step(waits, first);  // says that it waits
  CHECK(waits.phase == network_phase::waiting);
  CHECK(word == (first | network_wanted));
  CHECK(network_only_holder(word) == 3);
  word -= first;  // the writer lets go, and sees it
  CHECK(network_again(word) == network_phase::yielding);
  network_attempt again{exclusive, network_phase::yielding, first, word};
  again = step(again, word);
  CHECK(again.phase == network_phase::yielding);  // nobody came yet
  CHECK(request_of(waits).expected == word);
  CHECK(request_of(waits).operand == network_hold(5, exclusive));  // nobody is known to want it any more
  network_attempt late = waits;
  waits = step(waits, word);  // looks, and has it
  CHECK(waits.phase == network_phase::held);
  late = step(late, waits.seen);  // another one that waits
  CHECK(late.phase == network_phase::waiting);
  CHECK(request_of(late).operand == (waits.seen | network_wanted));
  CHECK(step(again, waits.seen).phase == network_phase::waiting);
  CHECK(step(again, 0).phase == network_phase::entering);  // came and went
  CHECK(network_again(0) == network_phase::entering);
  CHECK(network_again(network_away | network_wanted) == network_phase::entering);
}

TEST_CASE("names of holders", "[sync][lock_network]") {
  const std::uint64_t two = network_hold(4, shared) + network_hold(0, shared);
  CHECK(network_only_holder(two) == -1);
  CHECK(network_only_holder(two - network_hold(4, shared)) == 0);
  CHECK(network_only_holder(network_hold(262'142, exclusive)) == 262'142);
  std::uint64_t word = network_hold(3, exclusive);
  for (int i = 0; i < 20; ++i) {  // the count of recoveries wraps around and touches nothing else
    word = network_recovered(word, network_hold(3, exclusive));
    CHECK((word & ~network_recoveries_mask) == 0);
    CHECK(network_recoveries(word) == static_cast<std::uint64_t>((i + 1) % 16));
    word += network_hold(3, exclusive);
  }
}
