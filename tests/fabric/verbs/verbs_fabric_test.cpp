// SPDX-License-Identifier: Apache-2.0
// The verbs fabric on a real device (or one in software: tests/softroce): the contract of all fabrics, and what is
// special to this one. Several ranks in one process.
#include <poll.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iostream>
#include <numeric>
#include <vector>

#include "fabric/verbs/verbs_job.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::fabric::region_key;
using rma::fabric::remote_slice;
using rma::test::no_device;
using rma::test::verbs_job;
using rma::test::verbs_member;

std::uint64_t count_of(const verbs_member& m, std::string_view wanted) {
  std::uint64_t found = ~std::uint64_t{0};
  m.net->counts([&](std::string_view name, std::uint64_t value) {
    if (name == wanted) found = value;
  });
  return found;
}

status write(verbs_job& job, int from, int to, const void* data, std::size_t bytes, const region_key& region,
             std::uint64_t address, std::uint64_t token) {
  const local_slice here{const_cast<void*>(data), bytes};
  const remote_slice there{address, bytes};
  return job.post([&] { return job[from].net->write(to, {&here, 1}, region, {&there, 1}, token); });
}

status read(verbs_job& job, int from, int to, void* into, std::size_t bytes, const region_key& region,
            std::uint64_t address, std::uint64_t token) {
  const local_slice here{into, bytes};
  const remote_slice there{address, bytes};
  return job.post([&] { return job[from].net->read(to, {&here, 1}, region, {&there, 1}, token); });
}

/// From rank 0 to rank 1, silently.
status write_word(verbs_job& job, const region_key& region, std::uint64_t address, std::uint64_t word) {
  const local_slice here{&word, sizeof word};
  const remote_slice there{address, sizeof word};
  return job[0].net->write(1, {&here, 1}, region, {&there, 1}, 0, rma::fabric::silent_write);
}

status say(verbs_job& job, int from, int to, std::uint16_t kind, const std::string& text) {
  return job.post([&] { return job[from].net->send(to, kind, std::as_bytes(std::span(text)), {}); });
}

bool over(verbs_job& job, int rank, std::uint64_t token) {
  return job.until([&] { return job[rank].over.contains(token); });
}

/// Waits until something has come for a rank, which is not told.
bool has_news(const verbs_member& m) {
  for (int i = 0; i < 100; ++i) {
    if (m.net->pending()) return true;
    pollfd news{m.net->event_fd(), POLLIN, 0};
    (void)::poll(&news, 1, 100);
  }
  return false;
}

template <class T>
region_key enroll(verbs_job& job, int rank, std::vector<T>& memory) {
  region_key key;
  REQUIRE(job[rank].net->register_region(memory.data(), memory.size() * sizeof(T), key) == status::done);
  return key;
}

/// Rank 0 has a connection to rank 1, whose window it knows.
struct connected_pair {
  connected_pair() : key(enroll(job, 1, window)) {
    REQUIRE(write(job, 0, 1, mine.data(), 8, key, key.address, 1) == status::posted);
    REQUIRE(over(job, 0, 1));
  }
  verbs_job job{2};
  std::vector<std::uint64_t> window = std::vector<std::uint64_t>(64);
  std::vector<std::uint64_t> mine = std::vector<std::uint64_t>(64, 1);
  region_key key;
};

}  // namespace

void rma::test::with_fabric(int ranks, const std::function<void(fabric_job&)>& body) {
  if (no_device()) return;
  verbs_job job(ranks);
  run_with(job, body);
}

// Break: copy pieces that do not fit into a buffer.
TEST_CASE("several pieces that are larger than a buffer and not registered may be refused, but are not lost",
          "[verbs]") {
  if (no_device()) return;
  verbs_job job(2);
  std::vector<std::uint64_t> window(32'768), large(1 << 16);
  const region_key key = enroll(job, 1, window);
  const std::vector<local_slice> two(2, {large.data(), 100'000});
  const std::vector<remote_slice> too(2, {key.address, 100'000});
  const status s = job.post([&] { return job[0].net->write(1, two, key, too, 1); });
  CHECK((s == status::not_supported || s == status::posted));
  REQUIRE(job.until([&] { return job[0].net->quiet(); }));
  CHECK(job[0].over.size() == (s == status::posted ? 1 : 0));
}

TEST_CASE("no queue pair before first use, one on each side after it, however both begin", "[verbs]") {
  if (no_device()) return;
  verbs_job job(3);
  for (int r = 0; r < 3; ++r) CHECK(count_of(job[r], "verbs_queue_pairs") == 0);
  // both ask at once
  const std::string text = "hello";
  for (int r = 0; r < 2; ++r) {
    CHECK(job[r].net->send(1 - r, 20, std::as_bytes(std::span(text)), {}) == status::retry_queue_full);
  }
  REQUIRE(say(job, 0, 1, 20, "from 0") == status::done);
  REQUIRE(say(job, 1, 0, 21, "from 1") == status::done);
  REQUIRE(job.until([&] { return !job[0].messages.empty() && !job[1].messages.empty(); }));
  CHECK(job[1].messages[0].source == 0);
  CHECK(job[1].messages[0].kind == 20);
  CHECK(job[0].messages[0].kind == 21);
  CHECK(count_of(job[0], "verbs_queue_pairs") == 1);
  CHECK(count_of(job[1], "verbs_queue_pairs") == 1);
  CHECK(count_of(job[2], "verbs_queue_pairs") == 0);
}

TEST_CASE("one contiguous put is one write, one get one read, and nothing else", "[verbs]") {
  if (no_device()) return;
  verbs_job job(2);
  std::vector<std::uint64_t> window(16), mine(16, 3);
  const region_key key = enroll(job, 1, window);
  (void)enroll(job, 0, mine);
  REQUIRE(read(job, 0, 1, mine.data(), 8, key, key.address, 1) == status::posted);
  REQUIRE(over(job, 0, 1));
  const auto before = [&](const char* name) { return count_of(job[0], name); };
  const std::uint64_t writes = before("verbs_writes"), reads = before("verbs_reads"), sends = before("verbs_sends");
  const local_slice here{mine.data(), 64};
  const remote_slice there{key.address, 64};
  REQUIRE(job[0].net->write(1, {&here, 1}, key, {&there, 1}, 2) == status::posted);
  REQUIRE(job[0].net->read(1, {&here, 1}, key, {&there, 1}, 3) == status::posted);
  REQUIRE(over(job, 0, 3));
  CHECK(count_of(job[0], "verbs_writes") == writes + 1);
  CHECK(count_of(job[0], "verbs_reads") == reads + 1);
  CHECK(count_of(job[0], "verbs_sends") == sends);
  for (std::uint64_t token = 4; token < 10; ++token) {  // alone in its queue, and nothing behind it
    REQUIRE(job[0].net->write(1, {&here, 1}, key, {&there, 1}, token) == status::posted);
    REQUIRE(over(job, 0, token));
  }
  CHECK(count_of(job[0], "verbs_writes") == writes + 7);
  CHECK(count_of(job[0], "verbs_tail_writes") == 0);
  CHECK(job[1].messages.empty());
}

TEST_CASE("a burst of up to eight writes has no empty write behind it", "[verbs]") {
  if (no_device()) return;
  connected_pair pair;
  verbs_job& job = pair.job;
  std::uint64_t token = 1;
  for (const bool behind_message : {false, true}) {  // which is silent: no reason to be so oneself
    for (const auto& [writes, empty] : {std::pair{2U, 0U}, {7U, 0U}, {8U, 0U}, {13U, 1U}}) {
      INFO("writes " << writes << ", behind a message " << behind_message);
      const std::uint64_t before = count_of(job[0], "verbs_tail_writes");
      if (behind_message) REQUIRE(say(job, 0, 1, 20, "before") == status::done);
      const local_slice here{pair.mine.data(), 8};
      const remote_slice there{pair.key.address, 8};
      for (unsigned i = 0; i < writes; ++i)  // not by job.post, which polls
        REQUIRE(job[0].net->write(1, {&here, 1}, pair.key, {&there, 1}, ++token) == status::posted);
      REQUIRE(over(job, 0, token));
      CHECK(count_of(job[0], "verbs_tail_writes") == before + empty);
    }
  }
}

TEST_CASE("of eight messages one is signalled, and what is silent is over when the job ends", "[verbs]") {
  if (no_device()) return;
  verbs_job job(2);
  REQUIRE(say(job, 0, 1, 20, "connect") == status::done);
  REQUIRE(job.until([&] { return job[1].messages.size() == 1; }));
  for (std::uint16_t i = 1; i < 20; ++i)
    REQUIRE(say(job, 0, 1, static_cast<std::uint16_t>(20 + i), "text") == status::done);
  REQUIRE(job.until([&] { return job[1].messages.size() == 20 && count_of(job[0], "verbs_completions") == 2; }));
  CHECK(count_of(job[0], "verbs_tail_writes") == 0);
  CHECK_FALSE(job[0].net->quiet());
  REQUIRE(job.until([&] { return job[0].net->quiet(); }));
  CHECK(count_of(job[0], "verbs_tail_writes") == 1);
  CHECK(count_of(job[0], "verbs_completions") == 3);
}

// Break: let a silent write have a completion, or let `take_sent` not count what was.
TEST_CASE("a word that is written costs nobody a completion, and what comes after it finds it", "[verbs]") {
  if (no_device()) return;
  connected_pair pair;
  verbs_job& job = pair.job;
  const std::uint64_t writes = count_of(job[0], "verbs_writes"), completions = count_of(job[0], "verbs_completions");
  for (std::uint64_t i = 1; i <= 20; ++i)
    REQUIRE(job.post([&] { return write_word(job, pair.key, pair.key.address, i); }) == status::done);
  REQUIRE(say(job, 0, 1, 20, "after") == status::done);
  REQUIRE(job.until([&] { return !job[1].messages.empty(); }));
  CHECK(pair.window[0] == 20);
  CHECK(job[0].over.size() == 1);  // only the pair's own write is reported
  CHECK(count_of(job[0], "verbs_word_writes") == 20);
  CHECK(count_of(job[0], "verbs_writes") == writes);
  CHECK(count_of(job[0], "verbs_tail_writes") == 0);
  CHECK(count_of(job[0], "verbs_completions") <= completions + 3);
  const local_slice here{pair.mine.data(), 8};  // a burst begins behind them
  const remote_slice there{pair.key.address, 8};
  for (std::uint64_t token = 2; token <= 9; ++token)
    REQUIRE(job[0].net->write(1, {&here, 1}, pair.key, {&there, 1}, token) == status::posted);
  REQUIRE(over(job, 0, 9));
  CHECK(count_of(job[0], "verbs_tail_writes") == 0);
  REQUIRE(job.until([&] { return job[0].net->quiet(); }));
}

// Break: let `quiet` wait for all that is under way. It would for ever: this adapter tries again for ever.
TEST_CASE("who has left the job is not waited for", "[verbs]") {
  if (no_device()) return;
  verbs_job job(3);
  for (const int peer : {1, 2}) REQUIRE(say(job, 0, peer, 20, "connect") == status::done);
  REQUIRE(job.until([&] { return job[1].messages.size() == 1 && job[2].messages.size() == 1; }));
  REQUIRE(job.until([&] { return job[0].net->quiet(); }));
  job.remove(1);
  REQUIRE(say(job, 0, 1, 21, "in vain") == status::done);
  CHECK(job.until([&] { return job[0].net->quiet(); }));
  CHECK(job[0].broken.empty());
  REQUIRE(say(job, 0, 2, 21, "still here") == status::done);
  CHECK_FALSE(job[0].net->quiet());
  CHECK(job.until([&] { return job[0].net->quiet(); }));
  CHECK(job[2].messages.size() == 2);
}

// Break: let messages be silent however few buffers are left.
TEST_CASE("silent messages to many peers leave buffers for the next", "[verbs]") {
  if (no_device()) return;
  constexpr int peers = 40;
  constexpr std::size_t each = 7;  // all silent, if there were buffers enough: there are 256
  verbs_job job(1 + peers);
  for (std::size_t i = 0; i < each; ++i) {
    for (int peer = 1; peer <= peers; ++peer) REQUIRE(say(job, 0, peer, 20, "text") == status::done);
  }
  REQUIRE(job.until([&] { return job[peers].messages.size() == each; }));
  CHECK_FALSE(job[0].net->quiet());
}

TEST_CASE("eight ranks flood one that does not look: nothing fails, nothing is lost", "[verbs]") {
  if (no_device()) return;
  verbs_job job(9);
  constexpr std::size_t each = 200;  // together three times what the target has receives for
  std::vector<std::size_t> sent(9, 0);
  const std::string text(500, 'x');
  const auto flood = [&](bool all) {
    bool done = true;
    for (int r = 1; r < 9; ++r) {
      auto& n = sent[static_cast<std::size_t>(r)];
      while (n < each && job[r].net->send(0, static_cast<std::uint16_t>(100 + n), std::as_bytes(std::span(text)), {}) ==
                             status::done)
        ++n;
      job[r].net->poll(job[r], 100);
      done = done && n == each;
    }
    return done || !all;
  };
  for (int i = 0; i < 3000; ++i) (void)flood(false);  // rank 0 handles nothing meanwhile
  CHECK(job[0].messages.empty());
  REQUIRE(job.until([&] { return flood(true) && job[0].messages.size() == 8 * each; }));
  std::vector<std::size_t> next(9, 0);
  for (const auto& m : job[0].messages) CHECK(m.kind == 100 + next[static_cast<std::size_t>(m.source)]++);
  for (int r = 0; r < 9; ++r) CHECK(job[r].broken.empty());
}

TEST_CASE("what the target's adapter refuses is an error at its origin alone", "[verbs]") {
  if (no_device()) return;
  verbs_job job(3);
  std::vector<std::uint64_t> window(512, 0), mine(512, 9);
  const region_key key = enroll(job, 1, window);
  for (int r = 0; r < 3; ++r) REQUIRE(say(job, r, (r + 1) % 3, 50, "connect") == status::done);
  REQUIRE(job.until([&] { return job[0].messages.size() + job[1].messages.size() + job[2].messages.size() == 3; }));

  const bool wrong_key = GENERATE(true, false);
  INFO("wrong key " << wrong_key);
  region_key wrong = key;
  if (wrong_key) wrong.key ^= 0x5a00;
  const std::uint64_t address = wrong_key ? key.address : key.address + key.bytes - 8;
  REQUIRE(write(job, 0, 1, mine.data(), 64, wrong, address, 1) == status::posted);
  // messages behind it, and from the other side: none may be lost
  for (int i = 0; i < 5; ++i) {
    REQUIRE(say(job, 0, 1, static_cast<std::uint16_t>(60 + i), "behind") == status::done);
    REQUIRE(say(job, 1, 0, static_cast<std::uint16_t>(70 + i), "back") == status::done);
  }
  REQUIRE(over(job, 0, 1));
  CHECK(job[0].over[1] == status::transfer_failed);
  const auto heard = [&](int rank, std::uint16_t first) {
    std::vector<std::uint16_t> kinds;
    for (const auto& m : job[rank].messages) {
      if (m.kind >= first && m.kind < first + 5) kinds.push_back(m.kind);
    }
    return kinds;
  };
  REQUIRE(job.until([&] { return heard(1, 60).size() >= 5 && heard(0, 70).size() >= 5; }));
  for (std::uint16_t i = 0; i < 5; ++i) {
    CHECK(heard(1, 60)[i] == 60 + i);
    CHECK(heard(0, 70)[i] == 70 + i);
  }
  // the connection works again, and the others never noticed
  REQUIRE(write(job, 0, 1, mine.data(), 64, key, key.address, 2) == status::posted);
  REQUIRE(over(job, 0, 2));
  CHECK(job[0].over[2] == status::done);
  REQUIRE(write(job, 2, 1, mine.data(), 8, key, key.address + 64, 3) == status::posted);
  REQUIRE(over(job, 2, 3));
  CHECK(job[2].over[3] == status::done);
  CHECK(std::all_of(window.begin(), window.begin() + 9, [](std::uint64_t v) { return v == 9; }));
  // nor does a word harm what is behind it
  REQUIRE(job.post([&] { return write_word(job, wrong, address + 64, 1); }) == status::done);
  REQUIRE(say(job, 0, 1, 80, "behind") == status::done);
  REQUIRE(job.until([&] { return job[1].messages.back().kind == 80; }));
  REQUIRE(job.until([&] { return job[0].net->quiet(); }));
  for (int r = 0; r < 3; ++r) CHECK(job[r].broken.empty());
}

TEST_CASE("what a peer refuses that lives and computes is no failure of the peer", "[verbs]") {
  if (no_device()) return;
  connected_pair pair;
  auto& [job, window, mine, key] = pair;
  region_key wrong = key;
  wrong.key ^= 0x55;
  REQUIRE(write(job, 0, 1, mine.data(), 8, wrong, wrong.address, 2) == status::posted);
  auto peer = job.take(1);  // it is there, and does not look
  REQUIRE(over(job, 0, 2));
  CHECK(job[0].over[2] == status::transfer_failed);
  CHECK(job[0].broken.empty());
}

TEST_CASE("a peer that has refused something and does not answer any more is lost", "[verbs]") {
  if (no_device()) return;
  connected_pair pair;
  auto& [job, window, mine, key] = pair;
  job[1].net->deregister_region(key);
  const local_slice here{mine.data(), 8};
  const remote_slice there{key.address, 8};
  REQUIRE(job[0].net->write(1, {&here, 1}, key, {&there, 1}, 2) == status::posted);
  REQUIRE(has_news(job[0]));
  job.remove(1);  // nobody says so
  REQUIRE(over(job, 0, 2));
  CHECK(job[0].over[2] == status::peer_failed);
  CHECK(job[0].broken == std::vector{1});
  CHECK(job[0].net->quiet());
}

TEST_CASE("what a peer refuses while it dies ends with peer_failed", "[verbs]") {
  if (no_device()) return;
  connected_pair pair;
  auto& [job, window, mine, key] = pair;
  job[1].net->deregister_region(
      key);  // as the kernel does it: memory first, the queue pair then, and no thread is left
  const local_slice here{mine.data(), 8};
  const remote_slice there{key.address, 8};
  std::uint64_t posted = 1;
  while (job[0].net->write(1, {&here, 1}, key, {&there, 1}, posted + 1) == status::posted) ++posted;
  REQUIRE(has_news(job[0]));
  job.remove(1);
  (void)job[0].net->poll(job[0], 100);
  CHECK(job[0].over.size() == 1);
  CHECK_FALSE(job[0].net->quiet());
  job[0].net->forget(1);
  REQUIRE(job.until([&] { return job[0].over.size() == posted; }));
  for (std::uint64_t t = 2; t <= posted; ++t) CHECK(job[0].over[t] == status::peer_failed);
  CHECK(job[0].net->quiet());
}

TEST_CASE("strangers on the datagram queue are not heard", "[verbs]") {
  if (no_device()) return;
  rma::verbs::hello h{};
  h.magic = rma::verbs::hello_magic;
  h.what = rma::verbs::greeting::request;
  h.from = 1;
  h.to = 0;
  h.nonce_to = 99;
  REQUIRE(rma::verbs::sign(h, "another key"));
  CHECK_FALSE(rma::verbs::genuine(h, rma::test::job_key, 0, 99));
  REQUIRE(rma::verbs::sign(h, rma::test::job_key));
  CHECK(rma::verbs::genuine(h, rma::test::job_key, 0, 99));
  CHECK_FALSE(rma::verbs::genuine(h, rma::test::job_key, 1, 99));  // for another rank
  CHECK_FALSE(rma::verbs::genuine(h, rma::test::job_key, 0, 98));  // a hello of another run
  h.queue_pair ^= 1;
  CHECK_FALSE(rma::verbs::genuine(h, rma::test::job_key, 0, 99));  // changed on its way
}

namespace {

/// Bytes of the device's queues that are mapped here, and of this process's heap in use.
std::size_t mapped_queue_bytes() {
  std::ifstream maps("/proc/self/maps");
  std::size_t bytes = 0;
  for (std::string line; std::getline(maps, line);) {
    if (line.find("/dev/infiniband/uverbs") == std::string::npos) continue;
    const auto dash = line.find('-');
    bytes += std::stoull(line.substr(dash + 1), nullptr, 16) - std::stoull(line.substr(0, dash), nullptr, 16);
  }
  return bytes;
}

}  // namespace

TEST_CASE("a connected peer takes at most 16 KiB", "[verbs][memory]") {
  if (no_device()) return;
  constexpr int ranks = 32;  // all with all: 992 connections
  verbs_job job(ranks);
  const std::size_t before = mapped_queue_bytes();
  for (int a = 0; a < ranks; ++a) {
    for (int b = 0; b < ranks; ++b) {
      if (a != b) REQUIRE(say(job, a, b, 20, "hello") == status::done);
    }
  }
  REQUIRE(job.until([&] {
    std::size_t heard = 0;
    for (int r = 0; r < ranks; ++r) heard += job[r].messages.size();
    return heard == ranks * (ranks - 1);
  }));
  const std::size_t connections = ranks * (ranks - 1);
  const std::size_t queues = (mapped_queue_bytes() - before) / connections;
  const std::size_t entries = job[0].net->entries_per_connection();
  const std::size_t own = sizeof(rma::verbs::connection) + entries * sizeof(rma::verbs::completion_action);
  const std::size_t tables = 3 * (sizeof(void*) * 4 + 16);  // three hash tables' nodes
  std::cout << connections << " connections: queue pair " << queues << ", connection " << sizeof(rma::verbs::connection)
            << ", send queue's records " << entries << " x " << sizeof(rma::verbs::completion_action)
            << ", tables about " << tables << ", together " << queues + own + tables << " bytes per peer\n";
  CHECK(queues + own + tables <= 16 * 1024);
}
