// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 logged: a job with one named window, whose log the tests read (CMakeLists.txt).
#include <exception>
#include <iostream>

#include <rma/rma.hpp>

int main(int argc, char** argv) {
  try {
    rma::Runtime rt(argc, argv);
    rma::Window<long>::allocate(rt.world(), 8, {.name = "logged"}).free();
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "logged: " << e.what() << '\n';
    return 1;
  }
}
