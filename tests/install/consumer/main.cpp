// SPDX-License-Identifier: Apache-2.0
// A user's program: includes the installed headers, links the installed library, adds 1 to a word of rank 0.
#include <cstdint>
#include <cstdio>
#include <rma/rma.hpp>

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1);
  win.fence();
  win.fence();
  std::uint64_t before = 0;
  {
    auto epoch = win.lock(rma::shared, 0);
    before = win.fetch_and_op(std::uint64_t{1}, 0, 0, rma::sum);
  }
  std::printf("consumer: the word was %llu\n", static_cast<unsigned long long>(before));
  return before < 2 ? 0 : 1;
}
