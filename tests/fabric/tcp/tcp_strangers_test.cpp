// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: who connects and is no rank of the job, and ranks that talk nonsense.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "fabric/tcp/tcp_job.hpp"

namespace {

using rma::status;
using rma::boot::unique_fd;
using rma::fabric::region_key;
using rma::tcp::bytes_of;
using rma::tcp::greeting;
using rma::tcp::own_kind;
using rma::test::advance;
using rma::test::job_key;
using rma::test::kind;
using rma::test::line_to;
using rma::test::numbers;
using rma::test::region_of;
using rma::test::say;
using rma::test::tcp_job;
using rma::test::words_at;
using rma::test::words_in;

constexpr int doubt_naps = 30;  // naps of `until`: some times longer than a fabric doubts

std::size_t open_descriptors() {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator("/proc/self/fd"), {}));
}

/// A write and a read between ranks 0 and 1, and messages.
void check_traffic(tcp_job& all) {
  std::vector<std::uint64_t> memory(5000), back(5000);
  auto from = numbers(5000, 3);
  const region_key key = region_of(all[1], memory);
  all.exchange(0, 1);
  all[0].over.clear();
  REQUIRE(all.post([&] {
    return rma::test::write_words(all[0], 1, words_at(from.data(), 5000), key, words_in(key, 0, 5000), 1);
  }) == status::posted);
  REQUIRE(all.post([&] {
    return rma::test::read_words(all[0], 1, words_at(back.data(), 5000), key, words_in(key, 0, 5000), 2);
  }) == status::posted);
  REQUIRE(all.until([&] { return all[0].over.size() == 2; }));
  CHECK(all[0].over[1] == status::done);
  CHECK(all[0].over[2] == status::done);
  CHECK(back == from);
  CHECK((all[0].broken.empty() && all[1].broken.empty()));
  all[1].net->deregister_region(key);
}

/// Nothing has come but what ranks 0 and 1 have said to each other in `exchanges`.
void check_unheard(tcp_job& all, std::size_t exchanges) {
  for (const int r : {0, 1}) {
    CHECK(all[r].messages.size() == exchanges);
    for (const auto& each : all[r].messages) CHECK(each.source == 1 - r);
    CHECK(all[r].immediates.empty());
    CHECK(all[r].count("tcp_connections") == 1);
  }
}

std::vector<std::byte> garbage(std::size_t bytes) {
  std::vector<std::byte> all(bytes);
  for (std::size_t i = 0; i < bytes; ++i) all[i] = static_cast<std::byte>(37 * i + 11);
  return all;
}

}  // namespace

// Goal: who connects and says nothing, or half of what a rank says, keeps nobody from anything, neither from the
// connection that is there nor from one that is made meanwhile; and who goes away is forgotten.
// Break: in receive of a greeting, wait for the rest.
TEST_CASE("strangers that say too little", "[tcp]") {
  const bool before = GENERATE(true, false);  // the ranks are connected
  tcp_job all(2);
  if (before) check_traffic(all);
  std::vector<unique_fd> silent, half;
  rma::tcp::introduction mine;
  mine.from = 1;
  mine.size = 2;
  for (int i = 0; i < 5; ++i) {
    silent.push_back(line_to(all[0]));
    half.push_back(line_to(all[0]));
    say(half.back(), bytes_of(mine).first(sizeof mine / 2 + static_cast<std::size_t>(i)));
  }
  for (int i = 0; i < 10; ++i) all.poll_all();
  check_traffic(all);
  CHECK(all[0].count("tcp_strangers") == 0);
  silent.clear();
  half.clear();
  CHECK(all.until([&] { return all[0].count("tcp_strangers") == 10; }));
  check_traffic(all);
  check_unheard(all, before ? 3 : 2);
}

// Goal: whatever bytes a stranger sends, few or many, are no introduction, and are not handed to anybody.
// Break: take an introduction without looking at its proof.
TEST_CASE("strangers that say something else", "[tcp]") {
  tcp_job all(2);
  std::vector<unique_fd> lines;
  std::uint64_t count = 0;
  for (const std::size_t bytes : {sizeof(rma::tcp::introduction), std::size_t{1000}, std::size_t{60000}}) {
    lines.push_back(line_to(all[0]));
    say(lines.back(), garbage(bytes));
    ++count;
  }
  for (const auto& [from, to, size] :
       std::vector<std::array<std::uint32_t, 3>>{{1, 0, 2}, {0, 0, 2}, {2, 0, 2}, {1, 1, 2}, {1, 0, 3}, {~0U, 0, 2}}) {
    rma::tcp::introduction mine;
    mine.from = from;
    mine.to = to;
    mine.size = size;
    lines.push_back(line_to(all[0]));
    say(lines.back(), bytes_of(mine));
    const rma::tcp::front f{8, kind, 0};
    say(lines.back(), bytes_of(f));
    say(lines.back(), garbage(8));
    ++count;
  }
  CHECK(all.until([&] { return all[0].count("tcp_strangers") == count; }));
  check_traffic(all);
  check_unheard(all, 1);
}

// Goal: a rank of another job is refused, though it knows the format, and nothing of what it says is heard. It learns
// that it gets nowhere.
// Break: in take_introduction, do not compare the proof.
TEST_CASE("a rank with another key is a stranger", "[tcp]") {
  tcp_job all(2);
  const bool before = GENERATE(true, false);
  if (before) check_traffic(all);
  const rma::tcp::start how{1, 2, "127.0.0.1", "some other key"};
  rma::test::tcp_member other(std::make_unique<rma::tcp::tcp_fabric>(how));
  other.net->use(all);
  const std::uint64_t word = 1;
  REQUIRE(other.net->send(0, kind, bytes_of(word), {}) == status::done);
  REQUIRE(all.until(
      [&] {
        other.net->poll(other, 100);
        return !other.broken.empty();
      },
      doubt_naps));
  CHECK(other.broken == std::vector<int>{0});
  CHECK(other.count("tcp_connections") == 0);
  CHECK(all[0].count("tcp_strangers") >= 1);
  check_traffic(all);
  check_unheard(all, before ? 2 : 1);
}

// Goal: nor does a rank believe who listens at a peer's address without the key: nothing is said to it.
// Break: in take_verdict, do not compare the proof.
TEST_CASE("who listens must know the key", "[tcp]") {
  class elsewhere final : public rma::fabric::directory {
   public:
    explicit elsewhere(std::string at) : at_(std::move(at)) {}
    status look_up(int, std::string_view, std::string& value) noexcept override {
      value = at_;
      return status::done;
    }

   private:
    std::string at_;
  };
  rma::boot::boot_address where{.local = false, .host = "127.0.0.1", .port = "0"};
  const unique_fd listener = rma::boot::listen_at(where);
  elsewhere wrong(rma::boot::to_text(where));
  tcp_job all(1, 2);
  all[0].net->use(wrong);
  const std::uint64_t word = 1;
  REQUIRE(all[0].net->send(1, kind, bytes_of(word), {}) == status::done);
  std::vector<std::unique_ptr<greeting>> heard;
  std::size_t said = 0;
  REQUIRE(all.until(
      [&] {
        unique_fd line(::accept4(listener.get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
        if (line) heard.push_back(std::make_unique<greeting>(std::move(line), 1, 2, std::int64_t{0}));
        for (const auto& g : heard) {
          std::byte more{};
          if (g->peer() == 0 && ::recv(g->fd(), &more, 1, MSG_DONTWAIT) > 0) ++said;
          if (g->peer() < 0 && advance(*g, "no idea") == greeting::outcome::failed)
            (void)g->answer("no idea", rma::tcp::word::accept);
        }
        return !all[0].broken.empty();
      },
      doubt_naps));
  CHECK(!heard.empty());
  CHECK(heard.back()->peer() == 0);
  CHECK(said == 0);
  CHECK(all[0].count("tcp_connections") == 0);
}

// Goal: strangers by the hundred cost a bounded number of descriptors, and ranks still find each other.
// Break: keep the greeting of who has failed; or in accept_all, keep all that wait.
TEST_CASE("many strangers", "[tcp]") {
  const bool silent = GENERATE(false, true);
  CAPTURE(silent);
  constexpr std::size_t count = 500, at_once = 20;
  tcp_job all(2);
  const std::size_t before = open_descriptors();
  std::vector<unique_fd> lines;
  while (lines.size() < count) {
    for (std::size_t i = 0; i < at_once; ++i) {
      lines.push_back(line_to(all[0]));
      if (!silent) say(lines.back(), garbage(200));
    }
    for (int i = 0; i < 3; ++i) all.poll_all();
  }
  if (!silent) CHECK(all.until([&] { return all[0].count("tcp_strangers") == count; }));
  constexpr std::size_t may_wait = 70;
  CHECK(open_descriptors() <= before + count + (silent ? may_wait : 0));
  CHECK(all[0].count("tcp_strangers") >= count - may_wait);
  check_traffic(all);
  lines.clear();
  REQUIRE(all.until([&] { return open_descriptors() <= before + 2; }));
  check_traffic(all);
  check_unheard(all, 2);
}

// Goal: a peer of the job that sends what cannot be is lost, each for one thing; it writes nowhere and is handed to
// nobody. One that sends what can be goes on, as do the others.
// Break: in take_message, begin_landing, place_answer or take_answer, take what has no meaning for something.
TEST_CASE("a peer that talks nonsense is lost", "[tcp]") {
  const auto code = [](own_kind k) { return static_cast<std::uint16_t>(k); };
  struct nonsense {
    std::uint16_t kind;
    std::size_t bytes_said;
    std::vector<std::byte> bytes;
  };
  constexpr std::size_t answer_bytes = sizeof(rma::tcp::answer);
  const std::vector<nonsense> all_said{
      {static_cast<std::uint16_t>(rma::tcp::bulk_kind::count_), 8, garbage(8)},
      {rma::fabric::first_kind - 1, 0, {}},
      {kind, rma::tcp::message_bytes + 1, garbage(100)},
      {kind, 0xffffffff, {}},
      {code(own_kind::ask_placed), rma::tcp::message_bytes + 1, {}},
      {code(own_kind::put), sizeof(rma::tcp::placement) + rma::tcp::transfer_bytes + 1, garbage(100)},
      {code(own_kind::put), sizeof(rma::tcp::placement) - 1, garbage(100)},
      {code(own_kind::give_get), answer_bytes - 1, garbage(answer_bytes)},
      {code(own_kind::give_get), answer_bytes, std::vector<std::byte>(answer_bytes)},
      {code(own_kind::result), answer_bytes, std::vector<std::byte>(answer_bytes)},
      {code(own_kind::ask_get), sizeof(rma::tcp::question) - 1, garbage(sizeof(rma::tcp::question) - 1)},
      {code(own_kind::ask_atomic), sizeof(rma::tcp::question) + 1, garbage(sizeof(rma::tcp::question) + 1)},
  };
  const int first = 2, sane = first + static_cast<int>(all_said.size()), size = sane + 1;
  tcp_job all(2, size);
  all.exchange(0, 1);
  std::vector<int> liars;
  std::vector<unique_fd> lines;
  for (const nonsense& each : all_said) {
    liars.push_back(first + static_cast<int>(liars.size()));
    lines.push_back(rma::test::join_as(all, liars.back(), size));
    say(lines.back(), each.kind, each.bytes_said, each.bytes);
  }
  const unique_fd good = rma::test::join_as(all, sane, size);
  say(good, code(own_kind::ask_placed), 0, {});
  say(good, kind, 8, garbage(8));
  REQUIRE(all.until([&] { return all[0].broken.size() == liars.size(); }, doubt_naps));
  std::ranges::sort(all[0].broken);
  CHECK(all[0].broken == liars);
  REQUIRE(all[0].messages.size() == 2);
  CHECK(all[0].messages.back().source == sane);
  std::array<std::byte, sizeof(rma::tcp::front) + answer_bytes + 1> heard{};
  CHECK(::recv(good.get(), heard.data(), heard.size(), MSG_DONTWAIT) == heard.size() - 1);
  all.exchange(0, 1);
  CHECK(all[0].net->send(sane, kind, {}, {}) == status::done);
}

// Goal: a put of up to 16 KiB that comes in two parts is placed when it is whole: nobody sees half a word.
// Break: in begin_landing, place what is there.
TEST_CASE("a small put is placed whole", "[tcp]") {
  tcp_job all(1, 2);
  std::vector<std::uint64_t> memory(2);
  const region_key key = region_of(all[0], memory);
  const unique_fd peer = rma::test::join_as(all, 1, 2);
  const rma::tcp::placement where{key.key, key.address};
  const auto words = numbers(2, (std::uint64_t{7} << 40) + 1);
  const std::span<const std::byte> data = std::as_bytes(std::span(words));
  constexpr std::size_t part = 11;
  const rma::tcp::front f{static_cast<std::uint32_t>(sizeof where + data.size()),
                          static_cast<std::uint16_t>(own_kind::put), 0};
  std::vector<std::byte> begin;  // in one call: of several, the kernel keeps the later ones back
  for (const auto piece : {bytes_of(f), bytes_of(where), data.first(part)})
    begin.insert(begin.end(), piece.begin(), piece.end());
  say(peer, begin);
  for (int i = 0; i < 50; ++i) all.poll_all();  // bytes sent on the loopback device are there
  CHECK(memory == std::vector<std::uint64_t>(2));
  say(peer, data.subspan(part));
  CHECK(all.until([&] { return memory == words; }, doubt_naps));
}

// Goal: an answer of the wrong sort, or of the wrong size, is not taken for that of the first question. One with
// the wrong size fails that question only.
// Break: in place_answer, do not compare the sizes.
TEST_CASE("an answer that does not fit its question", "[tcp]") {
  tcp_job all(1, 4);
  const region_key key{4096, 4096, 1};
  const rma::tcp::answer done;
  std::vector<std::uint64_t> into(8);
  std::uint64_t old = 5;
  const unique_fd short_one = rma::test::join_as(all, 1, 4), wrong = rma::test::join_as(all, 2, 4),
                  other = rma::test::join_as(all, 3, 4);
  for (const int peer : {1, 2}) {
    REQUIRE(rma::test::read_words(all[0], peer, words_at(into.data(), 4), key, words_in(key, 0, 4),
                                  static_cast<std::uint64_t>(peer)) == status::posted);
  }
  REQUIRE(rma::test::read_words(all[0], 1, words_at(into.data() + 4, 4), key, words_in(key, 0, 4), 4) ==
          status::posted);
  REQUIRE(all[0].net->fetch_add(3, key, key.address, 1, old, 3) == status::posted);
  const auto give = static_cast<std::uint16_t>(own_kind::give_get),
             result = static_cast<std::uint16_t>(own_kind::result);
  const auto words = numbers(5, 9);
  for (const std::size_t count : {5UL, 4UL}) {
    say(short_one, give, sizeof done + 8 * count, bytes_of(done));
    say(short_one, std::as_bytes(std::span(words).first(count)));
  }
  say(wrong, result, sizeof done, bytes_of(done));
  say(other, give, sizeof done + 8, bytes_of(done));
  say(other, bytes_of(words[0]));
  REQUIRE(all.until([&] { return all[0].over.size() == 4; }, doubt_naps));
  CHECK(all[0].over[1] == status::transfer_failed);
  CHECK(all[0].over[4] == status::done);
  CHECK(all[0].over[2] == status::peer_failed);
  CHECK(all[0].over[3] == status::peer_failed);
  CHECK(into == std::vector<std::uint64_t>{0, 0, 0, 0, 9, 10, 11, 12});
  CHECK(old == 5);
  CHECK(all[0].broken.size() == 2);
}
