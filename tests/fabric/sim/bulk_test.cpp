// SPDX-License-Identifier: Apache-2.0
// The bulk channel of the simulated fabric, beyond the contract of all: when a send without a receive is tried again,
// transfers that fail, and a rank that leaves.
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <span>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/wire.hpp"
#include "fabric/sim/world.hpp"

namespace rma::sim {
namespace {

constexpr time_ps us = 1'000'000;
using bytes = std::vector<std::byte>;

/// Notes what is over, in order.
struct notes final : fabric::sink {
  void on_completion(std::uint64_t token, status result, std::uint64_t) noexcept override {
    order.push_back(token);
    results[token] = result;
  }
  void on_message(int, std::uint16_t, std::span<const std::byte>) noexcept override {}
  void on_immediate(int, std::uint32_t) noexcept override {}
  std::vector<std::uint64_t> order;
  std::map<std::uint64_t, status> results;
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
    job.pass_charged_time(rank);
  }
};

void run(const fault_model& today, const std::function<void(end&)>& main) {
  world_options o;
  o.ranks = 2;
  o.ranks_per_node = 1;
  o.machine = load_parameters("ndr400");
  o.limit_ps = 10'000'000 * us;
  world job(o);
  wire between(job, o.machine, topology("switch", 2), today, 1);
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

TEST_CASE("bulk transfers that fail end with an error at both ends", "[sim][bulk]") {
  fault_model today = calm();
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

TEST_CASE("what was posted towards a rank that leaves ends", "[sim][bulk]") {
  run(calm(), [&](end& me) {
    bytes data(1000);
    if (me.rank == 1) return;
    CHECK(me.adapter.send_bulk(1, cut(data, {1000}), 1) == status::posted);
    me.wait_for(1, 1'000'000 * us);
    CHECK(me.seen.results[1] == status::peer_failed);
  });
}

}  // namespace rma::sim
