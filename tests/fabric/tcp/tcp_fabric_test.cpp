// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: the contract of all fabrics, and what is its own between ranks that live.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "fabric/tcp/tcp_job.hpp"

namespace {

using rma::status;
using rma::fabric::local_slice;
using rma::fabric::region_key;
using rma::fabric::remote_slice;
using rma::tcp::bytes_of;
using namespace rma::test;

constexpr std::size_t transfer_words = rma::tcp::transfer_bytes / 8;

/// One of two ranks that load each other with puts and gets of the largest size.
struct loader {
  static constexpr std::size_t count = 64;
  std::vector<std::uint64_t> mine, theirs = std::vector<std::uint64_t>(count * transfer_words), back = theirs;
  region_key source, target;
  std::size_t puts = 0, gets = 0;

  loader(tcp_member& m, std::uint64_t first) : mine(numbers(count * transfer_words, first)) {
    source = region_of(m, mine);
    target = region_of(m, theirs);
  }
  /// Posts what there is room for.
  void post(tcp_member& m, int peer, const loader& other) {
    for (; puts < count; ++puts) {
      const std::size_t at = puts * transfer_words, first = 1 + puts * 400, second = (transfer_words - first) / 3;
      const std::array pieces{words_at(&mine[at], first), words_at(&mine[at + first], second),
                              words_at(&mine[at + first + second], transfer_words - first - second)};
      const remote_slice there = words_in(other.target, at, transfer_words);
      if (m.net->write(peer, pieces, other.target, {&there, 1}, puts + 1) != status::posted) break;
    }
    for (; gets < count; ++gets) {
      const std::size_t at = gets * transfer_words;
      if (read_words(m, peer, words_at(&back[at], transfer_words), other.source,
                     words_in(other.source, at, transfer_words), count + gets + 1) != status::posted)
        break;
    }
  }
};

bool all_done(const tcp_member& m) {
  return std::ranges::all_of(m.over, [](const auto& each) { return each.second == status::done; });
}

}  // namespace

void rma::test::with_fabric(int ranks, const std::function<void(fabric_job&)>& body) {
  tcp_job job(ranks);
  run_with(job, body);
}

// Goal: nothing to move is no error, wherever it would go: an empty region has no memory.
// Break: in place_put, refuse what has no bytes.
TEST_CASE("operations of no bytes end well", "[tcp]") {
  tcp_job all(2);
  region_key key;
  REQUIRE(all[1].net->register_region(nullptr, 0, key) == status::done);
  REQUIRE(all[0].net->register_region(nullptr, 0, key) == status::done);
  for (const int target : {0, 1}) {
    CAPTURE(target);
    all[0].over.clear();
    const local_slice here{};
    REQUIRE(all.post([&] { return write_words(all[0], target, here, key, {}, 1); }) == status::posted);
    REQUIRE(all.post([&] { return read_words(all[0], target, here, key, {}, 2); }) == status::posted);
    REQUIRE(all.until([&] { return all[0].over.size() == 2; }));
    CHECK(all[0].over[1] == status::done);
    CHECK(all[0].over[2] == status::done);
  }
}

// Goal: what is small leaves with others, and so do its answers; but a question that is alone leaves at once.
// Break: in write or read, let every message leave now; or let none.
TEST_CASE("small operations travel together", "[tcp]") {
  tcp_job all(2);
  constexpr std::uint64_t count = 160;
  std::vector<std::uint64_t> memory(count), back(count);
  auto from = numbers(count, 1);
  const region_key key = region_of(all[1], memory);
  all.exchange(0, 1);
  REQUIRE(all.until([&] { return all[0].net->quiet() && all[1].net->quiet(); }));
  for (const bool writes : {true, false}) {
    CAPTURE(writes);
    all[0].over.clear();
    const std::uint64_t asked = all[0].count("tcp_batches"), answered = all[1].count("tcp_batches");
    for (std::uint64_t i = 0; i < count; ++i) {
      const local_slice here = words_at(&(writes ? from : back)[i], 1);
      const remote_slice there = words_in(key, i, 1);
      REQUIRE((writes ? write_words(all[0], 1, here, key, there, i + 1)
                      : read_words(all[0], 1, here, key, there, i + 1)) == status::posted);
      if (i == 0) CHECK(all[0].count("tcp_batches") - asked == (writes ? 0 : 1));
    }
    REQUIRE(all.until([&] { return all[0].over.size() == count; }));
    CHECK(all[0].count("tcp_batches") - asked <= count / rma::tcp::batch_messages + 2);
    CHECK(all[1].count("tcp_batches") - answered <= count / 8);
  }
  CHECK(memory == from);
  CHECK(back == from);
}

// Goal: rows of a middle size fill whole batches, and the question behind them needs none of its own.
// Break: let a batch leave when half of it is full.
TEST_CASE("rows fill batches", "[tcp]") {
  tcp_job all(2);
  constexpr std::size_t rows = 64, row_words = 256;
  std::vector<std::uint64_t> memory(rows * row_words);
  auto from = numbers(memory.size(), 1);
  const region_key key = region_of(all[1], memory);
  all.exchange(0, 1);
  const std::uint64_t before = all[0].count("tcp_batches");
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = row * row_words;
    REQUIRE(write_words(all[0], 1, words_at(&from[at], row_words), key, words_in(key, at, row_words), row + 1) ==
            status::posted);
  }
  REQUIRE(all.until([&] { return all[0].over.size() == rows; }));
  CHECK(all_done(all[0]));
  CHECK(all[0].count("tcp_batches") - before <= rows * row_words * 8 / rma::tcp::batch_bytes + 1);
  CHECK(memory == from);
}

// Goal: two ranks that connect to each other at the same moment end with one connection, which carries what both
// have said. Whichever of them looks first, and however often.
// Break: in welcome, let both attempts count; or throw away what waits when an attempt is given up.
TEST_CASE("ranks that connect to each other at once have one connection", "[tcp]") {
  for (int looks = 0; looks < 12; ++looks) {
    CAPTURE(looks);
    tcp_job all(3);
    const std::uint64_t word = 4711;
    for (int from = 0; from < 3; ++from) {
      for (int to = 0; to < 3; ++to) {
        if (from != to) REQUIRE(all[from].net->send(to, kind, bytes_of(word), {}) == status::done);
      }
    }
    tcp_member& eager = all[looks % 3];
    for (int i = 0; i < looks / 3; ++i) eager.net->poll(eager, 1000);
    REQUIRE(all.until([&] {
      for (int r = 0; r < 3; ++r) {
        if (all[r].messages.size() != 2) return false;
      }
      return true;
    }));
    for (int i = 0; i < 20; ++i) all.poll_all();
    for (int r = 0; r < 3; ++r) {
      CAPTURE(r);
      CHECK(all[r].count("tcp_connections") == 2);
      CHECK(all[r].messages.size() == 2);
      CHECK(all[r].messages[0].source + all[r].messages[1].source == 3 - r);
      CHECK(all[r].broken.empty());
    }
    all.exchange(0, 1);
  }
}

// Goal: who asks for more than may be under way is told so, and the peer need not keep more than that for it.
// Break: take every read; or never count down what is asked for.
TEST_CASE("reads are held back where they are made", "[tcp]") {
  tcp_job all(2);
  std::vector<std::uint64_t> memory(transfer_words), back(transfer_words);
  const region_key key = region_of(all[1], memory);
  all.exchange(0, 1);
  for (int round = 0; round < 2; ++round) {
    all[0].over.clear();
    std::size_t taken = 0;
    const auto read = [&] {
      return read_words(all[0], 1, words_at(back.data(), transfer_words), key, words_in(key, 0, transfer_words),
                        taken + 1);
    };
    while (taken < 1000 && read() == status::posted) ++taken;
    CHECK(taken == rma::tcp::asked_bytes_max / rma::tcp::transfer_bytes);
    REQUIRE(all.until([&] { return all[0].over.size() == taken; }));
  }
}

// Goal: two ranks that fill their connection from both ends still take what comes, and all of it arrives.
// Break: in poll, look at nothing while a connection waits for room; or do not hold back who asks for much, and
// answer only where there is room.
TEST_CASE("two ranks that load each other do not wait for each other", "[tcp]") {
  tcp_job all(2);
  loader a(all[0], 1), b(all[1], 1'000'000'000);
  REQUIRE(all.until([&] {
    a.post(all[0], 1, b);
    b.post(all[1], 0, a);
    return all[0].over.size() == 2 * loader::count && all[1].over.size() == 2 * loader::count;
  }));
  CHECK(all_done(all[0]));
  CHECK(all_done(all[1]));
  CHECK(a.theirs == b.mine);
  CHECK(b.theirs == a.mine);
  CHECK(a.back == b.mine);
  CHECK(b.back == a.mine);
  CHECK(all.until([&] { return all[0].net->quiet() && all[1].net->quiet(); }));
}
