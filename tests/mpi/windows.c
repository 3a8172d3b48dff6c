// SPDX-License-Identifier: Apache-2.0
// Every call of a window on MPI_COMM_WORLD with contiguous data. Its output is the same whoever carries it out.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

static void check(const char* what, long is, long should) {
  if (is == should) return;
  ++wrong;
  printf("rank %d: %s is %ld, not %ld\n", rank, what, is, should);
}

static void fences(MPI_Win win, long* mine) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  long value = 100 + rank, got = -1;
  mine[0] = -1;
  mine[1] = 1000 + rank;
  MPI_Win_fence(MPI_MODE_NOPRECEDE, win);
  MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
  MPI_Get(&got, 1, MPI_LONG, left, 1, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  check("put", mine[0], 100 + left);
  check("got", got, 1000 + left);
  mine[2] = 0;
  MPI_Win_fence(0, win);
  value = rank + 1;
  for (int r = 0; r < size; ++r) MPI_Accumulate(&value, 1, MPI_LONG, r, 2, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("sum", mine[2], (long)size * (size + 1) / 2);
}

static void locks(MPI_Win win, long* mine) {
  long one = 1, old = -1, sum = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  mine[0] = mine[1] = mine[3] = 0;
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
  for (int i = 0; i < 50; ++i) {
    long now = 0;
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Get(&now, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_flush(0, win);
    now += 1;
    MPI_Put(&now, 1, MPI_LONG, 0, 0, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_lock_all(0, win);
  for (int r = 0; r < size; ++r) {
    MPI_Fetch_and_op(&one, &old, MPI_LONG, r, 1, MPI_SUM, win);
    MPI_Win_flush_local(r, win);
    sum += old >= 0 && old < size;
  }
  MPI_Win_flush_all(win);
  MPI_Win_unlock_all(win);
  check("valid old values", sum, size);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  MPI_Win_sync(win);
  if (rank == 0) check("count under a lock", mine[0], 50L * size);
  check("fetch_and_op", mine[1], size);
  MPI_Win_unlock(rank, win);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void swaps(MPI_Win win, long* mine) {
  long none = 0, me = rank + 1, old = -1, won = 0, all = 0, pair[2] = {5, 7}, before[2] = {-1, -1};
  MPI_Win_lock_all(MPI_MODE_NOCHECK, win);
  MPI_Compare_and_swap(&me, &none, &old, MPI_LONG, 0, 3, win);
  MPI_Win_flush(0, win);
  won = old == 0;
  MPI_Allreduce(&won, &all, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  check("winners of a swap", all, 1);
  if (rank == 0) mine[4] = 10, mine[5] = 20;
  MPI_Win_sync(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1) {
    MPI_Get_accumulate(pair, 2, MPI_LONG, before, 2, MPI_LONG, 0, 4, 2, MPI_LONG, MPI_PROD, win);
    MPI_Win_flush_local_all(win);
    check("first before", before[0], 10);
    check("second before", before[1], 20);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) check("products", mine[4] * 1000 + mine[5], 50 * 1000 + 140);
}

static void groups(MPI_Win win, long* mine) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  MPI_Group all, to, from;
  MPI_Win_get_group(win, &all);
  MPI_Group_incl(all, 1, &right, &to);
  MPI_Group_incl(all, 1, &left, &from);
  for (int round = 0; round < 3; ++round) {
    long value = 10 * round + rank;
    mine[6] = -1;
    MPI_Win_post(from, 0, win);
    MPI_Win_start(to, 0, win);
    MPI_Put(&value, 1, MPI_LONG, right, 6, 1, MPI_LONG, win);
    MPI_Win_complete(win);
    if (round == 1) {
      int over = 0;
      while (!over) MPI_Win_test(win, &over);
    } else {
      MPI_Win_wait(win);
    }
    check("put in a group", mine[6], 10 * round + left);
  }
  MPI_Group_free(&to);
  MPI_Group_free(&from);
  MPI_Group_free(&all);
}

// A message that is longer than any MPI sends without its receiver: one rank waits in MPI for another that waits in a
// fence, where MPI must go on.
static void messages(MPI_Win win) {
  enum { count = 1 << 19 };
  int* const data = calloc(count, sizeof *data);
  MPI_Request request = MPI_REQUEST_NULL;
  if (rank == 0) MPI_Irecv(data, count, MPI_INT, size - 1, 3, MPI_COMM_WORLD, &request);
  if (rank == size - 1 && size > 1) {
    data[count - 1] = 42;
    MPI_Send(data, count, MPI_INT, 0, 3, MPI_COMM_WORLD);
  }
  MPI_Win_fence(0, win);
  if (rank == 0 && size > 1) {
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    check("message beside a fence", data[count - 1], 42);
  }
  if (rank == 0 && size == 1) MPI_Cancel(&request), MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  free(data);
}

static void attributes(MPI_Win win, void* base, long bytes, int flavor) {
  void* value = NULL;
  int flag = 0;
  MPI_Win_get_attr(win, MPI_WIN_BASE, &value, &flag);
  check("base", flag && value == base, 1);
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &value, &flag);
  check("size", *(MPI_Aint*)value, bytes);
  MPI_Win_get_attr(win, MPI_WIN_DISP_UNIT, &value, &flag);
  check("unit", *(int*)value, sizeof(long));
  MPI_Win_get_attr(win, MPI_WIN_CREATE_FLAVOR, &value, &flag);
  check("flavor", *(int*)value, flavor);
  MPI_Win_get_attr(win, MPI_WIN_MODEL, &value, &flag);
  check("model", *(int*)value, MPI_WIN_UNIFIED);
}

// An epoch is open: the window stays as it is, and its error handler is told. MPIs alone differ in that.
static void free_too_early(MPI_Win win) {
  const char* const preloaded = getenv("LD_PRELOAD");
  if (preloaded == NULL || strstr(preloaded, "librma_mpi") == NULL) return;
  int class = MPI_SUCCESS;
  MPI_Win same = win;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  MPI_Error_class(MPI_Win_free(&same), &class);
  MPI_Win_unlock(rank, win);
  check("class of a free in a lock", class, MPI_ERR_RMA_SYNC);
  check("window after it", same == win, 1);
}

static void use(const char* name, MPI_Win win, long* mine, int flavor) {
  char text[MPI_MAX_OBJECT_NAME];
  int length = 0;
  MPI_Win_set_name(win, name);
  MPI_Win_get_name(win, text, &length);
  attributes(win, mine, 16 * sizeof(long), flavor);
  fences(win, mine);
  locks(win, mine);
  swaps(win, mine);
  groups(win, mine);
  messages(win);
  free_too_early(win);
  if (rank == 0) printf("window %s on %d ranks: over\n", text, size);
  MPI_Win_free(&win);
  check("freed", win == MPI_WIN_NULL, 1);
}

int main(int argc, char** argv) {
  long memory[16], *allocated = NULL;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  use("create", win, memory, MPI_WIN_FLAVOR_CREATE);
  MPI_Win_allocate(sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win);
  use("allocate", win, allocated, MPI_WIN_FLAVOR_ALLOCATE);
  MPI_Win_create(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_SELF, &win);
  MPI_Win_free(&win);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("windows: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
