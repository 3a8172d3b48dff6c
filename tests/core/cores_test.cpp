// SPDX-License-Identifier: Apache-2.0
#include "core/cores.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <string_view>
#include <thread>
#include <vector>

#include "made_up_groups.hpp"

using namespace rma::detail;
using rma::test::made_up_groups;

namespace {

std::size_t granted(const made_up_groups& groups, std::string_view membership) {
  return groups.granted(granted_cores, membership);
}

}  // namespace

TEST_CASE("a process may use the processors that it is bound to", "[core][cores]") {
  const core_set all = core_set::allowed();
  REQUIRE(all.count() >= 1);
  std::size_t bound = 0;
  std::thread([&] {  // which has a binding of its own
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(static_cast<std::size_t>(::sched_getcpu()), &mine);
    if (::sched_setaffinity(0, sizeof mine, &mine) == 0) bound = core_set::allowed().count();
  })
      .join();
  CHECK(bound == 1);
}

TEST_CASE("sets of processors add up, and are sent as text", "[core][cores]") {
  core_set sum = core_set::parse("3,0,8000000000000000");
  CHECK(sum.count() == 3);
  sum.add(core_set::parse("6"));
  CHECK(sum.count() == 4);
  CHECK(sum.text() == "7,0,8000000000000000");
  CHECK(core_set::parse(sum.text()).text() == sum.text());
  CHECK(core_set::parse("").count() == 0);
  CHECK(core_set().text().empty());
  CHECK(core_set::parse("no number").count() == 0);
}

TEST_CASE("a set's processors can be told apart", "[core][cores]") {
  const core_set some = core_set::parse("5,0,8000000000000000");
  CHECK(some.nth(0).text() == "1");
  CHECK(some.nth(1).text() == "4");
  CHECK(some.nth(2).text() == "0,0,8000000000000000");
  CHECK(some.nth(3).count() == 0);
}

// Break: leave the thread where it is; or bound to one processor.
TEST_CASE("a thread is put on the processor whose turn it is, and may leave it", "[core][cores]") {
  std::string before, after;
  std::vector<bool> was_there;
  std::thread([&] {
    const core_set all = core_set::allowed();
    before = all.text();
    for (std::size_t turn = 0; turn < 2 * all.count(); ++turn) {
      const core_set there = all.nth(turn % all.count());
      bool is_there = false;
      for (int tries = 0; tries < 100 && !is_there; ++tries) {  // the scheduler may want it elsewhere at that moment
        rma::detail::take_turn(turn);
        is_there = there.has(static_cast<std::size_t>(::sched_getcpu()));
      }
      was_there.push_back(is_there);
    }
    after = core_set::allowed().text();
  }).join();
  CHECK(std::all_of(was_there.begin(), was_there.end(), [](bool each) { return each; }));
  CHECK(after == before);
}

TEST_CASE("a control group grants processor time, its parents may grant less", "[core][cores]") {
  const made_up_groups now;
  now.write("a/cpu.max", "max 100000\n");
  CHECK(granted(now, "0::/a\n") == no_quota);
  CHECK(granted(now, "0::/not/to/be/seen\n") == no_quota);
  now.write("a/b/cpu.max", "250000 100000\n");
  CHECK(granted(now, "0::/a/b\n") == 3);
  CHECK(granted(now, "0::/a\n") == no_quota);
  now.write("a/cpu.max", "10000 100000\n");
  CHECK(granted(now, "0::/a/b\n") == 1);

  const made_up_groups before;  // version 1
  before.write("cpu,cpuacct/job/cpu.cfs_quota_us", "200000");
  before.write("cpu,cpuacct/job/cpu.cfs_period_us", "100000");
  before.write("cpu,cpuacct/cpu.cfs_quota_us", "-1");
  before.write("cpu,cpuacct/cpu.cfs_period_us", "100000");
  CHECK(granted(before, "9:pids:/job\n2:cpu,cpuacct:/job\n0::/\n") == 2);
  CHECK(granted(before, "9:pids:/job\n2:cpu,cpuacct:/\n0::/\n") == no_quota);
  CHECK(granted(before, "nonsense\n") == no_quota);
}
