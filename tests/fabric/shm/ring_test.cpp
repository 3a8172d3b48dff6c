// SPDX-License-Identifier: Apache-2.0
// Goal: messages of any size come out of a ring whole, in order and once, however often it has wrapped around, and a
// full ring says so and takes no harm.
// Method: both ends in one thread step by step; then one thread each. The bytes of a message follow from its number.
#include "fabric/shm/ring.hpp"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <optional>
#include <random>
#include <thread>
#include <vector>

using namespace rma;
using namespace rma::shm;

namespace {

/// As in fresh shared memory: zero.
std::unique_ptr<ring_memory> fresh_memory() {
  auto memory = std::make_unique<ring_memory>();
  std::memset(static_cast<void*>(memory.get()), 0, sizeof(ring_memory));
  return memory;
}

std::byte byte_of(std::uint32_t number, std::size_t at) noexcept {
  return static_cast<std::byte>((number * 2654435761U + at * 7) >> 3);
}

std::uint16_t kind_of(std::uint32_t number) noexcept { return static_cast<std::uint16_t>(1 + number % 1000); }

bool send(ring_writer& out, std::uint32_t number, std::size_t bytes) noexcept {
  std::byte* const at = out.reserve(bytes);
  if (at == nullptr) return false;
  for (std::size_t i = 0; i < bytes; ++i) at[i] = byte_of(number, i);
  out.commit(bytes, kind_of(number));
  return true;
}

/// Takes the next message if there is one: true if it is number `number` and whole.
std::optional<bool> receive(ring_reader& in, std::uint32_t number, std::size_t bytes) noexcept {
  bool right = false;
  const bool any = in.poll([&](std::uint16_t kind, const std::byte* payload, std::size_t found) noexcept {
    right = kind == kind_of(number) && found == bytes;
    for (std::size_t i = 0; right && i < found; ++i) right = payload[i] == byte_of(number, i);
  });
  return any ? std::optional(right) : std::nullopt;
}

std::size_t lines_of(std::size_t bytes) noexcept {
  return (sizeof(message_header) + bytes + line_bytes - 1) / line_bytes;
}

}  // namespace

TEST_CASE("a fresh ring is empty", "[fabric][shm][ring]") {
  const auto memory = fresh_memory();
  ring_reader in(*memory);
  CHECK_FALSE(in.pending());
  CHECK_FALSE(receive(in, 0, 0).has_value());
  CHECK_FALSE(in.take_gave_room());
}

TEST_CASE("every size from nothing to the largest comes through at every place of the ring", "[fabric][shm][ring]") {
  const auto memory = fresh_memory();
  ring_writer out(*memory);
  ring_reader in(*memory);
  std::uint32_t number = 0;
  // Consecutive sizes shift the place by a line every 64 sizes, and the odd message in between by one each time.
  for (std::size_t bytes = 0; bytes <= payload_max; ++bytes, number += 2) {
    CAPTURE(bytes);
    REQUIRE(send(out, number, bytes));
    REQUIRE(in.pending());
    REQUIRE(receive(in, number, bytes) == true);
    REQUIRE(send(out, number + 1, bytes % 50));
    REQUIRE(receive(in, number + 1, bytes % 50) == true);
    REQUIRE_FALSE(in.pending());
  }
}

TEST_CASE("a full ring refuses, keeps what it has, and takes more once there is room", "[fabric][shm][ring]") {
  const std::size_t bytes = GENERATE(0U, 1U, 56U, 57U, 120U, 1000U, 4096U);
  const std::uint32_t lead = GENERATE(0U, 1U, 100U, 247U);  // messages of one line before: where the ring begins
  CAPTURE(bytes, lead);
  const auto memory = fresh_memory();
  ring_writer out(*memory);
  ring_reader in(*memory);
  for (std::uint32_t i = 0; i < lead; ++i) {
    REQUIRE(send(out, i, 0));
    REQUIRE(receive(in, i, 0) == true);
  }
  for (int turn = 0; turn < 3; ++turn) {
    std::uint32_t sent = 0;
    while (send(out, sent, bytes)) ++sent;
    // The lines that the reader has not given back yet, and the padding at the end, may be missing.
    CHECK(sent * lines_of(bytes) >= ring_lines - ring_lines / 4 - 2 * lines_of(bytes));
    CHECK(sent * lines_of(bytes) <= ring_lines);
    CHECK(out.reserve(bytes) == nullptr);
    for (std::uint32_t i = 0; i < sent; ++i) REQUIRE(receive(in, i, bytes) == true);
    REQUIRE_FALSE(receive(in, 0, bytes).has_value());
    CHECK(in.take_gave_room());
    CHECK_FALSE(in.take_gave_room());
  }
}

TEST_CASE("payload that looks like a stamp is never taken for a message", "[fabric][shm][ring]") {
  const auto memory = fresh_memory();
  ring_writer out(*memory);
  ring_reader in(*memory);
  for (int turn = 0; turn < 20; ++turn) {
    std::byte* const at = out.reserve(payload_max);
    REQUIRE(at != nullptr);
    std::memset(at, 0xff, payload_max);
    out.commit(payload_max, 5);
    REQUIRE(in.poll([](std::uint16_t, const std::byte*, std::size_t) noexcept {}));
    // Where that payload lay, small messages follow: nothing may be seen behind them.
    for (std::uint32_t i = 0; i < 70; ++i) {
      REQUIRE_FALSE(in.pending());
      REQUIRE(send(out, i, 8));
      REQUIRE(receive(in, i, 8) == true);
    }
    REQUIRE_FALSE(in.pending());
  }
}

TEST_CASE("ends that are made later go on where the ring is", "[fabric][shm][ring]") {
  const auto memory = fresh_memory();
  {
    ring_writer out(*memory);
    ring_reader in(*memory);
    // A multiple of what is given back at a time: nothing is left unpublished.
    for (std::uint32_t i = 0; i < ring_lines / 4 * 3; ++i) {
      REQUIRE(send(out, i, 0));
      REQUIRE(receive(in, i, 0) == true);
    }
  }
  ring_writer out(*memory);
  ring_reader in(*memory);
  for (std::uint32_t i = 0; i < 3; ++i) REQUIRE(send(out, i, 3000));
  for (std::uint32_t i = 0; i < 3; ++i) REQUIRE(receive(in, i, 3000) == true);
}

TEST_CASE("two threads: everything arrives whole, once and in order", "[fabric][shm][ring][threads]") {
  constexpr std::uint32_t messages = 100000;
  const auto memory = fresh_memory();
  const auto size_of = [](std::uint32_t number) {
    std::minstd_rand random(number + 1);
    random.discard(2);
    return random() % 50 == 0 ? random() % (payload_max + 1) : random() % 100;
  };
  std::thread sender([&] {
    ring_writer out(*memory);
    for (std::uint32_t i = 0; i < messages; ++i) {
      while (!send(out, i, size_of(i))) std::this_thread::yield();
    }
  });
  ring_reader in(*memory);
  std::uint32_t wrong = 0;
  for (std::uint32_t i = 0; i < messages; ++i) {
    std::optional<bool> found;
    while (!(found = receive(in, i, size_of(i))).has_value()) std::this_thread::yield();
    wrong += *found ? 0 : 1;
  }
  sender.join();
  CHECK(wrong == 0);
  CHECK_FALSE(in.pending());
}
