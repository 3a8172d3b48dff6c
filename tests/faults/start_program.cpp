// SPDX-License-Identifier: Apache-2.0
// A job that only starts: see start_test.py, which preloads halt_at_call.cpp.
#include <cstdio>

#include "rma/rma.hpp"

extern "C" [[gnu::weak]] void start_is_over();

int main(int argc, char** argv) try {
  const rma::Runtime rt(argc, argv);
  if (start_is_over != nullptr) start_is_over();
} catch (const rma::Error& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
