// SPDX-License-Identifier: Apache-2.0
#include "boot/protocol.hpp"

#include <catch2/catch.hpp>

#include <random>

#include "boot/digest.hpp"

using namespace rma::boot;

namespace {

using result = frame_reader::result;

std::string header(std::uint32_t length) {
  std::string bytes;
  for (int shift = 0; shift < 32; shift += 8) bytes.push_back(static_cast<char>((length >> shift) & 0xffu));
  return bytes;
}

}  // namespace

// Goal: a frame survives however the stream is cut. Method: every split point of two frames in a row.
TEST_CASE("frames are put together from any pieces", "[boot][protocol]") {
  const std::string bytes = frame_writer(message::put).text("key").text(std::string("va\0lue", 6)).finish() +
                            frame_writer(message::died).u32(0xfedcba98u).finish();
  for (std::size_t cut = 0; cut <= bytes.size(); ++cut) {
    CAPTURE(cut);
    frame_reader reader(100);
    std::vector<frame> got;
    for (const auto& piece : {bytes.substr(0, cut), bytes.substr(cut)}) {
      reader.feed(piece);
      frame one;
      while (reader.next(one) == result::ready) got.push_back(one);
    }
    REQUIRE(got.size() == 2);
    body_reader put(got[0].body);
    CHECK(put.text() == "key");
    CHECK(put.text() == std::string_view("va\0lue", 6));
    CHECK(put.complete());
    body_reader died(got[1].body);
    CHECK(died.u32() == 0xfedcba98u);
    CHECK(died.complete());
  }
}

// Goal: a length beyond the limit is refused at once, not waited for. Method: the four length bytes alone.
TEST_CASE("a frame longer than the limit is garbage before it arrives", "[boot][protocol]") {
  const std::uint32_t limit = 512;
  frame got;
  for (const std::uint32_t length : {std::uint32_t{0}, limit + 1, 0x7fffffffu, 0xffffffffu}) {
    CAPTURE(length);
    frame_reader reader(limit);
    reader.feed(header(length));
    CHECK(reader.next(got) == result::garbage);
  }
  frame_reader reader(limit);
  reader.feed(header(limit));
  CHECK(reader.next(got) == result::need_more);
}

TEST_CASE("an unknown kind of frame is garbage", "[boot][protocol]") {
  frame got;
  for (const int type : {0, static_cast<int>(message::closing) + 1, 255}) {
    CAPTURE(type);
    frame_reader reader(512);
    reader.feed(header(100) + static_cast<char>(type));
    CHECK(reader.next(got) == result::garbage);
  }
}

TEST_CASE("a body shorter or longer than its fields is not complete", "[boot][protocol]") {
  const std::string body = header(0xffffffffu) + "x";
  body_reader huge(body);
  CHECK(huge.text().empty());
  CHECK_FALSE(huge.complete());
  CHECK(huge.u32() == 0);
  body_reader rest("abcdefgh");
  CHECK(rest.u32() == 0x64636261u);
  CHECK_FALSE(rest.complete());
  body_reader tiny("ab");
  CHECK(tiny.u32() == 0);
  CHECK(tiny.u8() == 0);
  CHECK_FALSE(tiny.complete());
}

// Goal: no bytes make the parser do more than say what it found. Method: seeded random and damaged streams.
TEST_CASE("random bytes are parsed or refused", "[boot][protocol]") {
  const auto seed = GENERATE(take(50, random(1, 1 << 30)));
  CAPTURE(seed);
  std::mt19937 draw(static_cast<std::uint32_t>(seed));
  std::string bytes;
  for (int i = 0; i < 200; ++i) bytes += frame_writer(message::put).text("k").text("some value").finish();
  for (int i = 0; i < 20; ++i) bytes[draw() % bytes.size()] = static_cast<char>(draw());
  frame_reader reader(member_frame_bytes_max);
  std::size_t taken = 0;
  auto last = result::need_more;
  for (std::size_t at = 0; at < bytes.size() && last != result::garbage;) {
    const std::size_t piece = 1 + draw() % 100;
    reader.feed(std::string_view(bytes).substr(at, piece));
    at += piece;
    frame got;
    while ((last = reader.next(got)) == result::ready) {
      taken += got.body.size() + 5;
      body_reader body(got.body);
      (void)body.text();
      (void)body.text();
      (void)body.complete();
    }
  }
  CHECK(taken <= bytes.size());
}

TEST_CASE("text for the terminal is one printable line", "[boot][protocol]") {
  CHECK(one_line("a\nb\033[2Jc\x7f") == "a b [2Jc ");
  CHECK(one_line(std::string(100000, 'x')).size() == text_bytes_max);
}

// Goal: a proof fits one key, one side, one rank, one size and one pair of nonces.
TEST_CASE("a proof depends on everything that was said", "[boot][digest]") {
  const std::string key = random_hex(32);
  const transcript seen{.rank = 1, .size = 4, .client_nonce = random_digest(), .server_nonce = random_digest()};
  const digest proof = prove(key, prover::client, seen);
  CHECK(equal(proof, bytes_of(prove(key, prover::client, seen))));
  CHECK_FALSE(equal(proof, bytes_of(prove(key, prover::server, seen))));
  CHECK_FALSE(equal(proof, bytes_of(prove(key + "0", prover::client, seen))));
  for (int change = 0; change < 4; ++change) {
    CAPTURE(change);
    transcript other = seen;
    if (change == 0) other.rank = 2;
    if (change == 1) other.size = 5;
    if (change == 2) other.client_nonce = random_digest();
    if (change == 3) other.server_nonce = random_digest();
    CHECK_FALSE(equal(proof, bytes_of(prove(key, prover::client, other))));
  }
  CHECK_FALSE(equal(proof, bytes_of(proof).substr(1)));
}
