// SPDX-License-Identifier: Apache-2.0
// Goal: a short put or get is one request and what answers it, and nothing else crosses; what comes back to this port
// goes in packets as long as the device can, not as the network can.
// Method: two ranks of one port; packets as the device itself counts them. The least of some tries counts, since a
// handshake that is said again has packets, too.
// Break: put an empty write behind each write; in make_ready_to_receive (src/fabric/verbs/connection_manager.cpp), take
// the network's length always.
#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <optional>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

using namespace rma;
using namespace rma::test;
using fabric::local_slice;
using fabric::region_key;
using fabric::remote_slice;

namespace {

constexpr std::size_t bytes_max = 65536;
constexpr std::uint64_t longest = 4096;  // that Linux's software takes

/// Packets that the only device has sent so far, acknowledgements too. None: it does not count them. The kernel asks it
/// anew every 10 ms, so that the last look begins later than that.
std::optional<std::uint64_t> packets_sent() {
  std::optional<std::uint64_t> last;
  const auto begin = std::chrono::steady_clock::now();
  auto look = begin;
  do {
    look = std::chrono::steady_clock::now();
    last.reset();
    for (const auto& device : std::filesystem::directory_iterator("/sys/class/infiniband")) {
      std::ifstream file(device.path() / "ports/1/hw_counters/sent_pkts");
      if (std::uint64_t count = 0; file >> count) last = count;
    }
  } while (last && look - begin < std::chrono::milliseconds(20));
  return last;
}

struct pair_of_one_port {
  pair_of_one_port() {
    REQUIRE(job[1].net->register_region(theirs.data(), theirs.size(), key) == status::done);
    region_key unused;
    REQUIRE(job[0].net->register_region(mine.data(), mine.size(), unused) == status::done);
    (void)packets_of(8, true);  // connects
  }
  /// The packets of one operation of so many bytes, at least.
  std::uint64_t packets_of(std::size_t bytes, bool write) {
    std::uint64_t least = ~std::uint64_t{0};
    for (int tries = 0; tries < 5; ++tries) {
      const std::uint64_t before = *packets_sent();
      const local_slice here{mine.data(), bytes};
      const remote_slice there{key.address, bytes};
      ++token;
      REQUIRE(job.post([&] {
        return write ? job[0].net->write(1, {&here, 1}, key, {&there, 1}, token)
                     : job[0].net->read(1, {&here, 1}, key, {&there, 1}, token);
      }) == status::posted);
      REQUIRE(job.until([&] { return job[0].over.count(token) != 0; }));
      least = std::min(least, *packets_sent() - before);
    }
    return least;
  }

  verbs_job job{2};
  std::vector<std::byte> theirs = std::vector<std::byte>(bytes_max);
  std::vector<std::byte> mine = std::vector<std::byte>(bytes_max);
  region_key key;
  std::uint64_t token = 0;
};

}  // namespace

TEST_CASE("a short operation is a request and its answer, a long one as many packets as the longest need", "[verbs]") {
  if (no_device()) return;
  if (!packets_sent()) return skip("the device does not count its packets");
  pair_of_one_port two;
  CHECK(two.packets_of(8, true) == 2);
  CHECK(two.packets_of(8, false) == 2);
  CHECK(two.packets_of(longest, true) == 2);
  CHECK(two.packets_of(longest, false) == 2);
  CHECK(two.packets_of(bytes_max, true) == bytes_max / longest + 1);
  CHECK(two.packets_of(bytes_max, false) == bytes_max / longest + 1);
}
