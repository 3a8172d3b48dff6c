// SPDX-License-Identifier: Apache-2.0
// Goal: layouts between nodes go by the scheme that is asked for (generic, multi-w, write-gather,
// read-scatter, sgrs, host-assisted), and `auto` takes the one that is
// faster, unless that would make an operation need a target that computes.
// Method: simulated ranks on nodes of their own; the counters say how many work requests and messages a scheme has
// made, virtual time says how long it took. Break: let choose_protocol take the greater estimate, or skip
// target_serves.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "rma/rma.hpp"
#include "rma/sim.hpp"
#include "xfer/sim_ranks.hpp"

using rma::test::counter_of;
using rma::test::with_ranks;

namespace {

constexpr std::size_t rows = 64;
constexpr std::size_t columns = 4096;

enum class epoch_kind : std::uint8_t { passive, fence };

struct outcome {
  std::uint64_t by_fabric = 0, by_handler = 0;
  double time_ns = 0;
};

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

namespace {

/// The growth of a rank's counters.
struct counted {
  std::uint64_t requests = 0, layout_bytes = 0, handled = 0, asked = 0, plans = 0;
};

counted counts_of(rma::Runtime& rt) {
  return {counter_of(rt, "layout_requests"), counter_of(rt, "layout_bytes"), counter_of(rt, "operations_handler"),
          counter_of(rt, "layouts_asked"), counter_of(rt, "layout_plans")};
}

counted since(rma::Runtime& rt, const counted& before) {
  const counted now = counts_of(rt);
  return {now.requests - before.requests, now.layout_bytes - before.layout_bytes, now.handled - before.handled,
          now.asked - before.asked, now.plans - before.plans};
}

/// Two transfers of `here` and `there` by rank 0; what they took there and at rank 1, in that order.
std::vector<counted> two_transfers(const std::string& scheme, bool put, const rma::Layout& here,
                                   const rma::Layout& there, const std::string& helper = "0") {
  std::vector<counted> took(4);
  with_ranks(2, {{"RMA_LAYOUT", scheme}, {"RMA_PROGRESS_THREAD", helper}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<std::byte>::allocate(rt.world(), std::size_t{4} << 20);
    std::vector<std::byte> mine(std::size_t{4} << 20, std::byte{7});
    for (std::size_t i = 0; i < 2; ++i) {
      rt.world().barrier();
      const counted before = counts_of(rt);
      win.fence();
      if (rt.rank() == 0 && put) win.put(mine.data(), here, 1, 0, there);
      if (rt.rank() == 0 && !put) win.get(mine.data(), here, 1, 0, there);
      win.fence();
      took[2 * i + static_cast<std::size_t>(rt.rank())] = since(rt, before);
    }
    win.free();
  });
  return took;
}

}  // namespace

// Break: cut the lists of one side only, or at one more piece than the network takes.
TEST_CASE("sgrs posts as many sends as receives, as the matching decision says", "[xfer][sgrs]") {
  const bool put = GENERATE(true, false);
  CAPTURE(put);
  const auto rows_of = [](std::size_t count) { return rma::Layout::vector<int>(count, 8, 64); };
  const auto requests = [&](const rma::Layout& here, const rma::Layout& there) {
    const std::vector<counted> took = two_transfers("sgrs", put, here, there);
    for (std::size_t i = 0; i < 4; ++i) CHECK(took[i].handled == 0);
    for (std::size_t i = 0; i < 4; i += 2) CHECK(took[i].requests == took[i + 1].requests);
    CHECK(took[0].requests == took[2].requests);
    return took[0].requests;
  };
  CHECK(requests(rows_of(64), rows_of(64)) == 2);  // lists of 50 pieces
  CHECK(requests(rows_of(100), rows_of(100)) == 2);
  CHECK(requests(rows_of(101), rma::Layout::contiguous<int>(808)) == 3);
  CHECK(requests(rma::Layout::contiguous<int>(808), rows_of(101)) == 3);
  // 80 pieces of 40 bytes here and 100 of 32 there: the longer list is full first.
  CHECK(requests(rma::Layout::vector<int>(80, 10, 64), rma::Layout::vector<int>(100, 8, 64)) == 2);
  CHECK(requests(rows_of(2000), rows_of(2000)) == 40);  // more than may be posted at once
}

// Break: describe a layout each time.
TEST_CASE("a layout is described once", "[xfer][sgrs]") {
  std::vector<std::ptrdiff_t> offsets;
  for (std::ptrdiff_t i = 0; i < 200; ++i) offsets.push_back(i * i);
  const auto list = rma::Layout::indexed<int>(1, offsets);
  for (const bool put : {true, false}) {
    const std::vector<counted> took = two_transfers("sgrs", put, list, rma::Layout::vector<int>(200, 1, 3));
    CHECK(took[0].layout_bytes > 400);
    CHECK(took[2].layout_bytes <= 16);
    CHECK(took[1].layout_bytes + took[3].layout_bytes == 0);
  }
}

// Break: let `plan` not look among those that are kept, or key them by one of the two layouts.
TEST_CASE("how two layouts are cut is decided once", "[xfer][sgrs]") {
  const auto rows_of = [](std::size_t count, std::ptrdiff_t stride) {
    return rma::Layout::vector<int>(count, 8, stride);
  };
  for (const bool put : {true, false}) {
    CAPTURE(put);
    const std::vector<counted> took = two_transfers("sgrs", put, rows_of(120, 64), rows_of(120, 32));
    CHECK(took[0].plans == 1);
    CHECK(took[1].plans == 1);
    CHECK(took[2].plans + took[3].plans == 0);
    CHECK(took[2].requests == 3);
    CHECK(took[3].requests == 3);
    const std::vector<counted> long_ones = two_transfers("sgrs", put, rows_of(3000, 64), rows_of(3000, 32));
    CHECK(long_ones[2].plans == 1);  // too long to be kept
  }
  const std::vector<counted> both = [&] {
    std::vector<counted> took(2);
    with_ranks(2, {{"RMA_LAYOUT", "sgrs"}}, [&](rma::Runtime& rt) {
      auto win = rma::Window<int>::allocate(rt.world(), 1 << 14);
      std::vector<int> mine(1 << 14, rt.rank() + 1);
      for (int turn = 0; turn < 3; ++turn) {  // the same layouts in other pairs, and as target and origin
        const counted before = counts_of(rt);
        win.fence();
        win.put(mine.data(), rows_of(70, 64), 1 - rt.rank(), 0, rows_of(70, 32));
        win.get(mine.data() + 32, rows_of(70, 64), 1 - rt.rank(), 8, rows_of(70, 64));
        win.fence();
        took[static_cast<std::size_t>(rt.rank())] = since(rt, before);
        for (std::size_t i = 0; i < 70 * 8; ++i) {
          if (win.local()[i / 8 * 32 + i % 8] != 2 - rt.rank()) throw std::runtime_error("wrong data");
        }
      }
      win.free();
    });
    return took;
  }();
  CHECK(both[0].plans + both[1].plans == 0);
}

// Puts and gets of both ranks, of different lengths, all under way at once.
// Break: send to what was granted last, or post receives apart from the message that grants them.
TEST_CASE("each send of the bulk channel meets its receive", "[xfer][sgrs]") {
  constexpr std::size_t transfers = 40, part = 1024;
  for (std::uint64_t seed = 0; seed < 7; ++seed) {
    CAPTURE(seed);
    rma::sim::Config job{.ranks = 2, .parameters = "dissertation-ddr"};
    job.ranks_per_node = 1;
    job.limit = std::chrono::seconds(60);
    job.settings["RMA_LAYOUT"] = "sgrs";
    job.seed = seed;
    job.faults = seed != 0;
    const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
      // Puts go to the first half of each rank's part, gets take from the second.
      auto win = rma::Window<int>::allocate(rt.world(), 2 * transfers * part);
      const int other = 1 - rt.rank();
      const auto tag = [=](int rank, std::size_t i, std::size_t k) {
        return static_cast<int>((static_cast<std::size_t>(rank) * transfers + i) * part + k + 1);
      };
      std::vector<int> out(transfers * part), in(transfers * part);
      for (std::size_t i = 0; i < transfers; ++i) {
        for (std::size_t k = 0; k < part; ++k) {
          out[i * part + k] = tag(rt.rank(), i, k);
          win.local()[(transfers + i) * part + k] = -tag(rt.rank(), i, k);
        }
      }
      const auto layout_of = [](std::size_t i) { return rma::Layout::vector<int>(2 + i * 7 % 90, 1 + i % 5, 10); };
      win.fence();
      for (std::size_t i = 0; i < transfers; ++i) {
        win.put(out.data() + i * part, layout_of(i), other, i * part, layout_of(i));
        win.get(in.data() + i * part, layout_of(i), other, (transfers + i) * part, layout_of(i));
      }
      win.fence();
      for (std::size_t i = 0; i < transfers; ++i) {
        for (std::size_t row = 0; row < 2 + i * 7 % 90; ++row) {
          for (std::size_t k = row * 10; k < row * 10 + 1 + i % 5; ++k) {
            if (win.local()[i * part + k] != tag(other, i, k)) throw std::runtime_error("wrong data were put");
            if (in[i * part + k] != -tag(other, i, k)) throw std::runtime_error("wrong data were got");
          }
        }
      }
      win.free();
    });
    INFO(ended.text());
    CHECK(ended.ok());
  }
}

TEST_CASE("host-assisted needs a helper at the target", "[xfer][host-assisted]") {
  const auto list = rma::Layout::vector<int>(64, 8, 64);
  CHECK(two_transfers("host-assisted", true, list, list)[0].handled == 1);  // refused: by generic
  const std::vector<counted> helped = two_transfers("host-assisted", true, list, list, "1");
  CHECK(helped[0].handled == 0);
  CHECK(helped[0].requests == 2);
}

// Break: leave out that chunks are pipelined, or what a list's entries cost.
// On ndr400 a message takes 4 or 10 us, whether its receiver is awake or not, which no estimate knows.
TEST_CASE("auto is close to the best scheme on the dissertation's machines", "[xfer][auto]") {
  const auto time_of = [](const std::string& machine, const std::string& scheme, std::size_t length) {
    double ns = 0;
    rma::sim::Config job{.ranks = 2, .parameters = machine};
    job.ranks_per_node = 1;
    job.limit = std::chrono::seconds(60);
    job.settings["RMA_LAYOUT"] = scheme;
    job.settings["RMA_PROGRESS_THREAD"] = "1";
    const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
      auto win = rma::Window<int>::allocate(rt.world(), rows * columns);
      const auto block = rma::Layout::vector<int>(rows, length, columns);
      std::vector<int> mine(rows * columns, rt.rank());
      if (rt.rank() == 0) {
        auto held = win.lock(rma::shared, 1);
        for (int i = 0; i < 2; ++i) {
          const auto begin = rt.now();
          win.put(mine.data(), block, 1, 0, block);
          win.flush(1);
          ns = std::chrono::duration<double, std::nano>(rt.now() - begin).count();
        }
        held.unlock();
      }
      win.free();
    });
    if (!ended.ok()) throw std::runtime_error(ended.text());
    return ns;
  };
  for (const std::string machine : {"dissertation-ddr", "dissertation-sdr-pcix", "dissertation-sdr-pcie"}) {
    for (const std::size_t length : std::array<std::size_t, 7>{1, 4, 16, 64, 128, 256, 1024}) {
      CAPTURE(machine, length);
      double best_ns = 1e18;
      for (const std::string scheme : {"generic", "multi-w", "sgrs"})
        best_ns = std::min(best_ns, time_of(machine, scheme, length));
      CHECK(time_of(machine, "auto", length) <= 1.1 * best_ns);
    }
  }
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
