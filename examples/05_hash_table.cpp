// SPDX-License-Identifier: Apache-2.0
/// \file
/// A hash table spread over all ranks, which count how often numbers occur: compare_and_swap claims a slot.
///
/// \code
/// rmarun -n 4 05_hash_table
/// \endcode

#include <fmt/format.h>

#include <rma/rma.hpp>

namespace {
constexpr std::uint64_t slots_in_all = 1024;
constexpr std::uint64_t numbers = 4000;

struct Table {
  std::uint64_t slots_per_rank;
  rma::Window<std::uint64_t> window;  // slot s: key at 2 s (0: free), how often at 2 s + 1

  void count(std::uint64_t key) {
    const std::uint64_t hash = key * 0x9e3779b97f4a7c15 >> 32;
    for (std::uint64_t probe = 0;; ++probe) {
      const std::uint64_t slot = (hash + probe) % slots_in_all;
      const int rank = static_cast<int>(slot / slots_per_rank);
      const std::uint64_t at = 2 * (slot % slots_per_rank);
      const std::uint64_t found = window.compare_and_swap(0, key, rank, at);  // the old key, or 0: mine
      if (found != 0 && found != key) continue;                               // another key's: the next slot
      window.accumulate(1, rank, at + 1, rma::sum);
      return;
    }
  }
};
}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const std::uint64_t per_rank = (slots_in_all - 1) / static_cast<std::uint64_t>(rt.size()) + 1;
  Table table{per_rank, rma::Window<std::uint64_t>::allocate(world, 2 * per_rank)};
  world.barrier();

  {
    const auto epoch = table.window.lock_all();
    const auto step = static_cast<std::uint64_t>(rt.size());
    for (auto i = static_cast<std::uint64_t>(rt.rank()); i < numbers; i += step) table.count(i * i % 997 + 1);
  }
  world.barrier();

  std::uint64_t distinct = 0;
  std::uint64_t counted = 0;
  for (std::uint64_t slot = 0; slot < per_rank; ++slot) {
    distinct += table.window[2 * slot] != 0 ? 1 : 0;
    counted += table.window[2 * slot + 1];
  }
  distinct = world.allreduce(distinct, rma::sum);
  counted = world.allreduce(counted, rma::sum);
  if (rt.rank() == 0) fmt::print("{} numbers counted, {} distinct\n", counted, distinct);
  return counted == numbers ? 0 : 1;
}
