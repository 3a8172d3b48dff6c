// SPDX-License-Identifier: Apache-2.0
/// \file
/// All calls with an ARMCI_Group among their arguments: they are compiled for each MPI, since the group has
/// communicators. The rest of a group is a group_state, which is found by the list to which an ARMCI_Group points.
#include <algorithm>

#include "armci/group_handle.hpp"
#include "armci/reductions.hpp"

using namespace rma::armci;

void ARMCI_Group_create_child(int size, int* members, ARMCI_Group* group, ARMCI_Group* parent) {
  constexpr const char* call = "ARMCI_Group_create";
  state& s = running(call);
  const entry in(s);
  group_state& of = state_of(s, call, parent);
  const int me = of.team.rank();
  const int* const found = std::find(members, members + size, me);
  const bool is_member = found != members + size;
  rma::Team team = of.team;
  // One call may make several groups without common members, as MPI_Comm_create may: they differ in their first member.
  check(call, of.team.try_split(is_member ? members[0] : -1, static_cast<int>(found - members), team));
  const auto communicator = create_communicator(s, of, std::span(members, static_cast<std::size_t>(size)));
  fill(group, is_member ? &s.add_group(team, communicator) : nullptr);
}

void ARMCI_Group_create(int size, int* members, ARMCI_Group* group) {
  ARMCI_Group parent;
  ARMCI_Group_get_default(&parent);
  ARMCI_Group_create_child(size, members, group, &parent);
}

int ARMCIX_Group_split(ARMCI_Group* parent, int color, int key, ARMCI_Group* group) {
  constexpr const char* call = "ARMCIX_Group_split";
  state& s = running(call);
  const entry in(s);
  group_state& of = state_of(s, call, parent);
  rma::Team team = of.team;
  check(call, of.team.try_split(color, key, team));
  const auto communicator = split_communicator(s, of, color, key);
  fill(group, color < 0 ? nullptr : &s.add_group(team, communicator));
  return 0;
}

int ARMCIX_Group_dup(ARMCI_Group* parent, ARMCI_Group* group) {
  state& s = running("ARMCIX_Group_dup");
  return ARMCIX_Group_split(parent, 0, state_of(s, "ARMCIX_Group_dup", parent).team.rank(), group);
}

void ARMCI_Group_free(ARMCI_Group* group) {
  state& s = running("ARMCI_Group_free");
  const entry in(s);
  if (is_none(*group)) return;
  group_state& gone = state_of(s, "ARMCI_Group_free", group);
  if (&gone == s.world_group) fail("ARMCI_Group_free", "the group of all processes cannot be freed");
  if (&gone == s.default_group) s.default_group = s.world_group;
  free_communicator(gone);
  s.groups.erase(gone.to_world.data());
  fill(group, nullptr);
}

int ARMCI_Group_rank(ARMCI_Group* group, int* rank) {
  state& s = running("ARMCI_Group_rank");
  *rank = is_none(*group) ? -1 : state_of(s, "ARMCI_Group_rank", group).team.rank();
  return *rank < 0 ? 1 : 0;
}

void ARMCI_Group_size(ARMCI_Group* group, int* size) {
  state& s = running("ARMCI_Group_size");
  *size = is_none(*group) ? 0 : state_of(s, "ARMCI_Group_size", group).team.size();
}

void ARMCI_Group_set_default(ARMCI_Group* group) {
  state& s = running("ARMCI_Group_set_default");
  s.default_group = &state_of(s, "ARMCI_Group_set_default", group);
}

void ARMCI_Group_get_default(ARMCI_Group* group) {
  state& s = running("ARMCI_Group_get_default");
  fill(group, s.default_group);
}

void ARMCI_Group_get_world(ARMCI_Group* group) {
  state& s = running("ARMCI_Group_get_world");
  fill(group, s.world_group);
}

int ARMCI_Absolute_id(ARMCI_Group* group, int rank) {
  state& s = running("ARMCI_Absolute_id");
  const group_state& of = state_of(s, "ARMCI_Absolute_id", group);
  if (rank < 0 || static_cast<std::size_t>(rank) >= of.to_world.size())
    fail("ARMCI_Absolute_id", "the group has no process " + std::to_string(rank));
  return of.to_world[static_cast<std::size_t>(rank)];
}

int ARMCI_Malloc_group(void** ptrs, armci_size_t bytes, ARMCI_Group* group) {
  state& s = running("ARMCI_Malloc_group");
  const entry in(s);
  return malloc_in(s, "ARMCI_Malloc_group", state_of(s, "ARMCI_Malloc_group", group), ptrs, bytes);
}

int ARMCI_Free_group(void* ptr, ARMCI_Group* group) {
  state& s = running("ARMCI_Free_group");
  const entry in(s);
  return free_in(s, "ARMCI_Free_group", state_of(s, "ARMCI_Free_group", group), ptr);
}

int PARMCI_Malloc_group_memdev(void** ptrs, armci_size_t bytes, ARMCI_Group* group, const char* /*device*/) {
  return ARMCI_Malloc_group(ptrs, bytes, group);
}
RMA_ARMCI_TWIN(int, Malloc_group_memdev, void** ptrs, armci_size_t bytes, ARMCI_Group* group, const char* device);

// ---- messages -------------------------------------------------------------------------------------------------------

void parmci_msg_group_barrier(ARMCI_Group* group) {
  constexpr const char* call = "armci_msg_group_barrier";
  check(call, state_of(running(call), call, group).team.try_barrier());
}
extern "C" [[gnu::weak, gnu::alias("parmci_msg_group_barrier")]] void armci_msg_group_barrier(ARMCI_Group* group);

void armci_msg_group_bcast_scope(int scope, void* buffer, int bytes, int root, ARMCI_Group* group) {
  constexpr const char* call = "armci_msg_group_bcast_scope";
  state& s = running(call);
  const group_state& of = state_of(s, call, group);
  if (root < 0 || root >= s.size) fail(call, "there is no process " + std::to_string(root));
  broadcast(call, of.team, scope, buffer, bytes, of.to_group[static_cast<std::size_t>(root)]);
}

void armci_msg_group_gop_scope(int scope, void* x, int n, char* op, int type, ARMCI_Group* group) {
  constexpr const char* call = "armci_msg_group_gop";
  reduce(call, state_of(running(call), call, group).team, scope, x, n, op, type);
}
void armci_msg_group_igop(int* x, int n, char* op, ARMCI_Group* group) {
  armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, ARMCI_INT, group);
}
void armci_msg_group_lgop(long* x, int n, char* op, ARMCI_Group* group) {
  armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, ARMCI_LONG, group);
}
void armci_msg_group_llgop(long long* x, int n, char* op, ARMCI_Group* group) {
  armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, ARMCI_LONG_LONG, group);
}
void armci_msg_group_fgop(float* x, int n, char* op, ARMCI_Group* group) {
  armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, ARMCI_FLOAT, group);
}
void armci_msg_group_dgop(double* x, int n, char* op, ARMCI_Group* group) {
  armci_msg_group_gop_scope(SCOPE_ALL, x, n, op, ARMCI_DOUBLE, group);
}

void armci_exchange_address_grp(void** ptrs, int n, ARMCI_Group* group) {
  constexpr const char* call = "armci_exchange_address_grp";
  rma::Team team = state_of(running(call), call, group).team;
  if (n != team.size()) fail(call, "the list needs an entry for each member");
  void* const mine = ptrs[team.rank()];
  check(call, team.try_allgather(mine, std::span(ptrs, static_cast<std::size_t>(n))));
}

void armci_grp_clus_brdcst(void* /*buffer*/, int /*bytes*/, int /*master*/, int /*domain_procs*/,
                           ARMCI_Group* /*masters*/) {}
