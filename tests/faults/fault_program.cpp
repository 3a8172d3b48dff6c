// SPDX-License-Identifier: Apache-2.0
// rmarun -n N --keep-going fault_program SCENARIO VICTIM SEED     one death; see fault_stage.hpp for what is printed
// fault_program --list                                            names of the scenarios
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "fault_stage.hpp"

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) {
    std::fputs(faults::scenario_names().c_str(), stdout);
    return 0;
  }
  const faults::scenario* const play = argc == 4 ? faults::find_scenario(argv[1]) : nullptr;
  if (play == nullptr) {
    std::fprintf(stderr, "usage: fault_program SCENARIO VICTIM SEED | --list\n");
    return 2;
  }
  const int victim = std::atoi(argv[2]);
  try {
    rma::Runtime runtime(argc, argv);
    faults::stage on(runtime, victim, std::strtoull(argv[3], nullptr, 10));
    if (on.is_victim()) {
      play->victim(on);
      on.wrong("the victim lives");
    } else {
      play->others(on);
      faults::live_on(on);
    }
    return 0;
  } catch (const std::exception& e) {
    faults::report(std::string("wrong rank=? exception: ") + e.what());
    return 1;
  }
}
