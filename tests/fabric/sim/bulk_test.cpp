// SPDX-License-Identifier: Apache-2.0
// The bulk channel of the simulated fabric: data go from the gather list into the posted receive, in order, once; who
// comes first waits; what cannot be is an error at both ends; nothing stays unfinished.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/weather.hpp"
#include "fabric/sim/wire.hpp"
#include "fabric/sim/world.hpp"

namespace rma::sim {
namespace {

constexpr time_ps us = 1'000'000;
using bytes = std::vector<std::byte>;

/// Notes what is over, in order.
struct notes final : fabric::sink {
  void on_completion(std::uint64_t token, status result, std::uint64_t length) noexcept override {
    order.push_back(token);
    results[token] = result;
    got[token] = length;
  }
  void on_message(int, std::uint16_t, std::span<const std::byte>) noexcept override {}
  void on_immediate(int, std::uint32_t) noexcept override {}
  std::vector<std::uint64_t> order;
  std::map<std::uint64_t, status> results;
  std::map<std::uint64_t, std::uint64_t> got;
};

/// One rank of a job of two nodes.
struct end {
  world& job;
  sim_fabric adapter;
  int rank;
  notes seen{};

  /// Until so many are over, or the time is up.
  void wait_for(std::size_t over, time_ps until_ps = never_ps) {
    for (;;) {
      job.arm(rank);
      (void)adapter.poll(seen, 100);
      if (seen.order.size() >= over || job.local_time_ps(rank) >= until_ps) return;
      job.park(rank, std::min(until_ps, job.local_time_ps(rank) + 1000 * us));  // deaths ring nobody's doorbell
    }
  }
  void sleep(time_ps for_ps) {
    job.charge(rank, for_ps, activity::compute);
    job.settle(rank);
  }
};

void run(const weather& today, const std::function<void(end&)>& main, const std::function<void(world&)>& before = {}) {
  world_options o;
  o.ranks = 2;
  o.ranks_per_node = 1;
  o.machine = load_parameters("ndr400");
  o.limit_ps = 10'000'000 * us;
  world job(o);
  wire between(job, o.machine, topology("switch", 2), today, 1);
  if (before) before(job);
  job.run([&](int rank) {
    end me{job, sim_fabric(between, rank), rank};
    main(me);
    return 0;
  });
  CHECK(job.deadlock().empty());
}

bytes pattern(std::size_t size, unsigned from) {
  bytes data(size);
  for (std::size_t i = 0; i < size; ++i) data[i] = static_cast<std::byte>(from + i * 7);
  return data;
}

/// A list of pieces of these sizes, one behind the other.
std::vector<fabric::local_slice> cut(bytes& data, std::initializer_list<std::size_t> sizes) {
  std::vector<fabric::local_slice> list;
  std::size_t at = 0;
  for (const std::size_t size : sizes) {
    list.push_back({data.data() + at, size});
    at += size;
  }
  return list;
}

}  // namespace

TEST_CASE("bulk sends go from gather lists into scatter lists, in order", "[sim][bulk]") {
  const auto seed = GENERATE(range(0, 30));  // 0: fine weather; else what a storm allows
  const weather today = seed == 0 ? calm() : storm(static_cast<std::uint64_t>(seed));
  const bool late = seed % 2 == 1;  // the receives
  constexpr std::size_t sends = 20;
  run(today, [&](end& me) {
    std::vector<bytes> data;
    for (unsigned i = 0; i < sends; ++i)
      data.push_back(me.rank == 0 ? pattern(10'000 * (i % 3) + 9, i) : bytes(30'009));
    if (me.rank == 1 && late) me.sleep(200 * us);
    for (unsigned i = 0; i < sends; ++i) {
      const auto list = me.rank == 1 || today.caps.gather_max >= 3
                            ? cut(data[i], {1, 4, me.rank == 0 ? data[i].size() - 5 : 30'004, std::size_t{0}})
                            : cut(data[i], {data[i].size()});
      const auto all = std::span(list).first(me.rank == 1 ? 3 : std::min<std::size_t>(list.size(), 3));
      for (;;) {
        const status s = me.rank == 0 ? me.adapter.send_bulk(1, all, i) : me.adapter.post_bulk_receive(0, all, i);
        if (s == status::posted) break;
        REQUIRE(s == status::retry_queue_full);
        me.wait_for(me.seen.order.size() + 1);
      }
    }
    me.wait_for(sends);
    for (unsigned i = 0; i < sends; ++i) {
      CHECK(me.seen.results[i] == status::done);
      CHECK(me.seen.got[i] == (me.rank == 0 ? 0 : 10'000 * (i % 3) + 9));
    }
    if (me.rank == 0) return;
    CHECK(std::is_sorted(me.seen.order.begin(), me.seen.order.end()));
    for (unsigned i = 0; i < sends; ++i) {
      bytes right = pattern(10'000 * (i % 3) + 9, i);
      right.resize(data[i].size());
      CHECK((data[i] == right));
    }
  });
}

TEST_CASE("a bulk send without a receive waits for it and tries again in steps", "[sim][bulk]") {
  time_ps sent_ps = 0;
  run(calm(), [&](end& me) {
    bytes data = pattern(100, 3);
    if (me.rank == 0) {
      CHECK(me.adapter.send_bulk(1, cut(data, {100}), 1) == status::posted);
      me.wait_for(1);
      sent_ps = me.job.local_time_ps(0);
      return;
    }
    me.sleep(25 * us);
    bytes into(100);
    CHECK(me.adapter.post_bulk_receive(0, cut(into, {100}), 2) == status::posted);
    me.wait_for(1);
    CHECK((into == data));
  });
  CHECK(sent_ps > 30 * us);  // refused after 1 us or so, again after 11 and 21
  CHECK(sent_ps < 37 * us);
}

TEST_CASE("a bulk send that is too long is an error at both ends, and the next is not", "[sim][bulk]") {
  run(calm(), [&](end& me) {
    bytes data = pattern(3000, 1);
    if (me.rank == 0) {
      CHECK(me.adapter.send_bulk(1, cut(data, {101}), 1) == status::posted);
      CHECK(me.adapter.send_bulk(1, cut(data, {100}), 2) == status::posted);
      CHECK(me.adapter.send_bulk(1, {}, 3) == status::posted);
    } else {
      bytes into(300);
      CHECK(me.adapter.post_bulk_receive(0, cut(into, {100}), 1) == status::posted);
      CHECK(me.adapter.post_bulk_receive(0, cut(into, {100}), 2) == status::posted);
      CHECK(me.adapter.post_bulk_receive(0, {}, 3) == status::posted);
      me.wait_for(3);
    }
    me.wait_for(3);
    CHECK(me.seen.results[1] == status::message_too_long);
    CHECK(me.seen.results[2] == status::done);
    CHECK(me.seen.results[3] == status::done);
    CHECK(me.seen.got == std::map<std::uint64_t, std::uint64_t>{{1, 0}, {2, me.rank == 0 ? 0 : 100}, {3, 0}});
  });
}

TEST_CASE("lists longer than the capabilities say are refused", "[sim][bulk]") {
  weather today = calm();
  today.caps.gather_max = 2;
  today.caps.scatter_max = 3;
  run(today, [&](end& me) {
    bytes data(10);
    CHECK(me.adapter.send_bulk(1 - me.rank, cut(data, {1, 1, 1}), 1) == status::bad_argument);
    CHECK(me.adapter.post_bulk_receive(1 - me.rank, cut(data, {1, 1, 1, 1}), 1) == status::bad_argument);
    CHECK(me.adapter.quiet());
  });
}

TEST_CASE("bulk transfers that fail end with an error at both ends", "[sim][bulk]") {
  weather today = calm();
  today.failed_one_in = 4;
  run(today, [&](end& me) {
    bytes data(1000);
    for (unsigned i = 0; i < 40; ++i) {
      const status s = me.rank == 0 ? me.adapter.send_bulk(1, cut(data, {1000}), i)
                                    : me.adapter.post_bulk_receive(0, cut(data, {1000}), i);
      CHECK(s == status::posted);
    }
    me.wait_for(40);
    std::size_t failed = 0;
    for (const auto& [token, result] : me.seen.results) failed += result == status::transfer_failed ? 1 : 0;
    CHECK(failed > 2);
    CHECK(failed < 25);
  });
}

TEST_CASE("what was posted towards a rank that dies or leaves ends", "[sim][bulk]") {
  const bool dies = GENERATE(true, false);
  run(
      calm(),
      [&](end& me) {
        bytes data(1000);
        if (me.rank == 1) return dies ? me.sleep(1'000'000 * us) : void();
        CHECK(me.adapter.send_bulk(1, cut(data, {1000}), 1) == status::posted);
        if (dies) CHECK(me.adapter.post_bulk_receive(1, cut(data, {1000}), 2) == status::posted);
        me.wait_for(dies ? 2 : 1, 1'000'000 * us);
        CHECK(me.seen.results[1] == status::peer_failed);
        if (dies) CHECK(me.seen.results[2] == status::peer_failed);
      },
      [&](world& job) {
        if (dies) job.kill_at(1, 50 * us);
      });
}

}  // namespace rma::sim
