// SPDX-License-Identifier: Apache-2.0
// Ranks 1 and 4 of six meet for the first time while rank 0, whose process serves the job, is stopped or has left it.
// They go on when their standard input ends: see first_contact_test.py.
#include <csignal>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <string>

#include <unistd.h>

#include "rma/rma.hpp"

namespace {

constexpr int stranger = 4;  // to rank 1: barriers have made it meet those whose distance is a power of two

void until_input_ends() {
  while (std::getchar() != EOF) continue;
}

void meet(rma::Window<long>& win, const std::string& how) {
  const std::map<std::string, std::function<void()>> meetings = {
      {"put",
       [&] {
         auto epoch = win.lock(rma::shared, stranger);
         win.put(5L, stranger, 0);
         epoch.unlock();
       }},
      {"lock", [&] { win.lock(rma::exclusive, stranger).unlock(); }},
      {"request",
       [&] {
         const long five = 5;
         const auto epoch = win.lock_all(rma::no_check);
         win.rput(std::span<const long>(&five, 1), stranger, 0).wait();
       }},
  };
  try {
    meetings.at(how)();
    std::printf("rank 1: done\n");
  } catch (const rma::Error& e) {
    std::printf("rank 1: %s\n", e.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  rma::Runtime rt(argc, argv);
  auto win = rma::Window<long>::allocate(rt.world(), 4);
  rt.world().barrier();
  const bool stops = std::string(argv[1]) == "stopped";
  if (rt.rank() == 0 && stops) (void)std::raise(SIGSTOP);
  if (rt.rank() == 0) return 0;
  if (rt.rank() == 1) std::printf("ready\n");
  std::fflush(stdout);
  until_input_ends();
  if (rt.rank() == 1) meet(win, argv[2]);
  std::fflush(stdout);
  ::_exit(0);  // leaving would wait for rank 0
}
