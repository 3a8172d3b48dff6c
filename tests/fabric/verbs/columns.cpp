// SPDX-License-Identifier: Apache-2.0
// Goal: columns of a matrix in user memory take one registration for all rows, by each layout scheme that reads or
// writes them where they are. Method: rank 0 transfers columns of matrices of 64 and 200 rows of 4096 ints, each in
// memory of its own; the adapter's counter says how many registrations that took. Prints one line for each check that
// fails. Break: leave out posting::expect_pieces, or bulk_streams' announcement.
#include <fmt/format.h>

#include <cstdint>
#include <list>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"

namespace {

constexpr std::size_t row_ints = 4096, length = 2048;

std::uint64_t registrations(const rma::Runtime& rt) {
  for (const rma::Counter& each : rt.counters()) {
    if (each.name == "verbs_registrations") return each.value;
  }
  throw std::runtime_error("no such counter");
}

struct scheme {
  std::string_view name;
  rma::layout_scheme hint;
  bool put;
  bool target_in_pieces;
};

/// The registrations of rank 0 that two transfers of columns take.
std::uint64_t taken(rma::Runtime& rt, const scheme& s, std::size_t rows, std::vector<int>& mine) {
  auto win = rma::Window<int>::allocate(rt.world(), rows * row_ints, {.layout = s.hint});
  for (int& each : win.local()) each = 5;
  mine.assign(rows * row_ints, 7);
  const auto here = rma::Layout::vector<int>(rows, length, row_ints);
  const auto there = s.target_in_pieces ? here : rma::Layout::contiguous<int>(rows * length);
  rt.world().barrier();
  const std::uint64_t before = registrations(rt);
  for (int turn = 0; turn < 2; ++turn) {
    win.fence();
    if (rt.rank() == 0 && s.put) win.put(mine.data(), here, 1, 0, there);
    if (rt.rank() == 0 && !s.put) win.get(mine.data(), here, 1, 0, there);
    win.fence();
  }
  const std::uint64_t count = registrations(rt) - before;
  const int seen = s.put ? win.local()[0] : mine[(rows - 1) * row_ints];
  if (seen != (s.put ? (rt.rank() == 1 ? 7 : 5) : (rt.rank() == 0 ? 5 : 7))) throw std::runtime_error("wrong data");
  win.free();
  return count;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  bool all = true;
  std::list<std::vector<int>> kept;  // no matrix lies where another one was registered
  for (const scheme& s : {scheme{"multi-w", rma::layout_scheme::multi_w, true, true},
                          scheme{"multi-w, get", rma::layout_scheme::multi_w, false, true},
                          scheme{"write-gather", rma::layout_scheme::write_gather, true, false},
                          scheme{"read-scatter", rma::layout_scheme::read_scatter, false, false},
                          scheme{"sgrs", rma::layout_scheme::sgrs, true, true},
                          scheme{"sgrs, get", rma::layout_scheme::sgrs, false, true}}) {
    for (const std::size_t rows : {std::size_t{64}, std::size_t{200}}) {
      const std::uint64_t count = taken(rt, s, rows, kept.emplace_back());
      if (rt.rank() != 0 || count == 1) continue;
      fmt::print("columns: {}: {} registrations for {} rows\n", s.name, count, rows);
      all = false;
    }
  }
  if (rt.rank() == 0 && all) fmt::print("columns: done\n");
  return all ? 0 : 1;
}
