// SPDX-License-Identifier: Apache-2.0
/// \file
/// ARMCIX: batches of mutexes, progress. Compiled for each MPI.
#include "armci/group_handle.hpp"
#include "armci/mutexes.hpp"

using namespace rma::armci;

namespace {

/// An armcix_mutex_hdl_t points to a mutex_batch.
struct mutex_batch {
  armcix_mutex_hdl_s shown{};
  mutex_set set;
  const std::vector<int> to_group;  ///< by number in the world

  mutex_batch(const char* call, int count, group_state& group, const ARMCI_Group& given)
      : set(call, group.team, count), to_group(group.to_group) {
    shown.my_count = count;
    shown.grp = given;
  }
};

mutex_batch& batch_of(armcix_mutex_hdl_t handle) {
  // The struct shown to the program is the first member.
  return *reinterpret_cast<mutex_batch*>(handle);
}

int rank_of(const char* call, const mutex_batch& batch, int proc) {
  if (proc < 0 || static_cast<std::size_t>(proc) >= batch.to_group.size() ||
      batch.to_group[static_cast<std::size_t>(proc)] < 0)
    fail(call, "process " + std::to_string(proc) + " is no member of the mutexes' group");
  return batch.to_group[static_cast<std::size_t>(proc)];
}

}  // namespace

armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group* group) {
  constexpr const char* call = "ARMCIX_Create_mutexes_hdl";
  state& s = running(call);
  auto* const made = new mutex_batch(call, count, state_of(s, call, group), *group);
  return &made->shown;
}

int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t handle) {
  mutex_batch& batch = batch_of(handle);
  batch.set.destroy("ARMCIX_Destroy_mutexes_hdl");
  delete &batch;
  return 0;
}

void ARMCIX_Lock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc) {
  mutex_batch& batch = batch_of(handle);
  batch.set.lock("ARMCIX_Lock_hdl", mutex, rank_of("ARMCIX_Lock_hdl", batch, proc));
}

int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc) {
  mutex_batch& batch = batch_of(handle);
  return batch.set.try_lock("ARMCIX_Trylock_hdl", mutex, rank_of("ARMCIX_Trylock_hdl", batch, proc)) ? 0 : 1;
}

void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc) {
  mutex_batch& batch = batch_of(handle);
  batch.set.unlock("ARMCIX_Unlock_hdl", mutex, rank_of("ARMCIX_Unlock_hdl", batch, proc));
}

void ARMCIX_Progress() { running("ARMCIX_Progress").runtime.progress(); }
