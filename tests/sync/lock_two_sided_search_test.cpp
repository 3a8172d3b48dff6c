// SPDX-License-Identifier: Apache-2.0
// Goal: the lock manager of lock "two-sided" lets writers in alone, forgets nobody, and goes on after a death. Method:
// all states of four ranks that take the lock twice each, by request or as an epoch sent whole, of which one may die at
// any moment and the manager hears of it at any later one. Who is let in is the library's own decision.
#include <algorithm>
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
  lost_wake_up,  ///< who leaves gets nobody served
  early_grant,   ///< a writer is let in beside readers
  no_burial,     ///< what the dead held stays
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
  using packed = test::packed_key<1>;

  std::array<rank_state, ranks> all{};
  std::array<std::uint8_t, ranks> queue{nobody, nobody, nobody, nobody};
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
    for (auto& r : s.queue) field(r, 3);
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
    return writers != 0 && holders > 1 ? "a writer is not alone" : "";
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

 private:
  [[nodiscard]] model asked(int r, place how) const {
    model next = *this;
    next.of(r).at = how;
    *std::find(next.queue.begin(), next.queue.end(), nobody) = static_cast<std::uint8_t>(r);
    next.serve();
    return next;
  }
  [[nodiscard]] model left(int r) const {
    model next = *this;
    next.end(r);
    if (broken != mutation::lost_wake_up) next.serve();
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
  [[nodiscard]] bool grants(lock_kind kind) const {
    std::size_t holders = 0, writers = 0;
    for (int r = 0; r < ranks; ++r) {
      if (of(r).at != place::granted) continue;
      ++holders;
      if (kind_of(r) == lock_kind::exclusive) ++writers;
    }
    return agent_grants(broken == mutation::early_grant ? writers : holders, writers, kind);
  }
  void take_out(std::uint8_t r) { *std::remove(queue.begin(), queue.end(), r) = nobody; }

  // As lock_agent::serve: the dead first, then whose turn it is; readers pass a writer that waits.
  void serve() {
    if (heard) remove_dead();
    while (queue[0] != nobody) {
      const auto turn = std::find_if(queue.begin(), queue.end(), [this](std::uint8_t r) {
        if (r == nobody) return false;
        const bool first = r == queue[0];
        return (first || (kind_of(r) == lock_kind::shared && kind_of(queue[0]) == lock_kind::exclusive)) &&
               grants(kind_of(r));
      });
      if (turn == queue.end()) return;
      const std::uint8_t r = *turn;
      take_out(r);
      if (of(r).at == place::sending) {
        end(r);  // the manager has run it
      } else {
        of(r).at = place::granted;
      }
    }
  }
  void remove_dead() {
    for (int r = 0; r < ranks; ++r) {
      if (!of(r).dead) continue;
      if (broken != mutation::dead_in_queue) take_out_if_there(static_cast<std::uint8_t>(r));
      if (of(r).at != place::granted || broken == mutation::no_burial) continue;
      of(r).at = place::outside;
      for (std::uint8_t& waits : queue) {  // are told
        if (waits != nobody) end(waits);
        waits = nobody;
      }
    }
  }
  void take_out_if_there(std::uint8_t r) {
    if (std::find(queue.begin(), queue.end(), r) != queue.end()) take_out(r);
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
  CHECK(search(writers, mutation::lost_wake_up).failure == stuck);
  CHECK(search(0b01'10'11'00, mutation::early_grant).failure == "a writer is not alone");
  CHECK(search(writers, mutation::no_burial).failure == stuck);
  CHECK(search(writers, mutation::dead_in_queue).failure == stuck);
}
