// SPDX-License-Identifier: Apache-2.0
// Goal: entries that say nothing do not fill the completion queue's room, or nothing would ever make any.
// Method: a queue for 56 entries. Bursts of 14 writes to each of eight peers leave six such entries each when the
// others are over, 48 in all; one more to each makes 56. Nobody polls but once behind each burst. Break: leave the
// completion queue out of signals_write (src/fabric/verbs/send_queues.hpp).
#include <catch2/catch.hpp>
#include <cstdint>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

using namespace rma;
using namespace rma::test;

namespace {

constexpr int peers = 8;
constexpr std::uint32_t completions = 624;  // 312 of these are for receives, and 256 in reserve
constexpr std::size_t words = 1;            // a device in software has executed such a write when it is posted

struct spread_writes {
  spread_writes() {
    for (std::size_t p = 0; p < peers; ++p) {
      windows[p].resize(words);
      const int rank = static_cast<int>(p) + 1;
      REQUIRE(job[rank].net->register_region(windows[p].data(), words * sizeof(std::uint64_t), keys[p]) ==
              status::done);
      REQUIRE(job.post([&] { return write(p); }) == status::posted);
    }
    REQUIRE(job.until([&] { return job[0].net->quiet(); }));
  }
  status write(std::size_t p) {
    const fabric::local_slice here{mine.data(), words * sizeof(std::uint64_t)};
    const fabric::remote_slice there{keys[p].address, here.bytes};
    return job[0].net->write(static_cast<int>(p) + 1, {&here, 1}, keys[p], {&there, 1}, ++token);
  }

  verbs_job job{peers + 1, completions};
  std::vector<std::uint64_t> mine = std::vector<std::uint64_t>(words, 7);
  std::vector<std::vector<std::uint64_t>> windows = std::vector<std::vector<std::uint64_t>>(peers);
  std::vector<fabric::region_key> keys = std::vector<fabric::region_key>(peers);
  std::uint64_t token = 0;
};

/// Polls only if there is no room.
void post(spread_writes& w, std::size_t p) {
  status s = w.write(p);
  if (s == status::retry_queue_full) s = w.job.post([&] { return w.write(p); });
  REQUIRE(s == status::posted);
}

}  // namespace

TEST_CASE("writes that nobody is told of leave room for one that somebody is", "[verbs]") {
  if (no_device()) return;
  spread_writes w;
  const std::size_t burst = w.job[0].net->entries_per_connection() - 1;
  for (std::size_t p = 0; p < peers; ++p) {
    for (std::size_t i = 0; i < burst; ++i) post(w, p);
    (void)w.job[0].net->poll(w.job[0], 1000);
  }
  for (std::size_t p = 0; p < 2 * peers; ++p) {
    INFO("write " << p << " behind the bursts");
    post(w, p % peers);
  }
  REQUIRE(w.job.until([&] { return w.job[0].net->quiet(); }));
  for (const std::vector<std::uint64_t>& each : w.windows) CHECK(each == w.mine);
}
