// SPDX-License-Identifier: Apache-2.0
// The basis of biased locks: a plain store on the frequent side is enough if the rare side asks for a fence.
#include "core/membarrier.hpp"

#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <thread>

#include "rma/detail/word.hpp"
#include "skip.hpp"

namespace {

using rma::detail::word32;

struct alignas(128) shared_word {
  word32 value{};
};

/// Rounds in which each side looked before the other's store was there. Both start a round together.
template <class Fence>
std::uint64_t missed_by_both(std::uint64_t rounds, Fence&& rare_fence) {
  shared_word reader, writer, turn_of_reader, turn_of_writer;
  std::uint64_t missed = 0;
  std::atomic<std::uint32_t> reader_saw = 0;
  const auto meet = [](shared_word& mine, shared_word& other, std::uint32_t round) {
    mine.value.store(round);
    for (std::uint32_t turns = 1; other.value.load() < round; ++turns) {
      if (turns % 4096 == 0) std::this_thread::yield();
    }
  };
  std::thread frequent([&] {
    for (std::uint32_t round = 1; round <= rounds; ++round) {
      meet(turn_of_reader, turn_of_writer, 2 * round);
      reader.value.store(round);
      rma::detail::compiler_fence();
      reader_saw.store(writer.value.load() == round ? 1 : 0, std::memory_order_relaxed);
      meet(turn_of_reader, turn_of_writer, 2 * round + 1);
    }
  });
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    meet(turn_of_writer, turn_of_reader, 2 * round);
    writer.value.exchange(round);
    rare_fence();
    const bool saw = reader.value.load() == round;
    meet(turn_of_writer, turn_of_reader, 2 * round + 1);
    if (!saw && reader_saw.load(std::memory_order_relaxed) == 0) ++missed;
  }
  frequent.join();
  return missed;
}

}  // namespace

TEST_CASE("a fence for others orders their stores before their loads", "[membarrier]") {
  if (!rma::detail::join_membarrier()) {
    rma::test::skip("this kernel has no membarrier for several processes");
    return;
  }
  CHECK(missed_by_both(30'000, [] { rma::detail::fence_for_others(); }) == 0);
  // The same without it fails now and then: said, not asked for, since it depends on the machine.
  WARN("without the fence " << missed_by_both(300'000, [] {}) << " of 300000 rounds were missed by both sides");
}
