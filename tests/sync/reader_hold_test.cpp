// SPDX-License-Identifier: Apache-2.0
// Goal: a lock manager that holds the network word for its readers keeps writers out while they read, lets each of them
// in in its turn, leaves nothing behind, and gives back what a dead reader held. Method: all states of two readers and
// two writers of a third rank's lock; then every phase with every event and word; then simulated ranks.
#include "sync/reader_hold.hpp"

#include <array>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "sync/state_search.hpp"

using namespace rma;
using namespace rma::detail;
using namespace std::chrono_literals;

namespace {

constexpr int manager = 0, readers = 2, writers = 2, acquisitions = 2;

/// What the model does wrong, to see that the search notices.
enum class mutation : std::uint8_t { none, early_entry, early_leave, never_leaves };

enum class place : std::uint8_t { outside, asked, reads, done };

struct reader_state {
  place at = place::outside;
  std::uint8_t rounds = 0;
  bool operator==(const reader_state&) const = default;
};
struct writer_state {
  network_phase phase = network_phase::entering;
  std::uint64_t seen = 0;
  std::uint8_t rounds = 0;
  bool operator==(const writer_state&) const = default;
};

struct model {
  using packed = test::packed_key<5>;

  std::uint64_t word = 0;
  readers_phase phase = readers_phase::none;
  network_phase attempt = network_phase::entering;
  std::uint64_t seen = 0;
  std::array<reader_state, readers> read{};
  std::array<writer_state, writers> write{};
  mutation broken = mutation::none;
  bool operator==(const model&) const = default;

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    test::whole_word(field, s.word);
    test::whole_word(field, s.seen);
    field(s.phase, 4);
    field(s.attempt, 4);
    for (auto& r : s.read) {
      field(r.at, 3);
      field(r.rounds, 3);
    }
    for (auto& w : s.write) {
      field(w.phase, 4);
      test::whole_word(field, w.seen);
      field(w.rounds, 3);
    }
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& key) const { return test::made_of(*this, key); }
  [[nodiscard]] static std::uint64_t hold(int writer) { return network_hold(1 + writer, lock_kind::exclusive); }
  [[nodiscard]] bool busy(int writer) const { return write[static_cast<std::size_t>(writer)].rounds < acquisitions; }
  [[nodiscard]] std::string wrong() const {
    int writing = 0, reading = 0;
    for (int i = 0; i < writers; ++i)
      writing += busy(i) && write[static_cast<std::size_t>(i)].phase == network_phase::held ? 1 : 0;
    for (const reader_state& r : read) reading += r.at == place::reads ? 1 : 0;
    if (writing > 1 || (writing == 1 && reading != 0)) return "a writer is not alone";
    if (finished() && (word & ~network_wanted) != 0) return "a hold is left";
    return {};
  }
  [[nodiscard]] bool finished() const {
    for (int i = 0; i < writers; ++i) {
      if (busy(i)) return false;
    }
    for (const reader_state& r : read) {
      if (r.at != place::done) return false;
    }
    return phase == readers_phase::none;
  }

  template <class Emit>
  void successors(Emit&& emit) const {
    for (std::size_t i = 0; i < readers; ++i) step_reader(i, emit);
    for (int i = 0; i < writers; ++i) {
      if (busy(i)) step_writer(i, emit);
    }
    step_manager(emit);
  }

 private:
  [[nodiscard]] readers_word state() const {
    readers_word r = readers_of(manager);
    r.phase = phase;
    r.attempt.phase = attempt;
    r.attempt.seen = seen;
    return r;
  }
  [[nodiscard]] model with(const readers_word& r) const {
    model next = *this;
    next.phase = r.phase;
    next.attempt = r.attempt.phase;
    next.seen = r.attempt.seen;
    return next;
  }
  template <class Emit>
  void step_reader(std::size_t i, Emit&& emit) const {
    model next = *this;
    reader_state& me = next.read[i];
    const bool enters = readers_enter(state()) || (broken == mutation::early_entry && phase == readers_phase::asking);
    switch (me.at) {
      case place::outside: me.at = place::asked; break;
      case place::asked:
        if (!enters) return;
        me.at = place::reads;
        break;
      case place::reads: me.at = ++me.rounds == acquisitions ? place::done : place::outside; break;
      case place::done: return;
    }
    emit(next);
  }
  template <class Emit>
  void step_writer(int i, Emit&& emit) const {
    model next = *this;
    writer_state& me = next.write[static_cast<std::size_t>(i)];
    if (me.phase == network_phase::held) {
      next.word -= hold(i);
      ++me.rounds;
      me.phase = network_again(next.word);
      me.seen = me.phase == network_phase::yielding ? next.word : 0;
      return emit(next);
    }
    if (me.phase == network_phase::yielding) {  // long enough
      model enters = next;
      enters.write[static_cast<std::size_t>(i)].phase = network_phase::entering;
      emit(enters);
    }
    network_attempt a{lock_kind::exclusive, me.phase, hold(i), me.seen};
    next.ask(request_of(a));
    a = step(a, word);
    me.phase = a.phase;
    me.seen = a.seen;
    emit(next);
  }
  template <class Emit>
  void step_manager(Emit&& emit) const {
    bool reads = false, asked = false;
    for (const reader_state& r : read) {
      reads = reads || (r.at == place::reads && broken != mutation::early_leave);
      asked = asked || r.at == place::asked;
    }
    readers_word r = step(state(), readers_want(state(), reads, asked));
    if (broken == mutation::never_leaves && r.phase == readers_phase::leaving) r.phase = readers_phase::held;
    emit(with(step(r, readers_event::turn)));
    emit(with(step(r, readers_event::yielded)));
    model next = with(r);
    if (readers_ask(r)) {
      next.ask(request_of(r));
      model after = next.with(step(r, word));
      return emit(after);
    }
    emit(next);
  }
  void ask(const network_request& q) {
    if (q.add) {
      word += q.operand;
    } else if (word == q.expected) {
      word = q.operand;
    }
  }
};

test::search_result search(mutation broken = mutation::none) {
  model first;
  first.broken = broken;
  return test::state_search<model>().run(first);
}

constexpr const char* stuck = "a state from which the end cannot be reached";

}  // namespace

TEST_CASE("all states of two readers and two writers, by a lock manager", "[sync][reader_hold]") {
  const test::search_result r = search();
  CHECK(r.failure == "");
  WARN("readers by a lock manager: " << r.states << " states");
  CHECK(r.states >= 1'000);
}

TEST_CASE("the search finds what is broken in a lock manager", "[sync][reader_hold][mutation]") {
  CHECK(search(mutation::early_entry).failure == "a writer is not alone");
  CHECK(search(mutation::early_leave).failure == "a writer is not alone");
  CHECK(search(mutation::never_leaves).failure == stuck);
}

TEST_CASE("every phase of a lock manager's hold with every event and word", "[sync][reader_hold]") {
  using enum readers_phase;
  const std::uint64_t mine = network_hold(2, lock_kind::exclusive);
  const std::uint64_t writer = network_hold(7, lock_kind::exclusive);
  const auto in = [&](readers_phase phase) {
    readers_word r = readers_of(2);
    r.phase = phase;
    if (phase != none && phase != asking && phase != pausing) r.attempt.seen = mine;
    return r;
  };
  for (const readers_phase phase : {none, asking, pausing, held, looking, closed, leaving}) {
    const readers_word r = in(phase);
    CAPTURE(static_cast<int>(phase));
    CHECK(readers_enter(r) == (phase == held || phase == looking));
    CHECK(readers_ask(r) == (phase == asking || phase == looking || phase == leaving));
    CHECK(step(r, readers_event::wanted).phase == (phase == none ? asking : phase));
    CHECK(step(r, readers_event::unwanted).phase == (phase == pausing                   ? none
                                                     : phase == held || phase == closed ? leaving
                                                                                        : phase));
    CHECK(step(r, readers_event::turn).phase == (phase == pausing  ? asking
                                                 : phase == held   ? looking
                                                 : phase == closed ? held
                                                                   : phase));
    for (const std::uint64_t wanted : {std::uint64_t{0}, network_wanted}) {
      if (phase == asking) {
        CHECK(step(r, writer | wanted).phase == pausing);
        CHECK(step(r, wanted).phase == (wanted == 0 ? held : asking));  // the swap expects a word that nobody wants
      } else if (phase == looking) {
        CHECK(step(r, mine | wanted).phase == (wanted != 0 ? closed : held));
      } else if (phase == leaving) {
        CHECK(step(r, mine | wanted).phase == none);
        CHECK(step(r, mine | wanted).attempt.seen == wanted);
        readers_word bereft = r;
        bereft.bereft = true;
        const readers_word once = step(bereft, mine | wanted);
        CHECK(once.phase == (wanted == 0 ? none : leaving));
        const std::uint64_t left = wanted == 0 ? once.attempt.seen : step(once, mine | wanted).attempt.seen;
        CHECK(network_recoveries(left) == 1);
        CHECK((left & (network_holders_mask | network_writer)) == 0);
      } else {
        CHECK(step(r, writer | wanted).phase == phase);
      }
    }
  }
  for (const bool asked : {false, true}) {
    CHECK(readers_want(in(closed), true, asked) == readers_event::wanted);
    CHECK(readers_want(in(closed), false, asked) == readers_event::unwanted);
    CHECK(readers_want(in(held), false, asked) == (asked ? readers_event::wanted : readers_event::unwanted));
  }
  // A writer that waits when the readers leave comes first: the word is looked at, and taken when its time is over.
  readers_word r = step(in(leaving), mine | network_wanted);
  r = step(r, readers_event::wanted);
  CHECK(request_of(r).expected == request_of(r).operand);
  CHECK(step(r, writer).phase == pausing);
  CHECK(step(r, std::uint64_t{0}).phase == asking);  // it came and went
  r = step(r, network_wanted);
  CHECK(r.phase == pausing);
  CHECK(step(step(r, readers_event::turn), network_wanted).phase == pausing);  // looks again
  r = step(r, readers_event::yielded);
  CHECK(step(r, network_wanted).phase == held);
}

namespace {

void expect(status found, status wanted, const char* what) {
  if (found != wanted) throw std::runtime_error(std::string(what) + ": " + std::string(name_of(found)));
}

sim::Config job_of(const std::string& recovery) {
  sim::Config job{.ranks = 4, .ranks_per_node = 1};
  job.settings = {{"RMA_LOCK", "network:agent"}, {"RMA_LOCK_RECOVERY", recovery}};
  job.limit = 60s;
  return job;
}

}  // namespace

// Break: let serve() answer without asking reader_hold.
TEST_CASE("readers by a lock manager read together, and a writer gets between them", "[sync][reader_hold]") {
  int read = 0, before = 0, passed = 0;
  bool served = false;
  const auto outcome = sim::run(job_of("on"), [&](Runtime& rt) {
    auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
    for (int i = 0; i < 3; ++i) {  // all in at once, or nobody gets out
      auto epoch = win.lock(shared, 0);
      rt.world().barrier();
    }
    if (rt.rank() >= 2) {  // two that take turns: one reads at any time
      if (rt.rank() == 3) rt.compute(20us);
      for (int i = 0; i < 20'000 && !served; ++i) {
        auto epoch = win.lock(shared, 0);
        rt.compute(40us);
        epoch.unlock();
        ++read;
      }
    } else if (rt.rank() == 1) {
      rt.compute(1ms);
      before = read;
      win.lock(exclusive, 0).unlock();
      passed = read - before;
      served = true;
    } else {
      while (!served) rt.progress();
    }
    rt.world().barrier();
    win.free();
  });
  INFO(outcome.text());
  CHECK(outcome.ok());
  CAPTURE(passed);
  CHECK(served);
  CHECK(passed <= 100);  // of 40'000: those of two turns, and of a writer's longest pause between two looks
}

TEST_CASE("a reader that dies is given up by the lock manager, or reported", "[sync][reader_hold][deaths]") {
  for (const char* const recovery : {"on", "off"}) {
    sim::Config job = job_of(recovery);
    job.kills.push_back({1, 10ms});
    const bool on = job.settings["RMA_LOCK_RECOVERY"] == "on";
    const auto outcome = sim::run(job, [&](Runtime& rt) {
      auto win = Window<std::uint64_t>::allocate(rt.world(), 1);
      if (rt.rank() == 1) expect(win.try_lock(shared, 2), status::done, "lock");
      rt.world().barrier();
      if (rt.rank() == 1) rt.compute(100s);
      const auto until = rt.now() + 20s;
      if (rt.rank() != 3) {
        while (rt.now() < until) {
          rt.progress();
          rt.compute(1ms);
        }
        return;
      }
      expect(win.try_lock(exclusive, 2), status::peer_failed, "a lock that a dead rank holds shared");
      rt.compute(1s);
      const status s = win.try_lock(exclusive, 2);
      expect(s, on ? status::done : status::peer_failed, "the same again");
      if (s == status::done) expect(win.try_unlock(2), status::done, "unlock");
      const status reads = win.try_lock(shared, 2);
      expect(reads, on ? status::done : status::peer_failed, "shared");
      if (reads == status::done) expect(win.try_unlock(2), status::done, "unlock");
    });
    INFO(outcome.text());
    CAPTURE(recovery);
    CHECK(outcome.ok());
  }
}
