// SPDX-License-Identifier: Apache-2.0
// Goal: all ranks of a job know the same of it after they have introduced themselves: who shares a node and a machine
// with whom, what no rank may use and why, and what all devices have.
//
// Method: the ranks as threads, with a store that they share. Jobs of every shape that the answer depends on.
//
// Break: take rank 0's device for everybody's; let devices of two networks pass; count turns on the machine from all
// ranks; keep the last obstacle instead of the first.
#include "fabric/survey.hpp"

#include <catch2/catch.hpp>
#include <condition_variable>
#include <map>
#include <mutex>
#include <thread>

using namespace rma;
using fabric::introduced;
using fabric::surveyed;

namespace {

/// The values that the ranks have put.
class store {
 public:
  void put(std::string_view key, std::string_view value) {
    const std::lock_guard guard(lock_);
    values_[std::string(key)] = value;
    news_.notify_all();
  }
  std::string get(std::string_view key) {
    std::unique_lock guard(lock_);
    const std::string wanted(key);
    news_.wait(guard, [&] { return values_.contains(wanted); });
    return values_[wanted];
  }

 private:
  std::mutex lock_;
  std::condition_variable news_;
  std::map<std::string, std::string> values_;
};

class stored_boot final : public boot::client {
 public:
  stored_boot(store& kept, int rank, int size) : kept_(kept), rank_(rank), size_(size) {}
  int rank() const noexcept override { return rank_; }
  int size() const noexcept override { return size_; }
  status put(std::string_view key, std::string_view value) override {
    kept_.put(key, value);
    return status::done;
  }
  status get(std::string_view key, std::string& value) override {
    value = kept_.get(key);
    return status::done;
  }
  status fence() override { return status::done; }
  void abort(int, std::string_view) noexcept override {}
  void finalize() noexcept override {}
  void report_death(int) noexcept override {}
  int event_fd() const noexcept override { return -1; }
  status poll_events(std::vector<int>&) override { return status::done; }

 private:
  store& kept_;
  int rank_;
  int size_;
};

std::vector<surveyed> survey_of(const std::vector<introduced>& ranks) {
  store kept;
  std::vector<surveyed> found(ranks.size());
  std::vector<std::thread> threads;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    threads.emplace_back([&, r] {
      stored_boot boot(kept, static_cast<int>(r), static_cast<int>(ranks.size()));
      found[r] = fabric::survey(boot, ranks[r]);
    });
  }
  for (std::thread& each : threads) each.join();
  return found;
}

/// With four cores.
introduced rank_on(const std::string& node, const std::string& machine) { return {node, machine, "f", {}, {}, {}}; }

/// One rank with InfiniBand or RoCE.
introduced with_device(bool ethernet, bool placed = false) {
  introduced one = rank_on("n", "m");
  one.device = {true, placed, ethernet};
  return one;
}

std::vector<int> numbers_of(const fabric::node_map& map) {
  std::vector<int> nodes;
  for (int r = 0; r < map.ranks(); ++r) nodes.push_back(map.node_of(r));
  return nodes;
}

}  // namespace

TEST_CASE("a map of nodes answers what it was made from", "[fabric][survey]") {
  const std::vector<int> nodes =
      GENERATE(std::vector<int>{0}, std::vector<int>{0, 0, 0}, std::vector<int>{0, 1, 2, 3},
               std::vector<int>{0, 0, 1, 1, 2}, std::vector<int>{0, 0, 1, 1, 1}, std::vector<int>{0, 0, 1, 2, 2},
               std::vector<int>{1, 1, 0, 0}, std::vector<int>{0, 1, 0, 1}, std::vector<int>{0, 0, 1, 1, 0, 2});
  const fabric::node_map map(static_cast<int>(nodes.size()), [&nodes](int r) { return nodes.at(std::size_t(r)); });
  CHECK(numbers_of(map) == nodes);
}

TEST_CASE("ranks know who shares their node and their machine", "[fabric][survey]") {
  const auto found =
      survey_of({rank_on("a", "x"), rank_on("b", "x"), rank_on("a", "x"), rank_on("c", "y"), rank_on("b", "x")});
  const std::vector<std::vector<int>> members{{0, 2}, {1, 4}, {0, 2}, {3}, {1, 4}};
  const std::vector<std::size_t> ranks{4, 4, 4, 1, 4};
  const std::vector<std::size_t> turns{0, 1, 2, 0, 3};
  for (std::size_t r = 0; r < found.size(); ++r) {
    CAPTURE(r);
    CHECK(found[r].members == members[r]);
    CHECK(numbers_of(found[r].nodes) == std::vector<int>{0, 1, 0, 2, 1});
    CHECK(found[r].load.ranks == ranks[r]);
    CHECK(found[r].load.cores == 4);
    CHECK(found[r].load.turn == turns[r]);
  }
}

// Break: each rank keeps its own.
TEST_CASE("all ranks have the costs that rank 0 has measured", "[fabric][survey]") {
  std::vector<introduced> ranks(3, rank_on("n", "m"));
  ranks[0].costs = "[tcp]\nwrite_ns = 3\n";
  ranks[2].costs = "[tcp]\nwrite_ns = 4\n";
  for (const surveyed& each : survey_of(ranks)) {
    CHECK(each.costs == ranks[0].costs);
    CHECK(each.members.size() == 3);
  }
}

TEST_CASE("the first rank that lacks something is named to all", "[fabric][survey]") {
  std::vector<introduced> ranks(4, rank_on("n", "m"));
  ranks[1].has.ucx = "no library";
  ranks[2].has.ucx = "not wanted";
  ranks[2].has.verbs = "no device";
  for (const surveyed& each : survey_of(ranks)) {
    CHECK(each.none.verbs == "rank 2: no device");
    CHECK(each.none.ucx == "rank 1: no library");
    CHECK(each.none.tcp.empty());
  }
}

TEST_CASE("all ranks use of their devices what every one has", "[fabric][survey]") {
  const bool first_has_all = GENERATE(true, false);
  CAPTURE(first_has_all);
  std::vector<introduced> ranks(3, with_device(true, true));
  ranks[first_has_all ? 2 : 0] = with_device(true);
  for (const surveyed& each : survey_of(ranks)) {
    CHECK(each.none.verbs.empty());
    CHECK(each.devices == with_device(true).device);
  }
}

TEST_CASE("devices that never reach each other are not used", "[fabric][survey]") {
  for (const surveyed& each : survey_of({with_device(true), with_device(true), with_device(false)})) {
    CHECK(each.none.verbs == "rank 2: its port is InfiniBand, others' Ethernet");
  }
  for (const surveyed& each : survey_of({with_device(false), with_device(false)})) CHECK(each.none.verbs.empty());
}

TEST_CASE("a rank that is alone asks nobody", "[fabric][survey]") {
  const auto found = survey_of({with_device(false, true)});
  CHECK(found[0].members == std::vector{0});
  CHECK(found[0].devices == with_device(false, true).device);
}
