// SPDX-License-Identifier: Apache-2.0
// The calls with large counts, which MPI 4 has. Where that MPI is older, the program skips itself.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if MPI_VERSION < 4
int main(void) {
  printf("no calls with large counts before MPI 4\n");
  return 77;
}
#else

static int rank, size, left, right, wrong;
static const MPI_Count two = 2;

static void check(const char* what, long is, long should) {
  if (is == should) return;
  ++wrong;
  printf("rank %d: %s is %ld, not %ld\n", rank, what, is, should);
}

static void clear(MPI_Win win, long* part) {
  MPI_Win_fence(0, win);
  for (int i = 0; i < 4; ++i) part[i] = 10 * (rank + 1) + i;
  MPI_Win_fence(0, win);
}

static void blocking(MPI_Win win, long* part) {
  const long values[2] = {rank + 100, rank + 200};
  long got[2] = {-1, -1};
  clear(win, part);
  MPI_Put_c(values, two, MPI_LONG, right, 0, two, MPI_LONG, win);
  MPI_Get_c(got, two, MPI_LONG, right, 2, two, MPI_LONG, win);
  MPI_Win_fence(0, win);
  check("first value of Put_c", part[0], left + 100);
  check("second value of Put_c", part[1], left + 200);
  check("first value of Get_c", got[0], 10 * (right + 1) + 2);
  check("second value of Get_c", got[1], 10 * (right + 1) + 3);
  clear(win, part);
  MPI_Accumulate_c(values, two, MPI_LONG, right, 0, two, MPI_LONG, MPI_SUM, win);
  MPI_Get_accumulate_c(values, two, MPI_LONG, got, two, MPI_LONG, right, 2, two, MPI_LONG, MPI_REPLACE, win);
  MPI_Win_fence(0, win);
  check("second value of Accumulate_c", part[1], 10 * (rank + 1) + 1 + left + 200);
  check("second value of Get_accumulate_c", part[3], left + 200);
  check("what Get_accumulate_c fetched", got[1], 10 * (right + 1) + 3);
}

static void with_requests(MPI_Win win, long* part) {
  const long values[2] = {rank + 300, rank + 400};
  long got[2] = {-1, -1}, old[2] = {-1, -1};
  MPI_Request all[2];
  MPI_Status statuses[2];
  clear(win, part);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  MPI_Win_lock_all(0, win);
  MPI_Rput_c(values, two, MPI_LONG, right, 0, two, MPI_LONG, win, &all[0]);
  MPI_Rget_c(got, two, MPI_LONG, right, 2, two, MPI_LONG, win, &all[1]);
  MPI_Waitall(2, all, statuses);
  check("second value of Rget_c", got[1], 10 * (right + 1) + 3);
  MPI_Win_flush(right, win);
  MPI_Raccumulate_c(values, two, MPI_LONG, right, 0, two, MPI_LONG, MPI_SUM, win, &all[0]);
  MPI_Rget_accumulate_c(values, two, MPI_LONG, old, two, MPI_LONG, right, 2, two, MPI_LONG, MPI_REPLACE, win, &all[1]);
  MPI_Waitall(2, all, statuses);
  check("what Rget_accumulate_c fetched", old[1], 10 * (right + 1) + 3);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  check("second value of Rput_c and Raccumulate_c", part[1], 2 * (left + 400));
  check("second value of Rget_accumulate_c", part[3], left + 400);
}

// A count that an int would cut to 1. MPICH alone does not look whether the target has so much.
static void too_many(MPI_Win win, long* part) {
  const char* const preloaded = getenv("LD_PRELOAD");
  if (preloaded == NULL || strstr(preloaded, "librma_mpi") == NULL) return;
  const MPI_Count many = ((MPI_Count)1 << 32) + 1;
  int kind = MPI_SUCCESS;
  long value = 0;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  clear(win, part);
  MPI_Error_class(MPI_Put_c(&value, many, MPI_LONG, right, 0, many, MPI_LONG, win), &kind);
  check("class of a Put_c of too many", kind, MPI_ERR_RMA_RANGE);
  MPI_Error_class(MPI_Get_c(&value, many, MPI_LONG, right, 0, many, MPI_LONG, win), &kind);
  check("class of a Get_c of too many", kind, MPI_ERR_RMA_RANGE);
  MPI_Error_class(MPI_Accumulate_c(&value, many, MPI_LONG, right, 0, many, MPI_LONG, MPI_SUM, win), &kind);
  check("class of an Accumulate_c of too many", kind, MPI_ERR_RMA_RANGE);
  MPI_Win_fence(0, win);
  check("what they have not changed", part[0], 10 * (rank + 1));
}

static void use(MPI_Win* win, long* part) {
  blocking(*win, part);
  with_requests(*win, part);
  too_many(*win, part);
  MPI_Win_free(win);
}

static void shared(void) {
  MPI_Comm node;
  MPI_Win win;
  MPI_Aint bytes = 0, unit = 0;
  long *mine, *of_first;
  int me = 0;
  MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node);
  MPI_Comm_rank(node, &me);
  MPI_Win_allocate_shared_c(2 * sizeof(long), sizeof(long), MPI_INFO_NULL, node, &mine, &win);
  MPI_Win_shared_query_c(win, 0, &bytes, &unit, &of_first);
  check("bytes of a shared part", bytes, 2 * sizeof(long));
  check("unit of a shared part", unit, sizeof(long));
  check("distance to the first part", mine - of_first, 2 * me);
  MPI_Win_free(&win);
  MPI_Comm_free(&node);
}

int main(int argc, char** argv) {
  long memory[4], *allocated = NULL;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Win_create_c(memory, sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  use(&win, memory);
  MPI_Win_allocate_c(sizeof memory, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &allocated, &win);
  use(&win, allocated);
  if (getenv("RMA_NODE") == NULL) shared();  // virtual nodes share no memory, whatever that MPI says
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("large_counts: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
#endif
