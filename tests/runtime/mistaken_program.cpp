// SPDX-License-Identifier: Apache-2.0
/// \file
/// A program whose configuration is wrong. Its first argument says how it reacts to that.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <rma/rma.hpp>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

[[noreturn]] void end_as_program_wants() {
  std::fputs("the program's own handler\n", stderr);
  std::_Exit(7);
}

/// The error is caught, and the terminate handler is the program's again.
int catch_it(int argc, char** argv) {
  std::set_terminate(end_as_program_wants);
  try {
    const rma::Runtime rt(argc, argv);
  } catch (const rma::Error& e) {
    std::printf("caught %s\n", std::string(rma::name_of(e.code())).c_str());
  }
  return std::get_terminate() == end_as_program_wants ? 0 : 1;
}

/// As catch_it, in several threads at once.
int catch_in_threads(int argc, char** argv) {
  std::set_terminate(end_as_program_wants);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([argc, argv] {
      for (int turn = 0; turn < 50; ++turn) {
        try {
          int own_argc = argc;
          const rma::Runtime rt(own_argc, argv);
        } catch (const rma::Error&) {  // each of them
        }
      }
    });
  }
  for (std::thread& each : threads) each.join();
  return std::get_terminate() == end_as_program_wants ? 0 : 1;
}

/// Refused by its Config.
void ask_for_nonsense() {
  rma::Config config;
  config.environment = false;
  config.boot = "alone";
  config.settings["RMA_SPIN_US"] = "soon";
  const rma::Runtime rt(config);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "catch") return catch_it(argc, argv);
  if (what == "threads") return catch_in_threads(argc, argv);
  if (what == "config") ask_for_nonsense();
  if (what == "thread") std::thread([&] { const rma::Runtime rt(argc, argv); }).join();
  const rma::Runtime rt(argc, argv);
  if (what == "other") {
    std::set_terminate(end_as_program_wants);
    throw rma::Error(rma::status::bad_setting, "thrown by the program itself");
  }
  return 0;
}
