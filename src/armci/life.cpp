// SPDX-License-Identifier: Apache-2.0
/// \file
/// Start, end, and the order of operations.
#include <atomic>

#include "armci/handles.hpp"
#include "armci/job.hpp"
#include "armci/mutexes.hpp"

namespace rma::armci {

int start(std::unique_ptr<job> (*launch)(void* what), void* what, int requested) {
  if (state* const s = current(); s != nullptr) {
    ++s->uses;
    return 0;
  }
  try {
    const thread_level level = requested >= 3 ? thread_level::multiple : thread_level::serialized;
    auto made = std::make_unique<state>(launch(what), level);
    set_current(made.release());
  } catch (const Error& e) {
    fail("ARMCI_Init", e.what());
  }
  return 0;
}

namespace {

void fence_all(state& s, const char* call) {
  for (auto& [key, each] : s.allocations) {
    if (!each->dirty) continue;
    check(call, each->window.try_flush_all());
    each->dirty = false;
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}

}  // namespace
}  // namespace rma::armci

using namespace rma::armci;

int PARMCI_Initialized() { return current() == nullptr ? 0 : 1; }
RMA_ARMCI_TWIN(int, Initialized, void);

int PARMCI_Finalize() {
  state& s = running("ARMCI_Finalize");
  if (--s.uses > 0) return 0;
  s.handles->complete_all("ARMCI_Finalize");
  fence_all(s, "ARMCI_Finalize");
  check("ARMCI_Finalize", s.world.try_barrier());
  set_current(nullptr);
  delete &s;
  return 0;
}
RMA_ARMCI_TWIN(int, Finalize, void);

void ARMCI_Cleanup() {
  if (current() != nullptr) (void)PARMCI_Finalize();
}

void ARMCI_Error(const char* msg, int code) {
  end_job(code, std::string(msg == nullptr ? "" : msg) + " (code " + std::to_string(code) + ")");
}

void PARMCI_AllFence() {
  state& s = running("ARMCI_AllFence");
  const entry in(s);
  fence_all(s, "ARMCI_AllFence");
}
RMA_ARMCI_TWIN(void, AllFence, void);

void PARMCI_Fence(int proc) {
  state& s = running("ARMCI_Fence");
  const entry in(s);
  for (auto& [key, each] : s.allocations) {
    if (!each->dirty) continue;
    const int target = each->window.team().rank_of(proc);
    if (target >= 0) check("ARMCI_Fence", each->window.try_flush(target));
  }
  std::atomic_thread_fence(std::memory_order_seq_cst);
}
RMA_ARMCI_TWIN(void, Fence, int proc);

void PARMCI_Barrier() {
  state& s = running("ARMCI_Barrier");
  PARMCI_AllFence();
  check("ARMCI_Barrier", s.world.try_barrier());
}
RMA_ARMCI_TWIN(void, Barrier, void);
