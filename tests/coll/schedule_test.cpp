// SPDX-License-Identifier: Apache-2.0
// Schedules as values: what they print, and what the checker finds in them.
#include <catch2/catch.hpp>

#include <vector>

#include "channel/fakes.hpp"
#include "coll/algorithm.hpp"
#include "coll/machine.hpp"
#include "p2p/messenger.hpp"
#include "rma/schedule.hpp"

namespace {

using rma::input;
using rma::output;
using rma::Schedule;
using rma::scratch;
using namespace rma::detail::coll;

/// Allreduces of two ranks or more by recursive doubling.
std::vector<Schedule> right_ones(int ranks) {
  std::vector<Schedule> all(static_cast<std::size_t>(ranks));
  for (int r = 0; r < ranks; ++r) {
    shape s;
    s.what = call::allreduce;
    s.rank = r;
    s.size = ranks;
    s.bytes = 8;
    find_algorithm(call::allreduce, "recursive-doubling")->build(s, all[static_cast<std::size_t>(r)]);
  }
  return all;
}

bool finds(const std::vector<Schedule>& ranks, const char* what, rma::Written demand = rma::Written::anyhow) {
  const auto found = rma::check(ranks, demand);
  bool there = false;
  for (const std::string& each : found) {
    INFO(each);
    there = there || each.find(what) != each.npos;
  }
  return there;
}

}  // namespace

TEST_CASE("a schedule prints its rounds") {
  Schedule s;
  s.copy(input(), output(), 8).send(output(), 8, 1).recv(scratch(), 8, 2).round().combine(scratch(), output(4), 4);
  CHECK(s.text() ==
        "round 0\n"
        "  copy 8 B input+0 into output+0\n"
        "  send 8 B output+0 to 1\n"
        "  recv 8 B scratch+0 from 2\n"
        "round 1\n"
        "  combine 4 B scratch+0 into output+4\n");
  CHECK(s.messages() == 1);
  CHECK(s.rounds() == 2);
  CHECK(s.bytes_of(Schedule::Buffer::output) == 8);
  CHECK(s.bytes_of(Schedule::Buffer::scratch) == 8);
}

TEST_CASE("the checker lets right schedules pass") {
  for (const int ranks : {1, 2, 3, 4, 8}) CHECK(rma::check(right_ones(ranks), rma::Written::at_least_once).empty());
}

// Goal: planted mistakes are found, each by its name.
TEST_CASE("the checker finds a send without a receive, and sizes that differ") {
  auto ranks = right_ones(4);
  ranks[1].send(output(), 8, 2);
  CHECK(finds(ranks, "rank 1 sends 1 messages to rank 2, which receives 0"));

  std::vector<Schedule> two(2);
  two[0].send(input(), 8, 1);
  two[1].recv(output(), 16, 0);
  CHECK(finds(two, "has 8 bytes, its receive 16"));
}

TEST_CASE("the checker finds ranks that wait for each other in a cycle") {
  std::vector<Schedule> ranks(3);
  for (int r = 0; r < 3; ++r)
    ranks[static_cast<std::size_t>(r)].send(input(), 8, (r + 1) % 3).round().recv(output(), 8, (r + 2) % 3);
  CHECK(finds(ranks, "never ends"));
  std::vector<Schedule> both(3);
  for (int r = 0; r < 3; ++r)
    both[static_cast<std::size_t>(r)].send(input(), 8, (r + 1) % 3).recv(output(), 8, (r + 2) % 3);
  CHECK(rma::check(both, rma::Written::once).empty());
}

TEST_CASE("the checker finds bytes that are written twice, or not at all") {
  std::vector<Schedule> ranks(2);
  ranks[0].send(input(), 8, 1).send(input(), 8, 1);
  ranks[1].recv(output(), 8, 0).recv(output(4), 8, 0);
  CHECK(finds(ranks, "two receives write the same bytes"));
  CHECK(finds(ranks, "written 2 times", rma::Written::once));

  std::vector<Schedule> gap(2);
  gap[0].send(input(), 8, 1);
  gap[1].recv(output(8), 8, 0);
  CHECK(finds(gap, "byte 0 of the output is written 0 times", rma::Written::at_least_once));
}

TEST_CASE("the checker finds buffers that change while they are sent, and ranks that are none") {
  std::vector<Schedule> ranks(2);
  ranks[0].send(output(), 8, 1).recv(output(4), 8, 1);
  ranks[1].send(output(), 8, 0).recv(scratch(), 8, 0).combine(scratch(), output(), 8);
  CHECK(finds(ranks, "a receive writes bytes that are being sent"));
  CHECK(finds(ranks, "a local step uses bytes that are being received"));

  std::vector<Schedule> stranger(2);
  stranger[0].send(input(), 8, 2);
  CHECK(finds(stranger, "rank 0 names rank 2; ranks are 0 to 1"));
}

TEST_CASE("signals are counted, and waited for") {
  std::vector<Schedule> ranks(2);
  ranks[0].put_signal(input(), output(), 8, 1);
  ranks[1].wait_signal(0);
  CHECK(rma::check(ranks).empty());
  ranks[1].round().wait_signal(0);
  CHECK(finds(ranks, "rank 0 signals rank 1 1 times, which waits for 2"));
}

// Break: let costs() look at the network's own figures only.
TEST_CASE("collectives between nodes expect what rank 0 has measured", "[coll]") {
  rma::test::fake_pair two;
  rma::detail::messenger messages(two.a.ctx);
  machine all(two.a.ctx, messages);
  CHECK_FALSE(all.network_is_measured());
  const double before_ns = all.costs(false).latency_ns;
  rma::fabric::transfer_costs measured;
  measured.message_ns = 1'000'000;
  measured.byte_ns = 7;
  all.use_costs(measured);
  CHECK(all.network_is_measured());
  CHECK(all.costs(false).latency_ns > 10 * before_ns);
  CHECK(all.costs(false).long_byte_ns == 7);
}
