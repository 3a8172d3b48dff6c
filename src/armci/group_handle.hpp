// SPDX-License-Identifier: Apache-2.0
/// \file
/// The three kinds of ARMCI_Group: with communicators, without, and a number.
#pragma once

#include "armci/communicators.hpp"
#include "rma/armcix.h"

namespace rma::armci {

#ifdef RMA_ARMCI_COMEX
inline bool is_none(const ARMCI_Group& group) { return group < 0; }
inline group_state& state_of(state& s, const char* call, const ARMCI_Group* group) {
  for (auto& [list, each] : s.groups) {
    if (each->number == *group) return *each;
  }
  fail(call, "the group was freed, or this process is no member");
}
inline void fill(ARMCI_Group* group, group_state* of) { *group = of == nullptr ? -1 : of->number; }
#else
inline bool is_none(const ARMCI_Group& group) { return group.rank < 0; }
inline group_state& state_of(state& s, const char* call, const ARMCI_Group* group) {
  const auto found = group->rank < 0 ? s.groups.end() : s.groups.find(group->grp_to_abs);
  if (found == s.groups.end()) fail(call, "the group was freed, or this process is no member");
  return *found->second;
}
/// `of`: null if this process is no member.
inline void fill(ARMCI_Group* group, group_state* of) {
  *group = {};
  group->rank = -1;
  if (of != nullptr) {
    group->rank = of->team.rank();
    group->size = of->team.size();
    group->grp_to_abs = of->to_world.data();
    group->abs_to_grp = of->to_group.data();
  }
#ifndef RMA_ARMCI_NO_MPI
  group->comm = of == nullptr ? MPI_COMM_NULL : communicator_of(*of);
  group->noncoll_pgroup_comm = MPI_COMM_NULL;
#endif
}
#endif

}  // namespace rma::armci
