// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 computing_target (two nodes, or RMA_INTRANODE=off)
//
// Goal: where transfers and locks need the target, it says so; with a progress thread at the target an epoch of lock,
// put, unlock does not wait for its computation, without one it does. Method: rank 1 computes for 2 s without a call,
// and rank 0 makes epochs meanwhile. With the thread the median epoch must be less than a 200th of that time; without
// it, there is no time for a second one. Break: let the progress thread sleep, or start none.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

namespace {

using namespace std::chrono_literals;
using window = rma::Window<std::uint64_t>;

constexpr auto computation = 2s;
constexpr int median_fraction = 200, longest_fraction = 40;

bool has_progress_thread(const rma::Runtime& rt) { return rt.waits().find("progress thread") != std::string::npos; }

/// Nanoseconds of each epoch until the target's computation is nearly over.
std::vector<double> epochs(rma::Runtime& rt, window& win) {
  std::vector<double> took_ns;
  for (const auto begin = rt.now(); rt.now() - begin < computation * 3 / 4;) {
    const auto start = rt.now();
    auto held = win.lock(rma::exclusive, 1);
    win.put(took_ns.size() + 1, 1, 0);
    held.unlock();
    took_ns.push_back(static_cast<double>((rt.now() - start).count()));
  }
  return took_ns;
}

bool judge(std::vector<double> took_ns, bool thread, bool one_sided) {
  std::sort(took_ns.begin(), took_ns.end());
  const double median_ms = took_ns[took_ns.size() / 2] / 1e6;
  fmt::print(
      "{} epochs while the target computes for 2 s, median {:.3f} ms, longest {:.3f} ms; progress thread {}, {}\n",
      took_ns.size(), median_ms, took_ns.back() / 1e6, thread ? "on" : "off",
      one_sided ? "one-sided" : "needs the target");
  const double whole_ms = std::chrono::duration<double, std::milli>(computation).count();
  const double second_ms = took_ns[took_ns.size() - std::min<std::size_t>(took_ns.size(), 2)] / 1e6;
  if (thread) return median_ms < whole_ms / median_fraction && second_ms < whole_ms / longest_fraction;
  return one_sided || took_ns.size() <= 1;
}

int run(rma::Runtime& rt) {
  if (rt.size() != 2) rt.abort(2, "computing_target needs two ranks");
  auto win = window::allocate(rt.world(), 1);
  if (rt.rank() == 0) win.lock(rma::exclusive, 1).unlock();  // connects
  rt.world().barrier();
  bool good = true;
  if (rt.rank() == 0) {
    good = judge(epochs(rt, win), has_progress_thread(rt), win.one_sided(rma::detail::call::put, 1));
  } else {
    for (const auto begin = rt.now(); rt.now() - begin < computation;) {}  // no call of the library but for the time
  }
  rt.world().barrier();
  win.free();
  if (rt.rank() == 0) fmt::print("computing target: {}\n", good ? "as it should be" : "FAILED");
  return good ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    rma::Runtime rt(argc, argv);
    return run(rt);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "computing_target: %s\n", e.what());
    return 1;
  }
}
