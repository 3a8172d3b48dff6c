// SPDX-License-Identifier: Apache-2.0
/// \file
/// MPI_Init, MPI_Finalize: the Runtime lives between them. The ranks exchange their addresses by MPI.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "mpi/progress_hook.hpp"
#include "mpi/requests.hpp"
#include "mpi/types.hpp"

namespace rma::mpi {
namespace {

/// Progress does not depend on calls: a rank may block in MPI, or compute, while others access its memory. If MPI's
/// progress serves others as well, the thread stands aside meanwhile.
Config config_of(MPI_Comm comm) {
  Config how = mpi_job::config_of(comm);
  if (std::getenv("RMA_PROGRESS_THREAD") == nullptr)
    how.settings["RMA_PROGRESS_THREAD"] = can_hook_progress() ? "yielding" : "1";
  int provided = MPI_THREAD_SINGLE;
  PMPI_Query_thread(&provided);
  how.threads = provided == MPI_THREAD_MULTIPLE ? thread_level::multiple : thread_level::serialized;
  return how;
}

/// Rank 0 decides for all.
bool wants_explanations(MPI_Comm comm) noexcept {
  const char* const value = std::getenv("RMA_MPI_EXPLAIN");
  int wants = value != nullptr && std::strcmp(value, "1") == 0 ? 1 : 0;
  PMPI_Bcast(&wants, 1, MPI_INT, 0, comm);
  return wants != 0;
}

/// Collective.
void explain_counts(const state& s) {
  if (!s.explain) return;
  const std::uint64_t mine[2] = {s.counts.windows_here, s.counts.windows_of_mpi};
  std::uint64_t all[2] = {0, 0};
  PMPI_Reduce(mine, all, 2, MPI_UINT64_T, MPI_SUM, 0, s.comm);
  explain(s, std::to_string(all[0]) + " windows taken over, " + std::to_string(all[1]) + " left to MPI");
}

void start() {
  MPI_Comm own = MPI_COMM_NULL;
  PMPI_Comm_dup(MPI_COMM_WORLD, &own);
  try {
    auto made = std::make_unique<state>(config_of(own), own);
    made->explain = wants_explanations(own);
    explain(*made, "windows of MPI_COMM_WORLD are taken over: " + std::to_string(made->runtime.size()) + " ranks");
    set_current(made.release());
    hook_progress(*current());
  } catch (const Error& e) {
    std::fprintf(stderr, "librma_mpi: MPI_Init: %s\n", e.what());
    PMPI_Abort(MPI_COMM_WORLD, 1);
  }
}

void stop() {
  std::unique_ptr<state> s(current());
  if (s == nullptr) return;
  MPI_Comm own = s->comm;
  explain_counts(*s);
  PMPI_Barrier(own);
  unhook_progress(*s);
  set_current(nullptr);
  s.reset();  // its waits may still poll MPI with that communicator
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
