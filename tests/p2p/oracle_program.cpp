// SPDX-License-Identifier: Apache-2.0
// oracle_program FIRST LAST: the random programs of oracle.hpp with these seeds, LAST not included, among the ranks of
// a job. In shared memory most messages are short there and need no operation.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>

#include "oracle.hpp"

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  if (argc < 3) return EXIT_FAILURE;
  const std::uint64_t first = std::strtoull(argv[1], nullptr, 10), last = std::strtoull(argv[2], nullptr, 10);
  for (std::uint64_t seed = first; seed < last; ++seed) {
    const p2p_oracle::plan p{seed, rt.size(), 2, 1 + seed * 7 % 60, seed % 4 != 0, true};
    try {
      (void)p2p_oracle::program(p, rt, false);
    } catch (const std::exception& e) {
      std::printf("wrong: rank %d, seed %llu: %s\n", rt.rank(), static_cast<unsigned long long>(seed), e.what());
      return EXIT_FAILURE;
    }
  }
  if (rt.rank() == 0) std::printf("oracle: %llu programs\n", static_cast<unsigned long long>(last - first));
  return EXIT_SUCCESS;
}
