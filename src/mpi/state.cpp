// SPDX-License-Identifier: Apache-2.0
#include "mpi/state.hpp"

#include <cstdio>
#include <cstring>
#include <mutex>

#include "mpi/requests.hpp"
#include "mpi/types.hpp"

namespace rma::mpi {

std::atomic<state*> the_state = nullptr;

state::state(const Config& config, MPI_Comm own)
    : comm(own),
      runtime(config),
      world(runtime.world()),
      types(std::make_unique<type_table>()),
      requests(std::make_unique<request_list>()) {
  runtime.on_wait([this] { poll_mpi(*this); });
}

state::~state() = default;

window* find_slow(state& s, MPI_Win win) noexcept {
  const std::shared_lock guard(s.mutex);
  const auto found = s.windows.find(number_of(win));
  if (found == s.windows.end()) return nullptr;
  s.last.store(found->second.get(), std::memory_order_release);
  return found->second.get();
}

void explain(const state& s, const std::string& what) {
  if (s.explain && s.runtime.rank() == 0) std::fprintf(stderr, "librma_mpi: %s\n", what.c_str());
}

void leave_to_mpi(state& s, const char* call, MPI_Comm comm, const char* why) {
  int rank = 0;
  PMPI_Comm_rank(comm, &rank);
  if (rank != 0) return;
  ++s.counts.windows_of_mpi;
  if (s.explain) std::fprintf(stderr, "librma_mpi: %s: left to MPI, since %s\n", call, why);
}

int error_class(status s) noexcept {
  switch (s) {
    case status::out_of_window: return MPI_ERR_RMA_RANGE;
    case status::wrong_epoch:
    case status::not_locked: return MPI_ERR_RMA_SYNC;
    case status::window_freed: return MPI_ERR_WIN;
    case status::bad_rank: return MPI_ERR_RANK;
    case status::bad_size: return MPI_ERR_COUNT;
    case status::bad_type: return MPI_ERR_TYPE;
    case status::bad_argument: return MPI_ERR_ARG;
    case status::misaligned: return MPI_ERR_DISP;
    case status::unreachable: return MPI_ERR_RMA_SHARED;
    case status::out_of_memory: return MPI_ERR_NO_MEM;
    default: return MPI_ERR_OTHER;
  }
}

int report_slow(window& w, const char* call, status s, int target) {
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  const std::string refused = current()->types->take_refusal();
  const std::string why = s == status::bad_type && !refused.empty() ? ": a datatype has " + refused : "";
  PMPI_Win_get_errhandler(w.handle, &handler);
  if (handler == MPI_ERRORS_ARE_FATAL) {
    const std::string to = target >= 0 ? " to rank " + std::to_string(target) : "";
    std::fprintf(stderr, "librma_mpi: [rank %d] %s%s: %s%s\n", w.rank, call, to.c_str(), name_of(s).data(),
                 why.c_str());
  }
  if (handler != MPI_ERRHANDLER_NULL) PMPI_Errhandler_free(&handler);
  const int code = error_class(s);
  PMPI_Win_call_errhandler(w.handle, code);
  return code;
}

}  // namespace rma::mpi
