// SPDX-License-Identifier: Apache-2.0
/// \file
/// sim_program WAY: a program whose last rank ends in an unusual way.
#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "rma/rma.hpp"

namespace {

using namespace std::chrono_literals;

int wait_for_a_signal(rma::Runtime& rt) {
  auto win = rma::Window<int>::allocate(rt.world(), 1, {.signals = 1});
  win.wait_signal(0);
  return 0;
}

/// Works on until somebody is missing; 0 then.
int wait_for_a_death(rma::Runtime& rt) {
  try {
    for (;;) {
      rt.compute(1ms);
      rt.world().barrier();
    }
  } catch (const rma::Error& e) {
    return e.code() == rma::status::peer_failed ? 0 : 1;
  }
}

/// Puts to everybody.
int puts_around(rma::Runtime& rt) {
  auto win = rma::Window<int>::allocate(rt.world(), 5000);
  const std::vector<int> data(5000, 7);
  win.fence();
  for (int r = 0; r < rt.size(); ++r) win.put(std::span<const int>(data), r, 0);
  win.fence(rma::no_succeed);
  win.free();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "early") return 4;  // before there is a runtime
  rma::Runtime rt(argc, argv);
  const std::string_view way(argc > 1 ? argv[1] : "");
  const bool last = rt.rank() == rt.size() - 1;
  rt.world().barrier();
  if (rt.rank() == 0) std::printf("%d ranks: %.*s\n", rt.size(), static_cast<int>(way.size()), way.data());
  if (way == "environment") std::puts(std::getenv("SIM_PROGRAM"));
  if (way == "now") std::printf("rank %d at %lld ns\n", rt.rank(), static_cast<long long>(rt.now().count()));
  if (way == "deadlock") return wait_for_a_signal(rt);
  if (way == "traffic") return puts_around(rt);
  if (way == "death") return wait_for_a_death(rt);
  if (!last) return 0;
  if (way == "return") return 7;
  if (way == "exit") std::exit(8);
  if (way == "_Exit") std::_Exit(9);
  if (way == "throw") throw std::runtime_error("no more");
  if (way == "abort") rt.abort(10, "enough");
  return 0;
}
