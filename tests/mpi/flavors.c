// SPDX-License-Identifier: Apache-2.0
// Shared and dynamic windows, windows of other communicators, attributes and error handlers.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong, deleted;

static void check(const char* what, long is, long should) {
  if (is == should) return;
  ++wrong;
  printf("rank %d: %s is %ld, not %ld\n", rank, what, is, should);
}

// Each part has another length; they lie one behind the other, unless the program lets them lie elsewhere. The left
// neighbor stores, the right one loads.
static void shared(MPI_Info info, int contiguous) {
  MPI_Comm node;
  MPI_Win win;
  MPI_Aint bytes = 0;
  long *mine, *first, *next, old = -1, value = 7;
  int me, ranks, unit = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &me);
  MPI_Comm_size(node, &ranks);
  MPI_Win_allocate_shared((me + 1) * sizeof(long), sizeof(long), info, node, &mine, &win);
  MPI_Win_shared_query(win, MPI_PROC_NULL, &bytes, &unit, &first);
  if (contiguous)
    check("bytes of the first part", bytes, sizeof(long));  // Open MPI makes pages of parts that lie apart
  if (contiguous) check("distance to the first part", mine - first, me * (me + 1) / 2);
  MPI_Win_shared_query(win, (me + 1) % ranks, &bytes, &unit, &next);
  check("bytes of the next part", bytes >= ((me + 1) % ranks + 1) * (long)sizeof(long), 1);
  check("unit", unit, sizeof(long));
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  next[0] = 100 + me;
  MPI_Win_sync(win);
  MPI_Barrier(node);
  MPI_Win_sync(win);
  check("stored by a neighbor", mine[0], 100 + (me + ranks - 1) % ranks);
  MPI_Barrier(node);
  MPI_Fetch_and_op(&value, &old, MPI_LONG, (me + 1) % ranks, 0, MPI_SUM, win);
  MPI_Win_flush((me + 1) % ranks, win);
  check("fetched from a neighbor", old, 100 + me);
  MPI_Win_unlock_all(win);
  MPI_Barrier(node);
  check("added by a neighbor", mine[0], 107 + (me + ranks - 1) % ranks);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_LONG, (me + 1) % ranks, (me + 1) % ranks, 1, MPI_LONG, win);  // the last of its elements
  MPI_Win_fence(0, win);
  check("put by a neighbor", mine[me], 7);
  MPI_Get(&old, 1, MPI_LONG, (me + 1) % ranks, (me + 1) % ranks, 1, MPI_LONG, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("got from a neighbor", old, 7);
  MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
  if (ranks > 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, ranks - 1, 0, win);
  MPI_Accumulate(&value, 1, MPI_LONG, ranks - 1, ranks - 1, 1, MPI_LONG, MPI_SUM, win);
  if (ranks > 1) MPI_Win_unlock(ranks - 1, win);
  MPI_Win_unlock(0, win);
  MPI_Barrier(node);
  if (me == ranks - 1) check("added by all", mine[me], 7 + 7L * ranks);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
}

static void dynamic(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  long here[8] = {0}, other[4] = {0}, value = 5 + rank;
  MPI_Aint mine[2], theirs[2];
  MPI_Win win;
  MPI_Win_create_dynamic(MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_attach(win, here, sizeof here);
  MPI_Win_attach(win, other, sizeof other);
  MPI_Get_address(&here[2], &mine[0]);
  MPI_Get_address(&other[1], &mine[1]);
  MPI_Sendrecv(mine, 2, MPI_AINT, left, 1, theirs, 2, MPI_AINT, right, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_LONG, right, theirs[0], 1, MPI_LONG, win);
  MPI_Accumulate(&value, 1, MPI_LONG, right, theirs[1], 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("put into attached memory", here[2], 5 + left);
  check("added to attached memory", other[1], 5 + left);
  MPI_Win_detach(win, other);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_free(&win);
}

// Parts of no bytes, beside one that lies by itself.
static void empty_parts(MPI_Info info) {
  MPI_Aint bytes = -1;
  int unit = 0;
  long *mine, *of_last = NULL;
  MPI_Win win;
  MPI_Win_allocate_shared(rank == size - 1 ? sizeof(long) : 0, sizeof(long), info, MPI_COMM_WORLD, &mine, &win);
  if (rank == size - 1) mine[0] = 9;
  MPI_Win_fence(0, win);
  for (int r = 0; r < size; ++r) {
    MPI_Win_shared_query(win, r, &bytes, &unit, &of_last);
    check("bytes of a part", bytes > 0, r == size - 1);
    check("address of a part", of_last != NULL, r == size - 1);
  }
  check("what lies in the last one", of_last[0], 9);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_free(&win);
}

// Promises of the program. This library, not every MPI, reports a call that breaks one.
static void promises(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  long mine[2] = {0, 0}, value = 50 + rank;
  int kind = 0;
  MPI_Info info;
  MPI_Win win;
  MPI_Info_create(&info);
  MPI_Info_set(info, "no_locks", "true");
  MPI_Info_set(info, "same_disp_unit", "true");
  MPI_Info_set(info, "same_size", "true");
  MPI_Info_set(info, "accumulate_ops", "same_op");
  MPI_Info_set(info, "mpi_accumulate_granularity", "64");
  MPI_Win_create(mine, sizeof mine, sizeof(long), info, MPI_COMM_WORLD, &win);
  MPI_Info_free(&info);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_LONG, right, 1, 1, MPI_LONG, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("put with promises", mine[1], 50 + left);
  const char* const preloaded = getenv("LD_PRELOAD");
  if (preloaded != NULL && strstr(preloaded, "librma_mpi") != NULL) {
    MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
    MPI_Error_class(MPI_Win_lock(MPI_LOCK_SHARED, right, 0, win), &kind);
    check("class of a lock without locks", kind, MPI_ERR_RMA_SYNC);
    MPI_Error_class(MPI_Win_lock_all(0, win), &kind);
    check("class of lock_all without locks", kind, MPI_ERR_RMA_SYNC);
  }
  MPI_Win_free(&win);
}

// The ranks of each parity, the last one first.
static void communicators(void) {
  MPI_Comm some;
  MPI_Win win, alone;
  long *mine, *own, value = 1000 + rank;
  int me, ranks, left = 0;
  MPI_Group all, part;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, -rank, &some);
  MPI_Comm_rank(some, &me);
  MPI_Comm_size(some, &ranks);
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Comm_group(some, &part);
  const int before = (me + ranks - 1) % ranks;
  MPI_Group_translate_ranks(part, 1, &before, all, &left);
  for (int round = 0; round < 2; ++round) {
    MPI_Win_allocate(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, some, &mine, &win);
    MPI_Win_allocate(sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_SELF, &own, &alone);
    MPI_Win_fence(0, win);
    MPI_Put(&value, 1, MPI_LONG, (me + 1) % ranks, 1, 1, MPI_LONG, win);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
    check("put by the one before", mine[1], 1000 + left);
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, alone);
    MPI_Put(&value, 1, MPI_LONG, 0, 0, 1, MPI_LONG, alone);
    MPI_Win_unlock(0, alone);
    check("put alone", own[0], value);
    MPI_Win_free(&alone);
    MPI_Win_free(&win);
  }
  MPI_Group_free(&all);
  MPI_Group_free(&part);
  MPI_Comm_free(&some);
}

static int on_delete(MPI_Win win, int keyval, void* value, void* extra) {
  (void)win, (void)keyval, (void)extra;
  deleted = *(int*)value;
  return MPI_SUCCESS;
}

static void attributes_and_errors(void) {
  long part[2] = {0, 0}, value = 1;
  int keyval = MPI_KEYVAL_INVALID, kept = 42, flag = 0, kind = 0;
  int* found = NULL;
  MPI_Win win;
  MPI_Win_create_keyval(MPI_WIN_NULL_COPY_FN, on_delete, &keyval, NULL);
  MPI_Win_create(part, sizeof part, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_set_attr(win, keyval, &kept);
  MPI_Win_get_attr(win, keyval, &found, &flag);
  check("attribute", flag && found == &kept, 1);
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  const int code = MPI_Put(&value, 1, MPI_LONG, size + 5, 0, 1, MPI_LONG, win);
  MPI_Error_class(code, &kind);
  check("class of a wrong rank", kind, MPI_ERR_RANK);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_free(&win);
  check("deleted", deleted, 42);
  MPI_Win_free_keyval(&keyval);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Info apart;
  MPI_Info_create(&apart);
  MPI_Info_set(apart, "alloc_shared_noncontig", "true");
  shared(MPI_INFO_NULL, 1);
  shared(apart, 0);
  empty_parts(apart);
  MPI_Info_free(&apart);
  promises();
  dynamic();
  communicators();
  attributes_and_errors();
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("flavors: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
