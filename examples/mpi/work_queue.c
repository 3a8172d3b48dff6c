// SPDX-License-Identifier: Apache-2.0
/**
 * \file
 * A program of MPI alone, which knows nothing of rma: tasks from a common counter by MPI_Fetch_and_op, results by
 * MPI_Accumulate into a table that is spread over the ranks, the sum of all by a message.
 *
 * \code
 * mpicc work_queue.c -o work_queue
 * mpirun -n 4 ./work_queue            # windows by MPI
 * mpirun -n 4 rma-mpi ./work_queue    # windows by rma
 * \endcode
 */
#include <mpi.h>
#include <stdio.h>

enum { tasks = 10000, last_digits = 10 };

int main(int argc, char** argv) {
  int rank, size;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);

  // Each rank has some entries of the table; rank 0's last word is the counter.
  const int entries = (last_digits + size - 1) / size;
  long* table;
  MPI_Win win;
  MPI_Win_allocate((entries + 1) * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &table, &win);
  for (int i = 0; i <= entries; ++i) table[i] = 0;
  MPI_Barrier(MPI_COMM_WORLD);

  MPI_Win_lock_all(0, win);
  for (;;) {
    const long one = 1;
    long task = 0;
    MPI_Fetch_and_op(&one, &task, MPI_LONG, 0, entries, MPI_SUM, win);
    MPI_Win_flush(0, win);
    if (task >= tasks) break;
    const long square = task * task;
    const int digit = (int)(task % last_digits);
    MPI_Accumulate(&square, 1, MPI_LONG, digit / entries, digit % entries, 1, MPI_LONG, MPI_SUM, win);
    MPI_Win_flush_local(digit / entries, win);
  }
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);

  long mine = 0, sum = 0;
  MPI_Win_lock(MPI_LOCK_SHARED, rank, 0, win);
  for (int i = 0; i < entries; ++i) mine += table[i];
  MPI_Win_unlock(rank, win);
  MPI_Reduce(&mine, &sum, 1, MPI_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
  const long n = tasks - 1;
  if (rank == 0)
    printf("%d tasks: the sum of squares %ld is %s\n", tasks, sum,
           sum == n * (n + 1) * (2 * n + 1) / 6 ? "right" : "WRONG");
  MPI_Win_free(&win);
  MPI_Finalize();
  return 0;
}
