// SPDX-License-Identifier: Apache-2.0
// A job in which all ranks but 0 wait in one call until rank 0's standard input ends: see stall_test.py.
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <string>

#include "rma/rma.hpp"

namespace {

void until_input_ends() {
  while (std::getchar() != EOF) continue;
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  rma::Team world = rt.world();
  const bool late = rt.rank() == 0;
  auto win = rma::Window<long>::allocate(world, 1, {.name = "halo", .signals = 1});
  const auto come_late = [&](const std::function<void()>& call) {
    if (late) until_input_ends();
    call();
  };
  const std::map<std::string, std::function<void()>> scenes = {
      {"fence", [&] { come_late([&] { win.fence(rma::no_succeed); }); }},
      {"barrier", [&] { come_late([&] { world.barrier(); }); }},
      {"allocate", [&] { come_late([&] { (void)rma::Window<long>::allocate(world, 1); }); }},
      {"wait_signal",
       [&] {
         if (!late) return win.wait_signal(0);
         until_input_ends();
         const auto epoch = win.lock_all();
         for (int r = 1; r < rt.size(); ++r) win.put_signal({}, r, 0, 0);
       }},
      {"lock",
       [&] {
         if (late) {
           const auto epoch = win.lock(rma::exclusive, 0);
           world.barrier();
           until_input_ends();
         } else {
           world.barrier();
           const auto epoch = win.lock(rma::exclusive, 0);
         }
       }},
      {"stopped",
       [&] {
         constexpr int looks_outside = 300;  // limit of those in a wait
         int looks = 0;
         if (late) win.wait_until(0, [&looks](long) { return ++looks > looks_outside && std::raise(SIGSTOP) == 0; });
         world.barrier();
       }},
      {"request", [&] { come_late([&] { win.ifence(rma::no_succeed).wait(); }); }},
  };
  const auto scene = scenes.find(argc > 1 ? argv[1] : "");
  if (scene == scenes.end()) return 2;
  scene->second();
  world.barrier();
  win.free();
  return 0;
}
