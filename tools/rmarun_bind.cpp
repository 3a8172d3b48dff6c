// SPDX-License-Identifier: Apache-2.0
#include "rmarun_bind.hpp"

#include <hwloc.h>

namespace rma::launcher {

void core_binding::destroyer::operator()(hwloc_topology* topology) const { ::hwloc_topology_destroy(topology); }

core_binding::core_binding() {
  hwloc_topology_t made = nullptr;
  if (::hwloc_topology_init(&made) != 0) return;
  topology_.reset(made);
  // A mask that was set around rmarun (taskset, a batch system) holds for the ranks, too.
  (void)::hwloc_topology_set_flags(made,
                                   HWLOC_TOPOLOGY_FLAG_IS_THISSYSTEM | HWLOC_TOPOLOGY_FLAG_RESTRICT_TO_CPUBINDING);
  if (::hwloc_topology_load(made) != 0) return;
  cores_ = ::hwloc_get_nbobjs_by_type(made, HWLOC_OBJ_CORE);
  if (cores_ < 0) cores_ = 0;
}

hwloc_obj* core_binding::core_of(int rank) const {
  if (cores_ == 0) return nullptr;
  return ::hwloc_get_obj_by_type(topology_.get(), HWLOC_OBJ_CORE, static_cast<unsigned>(rank % cores_));
}

bool core_binding::bind_self(int rank) const {
  const hwloc_obj_t core = core_of(rank);
  return core != nullptr && ::hwloc_set_cpubind(topology_.get(), core->cpuset, HWLOC_CPUBIND_PROCESS) == 0;
}

int core_binding::group_of(int rank) const {
  const hwloc_obj_t core = core_of(rank);
  if (core == nullptr) return 0;
  for (const hwloc_obj_type_t level : {HWLOC_OBJ_L3CACHE, HWLOC_OBJ_NUMANODE, HWLOC_OBJ_PACKAGE}) {
    const int count = ::hwloc_get_nbobjs_by_type(topology_.get(), level);
    if (count <= 1 || count == cores_) continue;  // one group, or one for each core
    for (int i = 0; i < count; ++i) {
      const hwloc_obj_t each = ::hwloc_get_obj_by_type(topology_.get(), level, static_cast<unsigned>(i));
      if (::hwloc_bitmap_isincluded(core->cpuset, each->cpuset) != 0) return i + 1;
    }
  }
  return 0;
}

}  // namespace rma::launcher
