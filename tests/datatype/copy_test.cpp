// SPDX-License-Identifier: Apache-2.0
// Goal: copy, pack and unpack move exactly the described bytes, from any byte on, in any pieces, and touch no others.
// Method: random layouts, random bytes, the oracle's list of offsets; for contiguous copies every small size, and
// places that overlap or have (nearly) the same offset in their pages.
#include "datatype/copy.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <catch2/catch.hpp>
#include <cstring>
#include <initializer_list>
#include <thread>
#include <vector>

#include "datatype/oracle.hpp"
#include "datatype/rows.hpp"
#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"

using namespace rma;
using namespace rma::test;

namespace {

using sizes = std::initializer_list<std::size_t>;

/// A layout whose blocks do not overlap, so that unpacking has one outcome.
pair_of_both random_target(random_engine& random) {
  for (;;) {
    pair_of_both made = random_layout(random, between(random, 1, 5));
    if (!made.plain.bytes.empty() && !overlaps_itself(made.plain)) return made;
  }
}

/// A layout of the same number of bytes.
pair_of_both random_partner(random_engine& random, std::size_t bytes) {
  for (int attempt = 0; attempt < 50; ++attempt) {
    pair_of_both inner = random_layout(random, between(random, 1, 3));
    if (inner.plain.bytes.empty() || bytes % inner.plain.bytes.size() != 0) continue;
    const std::size_t count = bytes / inner.plain.bytes.size();
    return {Layout::contiguous(count, inner.layout), oracle_of_blocks(inner.plain, {count}, {0})};
  }
  return {Layout::contiguous<char>(bytes), oracle_of_blocks(oracle_of_element(1), {bytes}, {0})};
}

/// Moves `bytes` from one place of `memory` to another, by copy_bytes and byte by byte through a third place.
bool moves_like_bytes(std::vector<unsigned char> memory, std::size_t to, std::size_t from, std::size_t bytes,
                      detail::copy_turn* turn = nullptr) {
  std::vector<unsigned char> expected = memory;
  for (std::size_t i = 0; i < bytes; ++i) expected[to + i] = memory[from + i];
  detail::copy_bytes(memory.data() + to, memory.data() + from, bytes, turn);
  return memory == expected;
}

detail::copy_turn backwards() {
  detail::copy_turn turn;
  turn.take();
  return turn;
}

}  // namespace

TEST_CASE("contiguous copies of every small size and of large ones", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  std::vector<unsigned char> memory(3000);
  fill_randomly(memory, random);
  for (std::size_t bytes = 0; bytes <= 1100; ++bytes) {
    CAPTURE(bytes);
    REQUIRE(moves_like_bytes(memory, 1500 + bytes % 67, bytes % 37, bytes));
  }
  constexpr std::size_t page = 4096;
  memory.resize(page * 12);
  fill_randomly(memory, random);
  for (const std::size_t bytes : {page - 1, page, page + 33, 4 * page + 5}) {
    for (const std::size_t apart : sizes{0, 1, 16, 32, 2048, 4080, 4095}) {
      const auto first = between<std::size_t>(random, 0, 70);
      CAPTURE(bytes, apart, first);
      REQUIRE(moves_like_bytes(memory, first + 5 * page + apart, first, bytes));
      REQUIRE(moves_like_bytes(memory, first, first + 5 * page + apart, bytes));
    }
  }
  for (const std::size_t bytes : sizes{24575, 24577, 65536, 200001}) {
    memory.resize(3 * bytes);
    fill_randomly(memory, random);
    CAPTURE(bytes);
    REQUIRE(moves_like_bytes(memory, bytes + 65, 3, bytes));
    REQUIRE(moves_like_bytes(memory, 3, bytes + 70, bytes));
    REQUIRE(moves_like_bytes(memory, 3, 80, bytes));
    REQUIRE(moves_like_bytes(memory, 80, 3, bytes));
  }
  memory.resize((std::size_t{17} << 20) + 100);  // longer than what is copied by our own loops
  fill_randomly(memory, random);
  REQUIRE(moves_like_bytes(memory, (std::size_t{8} << 20) + 51, 3, (std::size_t{8} << 20) + 40));
}

TEST_CASE("long contiguous copies go back and forth", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  const std::size_t half = detail::turning_bytes_min();
  std::vector<unsigned char> memory(5 * half);
  fill_randomly(memory, random);
  for (const std::size_t bytes : {half, half + 13, 2 * half - 1, 2 * half}) {
    for (const std::size_t apart : {bytes, bytes + 5, bytes - 1, half / 2, std::size_t{3}}) {
      const auto first = between<std::size_t>(random, 0, 70);
      CAPTURE(bytes, apart, first);
      detail::copy_turn turn = backwards();
      REQUIRE(moves_like_bytes(memory, first + apart, first, bytes, &turn));
      CHECK(turn.take() == (apart < bytes));  // overlapping blocks leave no choice
      turn = backwards();
      REQUIRE(moves_like_bytes(memory, first, first + apart, bytes, &turn));
      CHECK(turn.take() == (apart < bytes));
    }
  }
  detail::copy_turn turn = backwards();
  REQUIRE(moves_like_bytes(memory, 2 * half, 3, half - 1, &turn));
  CHECK(turn.take());  // a short one was not asked
}

TEST_CASE("the first and the last part of a copy that goes backwards may be of any length", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  constexpr std::size_t part = std::size_t{64} << 10;
  const std::size_t parts = detail::turning_bytes_min() / part;
  std::vector<unsigned char> source((parts + 2) * part);
  fill_randomly(source, random);
  std::vector<unsigned char> memory((parts + 4) * part);
  const std::size_t aligned = 2 * part - reinterpret_cast<std::uintptr_t>(memory.data()) % part;
  for (const std::size_t head : sizes{0, 1, 7, 127, 128, 129, 300}) {
    for (const std::size_t tail : sizes{0, 1, 15, 127, 128, 129, 300}) {
      CAPTURE(head, tail);
      const std::size_t first = aligned - head;
      const std::size_t bytes = head + parts * part + tail;
      std::fill(memory.begin(), memory.end(), 0xee);
      std::vector<unsigned char> expected = memory;
      std::copy_n(source.begin() + 3, bytes, expected.begin() + static_cast<std::ptrdiff_t>(first));
      detail::copy_turn turn = backwards();
      detail::copy_bytes(memory.data() + first, source.data() + 3, bytes, &turn);
      REQUIRE(memory == expected);
      REQUIRE_FALSE(turn.take());
    }
  }
}

TEST_CASE("rows go back and forth where they do not fit the first cache", "[datatype][copy]") {
  const auto last_row = [](std::size_t row_bytes, detail::copy_turn& turn) {
    const Layout one_place = Layout::vector<char>(64, row_bytes, 0);
    std::vector<unsigned char> to(row_bytes);
    std::vector<unsigned char> from(64 * row_bytes);
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i / row_bytes);
    detail::copy(to.data(), one_place, from.data(), Layout::contiguous<char>(from.size()), &turn);
    return int{to[0]};
  };
  detail::copy_turn turn;
  CHECK(last_row(1024, turn) == 63);
  CHECK(last_row(1024, turn) == 0);
  CHECK(last_row(1024, turn) == 63);
  CHECK(last_row(16, turn) == 63);
  CHECK(last_row(16, turn) == 63);
}

TEST_CASE("contiguous copies whose ends overlap", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  std::vector<unsigned char> memory(12000);
  fill_randomly(memory, random);
  for (const std::size_t bytes : sizes{1, 2, 3, 5, 8, 13, 16, 31, 33, 64, 65, 100, 128, 129, 200, 333, 1000, 5000}) {
    for (const std::size_t apart : sizes{0, 1, 3, 8, 16, 31, 32, 64, 100, 127, 128, 300, 4096}) {
      CAPTURE(bytes, apart);
      const auto first = between<std::size_t>(random, 0, 70);
      REQUIRE(moves_like_bytes(memory, first, first + apart, bytes));
      REQUIRE(moves_like_bytes(memory, first + apart, first, bytes));
    }
  }
}

TEST_CASE("no aligned word is seen in parts while it is overwritten", "[datatype][copy]") {
  struct shape {
    std::size_t bytes, rows;  ///< length of each row; rows lie a page apart
  };
  constexpr std::size_t page = 4096;
  for (const shape s : {shape{8, 1},
                        {24, 1},
                        {96, 1},
                        {200, 1},
                        {520, 1},
                        {30000, 1},
                        {600'000, 1},
                        {1'200'000, 1},
                        {48, 12},
                        {2048, 13}}) {
    std::vector<std::uint64_t> place(std::max(s.bytes, page * s.rows) / sizeof(std::uint64_t));
    detail::copy_turn turn;
    const std::array sources{std::vector<unsigned char>(place.size() * 8 + 8, 0x11),
                             std::vector<unsigned char>(place.size() * 8 + 8, 0xee)};
    std::atomic<bool> stop = false;
    std::thread writer([&] {
      for (std::size_t i = 0; !stop.load(std::memory_order_relaxed); ++i) {
        const unsigned char* const from = sources[i % 2].data() + i % 7;
        if (s.rows == 1) {
          detail::copy_bytes(place.data(), from, s.bytes, &turn);
        } else {
          detail::copy_rows(reinterpret_cast<std::byte*>(place.data()), page, reinterpret_cast<const std::byte*>(from),
                            static_cast<std::ptrdiff_t>(s.bytes), s.bytes, s.rows);
        }
      }
    });
    std::size_t in_parts = 0;
    for (std::size_t look = 0; look < 200'000; ++look) {
      const std::uint64_t word = std::atomic_ref(place[look % (s.bytes / 8)]).load(std::memory_order_relaxed);
      if (word != 0 && word != 0x1111111111111111 && word != 0xeeeeeeeeeeeeeeee) ++in_parts;
    }
    stop = true;
    writer.join();
    CAPTURE(s.bytes, s.rows);
    REQUIRE(in_parts == 0);
  }
}

TEST_CASE("copy between random shapes", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 3000; ++round) {
    CAPTURE(round);
    const pair_of_both to = random_target(random);
    const pair_of_both from = random_partner(random, to.plain.bytes.size());
    arena src(from.layout);
    fill_randomly(src.all(), random);
    arena dst(to.layout, 0xee);
    arena expected = dst;
    const auto data = data_of(src, from.plain);
    for (std::size_t i = 0; i < data.size(); ++i) expected.at(to.plain.bytes[i]) = data[i];
    detail::copy(dst.base(), to.layout, src.base(), from.layout);
    REQUIRE(dst.all() == expected.all());
    std::size_t seen = 0;
    detail::for_each_pair(to.layout, from.layout, [&](std::ptrdiff_t d, std::ptrdiff_t s, std::size_t bytes) {
      for (std::size_t i = 0; i < bytes; ++i, ++seen) {
        const auto n = static_cast<std::ptrdiff_t>(i);
        if (to.plain.bytes[seen] != d + n || from.plain.bytes[seen] != s + n) FAIL("wrong pair");
      }
    });
    REQUIRE(seen == data.size());
  }
}

TEST_CASE("pack and unpack at every cut", "[datatype][copy]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 300; ++round) {
    CAPTURE(round);
    const pair_of_both shape = random_target(random);
    arena memory(shape.layout);
    fill_randomly(memory.all(), random);
    const auto data = data_of(memory, shape.plain);
    const std::size_t cut_step = data.size() > 200 ? data.size() / 100 : 1;
    for (std::size_t cut = 0; cut <= data.size(); cut += cut_step) {
      std::vector<unsigned char> packed(data.size());
      detail::pack(packed.data() + cut, memory.base(), shape.layout, cut, data.size() - cut);
      detail::pack(packed.data(), memory.base(), shape.layout, 0, cut);
      REQUIRE(packed == data);
      arena back(shape.layout, 0xee);
      arena expected = back;
      for (const std::ptrdiff_t at : shape.plain.bytes) expected.at(at) = memory.at(at);
      detail::unpack(back.base(), data.data() + cut, shape.layout, cut, data.size() - cut);
      detail::unpack(back.base(), data.data(), shape.layout, 0, cut);
      REQUIRE(back.all() == expected.all());
    }
  }
}

TEST_CASE("a kept position resumes in random pieces", "[datatype][copy][cursor]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 1500; ++round) {
    CAPTURE(round);
    const pair_of_both shape = random_target(random);
    arena memory(shape.layout);
    fill_randomly(memory.all(), random);
    const auto data = data_of(memory, shape.plain);
    std::vector<unsigned char> packed(data.size());
    arena back(shape.layout, 0xee);
    detail::cursor out(shape.layout);
    detail::cursor in(shape.layout);
    for (std::size_t done = 0; done < data.size();) {
      const auto piece = between<std::size_t>(random, 1, std::min<std::size_t>(data.size() - done, 40));
      REQUIRE(out.remaining() == data.size() - done);
      const detail::cursor sought(shape.layout, done);
      REQUIRE(sought.front().offset == shape.plain.bytes[done]);
      REQUIRE(sought.front().offset == out.front().offset);
      REQUIRE(sought.front().bytes == out.front().bytes);
      detail::pack(packed.data() + done, memory.base(), out, piece);
      detail::unpack(back.base(), data.data() + done, in, piece);
      done += piece;
    }
    REQUIRE(packed == data);
    REQUIRE(data_of(back, shape.plain) == data);
    REQUIRE(out.front().bytes == 0);
  }
}

TEST_CASE("advance goes where single steps go", "[datatype][cursor]") {
  random_engine random = engine_of_this_run();
  for (int round = 0; round < 500; ++round) {
    CAPTURE(round);
    const pair_of_both shape = random_target(random);
    const auto& bytes = shape.plain.bytes;
    const auto first = between<std::size_t>(random, 0, bytes.size());
    const auto second = between<std::size_t>(random, first, bytes.size());
    detail::cursor at(shape.layout);
    at.advance(first);
    at.advance(second - first);
    REQUIRE(at.remaining() == bytes.size() - second);
    if (second < bytes.size()) REQUIRE(at.front().offset == bytes[second]);
  }
}

TEST_CASE("rows of every small size and stride", "[datatype][rows]") {
  random_engine random = engine_of_this_run();
  for (std::size_t bytes = 1; bytes <= 300; ++bytes) {
    const auto rows = between<std::size_t>(random, 0, 11);
    const std::size_t dst_stride = bytes + between<std::size_t>(random, 0, 9);
    const std::size_t src_stride = bytes + between<std::size_t>(random, 0, 9);
    std::vector<unsigned char> src(12 * src_stride + 1), dst(12 * dst_stride + 1, 0xee);
    fill_randomly(src, random);
    std::vector<unsigned char> expected = dst;
    for (std::size_t i = 0; i < rows; ++i) std::memcpy(&expected[1 + i * dst_stride], &src[1 + i * src_stride], bytes);
    detail::copy_rows(reinterpret_cast<std::byte*>(dst.data() + 1), static_cast<std::ptrdiff_t>(dst_stride),
                      reinterpret_cast<const std::byte*>(src.data() + 1), static_cast<std::ptrdiff_t>(src_stride),
                      bytes, rows);
    CAPTURE(bytes, rows);
    REQUIRE(dst == expected);
  }
}

TEST_CASE("long rows that do not fit the first cache, in either direction", "[datatype][rows]") {
  random_engine random = engine_of_this_run();
  for (const std::size_t bytes : sizes{1024, 1025, 1087, 1151, 1300, 2048, 2111, 8192}) {
    for (int round = 0; round < 20; ++round) {
      const std::size_t rows = detail::first_cache_bytes / bytes + between<std::size_t>(random, 1, 4);
      const std::size_t dst_stride = bytes + between<std::size_t>(random, 0, 99);
      const std::size_t src_stride = bytes + between<std::size_t>(random, 0, 99);
      const auto dst_at = between<std::size_t>(random, 0, 70);
      const auto src_at = between<std::size_t>(random, 0, 70);
      std::vector<unsigned char> src(rows * src_stride + 70), dst(rows * dst_stride + 70, 0xee);
      fill_randomly(src, random);
      std::vector<unsigned char> expected = dst;
      for (std::size_t i = 0; i < rows; ++i) {
        std::memcpy(&expected[dst_at + i * dst_stride], &src[src_at + i * src_stride], bytes);
      }
      const bool back = round % 2 == 1;
      const std::size_t first = back ? rows - 1 : 0;
      const auto signed_stride = [back](std::size_t stride) noexcept {
        return back ? -static_cast<std::ptrdiff_t>(stride) : static_cast<std::ptrdiff_t>(stride);
      };
      detail::copy_rows(reinterpret_cast<std::byte*>(&dst[dst_at + first * dst_stride]), signed_stride(dst_stride),
                        reinterpret_cast<const std::byte*>(&src[src_at + first * src_stride]),
                        signed_stride(src_stride), bytes, rows);
      CAPTURE(bytes, rows, dst_stride, src_stride, dst_at, src_at, back);
      REQUIRE((dst == expected));
    }
  }
}

TEST_CASE("rows a page apart", "[datatype][rows]") {
  constexpr std::size_t page = 4096;
  constexpr std::size_t rows_max = 19;
  random_engine random = engine_of_this_run();
  std::vector<unsigned char> src((rows_max + 2) * page);
  fill_randomly(src, random);
  for (const std::size_t bytes : sizes{1, 2, 4, 7, 8, 16, 24, 32, 33, 64, 65, 128, 200, 256, 300, 2048}) {
    for (int round = 0; round < 12; ++round) {
      const auto rows = between<std::size_t>(random, 0, rows_max);
      const std::size_t dst_stride = round % 3 == 1 ? bytes : page;
      const std::size_t src_stride = round % 3 == 2 ? bytes : page;
      const auto dst_at = between<std::size_t>(random, 0, 70);
      const std::size_t src_at =
          round % 2 == 0 ? dst_at + static_cast<std::size_t>(round) : between<std::size_t>(random, 0, page);
      std::vector<unsigned char> dst((rows_max + 2) * page, 0xee);
      std::vector<unsigned char> expected = dst;
      for (std::size_t i = 0; i < rows * bytes; ++i) {
        expected[dst_at + i / bytes * dst_stride + i % bytes] = src[src_at + i / bytes * src_stride + i % bytes];
      }
      detail::copy_rows(reinterpret_cast<std::byte*>(dst.data() + dst_at), static_cast<std::ptrdiff_t>(dst_stride),
                        reinterpret_cast<const std::byte*>(src.data() + src_at),
                        static_cast<std::ptrdiff_t>(src_stride), bytes, rows);
      CAPTURE(bytes, rows, round, dst_at, src_at);
      REQUIRE(dst == expected);
    }
  }
}
