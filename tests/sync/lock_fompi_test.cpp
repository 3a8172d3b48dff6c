// SPDX-License-Identifier: Apache-2.0
// Goal: the steps of scheme "fompi" keep writers alone, and alone with a lock_all, lose nobody, and let the living go
// on or hear of it after a death; and cost as many atomics as the paper says. Method: all states that three ranks with
// two acquisitions each can reach, of which one may die at any moment; then every phase with every kind of word; then
// simulated ranks.
#include "sync/lock_fompi.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "sync/state_search.hpp"

using namespace rma;
using namespace rma::detail;
using namespace std::chrono_literals;

namespace {

constexpr int ranks = 3;
constexpr int acquisitions = 2;
constexpr std::array<fompi_want, 3> wants{fompi_want::shared, fompi_want::exclusive, fompi_want::all};

/// The errors that the model can be made to have, to see that the search notices.
enum class mutation : std::uint8_t { none, blind_reader, unregistered_writer, stays_registered, no_recovery };

struct rank_state {
  fompi_phase phase = fompi_phase::registering;
  fompi_phase then = fompi_phase::barred;
  std::uint64_t seen = 0;
  std::uint64_t free = 0;
  std::uint8_t done = 0;  ///< acquisitions, or attempts that were told of a death
  bool dead = false;
  bool operator==(const rank_state&) const = default;
};

struct model {
  using packed = test::packed_key<9>;

  std::uint64_t global = 0;
  std::uint64_t local = 0;
  std::array<rank_state, ranks> all{};
  std::array<std::array<fompi_want, acquisitions>, ranks> plan{};
  mutation broken = mutation::none;
  bool death = false;

  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    test::whole_word(field, s.global);
    test::whole_word(field, s.local);
    for (auto& r : s.all) {
      field(r.phase, 4);
      field(r.then, 4);
      test::whole_word(field, r.seen);
      test::whole_word(field, r.free);
      field(r.done, 2);
      field(r.dead, 1);
    }
    field(s.death, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }
  [[nodiscard]] static std::size_t index(int r) { return static_cast<std::size_t>(r); }
  [[nodiscard]] bool busy(int r) const { return !all[index(r)].dead && all[index(r)].done < acquisitions; }
  [[nodiscard]] fompi_attempt attempt(int r) const {
    const rank_state& me = all[index(r)];
    return {plan[index(r)][me.done], me.phase, me.then, fompi_hold(r), me.free, me.seen};
  }
  [[nodiscard]] std::string wrong() const {
    int exclusive = 0, others = 0;
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r) || all[index(r)].phase != fompi_phase::held) continue;
      ++(attempt(r).want == fompi_want::exclusive ? exclusive : others);
    }
    if (exclusive > 1 || (exclusive == 1 && others != 0)) return "a writer is not alone";
    if (finished() && !death && (global != 0 || local != 0)) return "something is left in a word";
    return {};
  }
  [[nodiscard]] bool finished() const {
    for (int r = 0; r < ranks; ++r) {
      if (busy(r)) return false;
    }
    return true;
  }
  void begin(int r) {
    rank_state& me = all[index(r)];
    if (me.done == acquisitions) return;
    const fompi_attempt a = fompi_begin(plan[index(r)][me.done], r);
    me.phase = a.phase;
    me.then = a.then;
    me.free = me.seen = 0;
  }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (int r = 0; r < ranks; ++r) {
      if (!busy(r)) continue;
      emit(all[index(r)].phase == fompi_phase::held ? ended(r) : stepped(r));
      if (!death) emit(died(r));
      if (death) hear(r, emit);
    }
  }

 private:
  [[nodiscard]] model stepped(int r) const {
    model next = *this;
    fompi_attempt a = attempt(r);
    const fompi_request q = request_of(a);
    std::uint64_t& word = q.global ? next.global : next.local;
    const std::uint64_t old = word;
    if (q.atomic.add) {
      word += q.atomic.operand;
    } else if (old == q.atomic.expected) {
      word = q.atomic.operand;
    }
    a = step(a, old);
    if (broken == mutation::blind_reader && a.want == fompi_want::shared) a.phase = fompi_phase::held;
    const bool writer = a.want == fompi_want::exclusive;
    if (broken == mutation::unregistered_writer && writer && a.phase == fompi_phase::withdrawing &&
        a.then == fompi_phase::barred)
      a.phase = fompi_phase::taking;
    if (broken == mutation::stays_registered && a.phase == fompi_phase::withdrawing) a.phase = a.then;
    rank_state& me = next.all[index(r)];
    me.phase = a.phase;
    me.then = a.phase == fompi_phase::withdrawing ? a.then : fompi_phase::barred;
    me.seen = a.phase == fompi_phase::barred || a.phase == fompi_phase::blocked ? a.seen : 0;
    me.free = a.free;
    return next;
  }
  /// Unlocked, or given up: nothing of it is left.
  [[nodiscard]] model ended(int r) const {
    model next = *this;
    const fompi_attempt a = attempt(r);
    next.local -= fompi_in_local(a);
    next.global -= fompi_in_global(a);
    ++next.all[index(r)].done;
    next.begin(r);
    return next;
  }
  [[nodiscard]] model died(int r) const {
    model next = *this;
    next.all[index(r)].dead = true;
    next.death = true;
    return next;
  }
  /// A waiter hears of the death: by the name in the word, or since the word stands still.
  template <class Emit>
  void hear(int r, Emit&& emit) const {
    const fompi_attempt a = attempt(r);
    if (a.phase != fompi_phase::barred && a.phase != fompi_phase::blocked) return;
    const int writer = a.phase == fompi_phase::blocked ? fompi_writer_of(a.seen) : -1;
    const bool named = writer >= 0 && writer < ranks && all[index(writer)].dead;
    if (broken == mutation::no_recovery) {
      if (!named) emit(ended(r));
      return;
    }
    model next = ended(r);
    if (named && local == a.seen) {
      next = *this;
      next.local = fompi_recovered(local);
      next.global -= fompi_one_exclusive;
      next = next.ended(r);
    }
    emit(next);
  }
};

test::search_result search(const std::array<std::array<fompi_want, acquisitions>, ranks>& plan,
                           mutation broken = mutation::none) {
  model first;
  first.plan = plan;
  first.broken = broken;
  for (int r = 0; r < ranks; ++r) first.begin(r);
  return test::state_search<model>().run(first);
}

constexpr fompi_want S = fompi_want::shared, X = fompi_want::exclusive, A = fompi_want::all;
using plans = std::array<std::array<fompi_want, acquisitions>, ranks>;

/// Virtual time of what a rank on a node of its own does with this scheme.
std::chrono::nanoseconds time_of(const char* scheme, const std::function<void(Window<std::uint64_t>&)>& once) {
  std::chrono::nanoseconds took{};
  sim::Config job{.ranks = 4, .ranks_per_node = 1};
  job.settings = {{"RMA_LOCK", std::string("network:") + scheme}};
  const auto outcome = sim::run(job, [&](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 2);
    if (rt.rank() == 3) {
      once(win);  // finds out where things are
      const auto begin = rt.now();
      once(win);
      took = rt.now() - begin;
    }
    rt.world().barrier();
    win.free();
  });
  INFO(outcome.text());
  CHECK(outcome.ok());
  return took;
}

}  // namespace

TEST_CASE("all states of three ranks with a global and a local word", "[sync][lock_fompi]") {
  std::size_t states = 0;
  for (const plans& plan : {plans{{{X, X}, {X, S}, {A, X}}}, plans{{{S, X}, {A, A}, {X, S}}},
                            plans{{{A, X}, {A, S}, {X, A}}}, plans{{{X, X}, {X, X}, {S, A}}}}) {
    const test::search_result r = search(plan);
    CAPTURE(r.states, r.steps);
    CHECK(r.failure == "");
    states += r.states;
  }
  WARN("lock fompi: " << states << " states");
  CHECK(states >= 10'000);
}

TEST_CASE("the search finds what is broken with a global word", "[sync][lock_fompi][mutation]") {
  const plans mixed{{{X, X}, {S, A}, {A, X}}};
  CHECK(search(mixed, mutation::blind_reader).failure == "a writer is not alone");
  CHECK(search(mixed, mutation::unregistered_writer).failure == "a writer is not alone");
  CHECK(search(mixed, mutation::stays_registered).failure != "");
  CHECK(search(plans{{{X, X}, {X, X}, {X, X}}}, mutation::no_recovery).failure != "");
}

TEST_CASE("every phase with every kind of word of scheme fompi", "[sync][lock_fompi]") {
  const std::uint64_t other = fompi_hold(7);
  const std::uint64_t died = std::uint64_t{3} << fompi_recoveries_shift;
  const std::array<std::uint64_t, 7> locals{0, died, 1, 2 | died, other, other | died, other + 1};
  const std::array<std::uint64_t, 4> globals{0, fompi_one_exclusive, fompi_one_all,
                                             fompi_one_exclusive + fompi_one_all};
  for (const fompi_want want : wants) {
    for (const std::uint64_t others : globals) {
      const bool barred = want == fompi_want::all ? (others & fompi_count_mask) != 0 : others >= fompi_one_all;
      fompi_attempt a = fompi_begin(want, 2);
      CAPTURE(int(want), others);
      if (want == fompi_want::shared) continue;
      a = step(a, others);
      CHECK(a.phase == (barred                    ? fompi_phase::withdrawing
                        : want == fompi_want::all ? fompi_phase::held
                                                  : fompi_phase::taking));
      CHECK(fompi_in_global(a) == fompi_registration(want));
      if (!barred) continue;
      for (const std::uint64_t then : globals) {
        const bool still = fompi_bars(then, want);
        const fompi_attempt out = step(a, then + fompi_registration(want));
        CHECK(out.phase == (still ? fompi_phase::barred : fompi_phase::registering));
        CHECK(fompi_in_global(out) == 0);
        if (!still) continue;
        CHECK(request_of(out).atomic.expected == request_of(out).atomic.operand);  // a look
        CHECK(step(out, others).phase == fompi_phase::barred);
        CHECK(step(out, 0).phase == fompi_phase::registering);
      }
    }
    if (want == fompi_want::all) continue;
    for (const std::uint64_t local : locals) {
      CAPTURE(int(want), local);
      fompi_attempt a = fompi_begin(want, 2);
      a.phase = fompi_phase::taking;
      const fompi_attempt b = step(a, local);
      if (want == fompi_want::shared) {
        CHECK(b.phase == ((local & fompi_writer) != 0 ? fompi_phase::blocked : fompi_phase::held));
        CHECK(fompi_in_local(b) == 1);
        if (b.phase == fompi_phase::held) continue;
        CHECK(step(b, local + 1).phase == fompi_phase::blocked);
        CHECK(step(b, 1 | died).phase == fompi_phase::held);
        continue;
      }
      if (local == 0) {
        CHECK(b.phase == fompi_phase::held);
        CHECK(fompi_in_local(b) == fompi_hold(2));
      } else if (local == died) {
        CHECK(b.phase == fompi_phase::taking);
        CHECK(step(b, died).phase == fompi_phase::held);
      } else {
        CHECK(b.phase == fompi_phase::withdrawing);
        const fompi_attempt out = step(b, fompi_one_exclusive);
        CHECK(out.phase == fompi_phase::blocked);
        CHECK(out.seen == local);
        CHECK(step(out, local).phase == fompi_phase::blocked);
        CHECK(step(out, died).phase == fompi_phase::registering);
        CHECK(step(out, died).free == died);
      }
      CHECK(step(b, local).hold == fompi_hold(2));
    }
  }
}

TEST_CASE("the writer's name, and what is left when it is removed", "[sync][lock_fompi]") {
  CHECK(fompi_writer_of(fompi_hold(5) + 9) == 5);
  CHECK(fompi_writer_of(fompi_hold(100'000'000)) == 100'000'000);
  CHECK(fompi_writer_of(9) == -1);
  std::uint64_t local = fompi_hold(5) + 9;
  for (int i = 1; i <= 20; ++i) {
    local = fompi_recovered(local);
    CHECK((local & fompi_count_mask) == 9);
    CHECK(fompi_writer_of(local) == -1);
    CHECK(fompi_recoveries(local) == static_cast<std::uint64_t>(i % 16));
    local |= fompi_hold(i);
  }
}

// Nothing else is under way, so that time counts atomics: those of scheme "word" are known to be two.
TEST_CASE("atomics of an uncontended lock of scheme fompi", "[sync][lock_fompi]") {
  const auto exclusively = [](auto& win) { win.lock(exclusive, 1).unlock(); };
  const double one = static_cast<double>(time_of("word", exclusively).count()) / 2;
  const auto atomics = [&](const auto& once) { return static_cast<double>(time_of("fompi", once).count()) / one; };
  CHECK(atomics(exclusively) == Approx(4).epsilon(0.05));
  CHECK(atomics([](auto& win) { win.lock(shared, 1).unlock(); }) == Approx(2).epsilon(0.05));
  CHECK(atomics([](auto& win) { win.lock_all().unlock(); }) == Approx(2).epsilon(0.05));
}

namespace {

enum class role : std::uint8_t { writer, reader, all };

/// Rank 1 dies with a hold on rank 2's lock; 3 wants it exclusively, then the window with lock_all.
void die_holding(role how, const std::string& recovery) {
  sim::Config job{.ranks = 4, .ranks_per_node = 1};
  job.settings = {{"RMA_LOCK", "network:fompi"}, {"RMA_LOCK_RECOVERY", recovery}};
  job.kills.push_back({1, 10ms});
  job.limit = 60s;
  const auto outcome = sim::run(job, [&](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 2);
    if (rt.rank() == 1) {
      const status s =
          how == role::all ? win.lock_all_nothrow() : win.lock_nothrow(how == role::writer ? exclusive : shared, 2);
      if (s != status::done) throw std::runtime_error("lock");
    }
    rt.world().barrier();
    if (rt.rank() == 1) rt.compute(100s);
    if (rt.rank() != 3) return rt.compute(20s);
    const auto expect = [](status found, status wanted, const char* what) {
      if (found != wanted) throw std::runtime_error(std::string(what) + ": " + std::string(name_of(found)));
    };
    expect(win.lock_nothrow(exclusive, 2), status::peer_failed, "a lock of the dead");
    const bool free = how == role::writer && recovery == "on";
    for (int i = 0; i < 2; ++i) {
      const status s = win.lock_nothrow(exclusive, 2);
      expect(s, free ? status::done : status::peer_failed, "the same again");
      if (s == status::done) expect(win.try_unlock(2), status::done, "unlock");
    }
    const status s = win.lock_all_nothrow();
    expect(s, how == role::writer && !free ? status::peer_failed : status::done, "lock_all after it");
    if (s == status::done) expect(win.try_unlock_all(), status::done, "unlock_all");
    if (how != role::all) {  // other targets, where nobody died
      expect(win.lock_nothrow(exclusive, 0), status::done, "another target's lock");
      expect(win.try_unlock(0), status::done, "its unlock");
    }
  });
  INFO(outcome.text());
  CAPTURE(static_cast<int>(how), recovery);
  CHECK(outcome.ok());
}

}  // namespace

TEST_CASE("a dead holder of scheme fompi is removed, or reported", "[sync][lock_fompi][deaths]") {
  for (const role how : {role::writer, role::reader, role::all}) {
    for (const char* const recovery : {"on", "off"}) die_holding(how, recovery);
  }
}
