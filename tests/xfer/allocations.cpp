// SPDX-License-Identifier: Apache-2.0
// No operation allocates memory once its kind has been used: on one node, and between nodes by TCP.
#include "allocations.hpp"

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  const int failures = failures_of(rt);
  if (rt.rank() == 0 && failures == 0) fmt::print("allocations: none\n");
  return failures == 0 ? 0 : 1;
}
