// SPDX-License-Identifier: Apache-2.0
// Goal: messages between nodes name layouts by numbers, whatever the scheme: the second transfer of a layout has at
// most 16 bytes of it on the wire. Layouts that the target has evicted are asked for, and nothing overtakes the message
// that names them. Method: simulated ranks on nodes of their own; the counters say how many bytes of layouts were sent,
// and asked for.
#include <array>
#include <catch2/catch.hpp>
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

/// Rank 0's operation on rank 1, of 200 ints that are no vector at either side.
enum class named { put, get, accumulate, get_accumulate, batched_put, batched_get };

/// The bytes of layouts in rank 0's messages of the first such operation and of the second.
std::vector<std::uint64_t> layout_bytes_of(const std::string& scheme, named kind) {
  std::vector<std::ptrdiff_t> offsets;
  for (std::ptrdiff_t i = 0; i < 200; ++i) offsets.push_back(i * i);
  const auto list = rma::Layout::indexed<int>(1, offsets);
  std::vector<std::uint64_t> bytes;
  with_ranks(2, {{"RMA_LAYOUT", scheme}, {"RMA_PROGRESS_THREAD", "1"}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 40'000);
    std::vector<int> mine(40'000), old(40'000);
    for (std::size_t i = 0; i < mine.size(); ++i) mine[i] = static_cast<int>(i);
    for (int& each : win.local()) each = 0;
    for (int turn = 0; turn < 2; ++turn) {
      rt.world().barrier();
      const std::uint64_t before = counter_of(rt, "layout_bytes");
      win.fence();
      if (rt.rank() == 0) {
        auto batch = win.aggregate();
        switch (kind) {
          case named::put: win.put(mine.data(), list, 1, 0, list); break;
          case named::get: win.get(old.data(), list, 1, 0, list); break;
          case named::accumulate: win.accumulate(mine.data(), list, 1, 0, list, rma::sum); break;
          case named::get_accumulate:
            if (!ok(win.get_accumulate_as(rma::element_of<int>, rma::sum, mine.data(), list, old.data(), list, 1, 0,
                                          list)))
              throw std::runtime_error("refused");
            break;
          case named::batched_put: batch.put(mine.data(), list, 1, 0, list); break;
          case named::batched_get: batch.get(old.data(), list, 1, 0, list); break;
        }
        batch.wait();
      }
      win.fence();
      if (rt.rank() == 0) bytes.push_back(counter_of(rt, "layout_bytes") - before);
    }
    const bool adds = kind == named::accumulate || kind == named::get_accumulate;
    const bool gets = kind == named::get || kind == named::batched_get;
    for (const std::ptrdiff_t at : offsets) {
      const int expected = static_cast<int>(at) * (adds ? 2 : 1);
      if (rt.rank() == 1 && !gets && win.local()[static_cast<std::size_t>(at)] != expected)
        throw std::runtime_error("wrong data");
    }
    win.free();
  });
  return bytes;
}

}  // namespace

// Break: let names_layout_ be false always, or layout_names::find find nothing.
TEST_CASE("the second transfer of a layout has at most 16 bytes of it on the wire", "[xfer][cache][generic][sgrs]") {
  for (const std::string scheme : {"generic", "sgrs", "host-assisted"}) {
    for (const named kind : {named::put, named::get}) {
      CAPTURE(scheme, static_cast<int>(kind));
      const std::vector<std::uint64_t> bytes = layout_bytes_of(scheme, kind);
      CHECK(bytes[0] > 400);
      CHECK(bytes[1] <= 16);
      CHECK(bytes[1] != 0);
    }
  }
  for (const std::string scheme : {"multi-w"}) CHECK(layout_bytes_of(scheme, named::put)[0] == 0);
  for (const named kind : {named::accumulate, named::get_accumulate, named::batched_put, named::batched_get}) {
    CAPTURE(static_cast<int>(kind));
    const std::vector<std::uint64_t> bytes = layout_bytes_of("auto", kind);
    CHECK(bytes[0] > 400);
    CHECK(bytes[1] <= 16);
    CHECK(bytes[1] != 0);
  }
}

// Two origins describe more layouts than the target keeps, so that it has to ask; each datum goes where its layout
// says. Break: let an unknown number be that of the layout before; or use a number again.
TEST_CASE("layouts that were pushed out of the cache are asked for", "[xfer][sgrs][generic][cache]") {
  constexpr std::size_t layouts = 1024, ints = 4096;
  constexpr int ranks = 3;
  std::uint64_t asked = 0;
  const std::string scheme = GENERATE(as<std::string>{}, "sgrs", "generic", "accumulate", "batch");
  const std::string cache = GENERATE(as<std::string>{}, "256", "0");
  CAPTURE(scheme, cache);
  const std::string forced = scheme == "sgrs" || scheme == "generic" ? scheme : "auto";
  with_ranks(ranks, {{"RMA_LAYOUT", forced}, {"RMA_LAYOUT_CACHE", cache}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 2 * ints);
    const auto part = static_cast<std::size_t>(rt.rank() == 2);
    const auto layout_of = [](std::size_t i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      return rma::Layout::indexed<int>(1, std::vector<std::ptrdiff_t>{0, at + 2, 2 * at + 3});
    };
    for (int& each : win.local()) each = 0;
    rt.world().barrier();
    for (std::size_t round = 0; round < 2; ++round) {
      for (std::size_t i = 0; i < layouts; ++i) {
        // The origins' orders differ, and what one uses again the other has pushed out meanwhile.
        const std::size_t which = rt.rank() == 2 ? i : i % 200;
        const int mark = static_cast<int>(round) + 1;
        const int data[] = {static_cast<int>(which), mark, mark};
        if (rt.rank() == 0) continue;
        const auto flat = rma::Layout::contiguous<int>(3);
        auto held = win.lock(rma::shared, 0);
        if (scheme == "accumulate") {
          win.accumulate(data, flat, 0, part * ints, layout_of(which), rma::replace);
        } else if (scheme == "batch") {
          auto batch = win.aggregate();
          batch.put(data, flat, 0, part * ints, layout_of(which));
          batch.wait();
        } else {
          win.put(data, flat, 0, part * ints, layout_of(which));
        }
        held.unlock();
      }
      rt.world().barrier();
      for (std::size_t i = 0; rt.rank() == 0 && i < layouts; ++i) {
        const int mark = static_cast<int>(round) + 1;
        if (win.local()[ints + i + 2] != mark || win.local()[ints + 2 * i + 3] != mark)
          throw std::runtime_error("wrong data");
        if (i < 200 && (win.local()[i + 2] != mark || win.local()[2 * i + 3] != mark))
          throw std::runtime_error("wrong data");
      }
      rt.world().barrier();
    }
    if (rt.rank() == 0) asked = counter_of(rt, "layouts_asked");
    win.free();
  });
  CHECK((asked > 0) == (cache != "0"));  // without a cache each use is described
}

// Break: let the handlers of later messages run while one is held.
TEST_CASE("what comes after an unknown layout waits for its description", "[xfer][generic][cache]") {
  constexpr std::size_t others = 40;
  std::uint64_t asked = 0;
  with_ranks(3, {{"RMA_LAYOUT_CACHE", "16"}}, [&](rma::Runtime& rt) {
    auto win = rma::Window<int>::allocate(rt.world(), 4096);
    const auto layout_of = [](std::size_t i) {
      const auto at = static_cast<std::ptrdiff_t>(i);
      return rma::Layout::indexed<int>(1, std::vector<std::ptrdiff_t>{0, at + 2, 2 * at + 3});
    };
    const auto update = [&](std::size_t i, const std::array<int, 3>& data) {
      win.accumulate(data.data(), rma::Layout::contiguous<int>(3), 0, 0, layout_of(i), rma::replace);
    };
    constexpr std::array other_data{-1, -1, -1};
    for (int turn = 1; turn <= 3; ++turn) {
      const std::array data{turn, turn, turn};
      // Rank 1's layout is known to it and, once rank 2 has used others, unknown to the target.
      win.fence();
      if (rt.rank() == 2) {
        for (std::size_t i = 0; i < others; ++i) update(100 + i, other_data);
      }
      win.fence();
      if (rt.rank() == 1) {
        update(0, data);
        win.accumulate(10 * turn, 0, 2, rma::replace);  // ordered after it
        win.accumulate(10 * turn, 0, 3, rma::sum);
      }
      win.fence();
      if (rt.rank() == 0 && (win.local()[0] != turn || win.local()[2] != 10 * turn || win.local()[3] != 11 * turn))
        throw std::runtime_error("a later operation came first");
    }
    if (rt.rank() == 0) asked = counter_of(rt, "layouts_asked");
    win.free();
  });
  CHECK(asked == 2);
}

// Break: leave out may_be_asked in context::drain.
TEST_CASE("a rank that leaves describes its layouts first", "[xfer][generic][cache]") {
  std::uint64_t asked = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    CAPTURE(seed);
    rma::sim::Config job{.ranks = 3, .parameters = "dissertation-ddr"};
    job.ranks_per_node = 1;
    job.limit = std::chrono::seconds(60);
    job.settings["RMA_LAYOUT_CACHE"] = "16";
    job.settings["RMA_AGGREGATE"] = "1024";  // the end of the epoch goes with the update, and waits for nothing
    job.settings["RMA_PROGRESS_THREAD"] = seed % 2 == 0 ? "0" : "1";
    job.seed = seed;
    job.faults = seed > 1;
    const auto ended = rma::sim::run(job, [&](rma::Runtime& rt) {
      auto win = rma::Window<int>::allocate(rt.world(), 4096);
      for (int& each : win.local()) each = 0;
      const std::array data{1, 1, 1};
      const auto update = [&](std::ptrdiff_t i) {
        const auto list = rma::Layout::indexed<int>(1, std::vector<std::ptrdiff_t>{0, i + 2, 2 * i + 3});
        win.accumulate(data.data(), rma::Layout::contiguous<int>(3), 0, 0, list, rma::sum);
      };
      win.fence();
      if (rt.rank() == 1) update(7);
      win.fence();
      if (rt.rank() == 2) {
        for (std::ptrdiff_t i = 0; i < 40; ++i) update(100 + i);
      }
      win.fence();
      win.fence(rma::no_succeed);
      if (rt.rank() == 1) {
        win.start(std::array{0});
        update(7);
        win.complete();
        return;  // leaves, while the target computes
      }
      if (rt.rank() != 0) return;
      win.post(std::array{1});
      rt.compute(std::chrono::milliseconds(1));
      win.wait();
      asked += counter_of(rt, "layouts_asked");
      if (win.local()[9] != 2 || win.local()[17] != 2) throw std::runtime_error("wrong data");
    });
    INFO(ended.text());
    CHECK(ended.ok());
  }
  CHECK(asked >= 8);
}
