// SPDX-License-Identifier: Apache-2.0
// rmarun -n 2 --nodes 2 silent_target [lock]: rank 0 waits for rank 1, which never calls the library again.
#include <unistd.h>

#include <string_view>

#include <rma/rma.hpp>

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  auto window = rma::Window<long>::allocate(rt.world(), 8, {.name = "halo"});
  const bool locks = argc > 1 && std::string_view(argv[1]) == "lock";
  if (rt.rank() == 0 && locks) {  // then nothing but the lock needs rank 1
    const auto epoch = window.lock(rma::exclusive, 1);
    (void)window.get(1, 0);
  }
  rt.world().barrier();
  while (rt.rank() == 1) ::pause();
  if (locks) {
    const auto epoch = window.lock(rma::exclusive, 1);
  } else {
    const auto epoch = window.lock_all(rma::assertion::no_check);
    (void)window.get(1, 0);
  }
  return 0;
}
