// SPDX-License-Identifier: Apache-2.0
// Progress both ways: a rank that is blocked in a call on a window lets its own messages go on. The last rank needs a
// long message of rank 0, which goes by rendezvous, before it lets rank 0 out of that call.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { count = 1 << 20 };  // bytes: more than any MPI sends without its receiver

static int rank, size, last, wrong, tag;
static char* data;

typedef void (*action)(MPI_Win win);

static void nothing(MPI_Win win) { (void)win; }
static void fence(MPI_Win win) { MPI_Win_fence(MPI_MODE_NOSUCCEED, win); }
static void hold(MPI_Win win) { MPI_Win_lock(MPI_LOCK_EXCLUSIVE, last, 0, win); }
static void release(MPI_Win win) { MPI_Win_unlock(last, win); }

static void put(MPI_Win win) {
  const long value = 7;
  MPI_Put(&value, 1, MPI_LONG, last, 0, 1, MPI_LONG, win);
}
static void lock(MPI_Win win) {
  hold(win);
  release(win);
}
static void flush(MPI_Win win) {
  hold(win);
  put(win);
  MPI_Win_flush(last, win);
  release(win);
}
static void unlock(MPI_Win win) {
  hold(win);
  put(win);
  release(win);
}
static void fetch(MPI_Win win) {
  long old = 0, one = 1;
  MPI_Win_lock_all(0, win);
  MPI_Fetch_and_op(&one, &old, MPI_LONG, last, 1, MPI_SUM, win);
  MPI_Win_flush_local(last, win);
  MPI_Win_unlock_all(win);
}
static void pair(MPI_Win win) {  // which no single instruction updates
  struct {
    double value;
    int where;
  } mine = {1, 2};
  MPI_Win_lock(MPI_LOCK_SHARED, last, 0, win);
  MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, last, 2, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
  release(win);
}

static MPI_Group group_of(int member) {
  MPI_Group all, one;
  MPI_Comm_group(MPI_COMM_WORLD, &all);
  MPI_Group_incl(all, 1, &member, &one);
  MPI_Group_free(&all);
  return one;
}
static void to(MPI_Win win) {
  MPI_Group other = group_of(rank == 0 ? last : 0);
  MPI_Win_start(other, 0, win);
  MPI_Win_complete(win);
  MPI_Group_free(&other);
}
static void from(MPI_Win win) {
  MPI_Group other = group_of(rank == 0 ? last : 0);
  MPI_Win_post(other, 0, win);
  MPI_Win_wait(win);
  MPI_Group_free(&other);
}

// Rank 0 blocks in `blocks`; the last rank has prepared that, and ends it when the message is there.
static void during(const char* name, MPI_Win win, action blocks, action prepares, action ends, action others) {
  MPI_Request request = MPI_REQUEST_NULL;
  ++tag;
  if (rank == last) prepares(win);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) {
    memset(data, tag, count);
    MPI_Isend(data, count, MPI_BYTE, last, tag, MPI_COMM_WORLD, &request);
    blocks(win);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else if (rank == last) {
    MPI_Recv(data, count, MPI_BYTE, 0, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (data[0] != tag || data[count - 1] != tag) {
      ++wrong;
      printf("the message beside %s is wrong\n", name);
    }
    ends(win);
  } else {
    others(win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
}

int main(int argc, char** argv) {
  long* memory;
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  last = size - 1;
  data = malloc(count);
  MPI_Win_allocate(8 * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &win);
  memset(memory, 0, 8 * sizeof(long));
  MPI_Barrier(MPI_COMM_WORLD);
  during("a fence", win, fence, nothing, fence, fence);
  during("a start", win, to, nothing, from, nothing);
  during("a wait", win, from, nothing, to, nothing);
  during("a lock", win, lock, hold, release, nothing);
  during("a flush", win, flush, hold, release, nothing);
  during("an unlock", win, unlock, hold, release, nothing);
  during("an operation in lock_all", win, fetch, hold, release, nothing);
  during("an update of a pair", win, pair, hold, release, nothing);
  MPI_Win_free(&win);
  free(data);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("progress: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
