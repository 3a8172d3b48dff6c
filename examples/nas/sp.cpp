// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS SP as a communication skeleton: see multipartition.hpp. Its solves are of scalar lines: 22 values a point
/// forward, 10 back.
///
/// \code
/// RMA_RENDEZVOUS=put rmarun -n 4 nas_sp --class W
/// \endcode

#include "multipartition.hpp"

int main(int argc, char** argv) {
  const auto kernel = [](nas::Run& run) {
    const char size = run.size();
    const nas::Multipartition problem{size == 'S' ? 12 : 36, size == 'S' ? 100 : 400, 22, 10, false, 881};
    return nas::MultipartitionRun(run, problem).run();
  };
  return nas::run_kernel(argc, argv, "sp", false, kernel, nas::square, "a square number");
}
