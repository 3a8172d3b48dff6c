// SPDX-License-Identifier: Apache-2.0
// killed part | killed: with the argument "killed" the last rank ends by SIGKILL, with a lock that others wait for, in
// the middle of their epochs; else all ends well.
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char** argv) {
  const int dies = argc > 1 && strcmp(argv[1], "killed") == 0;
  int rank = 0, size = 1;
  long *memory, value = 1;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_allocate(1 << 20, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  if (rank == size - 1) MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == size - 1 && dies) kill(getpid(), SIGKILL);
  if (rank == size - 1) MPI_Win_unlock(0, win);
  for (int i = 0; i < 1000; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    MPI_Put(&value, 1, MPI_LONG, 0, i, 1, MPI_LONG, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Win_fence(0, win);
  MPI_Win_free(&win);
  if (rank == 0) printf("killed: 0 wrong\n");
  MPI_Finalize();
  return 0;
}
