// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: ranks that take nothing, and hosts that say nothing.
#include <linux/filter.h>
#include <sys/socket.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <vector>

#include "fabric/tcp/silence.hpp"
#include "fabric/tcp/tcp_job.hpp"

namespace {

using rma::status;
using rma::boot::unique_fd;
using rma::fabric::region_key;
using rma::fabric::remote_slice;
using rma::tcp::line_report;
using rma::tcp::silence;
using namespace rma::test;

constexpr int timeout_ms = 300;
constexpr std::size_t transfer_words = rma::tcp::transfer_bytes / 8;
constexpr std::uint64_t operations_max = 10000;  // more than all buffers hold

/// Only this rank is inside the library, for several times the time-out.
void pass_time(tcp_member& m, int time_ms = 5 * timeout_ms) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(time_ms);
  while (std::chrono::steady_clock::now() < until) {
    pollfd news{m.net->event_fd(), POLLIN, 0};
    if (!m.net->pending()) (void)::poll(&news, 1, timeout_ms / 10);
    m.net->poll(m, 1000);
  }
}

/// Writes to `peer` until no more is taken. How many.
std::uint64_t fill(tcp_member& m, int peer, std::vector<std::uint64_t>& from, const region_key& key) {
  for (std::uint64_t i = 0; i < operations_max; ++i) {
    if (write_words(m, peer, words_at(from.data(), transfer_words), key, words_in(key, 0, transfer_words), i + 1) !=
        status::posted)
      return i;
  }
  return operations_max;
}

/// The state of a line as the kernel would report it, in milliseconds.
struct played_line {
  std::int64_t heard = 0;
  std::uint32_t probes = 0, repeats = 0;

  bool lasts(silence& s, std::int64_t now) const { return s.lasts({now - heard, probes, repeats}, now, timeout_ms); }
};

/// The host of this socket answers nothing any more, as behind a cable that is pulled.
void cut_off(const unique_fd& line) {
  sock_filter nothing = BPF_STMT(BPF_RET | BPF_K, 0);
  const sock_fprog filter{1, &nothing};
  REQUIRE(::setsockopt(line.get(), SOL_SOCKET, SO_ATTACH_FILTER, &filter, sizeof filter) == 0);
}

}  // namespace

// Goal: a rank that computes for longer than the time-out is not lost, whatever waits for it: puts, or the answers to
// gets of its own. Everything ends well when it is back.
// Method: so much is posted that both sockets are full; only the other rank is polled meanwhile.
// Break: in open, let no data wait (let_data_wait).
TEST_CASE("a rank that computes for long is not lost", "[tcp]") {
  const bool puts = GENERATE(true, false);
  CAPTURE(puts);
  tcp_job all(2, 2, timeout_ms);
  std::vector<std::uint64_t> memory(transfer_words), from = numbers(transfer_words, 1);
  std::vector<std::uint64_t>& source = puts ? memory : from;
  const region_key key = region_of(all[puts ? 1 : 0], source);
  all.exchange(0, 1);
  const int origin = puts ? 0 : 1;
  std::uint64_t posted = 0;
  if (puts) {
    posted = fill(all[0], 1, from, key);
  } else {
    while (posted < operations_max && read_words(all[1], 0, words_at(memory.data(), transfer_words), key,
                                                 words_in(key, 0, transfer_words), posted + 1) == status::posted)
      ++posted;
    CHECK_FALSE(all[1].net->pending());  // which sends what waits for company
  }
  REQUIRE((posted > 0 && posted < operations_max));
  pass_time(all[0]);
  CHECK(all[0].broken.empty());
  REQUIRE(all.until([&] { return all[origin].over.size() == posted; }));
  CHECK(std::ranges::all_of(all[origin].over, [](const auto& each) { return each.second == status::done; }));
  CHECK(memory == from);
  CHECK((all[0].broken.empty() && all[1].broken.empty()));
}

// Goal: who connects and computes between any two calls, for longer than a stranger has to say who it is, is not lost,
// and loses nobody.
// Method: the rank that connects is asked only when the other has given up on it, more often than it may be refused.
// Break: in step_greeting, count every attempt.
TEST_CASE("a rank that computes while it connects gets through", "[tcp]") {
  constexpr int stranger_ms = 20;
  tcp_job all(2, 2, timeout_ms, stranger_ms);
  const std::uint64_t word = 7;
  REQUIRE(all.post([&] { return all[0].net->send(1, rma::test::kind, rma::tcp::bytes_of(word), {}); }) == status::done);
  for (int i = 0; i < 6; ++i) {
    pass_time(all[1], 2 * stranger_ms);
    for (int looks = 0; looks < 10; ++looks) all[0].net->poll(all[0], 1000);
  }
  REQUIRE(all.until([&] { return all[1].messages.size() == 1; }));
  CHECK((all[0].broken.empty() && all[1].broken.empty()));
}

// Goal: a host that does not answer any more is lost, whether data are on their way to it, wait because its rank takes
// none, or nothing is to be said; and everything under way to it ends.
// Method: the test is the peer; its socket drops whatever it gets, before TCP sees it.
// Break: in look_at_all, do not lose the silent; in tune, do not ask.
TEST_CASE("a host that falls silent is lost", "[tcp]") {
  enum class line { idle, busy, full };
  const line is = GENERATE(line::idle, line::busy, line::full);
  CAPTURE(is);
  tcp_job all(1, 2, timeout_ms);
  const unique_fd peer = rma::test::join_as(all, 1, 2);
  const region_key key{4096, transfer_words * 8, 1};
  std::vector<std::uint64_t> from(transfer_words);
  REQUIRE(all.until([&] { return all[0].count("tcp_connections") == 1; }));
  std::uint64_t posted = is == line::full ? fill(all[0], 1, from, key) : 0;
  cut_off(peer);
  if (is == line::busy &&
      write_words(all[0], 1, words_at(from.data(), 1), key, words_in(key, 0, 1), 1) == status::posted)
    ++posted;
  REQUIRE((is == line::idle) == (posted == 0));
  REQUIRE(all.until([&] { return !all[0].broken.empty(); }));
  CHECK(all[0].broken == std::vector<int>{1});
  REQUIRE(all.until([&] { return all[0].over.size() == posted; }));
  CHECK(std::ranges::all_of(all[0].over, [](const auto& each) { return each.second == status::peer_failed; }));
}

// Goal: where there is no room, a kernel asks ever less often, in the end every two minutes. Nobody is lost who
// answers: not just before the question, nor while the answer is on its way, nor when one question was lost. Method:
// probes of a window, or segments that are sent again, at growing distances; looks around each of them. Break: let one
// question, or one look, do; do not forget what was asked before an answer.
TEST_CASE("a host that answers is not silent", "[tcp]") {
  const bool probes = GENERATE(true, false);
  const int lost_every = GENERATE(1000, 4);
  CAPTURE(probes, lost_every);
  silence s;
  played_line l;
  std::int64_t now = 1'000'000;
  l.heard = now;
  for (int question = 1; question < 40; ++question) {
    const std::int64_t pause = std::min(200LL << std::min(question, 10), 120'000LL);
    for (std::int64_t at = 0; at < pause; at += timeout_ms / 8) REQUIRE_FALSE(l.lasts(s, now + at));
    now += pause;
    REQUIRE_FALSE(l.lasts(s, now - 1));
    ++(probes ? l.probes : l.repeats);
    REQUIRE_FALSE(l.lasts(s, now));
    if (question % lost_every == 0) continue;
    l.heard = now;
    l.probes = 0;
  }
}

// Goal: who does not answer two questions is silent when the time-out is over, also if this rank looks only then.
// Break: let only a look at the time of a question count.
TEST_CASE("a host that does not answer is silent", "[tcp]") {
  const bool probes = GENERATE(true, false);
  const bool looks = GENERATE(true, false);
  CAPTURE(probes, looks);
  silence s;
  played_line l;
  std::int64_t now = 1'000'000;
  l.heard = now;
  l.repeats = 5;
  CHECK_FALSE(l.lasts(s, now += 50));
  for (int question = 0; question < 2; ++question) {
    now += 100;
    ++(probes ? l.probes : l.repeats);
    if (looks) CHECK_FALSE(l.lasts(s, now));
  }
  now = l.heard + timeout_ms;
  if (looks) CHECK_FALSE(l.lasts(s, now));
  CHECK_FALSE(l.lasts(s, ++now));  // the answer may be on its way
  CHECK(l.lasts(s, ++now));
}
