// SPDX-License-Identifier: Apache-2.0
/// \file
/// NAS BT as a communication skeleton: see multipartition.hpp. Its solves are of lines of 5 x 5 blocks: 30 values a
/// point forward, 5 back.
///
/// \code
/// RMA_RENDEZVOUS=put rmarun -n 4 nas_bt --class W
/// \endcode

#include "multipartition.hpp"

int main(int argc, char** argv) {
  const auto kernel = [](nas::Run& run) {
    const char size = run.size();
    const nas::Multipartition problem{size == 'S' ? 12 : 24, size == 'S' ? 60 : 200, 30, 5, true, 3479};
    return nas::MultipartitionRun(run, problem).run();
  };
  return nas::run_kernel(argc, argv, "bt", false, kernel, nas::square, "a square number");
}
