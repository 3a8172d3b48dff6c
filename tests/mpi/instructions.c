// SPDX-License-Identifier: Apache-2.0
// instructions N: calls each wrapper below N times on this rank's own window, for tests/perf/instructions.py, as
// perf/instructions.cpp does on the library itself. It is linked with librma_mpi, and one rank without a launcher.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

#define COUNTED __attribute__((noinline))

COUNTED int count_put(MPI_Win win, const long* value, MPI_Aint at) {
  return MPI_Put(value, 1, MPI_LONG, 0, at, 1, MPI_LONG, win);
}
COUNTED int count_get(MPI_Win win, long* value, MPI_Aint at) {
  return MPI_Get(value, 1, MPI_LONG, 0, at, 1, MPI_LONG, win);
}
COUNTED int count_flush(MPI_Win win) { return MPI_Win_flush(0, win); }
COUNTED int count_fetch_and_op(MPI_Win win, const long* value, long* old, MPI_Aint at) {
  return MPI_Fetch_and_op(value, old, MPI_LONG, 0, at, MPI_SUM, win);
}
COUNTED int count_compare_and_swap(MPI_Win win, const long* value, const long* expected, long* old, MPI_Aint at) {
  return MPI_Compare_and_swap(value, expected, old, MPI_LONG, 0, at, win);
}
COUNTED int count_accumulate(MPI_Win win, const long* value, MPI_Aint at) {
  return MPI_Accumulate(value, 1, MPI_LONG, 0, at, 1, MPI_LONG, MPI_SUM, win);
}
COUNTED int count_lock_unlock(MPI_Win win) {
  return MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win) + MPI_Win_unlock(0, win);
}

int main(int argc, char** argv) {
  const long calls = argc > 1 ? atol(argv[1]) : 1;
  long *memory, value = 1, old = 0;
  int failed = 0;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Win_allocate(1024 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  MPI_Win_lock_all(0, win);
  for (long i = 0; i < calls; ++i) {
    failed |= count_put(win, &i, i % 512) | count_flush(win) | count_get(win, &old, i % 512);
    failed |= count_fetch_and_op(win, &value, &old, 600) | count_accumulate(win, &value, 601);
    failed |= count_compare_and_swap(win, &value, &i, &old, 602);
  }
  MPI_Win_unlock_all(win);
  for (long i = 0; i < calls; ++i) failed |= count_lock_unlock(win);
  failed |= memory[600] != calls || memory[601] != calls;
  MPI_Win_free(&win);
  MPI_Finalize();
  if (failed) printf("a call failed, or a sum is wrong\n");
  return failed != 0;
}
