// SPDX-License-Identifier: Apache-2.0
/// \file
/// MPI_Init, MPI_Finalize: the Runtime lives between them. The ranks learn by MPI how to reach each other.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi/lock_board.hpp"
#include "mpi/requests.hpp"
#include "mpi/types.hpp"

namespace rma::mpi {
namespace {

/// Progress does not depend on calls: a rank may block in MPI while others work on its memory.
Config config_of(MPI_Comm comm) {
  Config how = mpi_job::config_of(comm);
  if (std::getenv("RMA_PROGRESS_THREAD") == nullptr) how.settings["RMA_PROGRESS_THREAD"] = "1";
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  how.threads = provided == MPI_THREAD_MULTIPLE ? thread_level::multiple : thread_level::serialized;
  return how;
}

bool wants_explanations() noexcept {
  const char* const value = std::getenv("RMA_MPI_EXPLAIN");
  return value != nullptr && std::strcmp(value, "1") == 0;
}

void start() {
  MPI_Comm own = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &own);
  try {
    auto made = std::make_unique<state>(config_of(own), own);
    made->explain = wants_explanations();
    explain(*made, "windows of MPI_COMM_WORLD are taken over: " + std::to_string(made->runtime.size()) + " ranks");
    set_current(made.release());
  } catch (const Error& e) {
    std::fprintf(stderr, "librma_mpi: MPI_Init: %s\n", e.what());
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void stop() {
  std::unique_ptr<state> s(current());
  if (s == nullptr) return;
  MPI_Comm own = s->comm;
  PMPI_Barrier(own);
  set_current(nullptr);
  s.reset();  // its waits may still poll MPI by that communicator
  PMPI_Comm_free(&own);
}

}  // namespace
}  // namespace rma::mpi

int MPI_Init(int* argc, char*** argv) {
  const int code = PMPI_Init(argc, argv);
  if (code == MPI_SUCCESS) rma::mpi::start();
  return code;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  const int code = PMPI_Init_thread(argc, argv, required, provided);
  if (code == MPI_SUCCESS) rma::mpi::start();
  return code;
}

int MPI_Finalize() {
  rma::mpi::stop();
  return PMPI_Finalize();
}
