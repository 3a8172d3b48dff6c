// SPDX-License-Identifier: Apache-2.0
// collective_instructions N: one rank calls each wrapper below N times, for tests/perf/instructions.py: the start of a
// collective of a shape that has been started before, and its end. A team of one rank sends nothing: what is counted is
// what a start costs besides its messages. Times mean nothing here.
#include <cstdint>
#include <cstdlib>
#include <rma/rma.hpp>
#include <span>

namespace {

using numbers = std::span<std::uint64_t>;

}  // namespace

// Outside the namespace and with C names: callgrind reports them by these.
extern "C" {

[[gnu::noinline]] void count_ibarrier(rma::Team& team) { team.ibarrier().wait(); }
[[gnu::noinline]] void count_iallreduce(rma::Team& team, numbers from, numbers into) {
  team.iallreduce(from, into, rma::sum).wait();
}
[[gnu::noinline]] void count_ialltoall(rma::Team& team, numbers from, numbers into) {
  team.ialltoall(from, into).wait();
}
[[gnu::noinline]] void count_persistent(rma::Collective& kept) { kept.start().wait(); }

}  // extern "C"

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  const std::uint64_t calls = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000;
  rma::Team world = runtime.world();
  std::uint64_t from = 7, into = 0;
  const numbers in(&from, 1), out(&into, 1);
  rma::Collective kept = world.allreduce_init(in, out, rma::sum);
  for (std::uint64_t i = 0; i < calls; ++i) count_ibarrier(world);
  for (std::uint64_t i = 0; i < calls; ++i) count_iallreduce(world, in, out);
  for (std::uint64_t i = 0; i < calls; ++i) count_ialltoall(world, in, out);
  for (std::uint64_t i = 0; i < calls; ++i) count_persistent(kept);
  return into == from ? EXIT_SUCCESS : EXIT_FAILURE;
}
