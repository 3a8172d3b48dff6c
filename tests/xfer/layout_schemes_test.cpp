// SPDX-License-Identifier: Apache-2.0
// Goal: layouts between nodes go by the scheme that is asked for (generic, multi-w, write-gather,
// read-scatter), and `auto` takes the one that is
// faster, unless that would make an operation need a target that computes.
// Method: simulated ranks on nodes of their own; the counters say how many work requests and messages a scheme has
// made, virtual time says how long it took. Break: let choose_protocol take the greater estimate, or skip
// target_serves.
#include <catch2/catch.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"

namespace {

constexpr std::size_t rows = 64;
constexpr std::size_t columns = 4096;

enum class epoch_kind : std::uint8_t { passive, fence };

struct outcome {
  std::uint64_t by_fabric = 0, by_handler = 0;
  double time_ns = 0;
};

std::uint64_t counter_of(rma::Runtime& rt, const std::string& name) {
  for (const rma::Counter& each : rt.counters()) {
    if (each.name == name) return each.value;
  }
  throw std::runtime_error("no counter " + name);
}

/// Rank 0 puts `length` columns of 64 rows into rank 1, which then checks them.
outcome put_columns(const std::string& scheme, std::size_t length, epoch_kind kind, bool thread = false) {
  rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
  job.ranks_per_node = 1;
  job.limit = std::chrono::seconds(60);
  job.settings["RMA_LAYOUT"] = scheme;
  job.settings["RMA_PROGRESS_THREAD"] = thread ? "1" : "0";
  outcome found;
  const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), rows * columns);
    const auto block = rma::Layout::vector<int>(rows, length, columns);
    std::vector<int> mine(rows * columns);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<int>(i);
    const auto put = [&] { win.put(mine.data(), block, 1, 0, block); };
    const auto transfer = [&](bool passive) {
      if (!passive) {
        win.fence();
        if (rt.rank() == 0) put();
        win.fence();
      } else if (rt.rank() == 0) {
        auto held = win.lock(rma::exclusive, 1);
        put();
        held.unlock();
      }
      rt.world().barrier();
    };
    const bool passive = kind == epoch_kind::passive;
    transfer(passive);  // connects
    const std::uint64_t fabric = counter_of(rt, "operations_fabric"), handler = counter_of(rt, "operations_handler");
    const auto begin = rt.now();
    transfer(passive);
    if (rt.rank() == 0) {
      found.time_ns = std::chrono::duration<double, std::nano>(rt.now() - begin).count();
      found.by_fabric = counter_of(rt, "operations_fabric") - fabric;
      found.by_handler = counter_of(rt, "operations_handler") - handler;
    } else {
      const auto part = win.local();
      for (std::size_t r = 0; r < rows; ++r) {
        for (std::size_t c = 0; c < length; ++c) {
          if (part[r * columns + c] != static_cast<int>(r * columns + c)) throw std::runtime_error("wrong data");
        }
      }
    }
    win.free();
  });
  if (!ended.ok()) throw std::runtime_error(ended.text());
  return found;
}

}  // namespace

TEST_CASE("layouts go by the scheme that is asked for", "[xfer][generic][multi-w]") {
  const auto length = GENERATE(std::size_t{1}, std::size_t{8}, std::size_t{512});
  const auto kind = GENERATE(epoch_kind::passive, epoch_kind::fence);
  CAPTURE(length, static_cast<int>(kind));
  const outcome generic = put_columns("generic", length, kind);
  CHECK(generic.by_handler == 1);
  CHECK(generic.by_fabric == 0);
  const outcome multi_w = put_columns("multi-w", length, kind);
  CHECK(multi_w.by_handler == 0);
  CHECK(multi_w.by_fabric == 1);
}

namespace {

/// Rank 0 puts (or gets) 64 rows of its matrix to one piece of rank 1's memory. The requests that this took, -1 if the
/// target's handler did it.
std::int64_t requests_of_one_side(const std::string& scheme, bool put, bool target_in_pieces) {
  rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
  job.ranks_per_node = 1;
  job.limit = std::chrono::seconds(60);
  job.settings["RMA_LAYOUT"] = scheme;
  std::int64_t requests = 0;
  const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
    constexpr std::size_t length = 8;
    auto win = rma::Window<int>::allocate(rt.world(), rows * columns);
    for (std::size_t i = 0; i < rows * columns; ++i) win.local()[i] = static_cast<int>(i);
    const auto here = rma::Layout::vector<int>(rows, length, columns);
    const auto there = target_in_pieces ? here : rma::Layout::contiguous<int>(rows * length);
    std::vector<int> mine(rows * columns);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = -static_cast<int>(i);
    rt.world().barrier();
    const std::uint64_t before = counter_of(rt, "layout_requests"), handled = counter_of(rt, "operations_handler");
    win.fence();
    if (rt.rank() == 0 && put) win.put(mine.data(), here, 1, 0, there);
    if (rt.rank() == 0 && !put) win.get(mine.data(), here, 1, 0, there);
    win.fence();
    if (rt.rank() == 0) {
      requests = static_cast<std::int64_t>(counter_of(rt, "layout_requests") - before);
      if (counter_of(rt, "operations_handler") != handled) requests = -1;
    }
    for (std::size_t i = 0; i < rows * length; ++i) {
      const std::size_t matrix = i / length * columns + i % length, part = target_in_pieces ? matrix : i;
      const bool right = put ? rt.rank() == 0 || win.local()[part] == -static_cast<int>(matrix)
                             : rt.rank() == 1 || mine[matrix] == static_cast<int>(part);
      if (!right) throw std::runtime_error("wrong data");
    }
    win.free();
  });
  if (!ended.ok()) throw std::runtime_error(ended.text());
  return requests;
}

}  // namespace

// Break: post after each piece, or let the list be longer than the network says.
TEST_CASE("one side in pieces: as many requests as lists are needed", "[xfer][write-gather][read-scatter]") {
  CHECK(requests_of_one_side("multi-w", true, false) == 64);
  CHECK(requests_of_one_side("multi-w", false, false) == 64);
  CHECK(requests_of_one_side("write-gather", true, false) == 3);  // lists of 30
  CHECK(requests_of_one_side("read-scatter", false, false) == 3);
  CHECK(requests_of_one_side("write-gather", false, false) == -1);  // refused: by generic
  CHECK(requests_of_one_side("read-scatter", true, false) == -1);
  CHECK(requests_of_one_side("write-gather", true, true) == -1);
  CHECK(requests_of_one_side("read-scatter", false, true) == -1);
}

TEST_CASE("auto takes the faster scheme", "[xfer][generic][multi-w]") {
  for (const std::size_t length : {std::size_t{1}, std::size_t{8}, std::size_t{64}, std::size_t{512}}) {
    CAPTURE(length);
    const double generic_ns = put_columns("generic", length, epoch_kind::fence).time_ns;
    const double multi_w_ns = put_columns("multi-w", length, epoch_kind::fence).time_ns;
    CHECK(put_columns("auto", length, epoch_kind::fence).time_ns <= 1.1 * std::min(generic_ns, multi_w_ns));
  }
}

TEST_CASE("auto leaves operations one-sided that are", "[xfer][generic][multi-w]") {
  CHECK(put_columns("auto", 8, epoch_kind::fence).by_handler == 1);
  CHECK(put_columns("auto", 8, epoch_kind::passive, true).by_handler == 1);  // the thread serves
  CHECK(put_columns("auto", 8, epoch_kind::passive).by_fabric == 1);         // the target may compute
  CHECK(put_columns("auto", 512, epoch_kind::fence).by_fabric == 1);
}
