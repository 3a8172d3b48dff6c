// SPDX-License-Identifier: Apache-2.0
// Goal: how much memory may still be had is what the machine and each control group above the process have left.
//
// Method: control groups of both versions, made up.
//
// Break: look at the innermost group only, or at the root only; count pages of files as used; take "max" for a limit.
#include "core/memory.hpp"

#include <catch2/catch.hpp>
#include <string>
#include <string_view>

#include "made_up_groups.hpp"

using namespace rma::detail;
using rma::test::made_up_groups;

namespace {

std::uint64_t left(const made_up_groups& groups, std::string_view membership) {
  return groups.granted(granted_bytes_left, membership);
}

}  // namespace

TEST_CASE("a control group has left what it does not use, its parents may have less", "[core][memory]") {
  const made_up_groups now;
  CHECK(left(now, "0::/a\n") == no_memory_limit);
  now.write("a/memory.max", "max\n");
  now.write("a/memory.current", "5000\n");
  CHECK(left(now, "0::/a\n") == no_memory_limit);
  now.write("a/b/memory.max", "9000\n");
  now.write("a/b/memory.current", "4000\n");
  CHECK(left(now, "0::/a/b\n") == 5000);
  CHECK(left(now, "0::/a\n") == no_memory_limit);
  now.write("a/memory.max", "8000\n");
  CHECK(left(now, "0::/a/b\n") == 3000);
  now.write("memory.max", "7000\n");
  now.write("memory.current", "6000\n");
  CHECK(left(now, "0::/a/b\n") == 1000);
  CHECK(left(now, "0::/not/to/be/seen\n") == 1000);
  now.write("memory.current", "7001\n");
  CHECK(left(now, "0::/a/b\n") == 0);
}

TEST_CASE("pages of files are left, memory that is shared is not", "[core][memory]") {
  const made_up_groups now;
  now.write("a/memory.max", "9000\n");
  now.write("a/memory.current", "8000\n");
  now.write("a/memory.stat",
            "anon 1000\nfile 6500\nshmem 5000\ninactive_anon 6000\ninactive_file 1000\nactive_file 500\n");
  CHECK(left(now, "0::/a\n") == 2500);
  now.write("a/memory.stat", "inactive_file 70000\n");  // read a little later
  CHECK(left(now, "0::/a\n") == 9000);
}

TEST_CASE("version 1 has a hierarchy for memory", "[core][memory]") {
  const made_up_groups before;
  before.write("memory/memory.limit_in_bytes", "9223372036854771712\n");
  before.write("memory/memory.usage_in_bytes", "100000\n");
  before.write("memory/job/memory.limit_in_bytes", "9000\n");
  before.write("memory/job/memory.usage_in_bytes", "4000\n");
  before.write("memory/job/memory.stat",
               "inactive_file 1\nactive_file 2\ntotal_inactive_file 300\ntotal_active_file 200\n");
  CHECK(left(before, "9:pids:/job\n2:memory:/job\n0::/\n") == 5500);
  CHECK(left(before, "9:pids:/job\n2:memory:/\n0::/\n") > 9000);
  CHECK(left(before, "9:memory_of_others,pids:/job\n") == no_memory_limit);
  CHECK(left(before, "nonsense\n") == no_memory_limit);
}

TEST_CASE("a machine has left what it calls available", "[core][memory]") {
  const made_up_groups now;
  now.write("meminfo", "MemTotal:       8000 kB\nMemFree:        1000 kB\nMemAvailable:   3000 kB\n");
  CHECK(machine_bytes_left(now.root() / "meminfo") == 3000 * 1024);
  CHECK(machine_bytes_left(now.root() / "none") == no_memory_limit);
  CHECK(machine_bytes_left() > 0);
  CHECK(control_groups_id() == control_groups_id());
}
