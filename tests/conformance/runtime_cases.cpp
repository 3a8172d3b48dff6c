// SPDX-License-Identifier: Apache-2.0
// The answers of a runtime about itself and its job.
#include <atomic>
#include <cstdint>
#include <functional>
#include <limits>
#include <set>
#include <string>

#include "cases.hpp"

namespace conformance {
namespace {

// Goal: every rank has its own number, and all agree on how many there are.
// Method: allgather of the ranks; the result must be 0 ... size-1.
void identity(context& ctx) {
  rma::Runtime& rt = ctx.runtime();
  ctx.equal(rt.rank(), ctx.rank(), "rank in the world");
  ctx.equal(rt.size(), ctx.size(), "size of the world");
  const std::vector<int> all = ctx.world().allgather(rt.rank());
  ctx.equal(all.size(), static_cast<std::size_t>(rt.size()), "members of an allgather");
  for (int r = 0; r < rt.size(); ++r) ctx.equal(all[static_cast<std::size_t>(r)], r, "member of an allgather");
}

// Goal: now() never runs backwards, here or across a barrier.
// Method: 1000 readings; then each rank's reading before a barrier against the others' after it (ranks of one machine
// share the clock).
void clock_is_monotonic(context& ctx) {
  auto last = ctx.runtime().now();
  for (int i = 0; i < 1000; ++i) {
    const auto next = ctx.runtime().now();
    if (next < last) ctx.fail("now() ran backwards");
    last = next;
  }
  if (!ctx.world().one_node()) return;
  const auto before = ctx.world().allgather(ctx.runtime().now().count());
  const auto after = ctx.runtime().now().count();
  for (const auto b : before) ctx.check(b <= after, "a time before an allgather is later than the time after it");
}

// Goal: a program says how it is threaded, and chooses settings, beside its command line, which stays its own.
// Break: make the runtime from the command line alone.
void config_beside_a_command_line(context& ctx) {
  std::string program = "program", option = "--option";
  char* line[] = {program.data(), option.data(), nullptr};
  int count = 2;
  const rma::Runtime alone(count, line,
                           {.environment = false,
                            .boot = "alone",
                            .threads = rma::thread_level::multiple,
                            .settings = {{"RMA_SPIN_US", "7"}}});
  ctx.check(alone.threads() == rma::thread_level::multiple, "the thread level");
  ctx.check(alone.size() == 1 && count == 2 && line[1] == option, "a job of its own, and the command line");
  for (const rma::Setting& s : alone.settings()) {
    if (s.name == "RMA_SPIN_US") ctx.check(s.value == "7" && s.origin == "config", "a setting beside a command line");
  }
}

// Goal: every setting is listed once, with a value, an origin and a summary.
void settings_are_listed(context& ctx) {
  std::set<std::string> names;
  for (const rma::Setting& s : ctx.runtime().settings()) {
    ctx.check(names.insert(s.name).second, "setting " + s.name + " is listed twice");
    ctx.check(s.name.starts_with("RMA_"), "setting " + s.name + " is no RMA_ variable");
    ctx.check(s.origin == "default" || s.origin == "environment" || s.origin == "config",
              "origin of " + s.name + " is " + s.origin);
    ctx.check(!s.summary.empty(), "setting " + s.name + " has no summary");
  }
  for (const char* name : {"RMA_PROGRESS_THREAD", "RMA_ACCUMULATE", "RMA_PROMOTE", "RMA_BOOT"}) {
    ctx.check(names.contains(name), std::string("setting ") + name + " is missing");
  }
  ctx.check(!ctx.runtime().fabrics().empty(), "no fabric is listed");
}

// Goal: the job key is a secret: no report shows it.
void key_is_not_shown(context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_KEY") ctx.check(s.value.empty() || s.value == "(set)", "the job key is shown");
  }
}

// Goal: counters have distinct names and never fall.
// Method: read them, do some work that needs the engine, read them again.
void counters_never_fall(context& ctx) {
  const auto before = ctx.runtime().counters();
  auto win = rma::Window<int>::allocate(ctx.world(), 16);
  win.fence();
  std::vector<int> values(16, ctx.rank());
  win.accumulate(std::span<const int>(values), ctx.right(), 0, rma::sum);
  win.fence();
  win.free();
  const auto after = ctx.runtime().counters();
  std::set<std::string> names;
  for (const rma::Counter& a : after) {
    ctx.check(names.insert(a.name).second, "counter " + a.name + " is listed twice");
    for (const rma::Counter& b : before) {
      if (a.name == b.name) ctx.check(a.value >= b.value, "counter " + a.name + " fell");
    }
  }
}

// Goal: progress() never blocks and may be called at any time; compute() is harmless; nobody is dead.
void idle_calls(context& ctx) {
  for (int i = 0; i < 1000; ++i) ctx.runtime().progress();
  ctx.runtime().compute(std::chrono::microseconds(5));
  ctx.check(ctx.runtime().failed_ranks().empty(), "a rank is said to be dead");
  ctx.check(!rma::version().empty(), "the library has no version");
}

// Goal: a rank that only makes calls that need nobody, in a loop, serves the others all the same: sync in any window,
// and where the window spans nodes each call that ends or completes something.
// Method: rank 0 loops until the last rank has written a word of its part, behind an update that only rank 0's handler
// can do. Break: no progress in the call.
void loops_serve_others(context& ctx) {
  if (thread_sanitizer) context::skip("the thread sanitizer does not know fences");
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 8);
  std::uint64_t memory = 0;
  const rma::Hints by_handler{.accumulate = rma::accumulate_mode::handler};
  auto counts = rma::Window<std::uint64_t>::create(ctx.world(), std::span(&memory, 1), by_handler);
  const int me = ctx.rank();
  const auto volatile_word = [&](std::size_t at) {
    return std::atomic_ref<std::uint64_t>(win.local()[at]).load(std::memory_order_relaxed);
  };
  const std::function<bool(std::size_t)> looks[] = {
      [&](std::size_t at) { return win.sync(), volatile_word(at) != 0; },
      [&](std::size_t at) {
        const auto epoch = win.lock(rma::shared, me);
        return win.get(me, at) != 0;
      },
      [&](std::size_t at) {
        const auto epoch = win.lock_all();
        return win.get(me, at) != 0;
      },
      [&](std::size_t at) {
        const auto epoch = win.lock_all();
        std::uint64_t value = 0;
        while (value == 0) {
          win.get(std::span(&value, 1), me, at);
          win.flush(me);
        }
        return true;
      },
      [&](std::size_t at) {
        const auto epoch = win.lock_all();
        std::uint64_t value = 0;
        while (value == 0) {
          win.get(std::span(&value, 1), me, at);
          win.flush_local_all();
        }
        return true;
      },
  };
  const std::size_t count = ctx.world().one_node() ? 1 : std::size(looks);  // the others are inlined within a node
  const auto last = ctx.size() - 1;
  for (std::size_t i = 0; i < count; ++i) {
    if (me == 0 && me != last) {
      while (!looks[i](i)) continue;
    } else if (me == last) {
      const auto epoch = counts.lock_all();
      counts.accumulate(std::uint64_t{1}, 0, 0, rma::sum);
      counts.flush(0);
      const auto other = win.lock(rma::shared, 0);
      win.put(std::uint64_t{1}, 0, i);
    }
    ctx.world().barrier();
  }
  ctx.equal(memory, me == 0 ? count : std::uint64_t{0}, "updates");
  win.free();
  counts.free();
}

/// Waits of rank 0 for the last rank, which lets it go only when rank 0's function of on_wait has been called three
/// times in that wait.
class hooked_waits {
 public:
  explicit hooked_waits(context& ctx) : ctx_(ctx), counts_(rma::Window<std::uint64_t>::allocate(ctx.world(), 1)) {
    if (ctx_.rank() != 0) return;
    ctx_.runtime().on_wait([this] {
      if (waits_) std::atomic_ref<std::uint64_t>(counts_.local()[0]).fetch_add(1);
    });
  }
  hooked_waits(const hooked_waits&) = delete;
  hooked_waits& operator=(const hooked_waits&) = delete;
  ~hooked_waits() {
    if (ctx_.rank() == 0) ctx_.runtime().on_wait({});
  }

  using action = std::function<void()>;
  /// The last rank prepares the wait before, and ends it. A rank between the two does what `others` says.
  void run(
      const action& waits, const action& prepares, const action& ends, const action& others = [] {}) {
    const bool is_last = ctx_.rank() == ctx_.size() - 1;
    if (is_last) prepares();
    counts_.local()[0] = 0;
    ctx_.world().barrier();
    if (ctx_.rank() == 0) {
      waits_ = true;
      waits();
      waits_ = false;
    } else if (is_last) {
      await_calls();
      ends();
    } else {
      others();
    }
    ctx_.world().barrier();
  }

 private:
  void await_calls() {
    const auto epoch = counts_.lock(rma::shared, 0);
    ctx_.wait_until([&] {
      std::uint64_t calls = 0;
      counts_.get(std::span(&calls, 1), 0, 0);
      counts_.flush(0);
      return calls >= 3;
    });
  }

  context& ctx_;
  rma::Window<std::uint64_t> counts_;
  bool waits_ = false;
};

// Goal: a rank that waits calls what on_wait has been given, in every wait: for a fence, a post, a completion, a lock,
// a message.
// Break: do not call it in one of the waits, or where the wait sleeps.
void waits_call_on_wait(context& ctx) {
  if (thread_sanitizer) context::skip("on_wait's function counts in memory that others get");
  auto win = rma::Window<std::uint64_t>::allocate(ctx.world(), 1);
  const int last = ctx.size() - 1;
  const std::vector<int> first = {0}, other = {last};
  std::uint64_t word = 1;
  const std::span<std::uint64_t> message(&word, 1);
  const auto nothing = [] {};
  const auto fence = [&] { win.fence(rma::no_succeed); };
  const auto barrier = [&] { ctx.world().barrier(); };
  const auto hold = [&] { ctx.expect(win.lock_nothrow(rma::exclusive, last), rma::status::done, "a lock"); };
  const auto release = [&] { win.unlock(last); };
  hooked_waits each(ctx);
  each.run(fence, nothing, fence, fence);
  each.run(barrier, nothing, barrier, barrier);
  each.run([&] { const auto epoch = win.lock(rma::shared, last); }, hold, release);
  for (const bool flushes : {true, false}) {
    const auto in_deferred_lock = [&] {
      const auto epoch = win.lock(rma::exclusive, last, rma::deferrable);
      win.put(std::uint64_t{1}, last, 0);
      if (flushes) win.flush(last);
    };
    each.run(in_deferred_lock, hold, release);
  }
  const auto in_lock_all = [&] {
    const auto epoch = win.lock_all();
    win.put(std::uint64_t{1}, last, 0);
  };
  each.run(in_lock_all, hold, release);
  const auto from = [&](const std::vector<int>& targets) { win.start(targets), win.complete(); };
  const auto to = [&](const std::vector<int>& origins) { win.post(origins), win.wait(); };
  each.run([&] { from(other); }, nothing, [&] { to(first); });
  each.run([&] { to(other); }, nothing, [&] { from(first); });
  each.run([&] { ctx.world().recv(message, last, 1); }, nothing, [&] { ctx.world().send(message, 0, 1); });
  win.free();
}

constexpr test_case runtime_table[] = {
    {"runtime.identity", identity},
    {"runtime.clock_is_monotonic", clock_is_monotonic},
    {"runtime.config_beside_a_command_line", config_beside_a_command_line},
    {"runtime.settings_are_listed", settings_are_listed},
    {"runtime.key_is_not_shown", key_is_not_shown},
    {"runtime.counters_never_fall", counters_never_fall},
    {"runtime.idle_calls", idle_calls},
    {"runtime.loops_serve_others", loops_serve_others, no_kind, 2},
    {"runtime.waits_call_on_wait", waits_call_on_wait, no_kind, 2},
};

}  // namespace

std::span<const test_case> runtime_cases() noexcept { return runtime_table; }

}  // namespace conformance
