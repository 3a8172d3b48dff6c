// SPDX-License-Identifier: Apache-2.0
// The contract of fabrics: ranks that leave, and ranks that die.
#include <cstdint>
#include <vector>

#include "fabric/contract_cases.hpp"

using namespace rma;
using namespace rma::test;
using fabric::region_key;

namespace {

constexpr int silent_naps = 8;  // naps of `until`, after which nothing is believed to come any more

/// Tokens 1 to 3, and a message: operations of rank 0.
struct operations {
  operations(fabric_job& all, int peer, const region_key& key) : by(all[0]) {
    const auto here = words_at(&words[0], 1), into = words_at(&words[1], 1);
    const auto there = words_in(key, 0, 1);
    note(1, by.fabric.write(peer, {&here, 1}, key, {&there, 1}, 1));
    note(2, by.fabric.read(peer, {&into, 1}, key, {&there, 1}, 2));
    if (all.caps().atomics) note(3, by.fabric.fetch_add(peer, key, key.address, 1, words[2], 3));
    sent = by.fabric.send(peer, message_kind, bytes_of(words[0]), {});
  }
  /// An operation that found no room is none.
  void note(std::uint64_t token, status s) {
    if (s == status::posted) ++under_way;
    if (s != status::posted && s != status::retry_queue_full) by.over[token] = s;
  }
  job_member& by;
  std::vector<std::uint64_t> words = numbers(3, 1);
  std::size_t under_way = 0;
  status sent = status::done;
};

/// Copies by the processor are over at once, whoever lives; an adapter serves as long as it is there; and a write may
/// have left the origin's memory.
bool ended_by_death(fabric_job& all, bool was_there) {
  const bool writes_end = all.caps().write_means == fabric::write_completion::local;
  return std::ranges::all_of(all[0].over, [&](const auto& each) {
    const bool needs_no_peer =
        all.caps().copies_by_cpu || (was_there && all.caps().one_sided) || (each.first == 1 && writes_end);
    return each.second == status::peer_failed || (needs_no_peer && each.second == status::done);
  });
}

void die(fabric_job& all, int rank, bool gone_first, bool connected) {
  std::vector<std::uint64_t> memory(64, 1);
  const region_key key = region_of(all[rank], memory);
  if (connected) exchange(all, 0, rank);
  (void)all[rank].fabric.send(0, message_kind, {}, {});
  if (gone_first) all.leave(rank);
  const std::size_t had = all[0].messages.size();
  all[0].over.clear();
  const std::size_t told = all[0].completions;
  const operations asked(all, rank, key);
  all.announce_death(rank);
  if (!gone_first) all.leave(rank);
  CHECK(all.until([&] { return all[0].completions == told + asked.under_way && all.are_quiet(); }));
  CHECK(ended_by_death(all, !gone_first));
  all[0].over.clear();
  const operations later(all, rank, key);
  CHECK((later.under_way != 0 || !all[0].over.empty()));
  CHECK(all.until([&] { return all[0].completions == told + asked.under_way + later.under_way; }));
  CHECK(ended_by_death(all, false));
  CHECK(!all.until([&] { return !all[0].broken.empty() || all[0].messages.size() != had; }, silent_naps));
  CHECK(all[0].completions == told + asked.under_way + later.under_way);
}

}  // namespace

// Goal: a rank that leaves is not reported as lost, whichever of the two has spoken first; nor is a goodbye expected of
// it any more. The others go on.
// Break: say no goodbye.
TEST_CASE("contract: a rank that leaves breaks nothing", "[contract]") {
  with_fabric(4, [](fabric_job& all) {
    REQUIRE(send_word(all, 0, 1, 1));
    REQUIRE(send_word(all, 1, 2, 1));
    REQUIRE(all.until([&] { return !all[1].messages.empty() && !all[2].messages.empty() && all.are_quiet(); }));
    all.leave(1);
    const auto broken = [&] { return !all[0].broken.empty() || !all[2].broken.empty() || !all[3].broken.empty(); };
    CHECK(!all.until(broken, silent_naps));
    CHECK_FALSE(all[0].fabric.as_liveness().expects_goodbye(1));
    exchange(all, 0, 2);
    exchange(all, 2, 3);
    exchange(all, 3, 0);
    CHECK_FALSE(broken());
    CHECK(all.until([&] { return all.are_quiet(); }));
  });
}

// Goal: where ranks say goodbye one that leaves serves what others have under way there.
// Break: close all connections at once.
TEST_CASE("contract: a rank that leaves serves what is under way", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    const std::size_t words = fitting(all, 1 << 16);
    std::vector<std::uint64_t> memory = numbers(words, 1), target(words), into(words), from = numbers(words, 2);
    const region_key key = region_of(all[1], memory), written = region_of(all[1], target);
    exchange(all, 0, 1);
    if (!all[0].fabric.as_liveness().expects_goodbye(1)) {
      all.cannot = "its ranks say no goodbye";
      return;
    }
    for (std::uint64_t i = 1; i <= 8; ++i)
      REQUIRE(read_words(all, 0, 1, words_at(into.data(), words), key, words_in(key, 0, words), i));
    REQUIRE(write_words(all, 0, 1, words_at(from.data(), words), written, words_in(written, 0, words), 9));
    all.leave(1);
    REQUIRE(all.until([&] { return all[0].over.size() == 9; }));
    CHECK(all_over_as(all[0], status::done));
    CHECK((into == memory));
    CHECK((target == from));
    CHECK(!all.until([&] { return !all[0].broken.empty(); }, silent_naps));
  });
}

// Goal: when the job says that a rank is dead everything under way to it ends, whether or not there was a connection;
// later operations are refused or end; nothing that it has sent is handed on. It is not reported as lost, since its
// death is known. The others go on.
// Break: forget what is under way; or take from the dead what has come.
TEST_CASE("contract: operations to the dead end", "[contract]") {
  for (const bool gone_first : {false, true}) {
    for (const bool connected : {true, false}) {
      with_fabric(3, [&](fabric_job& all) {
        CAPTURE(gone_first, connected);
        exchange(all, 0, 2);
        die(all, 1, gone_first, connected);
        exchange(all, 0, 2);
      });
    }
  }
}

// Break: drop the completion of each unsignaled write.
TEST_CASE("contract: an unsignaled write to the dead reports that it failed", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (all.caps().copies_by_cpu || all.caps().write_means == fabric::write_completion::local) {
      all.cannot = "its writes are over without their peer";
      return;
    }
    std::vector<std::uint64_t> memory(1), from(1, 1);
    const region_key key = region_of(all[1], memory);
    exchange(all, 0, 1);
    all.announce_death(1);
    all.leave(1);
    const auto here = words_at(from.data(), 1);
    const auto there = words_in(key, 0, 1);
    fabric::write_flags how;
    how.unsignaled = true;
    const status s = all.post([&] { return all[0].fabric.write(1, {&here, 1}, key, {&there, 1}, 1, how); });
    if (s == status::posted && all.is_over(0, 1)) CHECK(all[0].over[1] == status::peer_failed);
    CHECK((s == status::peer_failed || all[0].over.size() == 1));
  });
}

// Goal: of what a rank had under way when it died nothing is written any more once its death is known here.
// Method: writes, long ones and short, of which some have arrived; the memory is filled anew when the death is told.
// Break: let `forget` leave the connection as it is.
TEST_CASE("contract: nothing of the dead is written", "[contract]") {
  for (const bool gone_first : {false, true}) {
    with_fabric(2, [&](fabric_job& all) {
      CAPTURE(gone_first);
      if (all.caps().copies_by_cpu) {
        all.cannot = "its writes are copies, over when they return";
        return;
      }
      const std::size_t words = fitting(all, 1 << 17);
      std::vector<std::uint64_t> memory(words), from = numbers(words, 3);
      const region_key key = region_of(all[0], memory);
      exchange(all, 0, 1);
      for (std::uint64_t i = 1; i <= 16; ++i) {
        const std::size_t some = i % 4 == 0 ? 1 : words;
        const auto here = words_at(from.data(), some);
        const auto there = words_in(key, 0, some);
        (void)all[1].fabric.write(0, {&here, 1}, key, {&there, 1}, i);
      }
      for (int i = 0; i < 3; ++i) (void)all[0].fabric.poll(all[0], 1);
      if (gone_first) all.leave(1);
      all.announce_death(1);
      (void)all[0].fabric.poll(all[0], 1000);
      std::ranges::fill(memory, 99);
      (void)all.until([] { return false; }, silent_naps);
      CHECK(std::ranges::count(memory, 99) == static_cast<std::ptrdiff_t>(words));
      if (!gone_first) all.leave(1);
    });
  }
}
