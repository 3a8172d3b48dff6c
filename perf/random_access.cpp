// SPDX-License-Identifier: Apache-2.0
// RandomAccess (GUPS): every rank xors pseudo-random words into tables spread over all ranks, by accumulate. A lock for
// each update, and a flush for each 64 updates of a lock_all epoch. Atomicity `element`, as in the example: all updates
// are of single words; and `striped`, which a window without hints has.
// Every update counts: the same stream a second time must give back the table.
#include <string>

#include "bench.hpp"
#include "plan.hpp"

namespace {

using window = rma::Window<std::uint64_t>;

void locked(perf::bench& b, window& win, perf::update_stream& stream, std::uint64_t updates) {
  for (std::uint64_t i = 0; i < updates; ++i) {
    const std::uint64_t value = stream.next();
    const auto place = perf::place_of(value, b.ranks());
    auto epoch = win.lock(rma::shared, place.target, rma::deferrable);
    win.accumulate(value, place.target, place.at, rma::bxor);
  }
}

void flushed(perf::bench& b, window& win, perf::update_stream& stream, std::uint64_t updates) {
  auto epoch = win.lock_all();
  for (std::uint64_t i = 0; i < updates; ++i) {
    const std::uint64_t value = stream.next();
    const auto place = perf::place_of(value, b.ranks());
    win.accumulate(value, place.target, place.at, rma::bxor);
    if ((i + 1) % perf::updates_per_flush == 0) epoch.flush();
  }
}

using kernel = void (*)(perf::bench&, window&, perf::update_stream&, std::uint64_t updates);

void measure(perf::bench& b, window& win, const std::string& metric, kernel updates_of) {
  for (std::size_t i = 0; i < win.size(); ++i) win[i] = i;
  b.world.barrier();
  perf::update_stream stream(b.rank());
  std::uint64_t done = 0;
  b.points.everyone({metric, 8, perf::unit::gups, static_cast<double>(b.ranks())}, [&](std::uint64_t n) {
    updates_of(b, win, stream, n);
    done += n;
    b.world.barrier();
  });
  perf::update_stream again(b.rank());
  flushed(b, win, again, done);
  b.world.barrier();
  bool intact = true;
  for (std::size_t i = 0; i < win.size(); ++i) intact = intact && win[i] == i;
  perf::require(intact, metric);
}

}  // namespace

namespace {

void measure_both(perf::bench& b, const rma::Hints& hints, const std::string& suffix) {
  auto win = window::allocate(b.world, perf::table_words, hints);
  measure(b, win, "random_access_lock" + suffix, locked);
  measure(b, win, "random_access_flush" + suffix, flushed);
  win.free();
}

/// On all ranks alike.
bool all_mapped(perf::bench& b) {
  int mapped = 1;
  for (int r = 0; r < b.ranks(); ++r) mapped &= b.world.shares_memory(r) ? 1 : 0;
  return b.world.allreduce(mapped, rma::min) != 0;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "RandomAccess by accumulate", 1, [](perf::bench& b) {
    if (!all_mapped(b)) return measure_both(b, {}, "");  // whoever owns atomicity there
    measure_both(b, {.accumulate = rma::accumulate_mode::element}, "");
    measure_both(b, {.accumulate = rma::accumulate_mode::striped}, "_striped");
  });
}
