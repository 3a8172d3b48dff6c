// SPDX-License-Identifier: Apache-2.0
/// \file
/// The program that rma-sim runs, loaded once.
#pragma once

#include <string>

namespace rma::simulator {

using main_function = int (*)(int argc, char** argv);

/// The function that the program's name stands for, or the error.
struct loaded {
  main_function main = nullptr;
  std::string error;
};

/// The module stays loaded until the process ends.
loaded load_program(const std::string& name);

}  // namespace rma::simulator
