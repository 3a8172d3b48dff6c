// SPDX-License-Identifier: Apache-2.0
// Goal: a new protocol is one file and one row of the table.
// Method: the production table is compiled with one row more (tests/xfer/toy); nothing else of the library changes.
// Break: leave the row out.
#include <catch2/catch.hpp>

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "tests/xfer/toy/toy_starts.hpp"

TEST_CASE("a protocol in one file carries out puts", "[xfer][protocol]") {
  constexpr std::size_t rows = 16, columns = 64, length = 3;
  rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
  job.ranks_per_node = 1;
  const int before = rma::detail::toy_starts();
  const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), rows * columns);
    const auto block = rma::Layout::vector<int>(rows, length, columns);
    std::vector<int> mine(rows * columns, 7);
    win.fence();
    if (rt.rank() == 0) win.put(mine.data(), block, 1, 0, block);
    win.fence();
    if (rt.rank() == 0) {
      std::vector<int> back(rows * columns);
      win.get(back.data(), block, 1, 0, block);  // which toy refuses
      win.fence();
      if (back[0] != 7 || back[columns] != 7 || back[length] != 0) throw std::runtime_error("wrong data");
    } else {
      win.fence();
      const auto part = win.local();
      for (std::size_t i = 0; i < rows * columns; ++i) {
        if (part[i] != (i % columns < length ? 7 : 0)) throw std::runtime_error("wrong data");
      }
    }
    win.free();
  });
  INFO(ended.text());
  CHECK(ended.ok());
  CHECK(rma::detail::toy_starts() == before + 1);
}
