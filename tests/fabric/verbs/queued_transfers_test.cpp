// SPDX-License-Identifier: Apache-2.0
// Goal: reads and short writes that find the send queue full are queued, and go in chains, as atomics do that are
// called for together: none is lost or out of its turn, whatever happens to the connection. Method: two ranks in one
// thread; what has been posted is counted by the device's work requests and completions.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <numeric>
#include <span>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

using namespace rma;
using namespace rma::test;
using fabric::local_slice;
using fabric::region_key;
using fabric::remote_slice;

namespace {

constexpr std::size_t words = 256;

/// Rank 0 is connected to rank 1, whose window holds 1000, 1001, ...; it has read nothing yet.
struct reader {
  reader() {
    std::iota(window.begin(), window.end(), std::uint64_t{1000});
    REQUIRE(job[1].net->register_region(window.data(), window.size() * 8, key) == status::done);
    REQUIRE(job.post([&] { return job[0].net->send(1, 20, {}, {}); }) == status::done);
    REQUIRE(job.until([&] { return job[1].messages.size() == 1; }));
    entries = static_cast<unsigned>(job[0].net->entries_per_connection());
    chain = std::min(entries / 2, 8U);
  }
  /// Word i of the window to word i here, token i + 1.
  status read(std::size_t i, const region_key& by) {
    const local_slice here{&mine[i], 8};
    const remote_slice there{key.address + 8 * i, 8};
    return job[0].net->read(1, {&here, 1}, by, {&there, 1}, i + 1);
  }
  /// The bytes of `from` to word i of the window, token i + 1.
  status write(std::size_t i, std::span<const std::uint64_t> from) {
    const local_slice here{const_cast<std::uint64_t*>(from.data()), from.size_bytes()};
    const remote_slice there{key.address + 8 * i, from.size_bytes()};
    return job[0].net->write(1, {&here, 1}, key, {&there, 1}, i + 1);
  }
  /// Fills the send queue, and queues so many more; nothing is polled meanwhile.
  void fill(unsigned queued) {
    for (; next < entries - 1 + queued; ++next) REQUIRE(read(next, key) == status::posted);
  }
  [[nodiscard]] std::uint64_t count(const char* name) { return job[0].count(name); }
  void all_over_and_right() {
    REQUIRE(job.until([&] { return job[0].over.size() == next; }));
    for (std::size_t i = 0; i < next; ++i) {
      INFO("read " << i);
      CHECK(job[0].over[i + 1] == status::done);
      CHECK(mine[i] == window[i]);
    }
  }

  verbs_job job{2};
  std::vector<std::uint64_t> window = std::vector<std::uint64_t>(words);
  std::vector<std::uint64_t> mine = std::vector<std::uint64_t>(words);
  region_key key;
  unsigned entries = 0, chain = 0;
  std::size_t next = 0;
};

}  // namespace

// Break: let post_queued not ask whether they fit.
TEST_CASE("reads that find no room are queued, up to half a send queue, and go together", "[verbs]") {
  if (no_device()) return;
  reader r;
  const std::uint64_t completions = r.count("verbs_completions");
  r.fill(r.chain);
  CHECK(r.count("verbs_reads") == r.entries - 1);  // the connecting message is silent, and still in the queue
  CHECK(r.read(r.next, r.key) == status::retry_queue_full);
  CHECK_FALSE(r.job[0].net->quiet());
  r.all_over_and_right();
  CHECK(r.count("verbs_reads") == r.next);
  CHECK(r.count("verbs_completions") == completions + r.entries - 1 + 1);  // the chain reports one
  REQUIRE(r.job.until([&] { return r.job[0].net->quiet(); }));
  const std::uint64_t reads = r.count("verbs_reads");  // and then they go at once, as before
  REQUIRE(r.read(0, r.key) == status::posted);
  CHECK(r.count("verbs_reads") == reads + 1);
  REQUIRE(r.job.until([&] { return r.job[0].net->quiet(); }));
}

// Break: let `queue` not copy what goes inline; let `queues` say no to writes.
TEST_CASE("writes that find no room are queued and go together, with the values that they were called with",
          "[verbs]") {
  if (no_device()) return;
  reader r;
  const std::uint64_t completions = r.count("verbs_completions");
  std::uint64_t value = 0;
  for (r.next = 0; r.next < r.entries - 1 + r.chain; ++r.next) {
    value = 7000 + r.next;
    REQUIRE(r.write(r.next, {&value, 1}) == status::posted);
  }
  CHECK(r.count("verbs_writes") == r.entries - 1);
  CHECK(r.write(r.next, {&value, 1}) == status::retry_queue_full);
  value = 1;
  REQUIRE(r.job.until([&] { return r.job[0].over.size() == r.next; }));
  for (std::size_t i = 0; i < r.next; ++i) {
    INFO("write " << i);
    CHECK(r.job[0].over[i + 1] == status::done);
    CHECK(r.window[i] == 7000 + i);
  }
  CHECK(r.window[r.next] == 1000 + r.next);
  CHECK(r.count("verbs_writes") == r.next);
  CHECK(r.count("verbs_completions") <= completions + 8 + 1 + 1);  // the first eight, an eighth of the rest, the chain
  REQUIRE(r.job.until([&] { return r.job[0].net->quiet(); }));
}

// Break: post the reads of a chain first.
TEST_CASE("a queued read finds what was queued to be written before it", "[verbs]") {
  if (no_device()) return;
  reader r;
  r.fill(0);
  const std::uint64_t value = 5;
  const std::size_t at = r.next++;
  REQUIRE(r.write(at, {&value, 1}) == status::posted);
  const local_slice here{&r.mine[at], 8};
  const remote_slice there{r.key.address + 8 * at, 8};
  REQUIRE(r.job[0].net->read(1, {&here, 1}, r.key, {&there, 1}, r.next + 1) == status::posted);
  CHECK(r.count("verbs_writes") == 0);
  CHECK(r.count("verbs_reads") == r.entries - 1);
  REQUIRE(r.job.until([&] { return r.job[0].over.size() == r.next + 1; }));
  CHECK(r.mine[at] == value);
  CHECK(r.count("verbs_writes") == 1);
  CHECK(r.count("verbs_reads") == r.entries);
}

// Break: let `queues` not look at how long a write is, or whether it has a signal.
TEST_CASE("a write of several packets, or with a signal, waits for room itself", "[verbs]") {
  if (no_device()) return;
  reader r;
  r.fill(0);
  const std::vector<std::uint64_t> many(1024);  // more than a packet of any device
  CHECK(r.write(0, many) == status::retry_queue_full);
  const local_slice word{r.mine.data(), 8};
  const remote_slice first{r.key.address, 8};
  CHECK(r.job[0].net->write(1, {&word, 1}, r.key, {&first, 1}, 99, fabric::with_immediate(7)) ==
        status::retry_queue_full);
  r.all_over_and_right();
}

// Break: let is_blocked not look at the queue.
TEST_CASE("what comes after queued reads does not overtake them", "[verbs]") {
  if (no_device()) return;
  reader r;
  r.fill(r.chain);
  // One completion makes room for the write, not for the reads before it.
  while (r.job[0].over.empty()) (void)r.job[0].net->poll(r.job[0], 1);
  const local_slice here{r.mine.data(), 8};
  const remote_slice there{r.key.address + 8 * (words - 1), 8};
  const std::uint64_t posted = r.count("verbs_reads");
  CHECK(r.job[0].net->write(1, {&here, 1}, r.key, {&there, 1}, 99) == status::retry_queue_full);
  CHECK(r.job[0].net->send(1, 21, {}, {}) == status::retry_queue_full);
  CHECK(r.count("verbs_reads") == posted);
  REQUIRE(r.job.post([&] { return r.job[0].net->send(1, 21, {}, {}); }) == status::done);
  CHECK(r.count("verbs_reads") == r.next);
  r.all_over_and_right();
}

// Break: let `atomic` post what others follow; or let `post_list` count each entry.
TEST_CASE("atomics of a chain reach the adapter by one doorbell, and one completion tells of them", "[verbs]") {
  if (no_device()) return;
  reader r;
  REQUIRE(r.job.until([&] { return r.job[0].net->quiet(); }));
  const auto add = [&](std::size_t i, fabric::posting when) {
    return r.job[0].net->fetch_add(1, r.key, r.key.address + 8 * i, 1, r.mine[i], i + 1, when);
  };
  const std::uint64_t doorbells = r.count("verbs_doorbells"), completions = r.count("verbs_completions");
  for (std::size_t i = 0; i < r.chain - 2; ++i) REQUIRE(add(i, fabric::posting::more_follow) == status::posted);
  CHECK(r.count("verbs_doorbells") == doorbells);
  REQUIRE(add(r.chain - 2, fabric::posting::now) == status::posted);
  CHECK(r.count("verbs_doorbells") == doorbells + 1);
  r.next = r.chain - 1;
  REQUIRE(r.job.until([&] { return r.job[0].over.size() == r.next; }));
  CHECK(r.count("verbs_completions") == completions + 1);
  for (std::size_t i = 0; i < r.next; ++i) {
    CHECK(r.mine[i] == 1000 + i);
    CHECK(r.window[i] == 1001 + i);
  }
  REQUIRE(r.read(0, r.key) == status::posted);  // nothing is left of the chain
  CHECK(r.count("verbs_doorbells") == doorbells + 2);
  REQUIRE(r.job.until([&] { return r.job[0].net->quiet(); }));
}

// Break: let end_queued not end them.
TEST_CASE("queued reads to a peer that dies end with peer_failed", "[verbs]") {
  if (no_device()) return;
  reader r;
  r.fill(3);
  r.job.remove(1);
  r.job[0].net->forget(1);
  REQUIRE(r.job.until([&] { return r.job[0].over.size() == r.next; }));
  for (std::size_t token = r.entries; token <= r.next; ++token) CHECK(r.job[0].over[token] == status::peer_failed);
  CHECK(r.job[0].net->quiet());
  CHECK(r.read(0, r.key) == status::peer_failed);
}

// Break: let `poll` not go on with what is unsent: nothing else would reach the peer again.
TEST_CASE("messages and reads behind a failed one need no later operation to get through", "[verbs]") {
  if (no_device()) return;
  reader r;
  region_key wrong = r.key;
  wrong.key ^= 0x5a00;
  REQUIRE(r.read(words - 1, wrong) == status::posted);
  REQUIRE(r.job[0].net->send(1, 21, {}, {}) == status::done);
  for (std::size_t i = 0; i < r.entries - 3; ++i) REQUIRE(r.read(i, r.key) == status::posted);
  REQUIRE(r.read(40, r.key) == status::posted);
  CHECK(r.count("verbs_reads") == r.entries - 2);
  CHECK(r.job.until([&] { return r.job[1].messages.size() == 2; }));
  CHECK(r.job.until([&] { return r.job[0].over.contains(41); }));
  CHECK(r.job[0].over[41] == status::done);
}

// Break: let end_queued forget them when the connection breaks.
TEST_CASE("queued reads go on when their connection has been made anew", "[verbs]") {
  if (no_device()) return;
  reader r;
  region_key wrong = r.key;
  wrong.key ^= 0x5a00;
  REQUIRE(r.read(words - 1, wrong) == status::posted);
  for (std::size_t i = 0; i < r.entries - 2; ++i) REQUIRE(r.read(i, r.key) == status::posted);
  for (std::size_t i = 0; i < 3; ++i) REQUIRE(r.read(40 + i, r.key) == status::posted);
  CHECK(r.count("verbs_reads") == r.entries - 1);
  REQUIRE(r.job.until([&] { return r.job[0].over.size() == r.entries - 1 + 3; }));
  CHECK(r.job[0].over[words] == status::transfer_failed);
  for (std::size_t i = 40; i < 43; ++i) {
    CHECK(r.job[0].over[i + 1] == status::done);
    CHECK(r.mine[i] == r.window[i]);
  }
}
