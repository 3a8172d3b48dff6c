// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 threads [--threads N] [--rounds R] [--at-least RATIO] [--waits-at-most W]
// Thread level multiple: N threads of rank 0 on a window each, and on one window, against one thread, in one run, in
// rounds that take turns; medians. Rank 0 works on the last rank, which sits in a barrier. For each way:
//   x        the N threads' operations per second over the one's; no more than the machine has idle cores
//   cpu x    processor time of one operation over the one's: 1 where threads do not disturb each other
//   waits    how often a thread gave its core up because it waited, in 1000 operations: 0 where none waits for another
// It fails if puts of 8 bytes into N windows scale by less than --at-least, or wait more often than --waits-at-most.
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <rma/rma.hpp>

namespace {

using window = rma::Window<std::uint64_t>;
using clock_type = std::chrono::steady_clock;

struct options {
  std::size_t threads = 2;
  std::size_t rounds = 15;
  double at_least = 0;
  double waits_at_most = 1e9;
};

options parse(int argc, char** argv) {
  options how;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word.starts_with("--rma-")) continue;
    if (i + 1 == argc) throw std::invalid_argument(std::string(word) + " needs a value, or is unknown");
    const char* const value = argv[++i];
    if (word == "--threads") {
      how.threads = std::stoul(value);
    } else if (word == "--rounds") {
      how.rounds = std::stoul(value);
    } else if (word == "--at-least") {
      how.at_least = std::stod(value);
    } else if (word == "--waits-at-most") {
      how.waits_at_most = std::stod(value);
    } else {
      throw std::invalid_argument("unknown option " + std::string(word));
    }
  }
  return how;
}

/// The resources that this thread has used so far.
struct usage {
  double cpu_s = 0;
  long waits = 0;  ///< voluntary context switches
};
usage used() {
  rusage now{};
  ::getrusage(RUSAGE_THREAD, &now);
  timespec cpu{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &cpu);
  return {static_cast<double>(cpu.tv_sec) + 1e-9 * static_cast<double>(cpu.tv_nsec), now.ru_nvcsw};
}

/// One way, once.
struct cost {
  double per_s = 0;  ///< operations
  double cpu_s = 0;  ///< processor time of one operation
  double waits = 0;  ///< in one operation
};

/// So many threads, which start together; thread t has `work(t, count)` do `count` operations.
cost spend(std::size_t threads, std::uint64_t count, const std::function<void(std::size_t, std::uint64_t)>& work) {
  std::atomic<std::size_t> ready = 0;
  std::vector<std::thread> all;
  std::vector<clock_type::time_point> begin(threads);
  std::vector<clock_type::time_point> end(threads);
  std::vector<usage> spent(threads);
  for (std::size_t t = 0; t < threads; ++t) {
    all.emplace_back([&, t] {
      work(t, count / 10 + 1);
      ready.fetch_add(1);
      while (ready.load() < threads) std::this_thread::yield();
      const usage before = used();
      begin[t] = clock_type::now();
      work(t, count);
      end[t] = clock_type::now();
      const usage after = used();
      spent[t] = {after.cpu_s - before.cpu_s, after.waits - before.waits};
    });
  }
  for (std::thread& t : all) t.join();
  const std::chrono::duration<double> took = *std::ranges::max_element(end) - *std::ranges::min_element(begin);
  const double operations = static_cast<double>(threads * count);
  cost total{operations / took.count()};
  for (const usage& each : spent) {
    total.cpu_s += each.cpu_s / operations;
    total.waits += static_cast<double>(each.waits) / operations;
  }
  return total;
}

double median(std::vector<double> of) {
  std::ranges::nth_element(of, of.begin() + static_cast<std::ptrdiff_t>(of.size() / 2));
  return of[of.size() / 2];
}

/// Figures of many threads, divided by those of one.
struct ratio {
  double speed, cpu, waits;
};
struct scaling {
  double one_mops;
  ratio windows, window;
};

/// Medians of the rounds.
class ratios {
 public:
  void add(const cost& many, const cost& one) {
    speed_.push_back(many.per_s / one.per_s);
    cpu_.push_back(many.cpu_s / one.cpu_s);
    waits_.push_back(1000 * many.waits);
  }
  [[nodiscard]] ratio medians() const { return {median(speed_), median(cpu_), median(waits_)}; }

 private:
  std::vector<double> speed_, cpu_, waits_;
};

/// `operation(window, thread, i)`.
template <class Operation>
scaling measure(const options& how, std::vector<window>& windows, std::uint64_t count, Operation operation) {
  std::vector<double> one_mops;
  ratios own;
  ratios shared;
  for (std::size_t round = 0; round < how.rounds; ++round) {
    const auto with = [&](bool same) {
      return [&, same](std::size_t t, std::uint64_t n) {
        for (std::uint64_t i = 0; i < n; ++i) operation(windows[same ? 0 : t], t, i);
      };
    };
    const cost one = spend(1, count, with(false));
    one_mops.push_back(one.per_s / 1e6);
    own.add(spend(how.threads, count, with(false)), one);
    shared.add(spend(how.threads, count, with(true)), one);
  }
  return {median(one_mops), own.medians(), shared.medians()};
}

void print(const char* what, std::size_t threads, const scaling& s) {
  std::printf("%-13s 1 thread %.3f Mops/s", what, s.one_mops);
  const auto part = [](const char* on, const ratio& r) {
    std::printf("; %s x %.2f, cpu x %.2f, waits %.3f", on, r.speed, r.cpu, r.waits);
  };
  std::printf("; %zu threads", threads);
  part("a window each", s.windows);
  part("one window", s.window);
  std::putchar('\n');
}

int run(const options& how) {
  constexpr std::size_t words = 8192;
  rma::Runtime runtime(rma::Config{.threads = rma::thread_level::multiple});
  rma::Team world = runtime.world();
  std::vector<window> windows;
  for (std::size_t t = 0; t < how.threads; ++t) windows.push_back(window::allocate(world, words * how.threads));
  int result = 0;
  if (runtime.rank() == 0) {
    const int target = runtime.size() - 1;
    std::vector<std::vector<std::uint64_t>> from(how.threads, std::vector<std::uint64_t>(words, 1));
    for (window& w : windows) (void)w.lock_all_nothrow();
    const scaling puts = measure(how, windows, 100'000, [&](window& w, std::size_t t, std::uint64_t i) {
      w.put(i, target, t * words + i % words);
      if (i % 16 == 0) w.flush(target);
    });
    print("put 8", how.threads, puts);
    print("put_flush 64K", how.threads, measure(how, windows, 1'000, [&](window& w, std::size_t t, std::uint64_t) {
            w.put(std::span<const std::uint64_t>(from[t]), target, t * words);
            w.flush(target);
          }));
    print("fetch_and_op", how.threads, measure(how, windows, 100'000, [&](window& w, std::size_t t, std::uint64_t) {
            (void)w.fetch_and_op(std::uint64_t{1}, target, t * words, rma::sum);
          }));
    for (window& w : windows) w.unlock_all();
    if (puts.windows.speed < how.at_least || puts.windows.waits > how.waits_at_most) {
      std::puts("a window for each thread: slower than --at-least, or more waits than --waits-at-most");
      result = 1;
    }
    std::puts("# at the end: all measured");
  }
  world.barrier();
  for (window& w : windows) w.free();
  return result;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(parse(argc, argv));
  } catch (const std::exception& e) {
    std::fprintf(stderr, "threads: %s\n", e.what());
    return 2;
  }
}
