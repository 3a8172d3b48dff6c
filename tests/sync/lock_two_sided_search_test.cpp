// SPDX-License-Identifier: Apache-2.0
// Goal: the lock manager of lock "two-sided" lets writers in alone, forgets nobody, and goes on after a death. Method:
// all states of four ranks that take the lock twice each, by request or as an epoch sent whole, of which one may die at
// any moment and the manager hears of it at any later one. The manager's queue and its steps are the library's
// (lock_turns.hpp).
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
enum class mutation : std::uint8_t {
  none,
  forgotten_waiter,  ///< a rank that leaves gets nobody served
  grant_to_two,      ///< a writer is let in beside readers
  lost_grant,        ///< an answer does not come while another rank waits
  dead_holder_kept,
  dead_in_queue,
};

enum class place : std::uint8_t { outside, asking, sending, granted };

struct rank_state {
  place at = place::outside;
  std::uint8_t done = 0;  ///< acquisitions, or attempts that were told of a death
  bool dead = false;
  bool operator==(const rank_state&) const = default;
};

struct model {
  static constexpr int ranks = 4;
  using packed = test::packed_key<2>;

  std::array<rank_state, ranks> all{};
  test::model_turns<ranks> turns;
  bool death = false;
  bool heard = false;      ///< the manager has
  std::uint8_t kinds = 0;  ///< see test::kind_of
  mutation broken = mutation::none;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    for (auto& r : s.all) {
      field(r.at, 2);
      field(r.done, 2);
      field(r.dead, 1);
    }
    test::turns_fields(s.turns, field);
    field(s.death, 1);
    field(s.heard, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }

  [[nodiscard]] rank_state& of(int r) { return all[static_cast<std::size_t>(r)]; }
  [[nodiscard]] const rank_state& of(int r) const { return all[static_cast<std::size_t>(r)]; }
  [[nodiscard]] bool busy(int r) const { return !of(r).dead && of(r).done < acquisitions; }
  [[nodiscard]] lock_kind kind_of(int r) const { return test::kind_of(kinds, r, of(r).done); }

  [[nodiscard]] std::string wrong() const {
    std::size_t holders = 0, writers = 0;
    for (int r = 0; r < ranks; ++r) {
      if (of(r).dead || of(r).at != place::granted) continue;
      ++holders;
      if (kind_of(r) == lock_kind::exclusive) ++writers;
    }
    if (writers != 0 && holders > 1) return "a writer is not alone";
    return finished() && !death && turns.busy() ? "a hold is left" : "";
  }
  [[nodiscard]] bool finished() const { return test::nobody_is_busy(*this); }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      if (of(r).at == place::outside) {
        emit(asked(r, place::asking));
        emit(asked(r, place::sending));
      } else if (of(r).at == place::granted) {
        emit(left(r));
      }
      if (!death && r != 0) emit(died(r));  // without the target there is no lock
    }
    if (!death || heard) return;
    model next = *this;
    next.heard = true;
    next.serve();
    emit(next);
  }

  // ---- what lock_turns asks of its place ------------------------------------------------------------------------
  lock_turn take(test::model_request& r) {
    const bool early = broken == mutation::grant_to_two && r.kind == lock_kind::exclusive;
    return early || turns.admits(r.kind) ? lock_turn::holds : lock_turn::waits;
  }
  bool take_beside(const test::model_request& r) { return turns.admits(r.kind); }
  void end_wait() {}
  void run(const test::model_request&) {}
  void give_back(const test::model_request&) {}
  void answer(const test::model_request& r, lock_answer result, int) {
    if (of(r.source).dead || (broken == mutation::lost_grant && !turns.waiting().empty())) return;
    if (result == lock_answer::granted && !r.is_epoch) {
      of(r.source).at = place::granted;
    } else {
      end(r.source);
    }
  }
  [[nodiscard]] bool dead(int source) const { return heard && of(source).dead; }
  [[nodiscard]] static bool recovers() { return true; }
  void lose(const test::model_request&) {}

 private:
  [[nodiscard]] model asked(int r, place how) const {
    model next = *this;
    next.of(r).at = how;
    next.turns.enqueue({static_cast<std::uint8_t>(r), of(r).done, kind_of(r), how == place::sending});
    next.serve();
    return next;
  }
  [[nodiscard]] model left(int r) const {
    model next = *this;
    (void)next.turns.release(next, r, of(r).done);
    next.end(r);
    if (broken != mutation::forgotten_waiter) next.serve();
    return next;
  }
  [[nodiscard]] model died(int r) const {
    model next = *this;
    next.of(r).dead = true;
    next.death = true;
    return next;
  }
  void end(int r) {
    of(r).at = place::outside;
    ++of(r).done;
  }
  /// As lock_agent::serve.
  void serve() {
    if (broken != mutation::dead_holder_kept) (void)turns.remove_dead_holders(*this);
    if (broken != mutation::dead_in_queue) turns.remove_dead_waiters(*this);
    (void)turns.serve(*this);
  }
};

test::search_result search(std::uint8_t kinds, mutation broken = mutation::none) {
  model first;
  first.kinds = kinds;
  first.broken = broken;
  return test::state_search<model>().run(first);
}

constexpr std::uint8_t writers = 0b11'11'11'11;
constexpr const char* stuck = "a state from which the end cannot be reached";

}  // namespace

TEST_CASE("all states of a two-sided lock of four ranks, two locks each, one death", "[sync][lock_two_sided]") {
  std::size_t states = 0;
  for (unsigned kinds = 0; kinds <= writers; ++kinds) {
    const test::search_result r = search(static_cast<std::uint8_t>(kinds));
    CAPTURE(kinds, r.states, r.steps);
    REQUIRE(r.failure == "");
    states += r.states;
  }
  WARN("lock two-sided: " << states << " states, all kinds of locks");
  CHECK(states >= 100'000);
}

TEST_CASE("the search finds what is broken in a two-sided lock", "[sync][lock_two_sided][mutation]") {
  CHECK(search(writers, mutation::forgotten_waiter).failure == stuck);
  CHECK(search(0b01'10'11'00, mutation::grant_to_two).failure == "a writer is not alone");
  CHECK(search(writers, mutation::lost_grant).failure == stuck);
  CHECK(search(writers, mutation::dead_holder_kept).failure == stuck);
  CHECK(search(writers, mutation::dead_in_queue).failure == stuck);
}
