// SPDX-License-Identifier: Apache-2.0
/// \file
/// Epochs. A wait for another rank lets MPI make progress (poll_mpi), since that rank may be waiting in MPI.
#include "mpi/types.hpp"

namespace rma::mpi {
namespace {

/// For a fence, MPI_MODE_NOPRECEDE promises less than no_precede: the ranks' own stores must be ordered all the same.
assertion promises_of_fence(int assert) noexcept {
  assertion promises = assertion::none;
  if ((assert& MPI_MODE_NOSTORE) != 0) promises = promises | no_store;
  if ((assert& MPI_MODE_NOPUT) != 0) promises = promises | no_put;
  if ((assert& MPI_MODE_NOSUCCEED) != 0) promises = promises | no_succeed;
  return promises;
}

assertion promises_of_post(int assert) noexcept {
  assertion promises = (assert& MPI_MODE_NOCHECK) != 0 ? no_check : assertion::none;
  if ((assert& MPI_MODE_NOSTORE) != 0) promises = promises | no_store;
  if ((assert& MPI_MODE_NOPUT) != 0) promises = promises | no_put;
  return promises;
}

/// A deferrable lock does not wait here, and is one message with the epoch; others are requested at once.
status lock(window& w, int type, int target, int assert) noexcept {
  if (target == MPI_PROC_NULL) return status::done;
  if (type != MPI_LOCK_EXCLUSIVE && type != MPI_LOCK_SHARED) return status::bad_argument;
  if (w.no_locks) return status::wrong_epoch;
  const lock_kind kind = type == MPI_LOCK_EXCLUSIVE ? exclusive : shared;
  if ((assert& MPI_MODE_NOCHECK) != 0) return w.memory.lock_nothrow(kind, target, no_check);
  if (w.deferrable && target != w.rank && w.memory.pointer_to(target) == nullptr)
    return w.memory.lock_nothrow(kind, target, deferrable);
  return w.memory.lock_nothrow(kind, target);
}

/// The ranks in the window's group of a group's members.
std::vector<int> ranks_of(MPI_Group group, MPI_Win win) {
  int size = 0;
  PMPI_Group_size(group, &size);
  std::vector<int> theirs(static_cast<std::size_t>(size));
  std::vector<int> ours(theirs.size());
  for (int r = 0; r < size; ++r) theirs[static_cast<std::size_t>(r)] = r;
  MPI_Group all = MPI_GROUP_NULL;
  PMPI_Win_get_group(win, &all);
  PMPI_Group_translate_ranks(group, size, theirs.data(), all, ours.data());
  PMPI_Group_free(&all);
  return ours;
}

}  // namespace
}  // namespace rma::mpi

using namespace rma::mpi;

int MPI_Win_fence(int assert, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_fence(assert, win);
  return report(*w, "MPI_Win_fence", w->memory.try_fence(promises_of_fence(assert)));
}

int MPI_Win_lock(int lock_type, int rank, int assert, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_lock(lock_type, rank, assert, win);
  return report(*w, "MPI_Win_lock", lock(*w, lock_type, rank, assert), rank);
}

int MPI_Win_unlock(int rank, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_unlock(rank, win);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  return report(*w, "MPI_Win_unlock", w->memory.try_unlock(rank), rank);
}

int MPI_Win_lock_all(int assert, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_lock_all(assert, win);
  const bool unchecked = (assert& MPI_MODE_NOCHECK) != 0;
  if (w->no_locks) return report(*w, "MPI_Win_lock_all", rma::status::wrong_epoch);
  return report(*w, "MPI_Win_lock_all", w->memory.lock_all_nothrow(unchecked ? rma::no_check : rma::assertion::none));
}

int MPI_Win_unlock_all(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_unlock_all(win);
  return report(*w, "MPI_Win_unlock_all", w->memory.try_unlock_all());
}

int MPI_Win_flush(int rank, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_flush(rank, win);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  return report(*w, "MPI_Win_flush", w->memory.try_flush(rank), rank);
}

int MPI_Win_flush_all(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_flush_all(win);
  return report(*w, "MPI_Win_flush_all", w->memory.try_flush_all());
}

int MPI_Win_flush_local(int rank, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_flush_local(rank, win);
  if (rank == MPI_PROC_NULL) return MPI_SUCCESS;
  return report(*w, "MPI_Win_flush_local", w->memory.try_flush_local(rank), rank);
}

int MPI_Win_flush_local_all(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_flush_local_all(win);
  return report(*w, "MPI_Win_flush_local_all", w->memory.try_flush_local_all());
}

int MPI_Win_sync(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_sync(win);
  return report(*w, "MPI_Win_sync", w->memory.try_sync());
}

int MPI_Win_post(MPI_Group group, int assert, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_post(group, assert, win);
  return report(*w, "MPI_Win_post", w->memory.try_post(ranks_of(group, win), promises_of_post(assert)));
}

int MPI_Win_start(MPI_Group group, int assert, MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_start(group, assert, win);
  const rma::assertion promises = (assert& MPI_MODE_NOCHECK) != 0 ? rma::no_check : rma::assertion::none;
  return report(*w, "MPI_Win_start", w->memory.try_start(ranks_of(group, win), promises));
}

int MPI_Win_complete(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_complete(win);
  return report(*w, "MPI_Win_complete", w->memory.try_complete());
}

int MPI_Win_wait(MPI_Win win) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_wait(win);
  return report(*w, "MPI_Win_wait", w->memory.wait_nothrow());
}

int MPI_Win_test(MPI_Win win, int* flag) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_test(win, flag);
  const rma::status s = w->memory.try_test();
  *flag = s == rma::status::not_yet ? 0 : 1;
  if (*flag == 0) poll_mpi(*current());
  return *flag == 0 ? MPI_SUCCESS : report(*w, "MPI_Win_test", s);
}
