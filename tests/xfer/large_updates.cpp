// SPDX-License-Identifier: Apache-2.0
// Goal: an operation of any size that goes by messages takes a bounded amount of memory, at its origin and, if it
// fetches, at its target; and all of it is done.
//
// Method: an accumulate, a strided put and a get of 192 MiB of user memory by the handler, while the target's rings are
// full all the time. Each process compares the most memory that it has ever had with what it had before.
//
// Break: leave keep_bounded out of run_handler: the origin keeps the whole operation once more.
#include <fmt/format.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t words_count = std::size_t{24} << 20;
constexpr std::size_t row = 1000;
constexpr long allowed_kib = 64 << 10;

long most_kib() {
  rusage used{};
  ::getrusage(RUSAGE_SELF, &used);
  return used.ru_maxrss;
}

class memory_check {
 public:
  explicit memory_check(const rma::Runtime& rt) : rt_(rt) {}
  void stays_small(std::string_view what) {
    const long grown = most_kib() - before_kib_;
    before_kib_ += std::max(grown, 0L);
    if (grown <= allowed_kib) return;
    fmt::print("large_updates: {}: rank {} took {} MiB more, allowed {}\n", what, rt_.rank(), grown >> 10,
               allowed_kib >> 10);
    good_ = false;
  }
  void holds(bool yes, std::string_view what) {
    if (!yes) fmt::print("large_updates: rank {}: {}\n", rt_.rank(), what);
    good_ = good_ && yes;
  }
  [[nodiscard]] bool good() const noexcept { return good_; }

 private:
  const rma::Runtime& rt_;
  long before_kib_ = most_kib();
  bool good_ = true;
};

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  std::vector<std::uint64_t> memory(words_count), from(words_count);
  std::iota(memory.begin(), memory.end(), 0);
  std::iota(from.begin(), from.end(), 7);
  auto win = rma::Window<std::uint64_t>::create(rt.world(), memory, {.accumulate = rma::accumulate_mode::handler});
  memory_check check(rt);
  const auto run = [&](std::string_view what, auto operation) {
    rt.world().barrier();
    if (rt.rank() == 0) {
      const auto epoch = win.lock_all();
      operation();
    }
    rt.world().barrier();
    check.stays_small(what);
  };
  const auto is = [&](std::span<const std::uint64_t> found, std::uint64_t first, std::uint64_t step) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i] != first + step * i) return false;
    }
    return true;
  };
  run("accumulate", [&] { win.accumulate(std::span<const std::uint64_t>(from), 1, 0, rma::sum); });
  if (rt.rank() == 1) check.holds(is(memory, 7, 2), "an accumulate that is not all there");
  const auto rows = rma::Layout::vector<std::uint64_t>(words_count / (2 * row), row, 2 * row);
  run("strided put", [&] { win.put(from.data(), rows, 1, 0, rows); });
  if (rt.rank() == 1) check.holds(memory[row - 1] == row + 6 && memory[row] == 2 * row + 7, "a put that is not there");
  run("get", [&] { win.get(std::span(from), 1, 0); });
  if (rt.rank() == 0) check.holds(from[row - 1] == row + 6 && from[row] == 2 * row + 7, "a get that is not there");
  win.free();
  if (rt.rank() == 0 && check.good()) fmt::print("large_updates: done\n");
  return check.good() ? 0 : 1;
}
