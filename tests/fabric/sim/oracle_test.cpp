// SPDX-License-Identifier: Apache-2.0
// Random programs on random networks, compared with an oracle that carries them out one after the other.
//
// Every rank knows what every other rank does, since it is drawn from the seed: after each epoch it compares its whole
// part of the window with what must be there. Checked: windows at each synchronization, one holder of an exclusive
// lock, completions that are neither early (what was put is overwritten at once, results are looked at) nor lost nor
// doubled (sums), nothing under way at the end, no deadlock.
//
//   ORACLE_SEEDS=100:1100 oracle_test        runs these seeds; a failure names its seed
#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <catch2/catch.hpp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "sanitizers.hpp"
#include "skip.hpp"

namespace {

using rma::Runtime;
using rma::Window;
using rma::sim::rng;
using word = std::uint64_t;

constexpr std::size_t slots = 24;     ///< slots of one origin in every part
constexpr std::size_t sums = 8;       ///< words that everybody adds to
constexpr std::size_t long_run = 16;  ///< words of a long put

enum class epoch_kind : std::uint8_t { fence, lock, lock_all, pscw };

/// One step of one rank in one epoch.
struct step {
  enum class what : std::uint8_t { put, put_run, put_request, add, fetch_add, get } op;
  int target;
  std::size_t slot;
  word value;
};

struct plan {
  std::uint64_t seed;
  int ranks;
  int per_node;
  std::vector<epoch_kind> epochs;
};

plan draw(std::uint64_t seed) {
  rng d(seed * 7919 + 1);
  plan p{seed, static_cast<int>(2 + d.below(5)), static_cast<int>(1 + d.below(3)), {}};
  const std::size_t count = 2 + d.below(4);
  for (std::size_t i = 0; i < count; ++i) p.epochs.push_back(static_cast<epoch_kind>(d.below(4)));
  return p;
}

/// The operations of a rank in an epoch: no two puts of it to the same place.
std::vector<step> steps_of(const plan& p, int rank, std::size_t epoch) {
  rng d(p.seed * 1'000'003 + epoch * 101 + static_cast<std::uint64_t>(rank));
  std::vector<step> steps;
  std::vector<char> used(static_cast<std::size_t>(p.ranks), 0);
  const std::size_t count = d.below(12);
  for (std::size_t i = 0; i < count; ++i) {
    step s{static_cast<step::what>(d.below(6)), static_cast<int>(d.below(static_cast<std::uint64_t>(p.ranks))), 0,
           1 + d.below(1'000'000)};
    if (s.op == step::what::put_run) {
      if (used[static_cast<std::size_t>(s.target)]++ != 0) continue;
      s.slot = slots - long_run;
    } else if (s.op == step::what::put || s.op == step::what::put_request) {
      if (i >= slots - long_run) continue;
      s.slot = i;
    } else {
      s.slot = d.below(sums);
    }
    steps.push_back(s);
  }
  return steps;
}

std::size_t place(const plan& p, int origin, std::size_t slot) {
  (void)p;
  return sums + static_cast<std::size_t>(origin) * slots + slot;
}

/// The wanted words in the part of `target` after so many epochs.
std::vector<word> expected(const plan& p, int target, std::size_t epochs) {
  std::vector<word> part(sums + static_cast<std::size_t>(p.ranks) * slots, 0);
  for (std::size_t e = 0; e < epochs; ++e) {
    for (int origin = 0; origin < p.ranks; ++origin) {
      for (const step& s : steps_of(p, origin, e)) {
        if (s.target != target) continue;
        switch (s.op) {
          case step::what::put:
          case step::what::put_request: part[place(p, origin, s.slot)] = s.value; break;
          case step::what::put_run:
            for (std::size_t i = 0; i < long_run; ++i) part[place(p, origin, s.slot + i)] = s.value + i;
            break;
          case step::what::add:
          case step::what::fetch_add: part[s.slot] += s.value; break;
          case step::what::get: break;
        }
      }
    }
  }
  return part;
}

[[noreturn]] void fail(const std::string& why) { throw std::runtime_error(why); }

/// The state that all ranks of a run share: they are fibers of one thread.
struct referee {
  std::vector<int> holder;                            ///< holder of each part's exclusive lock, -1: nobody
  std::set<std::pair<int, std::size_t>> undefined{};  ///< words of parts that a failed transfer was to write
  unsigned failures = 0;                              ///< number of reported failures
};

/// Does it; false if a transfer failed, which is the only error that there may be.
template <class Do>
bool comes_through(referee& judge, Do&& what) {
  try {
    what();
    return true;
  } catch (const rma::Error& e) {
    if (e.code() != rma::status::transfer_failed) throw;
    if (e.rank() < 0 || std::string(e.what()).find(" (window ") == std::string::npos)
      fail(fmt::format("an error that does not name window and target: {}", e.what()));
    ++judge.failures;
    return false;
  }
}

/// From now on the words that a step writes are what the oracle says, or anything.
void define(referee& judge, const plan& p, const step& s, int me, bool yes) {
  const auto mark = [&](std::size_t at) {
    yes ? void(judge.undefined.erase({s.target, at})) : void(judge.undefined.insert({s.target, at}));
  };
  switch (s.op) {
    case step::what::put:
    case step::what::put_request: mark(place(p, me, s.slot)); break;
    case step::what::put_run:
      for (std::size_t i = 0; i < long_run; ++i) mark(place(p, me, s.slot + i));
      break;
    case step::what::add:
    case step::what::fetch_add:
      if (!yes) mark(s.slot);  // for ever
      break;
    case step::what::get: break;
  }
}

void do_step(Window<word>& win, const plan& p, const step& s, int me) {
  const std::size_t at = place(p, me, s.slot);
  switch (s.op) {
    case step::what::put: win.put(s.value, s.target, at); break;
    case step::what::put_request: {
      std::vector<word> data(1, s.value);
      win.rput(std::span<const word>(data), s.target, at).wait();
      data[0] = ~word{0};  // complete: the buffer is ours again
      break;
    }
    case step::what::put_run: {
      std::vector<word> data(long_run);
      for (std::size_t i = 0; i < long_run; ++i) data[i] = s.value + i;
      win.rput(std::span<const word>(data), s.target, at).wait();
      std::fill(data.begin(), data.end(), ~word{0});
      break;
    }
    case step::what::add: win.accumulate(s.value, s.target, s.slot, rma::sum); break;
    case step::what::fetch_add: (void)win.fetch_and_op(s.value, s.target, s.slot, rma::sum); break;
    case step::what::get: (void)win.get(s.target, s.slot); break;
  }
}

void under_lock(Window<word>& win, const plan& p, const std::vector<step>& steps, int me, bool exclusive,
                referee& judge) {
  for (const step& s : steps) {
    const auto kind = exclusive ? rma::exclusive : rma::shared;
    std::optional<rma::Epoch> epoch;
    while (!comes_through(judge, [&] { epoch.emplace(win.lock(kind, s.target)); })) {}
    int& holder = judge.holder[static_cast<std::size_t>(s.target)];
    bool fine = comes_through(judge, [&] { do_step(win, p, s, me); });
    fine = comes_through(judge, [&] { epoch->flush(); }) && fine;
    // Until now the lock may have waited for an operation that needs it.
    if (fine && holder >= 0)
      fail(fmt::format("rank {} got the lock of {} while rank {} holds it", me, s.target, holder));
    if (exclusive && holder < 0) holder = me;
    word seen = s.value;
    if (fine && s.op == step::what::put)
      (void)comes_through(judge, [&] { seen = win.get(s.target, place(p, me, s.slot)); });
    if (seen != s.value) fail("a flushed put is missing");
    if (holder == me) holder = -1;
    fine = comes_through(judge, [&] { epoch->unlock(); }) && fine;
    define(judge, p, s, me, fine);
  }
}

void run_epoch(Runtime& rt, Window<word>& win, const plan& p, std::size_t number, referee& judge) {
  const int me = rt.rank();
  const auto steps = steps_of(p, me, number);
  std::vector<int> all;
  for (int r = 0; r < rt.size(); ++r) all.push_back(r);
  // A rank that is told at the end of the epoch does not know which of the puts it was.
  std::vector<char> fine;
  const auto do_all = [&] {
    for (const step& s : steps) fine.push_back(comes_through(judge, [&] { do_step(win, p, s, me); }) ? 1 : 0);
  };
  bool end = true;
  switch (p.epochs[number]) {
    case epoch_kind::fence:
      win.fence(rma::no_precede);
      do_all();
      end = comes_through(judge, [&] { win.fence(rma::no_succeed); });
      break;
    case epoch_kind::lock: under_lock(win, p, steps, me, (p.seed + number) % 2 == 0, judge); break;
    case epoch_kind::lock_all: {
      auto epoch = win.lock_all();
      do_all();
      end = comes_through(judge, [&] { epoch.unlock(); });
      break;
    }
    case epoch_kind::pscw:
      win.post(all);
      win.start(all);
      do_all();
      end = comes_through(judge, [&] { win.complete(); });
      win.wait();
      break;
  }
  for (std::size_t i = 0; i < fine.size(); ++i) define(judge, p, steps[i], me, fine[i] != 0 && end);
  rt.world().barrier();
  const auto right = expected(p, me, number + 1);
  for (std::size_t i = 0; i < right.size(); ++i) {
    if (win[i] != right[i] && !judge.undefined.contains({me, i}))
      fail(fmt::format("rank {}, word {} after epoch {}: {}, not {}", me, i, number, win[i], right[i]));
  }
  rt.world().barrier();
}

rma::sim::Outcome run_seed(std::uint64_t seed, const std::string& breach = {}, unsigned* failures = nullptr) {
  const plan p = draw(seed);
  referee judge{std::vector<int>(static_cast<std::size_t>(p.ranks), -1)};
  rma::sim::Config job;
  job.ranks = p.ranks;
  job.ranks_per_node = p.per_node;
  job.seed = seed;
  job.faults = true;
  job.errors = failures != nullptr;
  job.breach = breach;
  job.limit = std::chrono::seconds(2);
  if (seed % 5 == 0) job.settings["RMA_INTRANODE"] = "off";
  if (seed % 7 == 0) job.settings["RMA_PROGRESS_THREAD"] = "1";
  constexpr const char* fences[] = {"auto", "def", "imm-naive", "imm-opt", "imm-ri"};
  const char* const fence = fences[seed % std::size(fences)];
  const bool is_refused = std::string_view(fence) == "imm-ri" && !rma::sim::storm(seed).caps.write_with_immediate;
  job.settings["RMA_FENCE"] = is_refused ? "imm-opt" : fence;
  auto out = rma::sim::run(job, [&](Runtime& rt) {
    std::vector<word> mine(sums + static_cast<std::size_t>(p.ranks) * slots, 0);
    auto win = seed % 3 == 0 ? Window<word>::create(rt.world(), std::span(mine))
                             : Window<word>::allocate(rt.world(), mine.size());
    rt.world().barrier();
    for (std::size_t e = 0; e < p.epochs.size(); ++e) run_epoch(rt, win, p, e, judge);
    win.free();
  });
  if (failures != nullptr) *failures += judge.failures;
  return out;
}

std::pair<std::uint64_t, std::uint64_t> seeds() {
  const char* const text = std::getenv("ORACLE_SEEDS");
  if (text == nullptr) return {1, 201};
  const std::string range(text);
  return {std::stoull(range), std::stoull(range.substr(range.find(':') + 1))};
}

/// The errors that the checkers found in a run on a network that breaks a promise; empty if none. The run is in a
/// process of its own: what such a network does to memory may end it before a checker looks.
std::string said_of_broken(std::uint64_t seed, const char* breach) {
  std::array<int, 2> way{};
  REQUIRE(::pipe(way.data()) == 0);
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    for (const int fatal : {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL}) std::signal(fatal, SIG_DFL);
    unsigned failures = 0;
    const auto out = run_seed(seed, breach, std::string_view(breach) == "swallowed_error" ? &failures : nullptr);
    const std::string text = out.ok() ? std::string() : out.text();
    (void)!::write(way[1], text.data(), text.size());
    ::_exit(0);
  }
  ::close(way[1]);
  std::string said;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; (n = ::read(way[0], part.data(), part.size())) > 0;)
    said.append(part.data(), static_cast<std::size_t>(n));
  ::close(way[0]);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return said;
}

}  // namespace

TEST_CASE("random programs in faults do what the oracle says", "[oracle]") {
  const auto [first, end] = seeds();
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const auto out = run_seed(seed);
    INFO(fmt::format("replay: ORACLE_SEEDS={}:{} oracle_test\n{}", seed, seed + 1, out.text()));
    REQUIRE(out.ok());
  }
}

TEST_CASE("transfers that fail are reported, and nothing but what they wrote is undefined", "[oracle][errors]") {
  const auto [first, end] = seeds();
  unsigned failures = 0;
  for (std::uint64_t seed = first; seed < end; ++seed) {
    const auto out = run_seed(seed, {}, &failures);
    INFO(fmt::format("replay: ORACLE_SEEDS={}:{} oracle_test [errors]\n{}", seed, seed + 1, out.text()));
    REQUIRE(out.ok());
  }
  CHECK(failures > (end - first) / 2);
}

// The checkers can fail: each promise that the network breaks is noticed.
TEST_CASE("a network that breaks its contract is found out", "[oracle][mutation]") {
  struct mutation {
    const char* breach;
    std::vector<std::string> noticed;  ///< one of these is said
  };
  const auto m = GENERATE(values<mutation>({
      {"read_overtakes", {"missing", "not "}},
      {"early_completion", {"after epoch"}},
      {"lost_write", {"after epoch", "missing"}},
      {"lost_message", {"waits"}},
      {"double_message", {"after epoch", "waits"}},
      {"blind_swap", {"got the lock of", "waits in"}},
      {"swallowed_error", {"after epoch", "missing"}},
  }));
  if (rma::test::address_sanitizer)
    return rma::test::skip("the address sanitizer notices first what it does to memory");
  bool noticed = false;
  std::string said;
  for (std::uint64_t seed = 1; seed <= 300 && !noticed; ++seed) {
    const std::string now = said_of_broken(seed, m.breach);
    if (now.empty()) continue;
    said = now;
    for (const std::string& text : m.noticed) noticed = noticed || said.find(text) != std::string::npos;
  }
  INFO(m.breach << ": the last that was said: " << said);
  CHECK(noticed);
}
