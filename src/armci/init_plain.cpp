// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCI_Init where there is no MPI.
#include "armci/job.hpp"

using namespace rma::armci;

int PARMCI_Init_thread(int requested) {
  return start([](void*) { return make_plain_job(); }, nullptr, requested);
}
RMA_ARMCI_TWIN(int, Init_thread, int requested);

int PARMCI_Init() { return PARMCI_Init_thread(0); }
RMA_ARMCI_TWIN(int, Init, void);

int PARMCI_Init_args(int* /*argc*/, char*** /*argv*/) { return PARMCI_Init_thread(0); }
RMA_ARMCI_TWIN(int, Init_args, int* argc, char*** argv);
