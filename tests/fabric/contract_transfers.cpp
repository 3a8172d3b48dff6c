// SPDX-License-Identifier: Apache-2.0
// The contract of fabrics: writes, reads and atomics between ranks that live.
#include <array>
#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "fabric/contract_cases.hpp"

using namespace rma;
using namespace rma::test;
using fabric::local_slice;
using fabric::region_key;
using fabric::remote_slice;
using fabric::write_completion;

namespace {

/// So many bytes at `first`, in two unequal pieces where the fabric takes them.
std::vector<local_slice> cut(std::vector<std::uint64_t>& words, std::size_t first_words, std::size_t pieces_max) {
  if (pieces_max < 2 || first_words == 0) return {words_at(words.data(), words.size())};
  return {words_at(words.data(), first_words), words_at(words.data() + first_words, words.size() - first_words)};
}

/// A write and the read behind it, which is posted at once. The write's buffer is used again when it is over.
struct write_and_read {
  write_and_read(fabric_job& all, int target, std::size_t count, bool registered)
      : wrote(numbers(count, count)), memory(count + 2, 77), from(wrote), back(count) {
    const region_key key = region_of(all[target], memory);
    region_key mine;
    if (registered) mine = region_of(all[0], from);
    const remote_slice there = words_in(key, 1, count);
    all[0].over.clear();
    all[0].at_completion = [&](std::uint64_t token, status) {
      if (token != 1) return;
      placed = is_there();
      std::ranges::fill(from, 5);
    };
    REQUIRE(all.start(0, 1, [&] {
      return all[0].fabric.write(target, cut(from, count / 3, all.caps().gather_max), key, {&there, 1}, 1);
    }));
    REQUIRE(all.start(0, 2, [&] {
      return all[0].fabric.read(target, cut(back, count - count / 3, all.caps().scatter_max), key, {&there, 1}, 2);
    }));
    REQUIRE(all.until([&] { return all[0].over.size() == 2; }));
    CHECK(all_over_as(all[0], status::done));
    all[0].at_completion = nullptr;
    CHECK((placed || all.caps().write_means != write_completion::placed));
    CHECK((back == wrote));
    CHECK(is_there());
    CHECK((memory.front() == 77 && memory.back() == 77));
    if (registered) all[0].fabric.deregister_region(mine);
    all[target].fabric.deregister_region(key);
  }
  [[nodiscard]] bool is_there() const { return std::equal(wrote.begin(), wrote.end(), memory.begin() + 1); }

  std::vector<std::uint64_t> wrote, memory, from, back;
  bool placed = false;
};

}  // namespace

// Goal: a write that is over is where the capability says, and its buffer may be used again; a read that was posted
// behind it finds it. To oneself, too.
// Break: report a write when it is posted; or let a read pass writes.
TEST_CASE("contract: a completed write is placed as the capability says, and a read finds it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    std::vector<std::size_t> sizes{1, 3, 31, 32, 33, 100, 1000, 4096, 40'000};
    for (const std::size_t bytes : all.sizes_of_interest()) {
      for (const std::size_t words : {bytes / 8 - 1, bytes / 8, bytes / 8 + 1}) sizes.push_back(words);
    }
    for (const int target : {1, 0}) {
      for (const std::size_t wanted : sizes) {
        for (const bool registered : {false, true}) {
          CAPTURE(target, wanted, registered);
          write_and_read(all, target, fitting(all, wanted), registered);
        }
      }
    }
    CHECK(all.until([&] { return all.are_quiet(); }));
  });
}

// Break: take the data of a short write when it leaves.
TEST_CASE("contract: a short write has been read from the origin's memory when the call returns", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    const std::size_t words = std::min<std::size_t>(fitting(all, all.caps().inline_bytes_max / 8), 32);
    if (words == 0) {
      all.cannot = "no write is inline";
      return;
    }
    constexpr std::size_t writes = 200;
    std::vector<std::uint64_t> memory(writes * words), from(words);
    const region_key key = region_of(all[1], memory);
    for (std::size_t i = 0; i < writes; ++i) {
      std::ranges::fill(from, i + 1);
      REQUIRE(write_words(all, 0, 1, words_at(from.data(), words), key, words_in(key, i * words, words), i + 1));
      std::ranges::fill(from, 0);
    }
    REQUIRE(all.until([&] { return all[0].over.size() == writes; }));
    REQUIRE(read_words(all, 0, 1, words_at(from.data(), 1), key, words_in(key, 0, 1), writes + 1));
    REQUIRE(all.is_over(0, writes + 1));
    bool right = true;
    for (std::size_t i = 0; i < memory.size(); ++i) right = right && memory[i] == i / words + 1;
    CHECK(right);
  });
}

// Break: end each piece by itself; or pair the first piece with all.
TEST_CASE("contract: several pieces on both sides go together, and end as one", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    constexpr std::size_t row = 5;  // at the target the rows lie twice as far apart
    const std::size_t rows = std::min({all.caps().remote_slices_max, all.caps().gather_max, all.caps().scatter_max,
                                       all.caps().transfer_bytes_max / (8 * row), std::size_t{64}});
    if (rows < 2) {
      all.cannot = "one piece at the target is all that a write may have";
      return;
    }
    std::vector<std::uint64_t> memory(2 * rows * row, 77), from = numbers(rows * row, 1), back(rows * row);
    const region_key key = region_of(all[1], memory);
    for (auto* const mine : {&from, &back}) (void)region_of(all[0], *mine);
    std::vector<remote_slice> there;
    std::vector<local_slice> source, sink;
    for (std::size_t i = 0; i < rows; ++i) {
      there.push_back(words_in(key, 2 * i * row, row));
      source.push_back(words_at(&from[i * row], row));
      sink.push_back(words_at(&back[i * row], row));
    }
    const std::size_t before = all[0].completions;
    REQUIRE(all.start(0, 1, [&] { return all[0].fabric.write(1, source, key, there, 1); }));
    REQUIRE(all.start(0, 2, [&] { return all[0].fabric.read(1, sink, key, there, 2); }));
    REQUIRE(all.until([&] { return all[0].over.size() == 2 && all.are_quiet(); }));
    CHECK(all_over_as(all[0], status::done));
    CHECK(all[0].completions == before + 2);
    CHECK((back == from));
    for (std::size_t i = 0; i < memory.size(); ++i) {
      if (i % (2 * row) >= row) REQUIRE(memory[i] == 77);
    }
  });
}

// Goal: an operation that finds no room says so and is taken later; each ends once.
// Break: never count down what is under way; or lose what finds no room.
TEST_CASE("contract: more operations than may be under way all end, once", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    constexpr std::size_t count = 2000;
    std::vector<std::uint64_t> memory(count), back(count);
    auto from = numbers(count, 1);
    const region_key key = region_of(all[1], memory);
    for (auto* const mine : {&from, &back}) (void)region_of(all[0], *mine);
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(write_words(all, 0, 1, words_at(&from[i], 1), key, words_in(key, i, 1), i + 1));
    for (std::size_t i = 0; i < count; ++i)
      REQUIRE(read_words(all, 0, 1, words_at(&back[i], 1), key, words_in(key, i, 1), count + i + 1));
    REQUIRE(all.until([&] { return all[0].over.size() == 2 * count && all.are_quiet(); }));
    CHECK(all_over_as(all[0], status::done));
    CHECK(all[0].completions == 2 * count);
    CHECK((back == from));
    CHECK((memory == from));
  });
}

// Goal: unsignaled writes take effect as others do, make room when they are over, and report a success once at most.
// Break: keep the slot of an unsignaled write until its completion is reported; or let a read pass it.
TEST_CASE("contract: unsignaled writes are written, and end", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    constexpr std::size_t count = 500;
    std::vector<std::uint64_t> memory(count), back(count);
    auto from = numbers(count, 1);
    const region_key key = region_of(all[1], memory);
    for (auto* const mine : {&from, &back}) (void)region_of(all[0], *mine);
    fabric::write_flags how;
    how.unsignaled = true;
    for (std::size_t i = 0; i < count; ++i) {
      const local_slice here = words_at(&from[i], 1);
      const remote_slice there = words_in(key, i, 1);
      REQUIRE(all.start(0, i + 1, [&] { return all[0].fabric.write(1, {&here, 1}, key, {&there, 1}, i + 1, how); }));
    }
    REQUIRE(read_words(all, 0, 1, words_at(&back[count - 1], 1), key, words_in(key, count - 1, 1), count + 1));
    REQUIRE(all.is_over(0, count + 1));
    REQUIRE(all.until([&] { return all.are_quiet(); }));
    CHECK(all_over_as(all[0], status::done));
    CHECK(all[0].completions == all[0].over.size());
    CHECK(back[count - 1] == count);
    CHECK((memory == from));
  });
}

// Goal: additions of three ranks to one word, one of them its owner, are all there, and each found another value.
// Break: give back what is there afterwards; or add without a lock.
TEST_CASE("contract: atomics of several ranks are exact", "[contract]") {
  with_fabric(3, [](fabric_job& all) {
    if (!all.caps().atomics) {
      all.cannot = "it has no atomics";
      return;
    }
    constexpr std::uint64_t count = 600, first = 5, step = 2;
    std::vector<std::uint64_t> memory{first, 11}, old(count);
    const region_key key = region_of(all[0], memory);
    for (std::uint64_t i = 0; i < count; ++i) {
      const int rank = static_cast<int>(i % 3);
      REQUIRE(
          all.start(rank, i + 1, [&] { return all[rank].fabric.fetch_add(0, key, key.address, step, old[i], i + 1); }));
    }
    REQUIRE(all.until([&] { return all[0].over.size() + all[1].over.size() + all[2].over.size() == count; }));
    std::ranges::sort(old);
    bool exact = true;
    for (std::uint64_t i = 0; i < count; ++i) exact = exact && old[i] == first + step * i;
    CHECK(exact);
    CHECK(memory == std::vector<std::uint64_t>{first + step * count, 11});
  });
}

// Goal: atomics of a chain all end, and take effect in their order; what is posted behind the chain finds them done.
// Break: keep an atomic that no other follows, and let poll leave it; or post the last one of a chain first.
TEST_CASE("contract: atomics of a chain keep their order", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().atomics) {
      all.cannot = "it has no atomics";
      return;
    }
    constexpr std::uint64_t count = 20;
    std::vector<std::uint64_t> memory{0}, old(count + 1);
    const region_key key = region_of(all[1], memory);
    fabric::network& net = all[0].fabric;
    for (const bool ends : {true, false}) {
      memory[0] = 0;
      all[0].over.clear();
      for (std::uint64_t i = 0; i < count; ++i) {
        // Where none is the last, the next poll gives them to the adapter.
        const fabric::posting when = ends && i + 1 == count ? fabric::posting::now : fabric::posting::more_follow;
        REQUIRE(all.start(0, i + 1, [&] {
          return i % 4 == 3 ? net.compare_swap(1, key, key.address, i, i + 1, old[i], i + 1, when)
                            : net.fetch_add(1, key, key.address, 1, old[i], i + 1, when);
        }));
      }
      REQUIRE(all.until([&] { return all[0].over.size() == count; }));
      CHECK(all_over_as(all[0], status::done));
      REQUIRE(all.start(0, count + 1, [&] { return net.fetch_add(1, key, key.address, 0, old[count], count + 1); }));
      REQUIRE(all.is_over(0, count + 1));
      for (std::uint64_t i = 0; i <= count; ++i) CHECK(old[i] == i);
      CHECK(memory[0] == count);
    }
  });
}

// Break: swap whatever is found; or do not wait for the write before it.
TEST_CASE("contract: a compare-and-swap compares, and finds the write before it", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().atomics) {
      all.cannot = "it has no atomics";
      return;
    }
    std::vector<std::uint64_t> memory{0, 11};
    const region_key key = region_of(all[0], memory);
    for (const int rank : {1, 0}) {
      for (std::uint64_t round = 0; round < 20; ++round) {
        CAPTURE(rank, round);
        all[rank].over.clear();
        std::uint64_t wrote = 40 + round, found = 0;
        const std::uint64_t expected = round % 2 == 0 ? wrote : wrote - 1;
        REQUIRE(write_words(all, rank, 0, words_at(&wrote, 1), key, words_in(key, 0, 1), 1));
        REQUIRE(all.start(rank, 2,
                          [&] { return all[rank].fabric.compare_swap(0, key, key.address, expected, 7, found, 2); }));
        REQUIRE(all.until([&] { return all[rank].over.size() == 2; }));
        CHECK(all_over_as(all[rank], status::done));
        CHECK(found == wrote);
        CHECK(memory == std::vector<std::uint64_t>{round % 2 == 0 ? 7 : wrote, 11});
      }
    }
  });
}

// Break: read, add and write back.
TEST_CASE("contract: atomics are atomic to the processor's", "[contract]") {
  with_fabric(2, [](fabric_job& all) {
    if (!all.caps().atomics || !all.caps().copies_by_cpu) {
      all.cannot = "its atomics are not a processor's";
      return;
    }
    constexpr std::uint64_t count = 20'000;
    std::vector<std::uint64_t> memory{0}, old(count);
    const region_key key = region_of(all[1], memory);
    std::atomic<bool> begun = false, over = false;
    std::uint64_t added = 0;
    std::thread processor([&] {
      for (; !over; ++added) {
        std::atomic_ref(memory[0]).fetch_add(1);
        begun = true;
      }
    });
    while (!begun) std::this_thread::yield();
    bool taken = true;
    for (std::uint64_t i = 0; i < count; ++i) {
      taken =
          taken && all.start(0, i + 1, [&] { return all[0].fabric.fetch_add(1, key, key.address, 1, old[i], i + 1); });
    }
    const bool done = all.until([&] { return all[0].over.size() == count; });
    over = true;
    processor.join();
    CHECK((taken && done));
    CHECK(memory[0] == count + added);
  });
}
