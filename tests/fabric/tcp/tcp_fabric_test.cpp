// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: what is posted between ranks that live.
#include <poll.h>

#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstring>
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
using rma::test::kind;
using rma::test::numbers;
using rma::test::read_words;
using rma::test::region_of;
using rma::test::tcp_job;
using rma::test::tcp_member;
using rma::test::words_at;
using rma::test::words_in;
using rma::test::write_words;

constexpr std::size_t transfer_words = rma::tcp::transfer_bytes / 8;

/// `count` numbered messages from rank 0, each longer than the one before.
void send_numbered(tcp_job& all, int target, std::uint64_t count, const std::vector<std::byte>& payload) {
  for (std::uint64_t i = 0; i < count; ++i) {
    const auto rest = std::span(payload).first(i % (payload.size() + 1));
    const auto send = [&] { return all[0].net->send(target, kind, bytes_of(i), rest); };
    if (const status s = send(); s != status::done) REQUIRE((s == status::retry_queue_full && ok(all.post(send))));
  }
}

/// Whether the messages are those of `send_numbered`.
bool are_numbered(const tcp_member& m, const std::vector<std::byte>& payload) {
  for (std::uint64_t i = 0; i < m.messages.size(); ++i) {
    const auto& [source, sent_as, bytes] = m.messages[i];
    if (source != 0 || sent_as != kind || bytes.size() != sizeof i + i % (payload.size() + 1)) return false;
    if (std::memcmp(bytes.data(), &i, sizeof i) != 0) return false;
    if (!std::equal(bytes.begin() + sizeof i, bytes.end(), payload.begin())) return false;
  }
  return true;
}

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

// Goal: when a write is over its data are in the target's memory, and a read that is posted behind it finds them.
// Method: from one word to the longest transfer, on both sides of what is copied into a batch, in two unequal pieces.
// Break: in send_straight, forget that a part of the data has been skipped; or end a write when it is posted.
TEST_CASE("a write that is over is placed, and a read after it finds it", "[tcp]") {
  tcp_job all(2);
  constexpr std::size_t straight = rma::tcp::straight_bytes / 8;
  for (const std::size_t count : {std::size_t{1}, std::size_t{100}, straight - 2, straight - 1, straight, straight + 1,
                                  8 * straight, transfer_words - 1, transfer_words}) {
    CAPTURE(count);
    std::vector<std::uint64_t> memory(count + 2, 77), back(count);
    auto from = numbers(count, count);
    const region_key key = region_of(all[1], memory);
    const std::size_t cut = count / 3;
    const std::array pieces{words_at(from.data(), cut), words_at(from.data() + cut, count - cut)};
    const std::array into{words_at(back.data(), count - cut), words_at(back.data() + count - cut, cut)};
    const remote_slice there = words_in(key, 1, count);
    all[0].over.clear();
    REQUIRE(all.post([&] { return all[0].net->write(1, pieces, key, {&there, 1}, 1); }) == status::posted);
    CHECK(all[0].over.empty());
    REQUIRE(all.post([&] { return all[0].net->read(1, into, key, {&there, 1}, 2); }) == status::posted);
    REQUIRE(all.until([&] { return all[0].over.contains(1); }));
    CHECK(all[0].over[1] == status::done);
    CHECK(std::equal(from.begin(), from.end(), memory.begin() + 1));
    CHECK((memory.front() == 77 && memory.back() == 77));
    REQUIRE(all.until([&] { return all[0].over.contains(2); }));
    CHECK(all[0].over[2] == status::done);
    CHECK(back == from);
    all[1].net->deregister_region(key);
  }
  CHECK(all.until([&] { return all[0].net->quiet() && all[1].net->quiet(); }));
}

// Goal: the same to oneself.
// Break: in write_here or read, do not move on in memory after a piece.
TEST_CASE("a rank writes to itself and reads from itself", "[tcp]") {
  tcp_job all(1);
  std::vector<std::uint64_t> memory(10), back(10);
  auto from = numbers(10, 1);
  const region_key key = region_of(all[0], memory);
  const std::array pieces{words_at(from.data(), 3), words_at(from.data() + 3, 7)};
  const std::array into{words_at(back.data(), 6), words_at(back.data() + 6, 4)};
  const remote_slice there = words_in(key, 0, 10);
  REQUIRE(all[0].net->write(0, pieces, key, {&there, 1}, 1) == status::posted);
  REQUIRE(all[0].net->read(0, into, key, {&there, 1}, 2) == status::posted);
  CHECK(all[0].over.empty());
  REQUIRE(all.until([&] { return all[0].over.size() == 2; }));
  CHECK(all_done(all[0]));
  CHECK(memory == from);
  CHECK(back == from);
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

// Goal: each message is handed on once, in the order in which it was sent, however many they are and however few a
// poll may hand on. Those to oneself, too.
// Break: in take_message, hand on what is over the limit, or take it from the queue without handing it on.
TEST_CASE("messages arrive once and in order", "[tcp]") {
  std::vector<std::byte> payload(2999);
  for (std::size_t i = 0; i < payload.size(); ++i) payload[i] = static_cast<std::byte>(i);
  tcp_job all(2);
  constexpr std::uint64_t count = 4000;
  for (const int target : {0, 1}) {
    CAPTURE(target);
    send_numbered(all, target, count, payload);
    REQUIRE(all.until([&] { return all[target].messages.size() >= count; }));
    CHECK(all[target].messages.size() == count);
    CHECK(are_numbered(all[target], payload));
  }
  all.exchange(0, 1);
}

// Goal: what a poll may not hand on waits, in order, and the rank knows that something waits.
// Break: in pending, do not ask for messages that nobody has looked at.
TEST_CASE("messages wait while a poll may hand on few", "[tcp]") {
  const std::vector<std::byte> payload(20);
  tcp_job all(2);
  all.exchange(0, 1);
  constexpr std::size_t limit = 3, count = 300;
  for (const int target : {0, 1}) {
    CAPTURE(target);
    tcp_member& m = all[target];
    m.messages.clear();
    send_numbered(all, target, count, payload);
    bool few = true, awake = true;
    for (int polls = 0; polls < 1'000'000 && m.messages.size() < count; ++polls) {
      const std::size_t had = m.messages.size();
      m.net->poll(m, limit);
      few = few && m.messages.size() <= had + limit;
      if (m.messages.size() == had || m.messages.size() == count) continue;
      pollfd news{m.net->event_fd(), POLLIN, 0};
      awake = awake && (m.net->pending() || ::poll(&news, 1, 1000) == 1);
    }
    CHECK(awake);
    CHECK(m.messages.size() == count);
    CHECK(few);
    CHECK(are_numbered(m, payload));
  }
}

// Goal: who is told by an immediate finds the data there, of every size; it comes once, and to oneself, too.
// Break: in write_with_immediate, send the immediate before the data; or to oneself, hand it on without writing.
TEST_CASE("an immediate comes after its data", "[tcp]") {
  tcp_job all(2);
  for (const int target : {0, 1}) {
    CAPTURE(target);
    all[0].over.clear();
    std::uint32_t round = 0;
    for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{3000}, transfer_words}) {
      std::vector<std::uint64_t> memory(count);
      const region_key key = region_of(all[target], memory);
      for (int i = 0; i < 5; ++i) {
        auto from = numbers(count, ++round);
        const local_slice here = words_at(from.data(), count);
        bool there = false;
        all[target].at_immediate = [&] { there = memory == from; };
        REQUIRE(all.post([&] {
          return all[0].net->write_with_immediate(target, {&here, 1}, key, words_in(key, 0, count), round, round);
        }) == status::posted);
        REQUIRE(all.until([&] { return all[target].immediates.size() == round && all[0].over.size() == round; }));
        CHECK(there);
        CHECK(all[target].immediates.back() == std::pair(0, round));
      }
      all[target].net->deregister_region(key);
    }
    CHECK(all_done(all[0]));
    all[target].at_immediate = nullptr;
  }
}

// Goal: additions of three ranks to one word, one of them its owner, are all there, and each found another value.
// Break: in apply, give back what is there afterwards; or swap whatever is found.
TEST_CASE("atomics of several ranks are exact", "[tcp]") {
  tcp_job all(3);
  constexpr std::uint64_t count = 600, first = 5, step = 2;
  std::vector<std::uint64_t> memory{first, 11};
  const region_key key = region_of(all[0], memory);
  std::vector<std::uint64_t> old(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    tcp_member& m = all[static_cast<int>(i % 3)];
    REQUIRE(all.post([&] { return m.net->fetch_add(0, key, key.address, step, old[i], i + 1); }) == status::posted);
  }
  REQUIRE(all.until([&] { return all[0].over.size() + all[1].over.size() + all[2].over.size() == count; }));
  std::ranges::sort(old);
  bool exact = true;
  for (std::uint64_t i = 0; i < count; ++i) exact = exact && old[i] == first + step * i;
  CHECK(exact);
  CHECK(memory == std::vector<std::uint64_t>{first + step * count, 11});
  for (const int r : {0, 1}) {
    CAPTURE(r);
    memory[0] = 40;
    for (const std::uint64_t expected : {39U, 40U}) {
      all[r].over.clear();
      std::uint64_t found = 0;
      REQUIRE(all.post([&] { return all[r].net->compare_swap(0, key, key.address, expected, 7, found, 1); }) ==
              status::posted);
      REQUIRE(all.until([&] { return !all[r].over.empty(); }));
      CHECK(all[r].over[1] == status::done);
      CHECK(found == 40);
      CHECK(memory[0] == (expected == 40 ? 7 : 40));
    }
  }
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

// Goal: more questions than a peer may have under way are taken one after the other, all of them.
// Break: never count down the questions when an answer comes.
TEST_CASE("more reads than may be under way", "[tcp]") {
  tcp_job all(2);
  constexpr std::uint64_t small = 5000;
  auto memory = numbers(loader::count * transfer_words, 1);
  std::vector<std::uint64_t> back(memory.size());
  const region_key key = region_of(all[1], memory);
  for (std::uint64_t i = 0; i < small; ++i) {
    REQUIRE(all.post([&] { return read_words(all[0], 1, words_at(&back[i], 1), key, words_in(key, i, 1), i + 1); }) ==
            status::posted);
  }
  REQUIRE(all.until([&] { return all[0].over.size() == small; }));
  CHECK(all_done(all[0]));
  CHECK(std::equal(memory.begin(), memory.begin() + small, back.begin()));
  all[0].over.clear();
  for (std::size_t i = 0; i < loader::count; ++i) {
    const std::size_t at = i * transfer_words;
    REQUIRE(all.post([&] {
      return read_words(all[0], 1, words_at(&back[at], transfer_words), key, words_in(key, at, transfer_words), i + 1);
    }) == status::posted);
  }
  REQUIRE(all.until([&] { return all[0].over.size() == loader::count; }));
  CHECK(all_done(all[0]));
  CHECK(back == memory);
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
