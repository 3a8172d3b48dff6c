// SPDX-License-Identifier: Apache-2.0
#include "mpi/progress_hook.hpp"

#include <dlfcn.h>

#include "mpi/state.hpp"

namespace rma::mpi {
namespace {

void serve(state& s) noexcept {
  if (s.is_hooked.load(std::memory_order_relaxed) && !s.polls_mpi.load(std::memory_order_relaxed)) s.runtime.progress();
}

#ifdef OPEN_MPI
using progress_function = int();
using register_function = int(progress_function*);

register_function* opal_function(const char* name) noexcept {
  return reinterpret_cast<register_function*>(dlsym(RTLD_DEFAULT, name));
}

int after_progress() noexcept {
  if (state* const s = current(); s != nullptr) serve(*s);
  return 0;
}
#endif

}  // namespace

blocking_call::blocking_call() noexcept {
  state* const s = current();
  if (s != nullptr && s->is_hooked.load(std::memory_order_relaxed)) scope_.emplace(s->runtime);
}

// It probes for messages of any rank: MPICH makes no progress for a probe on MPI_COMM_SELF.
void poll_mpi(state& s) noexcept {
  int flag = 0;
  s.polls_mpi.store(true, std::memory_order_relaxed);
  PMPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, s.comm, &flag, MPI_STATUS_IGNORE);
  s.polls_mpi.store(false, std::memory_order_relaxed);
}

#ifdef OPEN_MPI

// Functions of low priority are called in each eighth round.
bool can_hook_progress() noexcept {
  return opal_function("opal_progress_register_lp") != nullptr && opal_function("opal_progress_unregister") != nullptr;
}

void hook_progress(state& s) noexcept {
  if (can_hook_progress()) s.is_hooked.store(opal_function("opal_progress_register_lp")(after_progress) == 0);
}

void unhook_progress(state& s) noexcept {
  if (s.is_hooked.exchange(false)) opal_function("opal_progress_unregister")(after_progress);
}

#else

bool can_hook_progress() noexcept { return dlsym(RTLD_DEFAULT, "ucp_worker_create") != nullptr; }
void hook_progress(state& s) noexcept { s.is_hooked.store(can_hook_progress()); }
void unhook_progress(state& s) noexcept { s.is_hooked.store(false); }

#endif

}  // namespace rma::mpi

#ifndef OPEN_MPI
// MPICH calls this in each round of its progress, also in a job on one node. This library's own UCX takes its functions
// from the library itself, and does not call this one.
extern "C" __attribute__((visibility("default"))) unsigned ucp_worker_progress(void* worker) {
  using progress_function = unsigned(void*);
  static auto* const real = reinterpret_cast<progress_function*>(dlsym(RTLD_NEXT, "ucp_worker_progress"));
  constexpr std::uint32_t rounds_mask = 7;
  if (rma::mpi::state* const s = rma::mpi::current(); s != nullptr) {
    // Threads may overwrite each other's count.
    const std::uint32_t rounds = s->rounds_of_mpi.load(std::memory_order_relaxed);
    s->rounds_of_mpi.store(rounds + 1, std::memory_order_relaxed);
    if ((rounds & rounds_mask) == 0) rma::mpi::serve(*s);
  }
  return real(worker);
}
#endif
