// SPDX-License-Identifier: Apache-2.0
// Goal: a request of static duration is harmless, whatever its operation has come to: static objects end after main,
// and so after the runtime.
#include <array>
#include <cstdio>
#include <span>

#include "rma/rma.hpp"

int main(int argc, char** argv) {
  static std::array<rma::Request, 2> late;
  static std::array<long, 512> source;
  rma::Runtime rt(argc, argv);
  auto win = rma::Window<long>::allocate(rt.world(), 1024);
  const int right = (rt.rank() + 1) % rt.size();
  win.fence();
  late[0] = win.rput(std::span<const long>(source), right, 0);
  win.fence();
  late[1] = win.rput(std::span<const long>(source), right, 512);
  rt.world().barrier();
  if (rt.rank() == 0) std::puts("late request: left behind");
}
