// SPDX-License-Identifier: Apache-2.0
#include "boot/round.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <random>

using rma::boot::frame;
using rma::boot::frame_reader;
using rma::boot::frame_writer;
using rma::boot::member_frame_bytes_max;
using rma::boot::message;
using rma::boot::rank_state;

namespace {

/// A round whose frames are kept, by rank: every order of events can be played by hand.
struct table {
  explicit table(int size)
      : logic(size, [this](int rank, const std::string& bytes) {
          frame_reader reader(member_frame_bytes_max);
          reader.feed(bytes);
          frame got;
          while (reader.next(got) == frame_reader::result::ready) heard[rank].push_back(got);
        }) {
    for (int rank = 0; rank < size; ++rank) logic.join(rank);
    heard.clear();
  }

  bool say(int rank, std::string bytes) {
    frame_reader reader(member_frame_bytes_max);
    reader.feed(bytes);
    frame sent;
    return reader.next(sent) == frame_reader::result::ready && logic.handle(rank, sent);
  }
  bool get(int rank, const std::string& key, std::uint32_t deaths_told = 0) {
    return say(rank, frame_writer(message::get).u32(deaths_told).text(key).finish());
  }
  bool put(int rank, const std::string& key, const std::string& value) {
    return say(rank, frame_writer(message::put).text(key).text(value).finish());
  }
  bool fence(int rank) { return say(rank, rma::boot::bare_frame(message::fence)); }
  bool finalize(int rank) { return say(rank, rma::boot::bare_frame(message::finalize)); }

  /// The messages that `rank` has heard since the last call.
  std::vector<message> types(int rank) {
    std::vector<message> found;
    for (const frame& each : heard[rank]) found.push_back(each.type);
    heard[rank].clear();
    return found;
  }

  std::map<int, std::vector<frame>> heard;
  rma::boot::round logic;
};

using types = std::vector<message>;

}  // namespace

TEST_CASE("a waiting get is answered by the put of its key only", "[boot][round]") {
  table ranks(3);
  CHECK(ranks.get(0, "a"));
  CHECK(ranks.put(1, "b", "2"));
  CHECK(ranks.types(0).empty());
  CHECK(ranks.put(1, "a", "1"));
  REQUIRE(ranks.heard[0].size() == 1);
  CHECK(rma::boot::body_reader(ranks.heard[0][0].body).text() == "1");
  CHECK(ranks.types(1).empty());
}

TEST_CASE("a death fails those who wait at that moment", "[boot][round]") {
  table ranks(4);
  CHECK(ranks.get(0, "a"));
  CHECK(ranks.fence(1));
  ranks.logic.die(3);
  CHECK(ranks.types(0) == types{message::died, message::no_value});
  CHECK(ranks.types(1) == types{message::died, message::fence_failed});
  CHECK(ranks.types(2) == types{message::died});
  CHECK(ranks.types(3) == types{message::died});
  CHECK(ranks.logic.deaths() == std::vector<int>{3});
  ranks.logic.die(3);
  CHECK(ranks.types(0).empty());
  CHECK(ranks.fence(0));
  CHECK(ranks.types(0) == types{message::fence_failed});
}

namespace {

/// The reply to `rank` when it asks who holds up the start.
std::string late(table& ranks, int rank) {
  ranks.heard[rank].clear();
  if (!ranks.say(rank, rma::boot::bare_frame(message::ask_late)) || ranks.heard[rank].size() != 1) return "no answer";
  return std::string(rma::boot::body_reader(ranks.heard[rank][0].body).text());
}

std::string step(const char* what, bool waits = false) {
  return frame_writer(message::step).u8(waits ? 1 : 0).text(what).finish();
}

}  // namespace

TEST_CASE("who waits for others does not hold up the start", "[boot][round]") {
  table ranks(5);
  CHECK(ranks.get(0, "a"));
  CHECK(ranks.fence(1));
  CHECK(ranks.say(2, step("hands something out", true)));
  CHECK(ranks.say(3, step("starts a network")));
  CHECK(late(ranks, 0) == "rank 3 (starts a network), rank 4 (has joined the job)");
  CHECK(late(ranks, 1) == late(ranks, 0));  // and both still wait
  CHECK(ranks.put(4, "a", "1"));
  CHECK(ranks.types(0).back() == message::value);
}

TEST_CASE("a round says where a rank is", "[boot][round]") {
  table ranks(2);
  CHECK(ranks.logic.where(0) == "in the start of the job: has joined the job");
  CHECK(ranks.say(0, step("makes\na mess")));
  CHECK(ranks.logic.where(0) == "in the start of the job: makes a mess");
  CHECK_FALSE(ranks.say(0, step(std::string(rma::boot::step_bytes_max + 1, 'x').c_str())));
  CHECK(ranks.get(0, "a"));
  CHECK_FALSE(ranks.say(0, step("does two things at once")));
  CHECK(ranks.logic.where(0) == "in the start of the job: makes a mess; waits until some rank has put 'a'");
  CHECK(ranks.put(1, "a", "1"));
  CHECK(ranks.fence(0));
  CHECK(ranks.logic.where(0) == "in the start of the job: makes a mess; waits for all ranks");
  CHECK(ranks.fence(1));
  CHECK(ranks.logic.where(0) == "has started, and is in the program");
  CHECK(ranks.finalize(0));
  CHECK(ranks.logic.where(0) == "has left the job");
  ranks.logic.die(1);
  CHECK(ranks.logic.where(1) == "is dead");
}

TEST_CASE("a get waits again once its rank knows of the death", "[boot][round]") {
  table ranks(3);
  ranks.logic.die(2);
  ranks.heard.clear();
  CHECK(ranks.get(0, "a", 0));
  CHECK(ranks.types(0) == types{message::no_value});
  CHECK(ranks.get(0, "a", 1));
  CHECK(ranks.types(0).empty());
  CHECK(ranks.finalize(1));  // now nobody is left who could put it
  CHECK(ranks.types(0) == types{message::no_value});
}

TEST_CASE("a fence ends when the last one comes, and can be repeated", "[boot][round]") {
  table ranks(3);
  for (int turn = 0; turn < 3; ++turn) {
    CHECK(ranks.fence(2));
    CHECK(ranks.fence(0));
    CHECK(ranks.types(0).empty());
    CHECK(ranks.fence(1));
    for (int rank = 0; rank < 3; ++rank) CHECK(ranks.types(rank) == types{message::fence_done});
  }
}

TEST_CASE("leaving fails a fence, and a get that waits for all", "[boot][round]") {
  table ranks(3);
  CHECK(ranks.fence(0));
  CHECK(ranks.get(1, "a"));
  CHECK(ranks.finalize(2));
  CHECK(ranks.types(0) == types{message::fence_failed});
  CHECK(ranks.types(1).empty());  // rank 0 may still put it
  CHECK(ranks.types(2) == types{message::bye});
  CHECK(ranks.put(0, "a", "x"));
  CHECK(ranks.types(1) == types{message::value});
}

TEST_CASE("a rank that waits must not speak", "[boot][round]") {
  table ranks(2);
  CHECK(ranks.get(0, "a"));
  CHECK_FALSE(ranks.put(0, "a", "1"));
}

// Goal: whatever the order of events, nobody is left waiting when nobody can help, and the counts stay sound.
// Method: random events against the rule that a fully blocked round never stays so.
TEST_CASE("no order of events leaves ranks waiting for ever", "[boot][round]") {
  const auto seed = GENERATE(take(200, random(1, 1 << 30)));
  CAPTURE(seed);
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  const int size = 1 + static_cast<int>(draw() % 5);
  table ranks(size);
  std::vector<bool> waits(static_cast<std::size_t>(size), false);
  for (int event = 0; event < 60; ++event) {
    const int rank = static_cast<int>(draw() % static_cast<unsigned>(size));
    const auto at = static_cast<std::size_t>(rank);
    if (ranks.logic.state(rank) != rank_state::joined) continue;
    const std::string key(1, static_cast<char>('a' + draw() % 3));
    const auto what = draw() % 20;
    if (what == 0) {
      ranks.logic.die(rank);
      waits[at] = false;
    } else if (!waits[at]) {
      if (what == 1) REQUIRE(ranks.finalize(rank));
      if (what > 1 && what < 8) REQUIRE(ranks.put(rank, key, "v"));
      if (what >= 8 && what < 14) waits[at] = ranks.get(rank, key, 99);
      if (what >= 14) waits[at] = ranks.fence(rank);
    }
    bool somebody_acts = false;
    bool somebody_waits = false;
    for (int each = 0; each < size; ++each) {
      for (const message heard : ranks.types(each)) {
        if (heard != message::died && heard != message::bye) waits[static_cast<std::size_t>(each)] = false;
      }
      if (ranks.logic.state(each) != rank_state::joined) continue;
      (waits[static_cast<std::size_t>(each)] ? somebody_waits : somebody_acts) = true;
    }
    CAPTURE(event, rank, what);
    REQUIRE((somebody_acts || !somebody_waits));
  }
}
