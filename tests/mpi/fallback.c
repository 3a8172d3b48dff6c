// SPDX-License-Identifier: Apache-2.0
// A window that is the MPI's own, beside one of MPI_COMM_WORLD that is taken over: its communicator has a spawned
// process, or, since Debian's MPICH can spawn none, its displacement unit does not fit an int.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

static int wrong;

static void check(const char* what, long is, long should) {
  if (is == should) return;
  ++wrong;
  printf("%s is %ld, not %ld\n", what, is, should);
}

// Each call that must find out whose the window is.
static void use(MPI_Win win, MPI_Comm comm, long* part) {
  int rank = 0, size = 1, flag = 0;
  long value, old = -1;
  MPI_Aint* bytes = NULL;
  MPI_Request request;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &size);
  const int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Win_get_attr(win, MPI_WIN_SIZE, &bytes, &flag);
  check("size", *bytes, 16 * sizeof(long));
  MPI_Win_fence(0, win);
  value = 100 + rank;
  MPI_Put(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  check("put", part[0], 100 + left);
  MPI_Get(&old, 1, MPI_LONG, right, 0, 1, MPI_LONG, win);
  MPI_Win_fence(0, win);
  check("got", old, 100 + rank);
  MPI_Accumulate(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("sum", part[0], 2 * (100 + left));
  MPI_Barrier(comm);
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, right, 0, win);
  MPI_Fetch_and_op(&value, &old, MPI_LONG, right, 0, MPI_REPLACE, win);
  MPI_Win_flush(right, win);
  check("fetched", old, 2 * (100 + rank));
  value += 1000;
  MPI_Rput(&value, 1, MPI_LONG, right, 0, 1, MPI_LONG, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Win_unlock(right, win);
  MPI_Win_fence(0, win);
  check("put by request", part[0], 1100 + left);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
}

static void use_both(MPI_Win win, MPI_Comm comm, long* part) {
  long* own_part;
  MPI_Win own;
  MPI_Win_allocate(16 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &own_part, &own);
  for (int i = 0; i < 3; ++i) {
    use(win, comm, part);
    use(own, MPI_COMM_WORLD, own_part);
  }
  MPI_Win_free(&own);
  MPI_Win_free(&win);
}
#ifdef OPEN_MPI
// The spawned process is given what is preloaded here.
static MPI_Comm spawn(const char* program) {
  char preloaded[4096], command[] = "/usr/bin/env", copy[4096];
  char* arguments[] = {preloaded, copy, NULL};
  const char* const libraries = getenv("LD_PRELOAD");
  MPI_Comm between;
  snprintf(preloaded, sizeof preloaded, "LD_PRELOAD=%s", libraries != NULL ? libraries : "");
  snprintf(copy, sizeof copy, "%s", program);
  MPI_Comm_spawn(command, arguments, 1, MPI_INFO_NULL, 0, MPI_COMM_WORLD, &between, MPI_ERRCODES_IGNORE);
  return between;
}

static MPI_Win make(const char* program, MPI_Comm* comm, int* is_spawned, long** part) {
  MPI_Comm between;
  MPI_Win win;
  MPI_Comm_get_parent(&between);
  *is_spawned = between != MPI_COMM_NULL;
  if (!*is_spawned) between = spawn(program);
  MPI_Intercomm_merge(between, *is_spawned, comm);
  MPI_Comm_free(&between);
  MPI_Win_allocate(16 * sizeof(long), sizeof(long), MPI_INFO_NULL, *comm, part, &win);
  return win;
}
#else
static MPI_Win make(const char* program, MPI_Comm* comm, int* is_spawned, long** part) {
  MPI_Win win;
  (void)program;
  *is_spawned = 0;
  MPI_Comm_dup(MPI_COMM_WORLD, comm);
  static long memory[16];
  *part = memory;
  MPI_Win_create_c(*part, sizeof memory, (MPI_Aint)1 << 33, MPI_INFO_NULL, *comm, &win);
  return win;
}
#endif

int main(int argc, char** argv) {
  MPI_Comm comm;
  long* part;
  int rank = 0, all = 0, is_spawned = 0;
  MPI_Init(&argc, &argv);
  MPI_Win win = make(argv[0], &comm, &is_spawned, &part);
  use_both(win, comm, part);
  MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, comm);
  MPI_Comm_free(&comm);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0 && !is_spawned) printf("fallback: %d wrong\n", all);
  MPI_Finalize();
  return 0;
}
