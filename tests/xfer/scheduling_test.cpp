// SPDX-License-Identifier: Apache-2.0
// Goal: operations of an epoch are issued in the order that is asked for (RMA_SCHEDULE), small ones in one message with
// each other and with the end of the epoch (RMA_AGGREGATE), and every call that completes operations issues them.
// Method: simulated ranks on nodes of their own; counters say how many messages were sent, virtual time how long it
// took. Break: let one of the calls of `ends` not call issue_scheduled, or that leave out the last of several
// targets; send the completion apart from the batch.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "xfer/sim_ranks.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
using rma::test::counter_of;
using settings = std::vector<std::pair<std::string, std::string>>;

void with_ranks(int ranks, const settings& chosen, const std::function<void(rma::Runtime&)>& body) {
  rma::test::with_ranks(ranks, chosen, body, "dissertation-sdr-pcie");
}

constexpr std::uint64_t many = 1000;

using results = std::array<std::uint64_t, 8>;

/// Rank 0 uses a target: puts, gets and updates of one word each.
void use(window& win, int target, results& got) {
  for (std::uint64_t i = 0; i < 8; ++i) {
    win.put(many + i, target, i);
    win.get(std::span(got).subspan(i, 1), target, 16 + i);
    win.accumulate(i, target, 32, rma::sum);
  }
}

enum class end {
  unlock,
  flush,
  flush_local,
  flush_all,
  flush_local_all,
  unlock_all,
  iflush,
  iflush_all,
  iunlock,
  complete,
  icomplete,
  fence,
  ifence,
  fence_neighbors,
  fetched,
  with_signal,
  free_window,
  count
};

/// Whether the call completes all targets; else one.
bool ends_all(end how) {
  constexpr std::array all{end::flush_all, end::flush_local_all, end::unlock_all, end::iflush_all,
                           end::complete,  end::icomplete,       end::fence,      end::fence_neighbors,
                           end::ifence,    end::free_window};
  return std::ranges::find(all, how) != all.end();
}

std::vector<int> all_targets(rma::Runtime& rt) {
  std::vector<int> all(static_cast<std::size_t>(rt.size() - 1));
  std::iota(all.begin(), all.end(), 1);
  return all;
}

/// Rank 0: opens an epoch, uses its targets, and ends it so; `check` when the results must be there.
void run_epoch(window& win, const std::vector<int>& targets, end how, const std::function<void()>& use_all,
               const std::function<void()>& check) {
  if (how == end::complete || how == end::icomplete) {
    win.start(targets);
    use_all();
    how == end::complete ? win.complete() : win.icomplete().wait();
    return check();
  }
  if (how == end::unlock || how == end::iunlock) {
    if (win.lock_nothrow(rma::shared, 1) != rma::status::done) throw std::runtime_error("no lock");
    use_all();
    how == end::unlock ? win.unlock(1) : win.iunlock(1).wait();
    return check();
  }
  auto held = win.lock_all();
  use_all();
  switch (how) {
    case end::flush: win.flush(1); break;
    case end::flush_local: win.flush_local(1); break;
    case end::flush_all: win.flush_all(); break;
    case end::flush_local_all: win.flush_local_all(); break;
    case end::iflush: win.iflush(1).wait(); break;
    case end::iflush_all: win.iflush_all().wait(); break;
    case end::fetched:
      if (win.fetch_and_op(std::uint64_t{0}, 1, 32, rma::no_op) != 28) throw std::runtime_error("updates overtaken");
      win.flush(1);
      break;
    case end::with_signal: win.put_signal(std::span(&many, 1), 1, 60, 0); break;
    default: break;
  }
  if (how != end::unlock_all && how != end::with_signal) check();
  held.unlock();
  check();
}

void check_results(const std::vector<results>& got) {
  for (const results& each : got) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      if (each[i] != 16 + i) throw std::runtime_error("a get was not issued");
    }
  }
}

void check_part(window& win) {
  for (std::size_t i = 0; i < 8; ++i) {
    if (win.local()[i] != many + i) throw std::runtime_error("a put was not issued");
  }
  if (win.local()[32] != 28) throw std::runtime_error("an update was not issued");
}

void try_end(rma::Runtime& rt, end how) {
  auto win = window::allocate(rt.world(), 64);
  std::iota(win.local().begin(), win.local().end(), 0);
  win.local()[32] = 0;
  rt.world().barrier();
  const std::vector<int> targets = all_targets(rt);
  std::vector<results> got(targets.size());
  const auto use_all = [&] {
    for (const int each : targets) use(win, each, got[static_cast<std::size_t>(each) - 1]);
  };
  const auto check = [&] { check_results(got); };
  const bool among_neighbors = how == end::fence_neighbors;
  const bool fenced = how == end::fence || how == end::ifence || how == end::free_window || among_neighbors;
  if (among_neighbors) {
    const std::array origin{0};
    rt.rank() == 0 ? win.neighbors(targets, {}) : win.neighbors({}, origin);
    win.fence_neighbors();
  } else if (fenced) {
    win.fence();
  }
  if (rt.rank() == 0) {
    fenced ? use_all() : run_epoch(win, targets, how, use_all, check);
  } else if (how == end::complete || how == end::icomplete) {
    win.post(std::array{0});
    win.wait();
    check_part(win);
  } else if (how == end::with_signal) {
    win.wait_signal(0, 1, 0);
    check_part(win);
  }
  if (how == end::fence) win.fence(rma::no_succeed);
  if (how == end::ifence) win.ifence(rma::no_succeed).wait();
  if (among_neighbors) {
    win.fence_neighbors(rma::no_succeed);
    if (rt.rank() == 0) check();
    if (rt.rank() != 0) check_part(win);
  }
  if (how != end::free_window) {
    rt.world().barrier();
    if (rt.rank() != 0) check_part(win);
    rt.world().barrier();
  }
  win.free();
  if (rt.rank() == 0) check();
}

}  // namespace

TEST_CASE("every call that completes operations issues what is held", "[xfer][schedule]") {
  const auto how = static_cast<end>(GENERATE(range(0, static_cast<int>(end::count))));
  const settings chosen =
      GENERATE(settings{{"RMA_SCHEDULE", "interleave"}}, settings{{"RMA_SCHEDULE", "gets-first"}},
               settings{{"RMA_SCHEDULE", "gets-first+interleave"}}, settings{{"RMA_AGGREGATE", "512"}},
               settings{{"RMA_AGGREGATE", "4"}, {"RMA_SCHEDULE", "interleave"}},
               settings{{"RMA_AGGREGATE", "1K"}, {"RMA_FENCE", "def"}, {"RMA_LOCK", "cpu"}},
               settings{{"RMA_AGGREGATE", "1K"}, {"RMA_FENCE", "imm-naive"}, {"RMA_LOCK", "network"}},
               settings{{"RMA_AGGREGATE", "4"}, {"RMA_FENCE", "imm-opt"}, {"RMA_LOCK", "hybrid"}},
               settings{{"RMA_AGGREGATE", "1K"}, {"RMA_FENCE", "imm-ri"}, {"RMA_LOCK", "two-sided"}});
  CAPTURE(static_cast<int>(how), chosen.front().first, chosen.front().second);
  with_ranks(ends_all(how) ? 4 : 2, chosen, [&](rma::Runtime& rt) { try_end(rt, how); });
}

TEST_CASE("an epoch that is left by an exception issues nothing of it", "[xfer][schedule]") {
  const settings chosen = GENERATE(settings{{"RMA_SCHEDULE", "interleave"}}, settings{{"RMA_AGGREGATE", "512"}});
  with_ranks(2, chosen, [](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 64);
    rt.world().barrier();
    if (rt.rank() == 0) {
      try {
        auto held = win.lock(rma::shared, 1);
        win.put(many, 1, 0);
        throw std::runtime_error("the program's own");
      } catch (const std::runtime_error&) {}
    }
    rt.world().barrier();
    if (rt.rank() == 1 && win.local()[0] != 0) throw std::runtime_error("a put of an abandoned epoch");
    rt.world().barrier();
  });
}

namespace {

/// Messages and requests of rank 0 for one epoch of `work`, without that of its post; the second time, when all is
/// connected.
struct sent {
  std::uint64_t messages = 0, by_fabric = 0;
  double us = 0;
};

sent epoch_of(const settings& chosen, const std::function<void(window&)>& work) {
  sent found;
  with_ranks(2, chosen, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1 << 20);
    for (int i = 0; i < 2; ++i) {
      if (rt.rank() == 1) {
        win.post(std::array{0});
        win.wait();
      } else {
        win.start(std::array{1});
        const std::uint64_t messages = counter_of(rt, "messages_sent"), fabric = counter_of(rt, "operations_fabric");
        const auto begin = rt.now();
        work(win);
        win.complete();
        found = {counter_of(rt, "messages_sent") - messages, counter_of(rt, "operations_fabric") - fabric,
                 std::chrono::duration<double, std::micro>(rt.now() - begin).count()};
      }
      rt.world().barrier();
    }
    win.free();
  });
  return found;
}

std::vector<std::uint64_t> words(1 << 20);

}  // namespace

TEST_CASE("small operations and complete are one message", "[xfer][aggregate]") {
  const settings aggregated{{"RMA_AGGREGATE", "512"}};
  const auto put = [](window& win) { win.put(std::span(words).first(64), 1, 0); };
  const auto get = [](window& win) { win.get(std::span(words).first(64), 1, 0); };
  const auto puts = [](window& win) {
    for (std::size_t i = 0; i < 100; ++i) win.put(i, 1, 3 * i);
  };
  for (const auto& work :
       {std::function<void(window&)>(put), std::function<void(window&)>(get), std::function<void(window&)>(puts)}) {
    const sent one = epoch_of(aggregated, work);
    CHECK(one.messages == 1);
    CHECK(one.by_fabric == 0);
    const sent apart = epoch_of({}, work);
    CHECK(apart.by_fabric >= 1);
  }
  // The cost of a get is seen at the target, see perf/scheduling.cpp.
  CHECK(epoch_of(aggregated, put).us <= 0.75 * epoch_of({}, put).us);
  const sent large = epoch_of(aggregated, [](window& win) { win.put(std::span(words).first(65), 1, 0); });
  CHECK(large.by_fabric >= 1);
}

namespace {

/// Messages of rank 0 for the second of two epochs that `work` makes as a whole; rank 1 exposes its part meanwhile.
std::uint64_t messages_of(const settings& chosen, bool exposed, const std::function<void(window&)>& work) {
  std::uint64_t messages = 0;
  with_ranks(2, chosen, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1024);
    for (std::uint64_t i = 1; i <= 2; ++i) {
      if (rt.rank() == 0) {
        const std::uint64_t before = counter_of(rt, "messages_sent");
        if (exposed) win.start(std::array{1});
        work(win);
        messages = counter_of(rt, "messages_sent") - before;
      } else if (exposed) {
        win.post(std::array{0});
        win.wait();
      }
      rt.world().barrier();
      if (rt.rank() == 1 && (win.local()[3] != i * 7 || win.local()[9] != 8)) throw std::runtime_error("wrong data");
      rt.world().barrier();
    }
    win.free();
  });
  return messages;
}

}  // namespace

// Two small operations and what ends their epoch. A lock that is managed by its target costs a request besides.
// Break: let icomplete, iunlock or unlock_all issue what is held before they tell the target.
TEST_CASE("small operations go with icomplete, iunlock and unlock_all", "[xfer][aggregate]") {
  const settings aggregated{{"RMA_AGGREGATE", "512"}, {"RMA_LOCK", "cpu"}};
  const auto work = [](window& win) {
    win.accumulate(std::uint64_t{7}, 1, 3, rma::sum);
    win.put(std::uint64_t{8}, 1, 9);
  };
  CHECK(messages_of(aggregated, true, [&](window& win) {
          work(win);
          win.icomplete().wait();
        }) == 1);
  CHECK(messages_of(aggregated, false, [&](window& win) {
          if (win.lock_nothrow(rma::shared, 1) != rma::status::done) throw std::runtime_error("no lock");
          work(win);
          win.iunlock(1).wait();
        }) == 2);
  CHECK(messages_of(aggregated, false, [&](window& win) {
          auto all = win.lock_all();
          work(win);
          all.unlock();
        }) == 2);
}

namespace {

/// Messages and operations by the fabric of rank 0 for a fence that ends an epoch of `work`.
sent fence_of(const settings& chosen, bool among_neighbors, const std::function<void(window&)>& work) {
  sent found;
  with_ranks(2, chosen, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1024);
    const std::array other{1 - rt.rank()};
    if (among_neighbors) win.neighbors(other, other);
    const auto fence = [&] { among_neighbors ? win.fence_neighbors() : win.fence(); };
    fence();
    for (int i = 0; i < 2; ++i) {  // the second time all is connected
      rt.world().barrier();
      const std::uint64_t messages = counter_of(rt, "messages_sent"), fabric = counter_of(rt, "operations_fabric");
      if (rt.rank() == 0) work(win);
      fence();
      if (rt.rank() == 0)
        found = {counter_of(rt, "messages_sent") - messages, counter_of(rt, "operations_fabric") - fabric};
    }
    rt.world().barrier();
    among_neighbors ? win.fence_neighbors(rma::no_succeed) : win.fence(rma::no_succeed);
    win.free();
  });
  return found;
}

}  // namespace

// Fences among neighbors and "def" have a message for each target, which brings the operations; for others these are a
// message, whose acknowledgement ends them. Break: let issue_before_finish issue all.
TEST_CASE("small operations are one message of a fence at most", "[xfer][aggregate]") {
  std::uint64_t got = 0;
  const auto some = [&got](window& win) {
    win.accumulate(std::uint64_t{7}, 1, 3, rma::sum);
    win.put(std::uint64_t{8}, 1, 9);
    win.get(std::span(&got, 1), 1, 9);
  };
  const std::string design = GENERATE("def", "imm-naive", "imm-opt", "imm-ri", "placed", "neighbors");
  CAPTURE(design);
  settings chosen{{"RMA_AGGREGATE", "512"}};
  const bool among_neighbors = design == "neighbors";
  if (!among_neighbors) chosen.emplace_back("RMA_FENCE", design);
  const sent with = fence_of(chosen, among_neighbors, some);
  const sent without = fence_of(chosen, among_neighbors, [](window&) {});
  CHECK(got == 8);
  CHECK(with.messages - without.messages <= (among_neighbors ? 0 : 1));
  CHECK(with.by_fabric == without.by_fabric);
}

TEST_CASE("puts and gets in turn use both directions of a link", "[xfer][schedule]") {
  const auto both = [](window& win) {
    constexpr std::size_t length = 8192;
    for (std::size_t i = 0; i < 16; ++i) win.put(std::span(words).subspan(i * length, length), 1, i * length);
    for (std::size_t i = 16; i < 32; ++i) win.get(std::span(words).subspan(i * length, length), 1, i * length);
  };
  const double in_order = epoch_of({}, both).us;
  CHECK(epoch_of({{"RMA_SCHEDULE", "interleave"}}, both).us <= in_order / 1.5);
  CHECK(epoch_of({{"RMA_SCHEDULE", "gets-first+interleave"}}, both).us <= in_order / 1.5);
  const auto one_each = [](window& win) {
    win.put(std::span(words).first(8192), 1, 0);
    win.get(std::span(words).subspan(8192, 8192), 1, 8192);
  };
  CHECK(epoch_of({{"RMA_SCHEDULE", "gets-first"}}, one_each).us <= 0.7 * epoch_of({}, one_each).us);
}

// Break: let a handle's operations go at once, or send before the handle ends; let issue_scheduled leave out the last
// of several targets.
TEST_CASE("the operations of an aggregate handle are one message a target", "[xfer][aggregate]") {
  constexpr int targets = 3;
  with_ranks(targets + 1, {}, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1024);
    rt.world().barrier();
    if (rt.rank() == 0) {
      auto held = win.lock_all();
      std::array<std::uint64_t, targets + 1> seen{};
      for (int turn = 0; turn < 2; ++turn) {
        for (int t = 1; t <= targets; ++t) win.put(many, t, 0);
        win.flush_all();  // connects; takes the locks
        const std::uint64_t messages = counter_of(rt, "messages_sent"), fabric = counter_of(rt, "operations_fabric");
        auto batch = win.aggregate();
        for (std::uint64_t i = 0; i < 100; ++i) {
          for (int t = 1; t <= targets; ++t) batch.put(i, t, 7 * i);
        }
        if (counter_of(rt, "messages_sent") != messages) throw std::runtime_error("sent too early");
        batch.wait();
        if (counter_of(rt, "messages_sent") - messages != targets) throw std::runtime_error("not one message a target");
        if (counter_of(rt, "operations_fabric") != fabric) throw std::runtime_error("not all were aggregated");
        for (std::uint64_t i = 0; i < 30; ++i) {
          for (int t = 1; t <= targets; ++t) batch.accumulate(i, t, 1000, rma::sum);
        }
        const auto column = rma::Layout::vector<std::uint64_t>(9, 1, 7);
        for (int t = 1; t <= targets; ++t) {
          const auto at = static_cast<std::size_t>(t);
          batch.get(seen.data() + at, rma::Layout::contiguous<std::uint64_t>(1), t, 7 * (90 + at),
                    rma::Layout::contiguous<std::uint64_t>(1));
          batch.put(words.data(), column, t, 710, column);
        }
        batch.wait();
        if (counter_of(rt, "messages_sent") - messages != 2 * targets) throw std::runtime_error("shapes go apart");
        for (int t = 1; t <= targets; ++t) batch.put(many, t, 1);
        batch.send();
        if (counter_of(rt, "messages_sent") - messages != 3 * targets) throw std::runtime_error("some were not sent");
        for (std::size_t t = 1; t <= targets; ++t) {
          if (seen[t] != 90 + t) throw std::runtime_error("a wrong result");
        }
      }
    }
    rt.world().barrier();
    if (rt.rank() != 0 && win.local()[1000] != 2 * 435) throw std::runtime_error("updates are missing");
    if (rt.rank() != 0 && win.local()[7 * 99] != 99) throw std::runtime_error("puts are missing");
    win.free();
  });
}

namespace {

/// The cost of the atomics of rank 0's `work` on rank 1, in a window whose atomics are the adapter's.
struct chained {
  std::uint64_t atomics = 0, doorbells = 0;
  std::int64_t issue_ns = 0;  ///< time in virtual ns
};

chained chains_of(const settings& more, const std::function<void(window&)>& work) {
  chained found;
  settings chosen{{"RMA_ACCUMULATE", "direct"}};
  chosen.insert(chosen.end(), more.begin(), more.end());
  with_ranks(2, chosen, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 1024);
    rt.world().barrier();
    if (rt.rank() == 0) {
      auto held = win.lock_all();
      win.accumulate(std::uint64_t{0}, 1, 1023, rma::sum);
      win.flush(1);  // the lock has been taken
      const std::uint64_t atomics = counter_of(rt, "sim_atomics"), doorbells = counter_of(rt, "sim_atomic_doorbells");
      const auto begin = rt.now();
      work(win);
      const std::int64_t issue_ns = (rt.now() - begin).count();
      win.flush(1);
      found = {counter_of(rt, "sim_atomics") - atomics, counter_of(rt, "sim_atomic_doorbells") - doorbells, issue_ns};
      held.unlock();
    }
    rt.world().barrier();
    win.free();
  });
  return found;
}

}  // namespace

// Chains have eight atomics. Break: let device_run::when always say now, or may_chain say no.
TEST_CASE("atomics that are asked for together reach the adapter by one doorbell", "[xfer][chain]") {
  const chained one_by_one = chains_of({}, [](window& win) {
    for (std::size_t i = 0; i < 16; ++i) win.accumulate(std::uint64_t{1}, 1, i, rma::sum);
  });
  CHECK(one_by_one.atomics == 16);
  CHECK(one_by_one.doorbells == 16);
  const chained range = chains_of({}, [](window& win) {
    const std::array<std::uint64_t, 20> ones{1, 1};
    win.accumulate(std::span<const std::uint64_t>(ones), 1, 0, rma::sum);
    win.flush(1);
  });
  CHECK(range.atomics == 20);
  CHECK(range.doorbells == 3);
  const chained column = chains_of({}, [](window& win) {
    const std::array<std::uint64_t, 16> ones{1, 1};
    win.accumulate(ones.data(), rma::Layout::contiguous<std::uint64_t>(16), 1, 0,
                   rma::Layout::vector<std::uint64_t>(16, 1, 7), rma::sum);
    win.flush(1);
  });
  CHECK(column.atomics == 16);
  CHECK(column.doorbells == 2);
}

// Break: let wire::charge_post charge each atomic of a chain like a single one.
TEST_CASE("a chain of atomics takes the processor's time for one doorbell", "[xfer][chain]") {
  const chained alone = chains_of({}, [](window& win) {
    for (std::size_t i = 0; i < 8; ++i) win.accumulate(std::uint64_t{1}, 1, i, rma::sum);
  });
  const chained together = chains_of({}, [](window& win) {
    const std::array<std::uint64_t, 8> ones{1, 1};
    win.accumulate(std::span<const std::uint64_t>(ones), 1, 0, rma::sum);
  });
  CHECK(together.doorbells == 1);
  CHECK(together.issue_ns * 5 < alone.issue_ns);  // there is a copy, too
}

// Break: let issue_of begin no chain; let recall forget what a swap compares.
TEST_CASE("an aggregate handle gives the adapter its atomics in chains, in order", "[xfer][chain]") {
  const settings chosen =
      GENERATE(settings{}, settings{{"RMA_SCHEDULE", "interleave"}}, settings{{"RMA_AGGREGATE", "1K"}});
  const chained mixed = chains_of(chosen, [](window& win) {
    std::array<std::uint64_t, 16> old{};
    {
      auto batch = win.aggregate();
      for (std::uint64_t i = 0; i < 16; ++i) {
        const bool swaps = i % 4 == 3;
        if (swaps) batch.compare_and_swap(i, i + 1, old[i], 1, 5);
        if (!swaps) batch.fetch_and_op(std::uint64_t{1}, old[i], 1, 5, rma::sum);
      }
      batch.wait();
    }
    for (std::uint64_t i = 0; i < 16; ++i) {
      if (old[i] != i) throw std::runtime_error("atomics of a chain out of order");
    }
  });
  CHECK(mixed.atomics == 16);
  CHECK(mixed.doorbells == 2);
}

// By the handler they are one message. Break: let a batch leave out what a swap compares.
TEST_CASE("an aggregate handle's atomics by the handler are one message", "[xfer][aggregate]") {
  std::uint64_t messages = 0;
  with_ranks(2, {}, [&](rma::Runtime& rt) {
    auto win = window::allocate(rt.world(), 64);
    for (int turn = 0; turn < 2; ++turn) {
      win.fence();
      if (rt.rank() == 0) {
        const std::uint64_t before = counter_of(rt, "messages_sent");
        std::array<std::uint64_t, 12> old{};
        auto batch = win.aggregate();
        const std::uint64_t first = static_cast<std::uint64_t>(turn) * 12;
        for (std::uint64_t i = 0; i < 12; ++i) {
          if (i % 2 == 0) batch.fetch_and_op(std::uint64_t{1}, old[i], 1, 5, rma::sum);
          if (i % 2 == 1) batch.compare_and_swap(first + i, first + i + 1, old[i], 1, 5);
        }
        batch.wait();
        messages = counter_of(rt, "messages_sent") - before;
        for (std::uint64_t i = 0; i < 12; ++i) {
          if (old[i] != first + i) throw std::runtime_error("atomics of a batch out of order");
        }
      }
      win.fence();
    }
    win.free();
  });
  CHECK(messages == 1);
}
