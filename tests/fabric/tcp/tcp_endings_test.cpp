// SPDX-License-Identifier: Apache-2.0
// The TCP fabric alone: regions that go, ranks that leave, die or are lost.
#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
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
constexpr int doubt_naps = 30;  // naps of `until`: some times longer than a fabric doubts

/// A write, a read, an atomic and a message to `peer`; the tokens are 1, 2 and 3.
struct operations {
  std::vector<std::uint64_t> words = numbers(3, 1);
  status write, read, atomic, send;

  operations(tcp_member& m, int peer, const region_key& key, const remote_slice& there) {
    write = write_words(m, peer, words_at(&words[0], 1), key, there, 1);
    read = read_words(m, peer, words_at(&words[1], 1), key, there, 2);
    atomic = m.net->fetch_add(peer, key, there.address, 1, words[2], 3);
    send = m.net->send(peer, kind, bytes_of(words[0]), {});
  }
};

bool are_over(const tcp_member& m, status result) {
  return m.over.size() == 3 && std::ranges::all_of(m.over, [&](const auto& each) { return each.second == result; });
}

}  // namespace

// Goal: what a region does not hold is refused, and refused is what the origin is told; to oneself, too. A region that
// is gone holds nothing. The next operation is not touched by it.
// Break: in own_memory, ask for the begin only; or leave put_error as it is when somebody has been told.
TEST_CASE("what is outside a region is refused", "[tcp]") {
  tcp_job all(2);
  auto memory = numbers(10, 100);
  const auto untouched = memory;
  for (const int target : {0, 1}) {
    CAPTURE(target);
    region_key gone = region_of(all[target], memory);
    all[target].net->deregister_region(gone);
    std::vector<std::uint64_t> middle(1);
    const region_key key{gone.address + 8, 64, 0};
    region_key inner;
    REQUIRE(all[target].net->register_region(memory.data() + 1, 64, inner) == status::done);
    all.exchange(0, 1);
    const std::array<std::pair<region_key, remote_slice>, 5> wrong{{{gone, {gone.address + 8, 8}},
                                                                    {key, {key.address, 8}},
                                                                    {inner, {inner.address - 8, 8}},
                                                                    {inner, {inner.address + 64, 8}},
                                                                    {inner, {~std::uint64_t{0} - 7, 8}}}};
    for (const auto& [region, there] : wrong) {
      CAPTURE(region.key, there.address);
      all[0].over.clear();
      const operations asked(all[0], target, region, there);
      CHECK((asked.write == status::posted && asked.read == status::posted && asked.atomic == status::posted));
      REQUIRE(all.until([&] { return all[0].over.size() == 3; }));
      CHECK(are_over(all[0], status::transfer_failed));
      CHECK(asked.words == numbers(3, 1));
      CHECK(memory == untouched);
      all[0].over.clear();
      REQUIRE(write_words(all[0], target, words_at(&memory[1], 1), inner, words_in(inner, 0, 1), 1) == status::posted);
      REQUIRE(all.until([&] { return !all[0].over.empty(); }));
      CHECK(all[0].over[1] == status::done);
    }
    all[target].net->deregister_region(inner);
  }
}

// Goal: memory whose region goes while a write into it is only partly received is not written to any more; the origin
// is told, and what comes behind on the same connection is understood.
// Method: the target looks once, so that it has a part and the kernel has the rest.
// Break: in deregister_region, let what lands go on; or drop less than is to come.
TEST_CASE("a region goes while a write into it arrives", "[tcp]") {
  tcp_job all(2);
  std::vector<std::uint64_t> memory(transfer_words), other(transfer_words);
  auto from = numbers(transfer_words, 1);
  const region_key key = region_of(all[1], memory), kept = region_of(all[1], other);
  all.exchange(0, 1);
  const std::uint64_t word = 5;
  const local_slice here = words_at(from.data(), transfer_words);
  REQUIRE(write_words(all[0], 1, here, key, words_in(key, 0, transfer_words), 1) == status::posted);
  REQUIRE(all[0].net->send(1, kind, bytes_of(word), {}) == status::done);
  all[0].net->poll(all[0], 100);
  for (int looks = 0; looks < 1'000'000 && memory[0] == 0; ++looks) all[1].net->poll(all[1], 100);
  REQUIRE(memory[0] == 1);
  REQUIRE(memory.back() == 0);
  all[1].net->deregister_region(key);
  const auto untouched = memory;
  REQUIRE(all.until([&] { return all[0].over.contains(1) && all[1].messages.size() == 2; }));
  CHECK(memory == untouched);
  CHECK(all[0].over[1] == status::transfer_failed);
  REQUIRE(all.post([&] { return write_words(all[0], 1, here, kept, words_in(kept, 0, transfer_words), 2); }) ==
          status::posted);
  REQUIRE(all.until([&] { return all[0].over.contains(2); }));
  CHECK(all[0].over[2] == status::done);
  CHECK(other == from);
  all.exchange(0, 1);
}

// Goal: what a rank has sent before it leaves is handed on even if the others look only when it is gone; and that they
// speak to it then does not make it a lost one. Until then its goodbye is expected.
// Break: when a message cannot be sent any more, throw away what has come; or expect no goodbye.
TEST_CASE("what a rank has sent before it left arrives", "[tcp]") {
  tcp_job all(2);
  all.exchange(0, 1);
  const std::uint64_t word = 1;
  const bool speaks = GENERATE(false, true);
  CAPTURE(speaks);
  REQUIRE(all[1].net->send(0, kind, bytes_of(word), {}) == status::done);
  all.remove(1);
  CHECK(all[0].net->expects_goodbye(1));
  for (int i = 0; speaks && i < 3; ++i) (void)all[0].net->send(1, kind, bytes_of(word), {});
  CHECK(!all.until([&] { return !all[0].broken.empty(); }, 10));
  CHECK(all[0].messages.size() == 2);
  CHECK_FALSE(all[0].net->expects_goodbye(1));
}

// Goal: a peer whose line ends without a goodbye is reported once, after some doubt, and everything under way to it
// ends. The others are not concerned.
// Method: the test is the peer; it closes its socket with an answer half said.
// Break: in lose, do not doubt; in resolve_doubts, do not tell.
TEST_CASE("a peer that is lost without a word is reported", "[tcp]") {
  tcp_job all(2, 3);
  rma::boot::unique_fd line = rma::test::join_as(all, 2, 3);
  all.exchange(0, 1);
  const region_key key{4096, 4096, 1};
  std::vector<std::uint64_t> into(100);
  REQUIRE(read_words(all[0], 2, words_at(into.data(), 100), key, words_in(key, 0, 100), 4) == status::posted);
  const operations asked(all[0], 2, key, words_in(key, 0, 1));
  CHECK((asked.write == status::posted && asked.read == status::posted && asked.atomic == status::posted));
  rma::test::say(line, static_cast<std::uint16_t>(rma::tcp::own_kind::give_get), sizeof(rma::tcp::answer) + 800,
                 bytes_of(rma::tcp::answer{}));
  rma::test::say(line, bytes_of(into[0]));
  for (int i = 0; i < 5; ++i) all.poll_all();
  CHECK(all[0].over.empty());
  line.reset();
  REQUIRE(all.until([&] { return !all[0].broken.empty(); }, doubt_naps));
  REQUIRE(all.until([&] { return all[0].over.size() == 4; }));
  CHECK(all[0].over[4] == status::peer_failed);
  all[0].over.erase(4);
  CHECK(are_over(all[0], status::peer_failed));
  const operations later(all[0], 2, key, words_in(key, 0, 1));
  CHECK((later.write == status::peer_failed && later.read == status::peer_failed));
  CHECK(all[0].net->quiet());
  all.exchange(0, 1);
  CHECK(all[0].broken == std::vector<int>{2});
  CHECK(all[1].broken.empty());
}

// Goal: so is one at whose address nobody listens any more. The operations posted meanwhile end.
// Break: in retry_or_doubt, try again without end.
TEST_CASE("a peer that does not listen is reported", "[tcp]") {
  tcp_job all(3);
  all.remove(1);
  const region_key key{4096, 4096, 1};
  const operations asked(all[0], 1, key, words_in(key, 0, 1));
  CHECK((asked.write == status::posted && asked.read == status::posted && asked.atomic == status::posted));
  REQUIRE(all.until([&] { return !all[0].broken.empty(); }, doubt_naps));
  REQUIRE(all.until([&] { return all[0].over.size() == 3; }));
  CHECK(are_over(all[0], status::peer_failed));
  CHECK(all[0].broken == std::vector<int>{1});
  all.exchange(0, 2);
}

// Goal: what the job says counts while a fabric still doubts: the dead are not reported as lost.
// Break: in resolve_doubts, report everybody.
TEST_CASE("a lost peer that is dead is not reported", "[tcp]") {
  tcp_job all(1, 2);
  rma::boot::unique_fd line = rma::test::join_as(all, 1, 2);
  std::uint64_t old = 0;
  const region_key key{4096, 4096, 1};
  REQUIRE(all[0].net->fetch_add(1, key, key.address, 1, old, 1) == status::posted);
  line.reset();
  REQUIRE(all.until([&] { return all[0].net->send(1, kind, {}, {}) == status::retry_queue_full; }));
  CHECK(all[0].over.empty());
  all[0].net->forget(1);
  REQUIRE(all.until([&] { return !all[0].over.empty(); }));
  CHECK(all[0].over[1] == status::peer_failed);
  CHECK(!all.until([&] { return !all[0].broken.empty(); }, 8));
}
