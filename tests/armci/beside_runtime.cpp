// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCI, a Runtime of the program's own, and MPI where there is one: both work, whichever starts first, or the second
/// says in one line why not. Prints "beside: 0 wrong", or that line.
#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <vector>

#include "rma/armci.h"
#include "rma/rma.hpp"

namespace {

bool use_window(rma::Runtime& rt) {
  auto window = rma::Window<long>::allocate(rt.world(), 1);
  window.fence();
  window.put(rt.rank() + 1, (rt.rank() + 1) % rt.size(), 0);
  window.fence();
  const bool right = window[0] == (rt.rank() + rt.size() - 1) % rt.size() + 1;
  window.free();
  return right;
}

bool use_armci() {
  std::vector<void*> all(static_cast<std::size_t>(armci_msg_nproc()));
  const int me = armci_msg_me();
  const int right = (me + 1) % armci_msg_nproc();
  ARMCI_Malloc(all.data(), 8);
  ARMCI_PutValueLong(me + 1, all[static_cast<std::size_t>(right)], right);
  ARMCI_Barrier();
  const bool good =
      ARMCI_GetValueLong(all[static_cast<std::size_t>(me)], me) == (me + armci_msg_nproc() - 1) % armci_msg_nproc() + 1;
  ARMCI_Barrier();
  ARMCI_Free(all[static_cast<std::size_t>(me)]);
  return good;
}

}  // namespace

int main(int argc, char** argv) {
#ifndef RMA_ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
#endif
  const bool runtime_first = argc > 1 && std::string_view(argv[1]) == "runtime";
  std::optional<rma::Runtime> rt;
  int wrong = 0;
  try {
    if (runtime_first) rt.emplace(argc, argv);
    ARMCI_Init();
    if (!runtime_first) rt.emplace(argc, argv);
    wrong += use_window(*rt) ? 0 : 1;
  } catch (const rma::Error& e) {
    std::printf("refused: %s\n", e.what());
  }
  wrong += use_armci() ? 0 : 1;
  armci_msg_igop(&wrong, 1, const_cast<char*>("+"));
  if (armci_msg_me() == 0) std::printf("beside: %d wrong\n", wrong);
  ARMCI_Finalize();
  rt.reset();
#ifndef RMA_ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return wrong == 0 ? 0 : 1;
}
