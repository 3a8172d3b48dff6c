// SPDX-License-Identifier: Apache-2.0
// Requests of one-sided operations beside a request of a message, in each call that completes several requests or looks
// at them. The message is sent late, so that the operations must complete without it.
#include <mpi.h>
#include <stdio.h>

enum { kinds = 5, receive = 4 };  // put, get, accumulate, get_accumulate, and the message

typedef int (*call_of_some)(int, MPI_Request*, int*, int*, MPI_Status*);

static int rank, size, left, right, wrong, rounds;
static int part[4], value, got, old, heard;
static const int one = 1;
static MPI_Win win;
static MPI_Request all[kinds];
static MPI_Status statuses[kinds];

static void check(const char* call, const char* what, long is, long should) {
  if (is == should) return;
  ++wrong;
  printf("rank %d: %s: %s is %ld, not %ld\n", rank, call, what, is, should);
}

static void begin(void) {
  value = 100 * rounds + rank;
  got = old = heard = -1;
  MPI_Rput(&value, 1, MPI_INT, right, 0, 1, MPI_INT, win, &all[0]);
  MPI_Rget(&got, 1, MPI_INT, right, 1, 1, MPI_INT, win, &all[1]);
  MPI_Raccumulate(&one, 1, MPI_INT, right, 2, 1, MPI_INT, MPI_SUM, win, &all[2]);
  MPI_Rget_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, right, 3, 1, MPI_INT, MPI_SUM, win, &all[3]);
  MPI_Irecv(&heard, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &all[receive]);
}

// No message is sent before all ranks have made their tests without it.
static void send_message(void) {
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Send(&value, 1, MPI_INT, right, 1, MPI_COMM_WORLD);
}

static void end(const char* call) {
  for (int i = 0; i < kinds; ++i) check(call, "the request at the end", all[i] == MPI_REQUEST_NULL, 1);
  check(call, "what was got", got, 1000 + right);
  check(call, "the value before", old, rounds);
  check(call, "the message", heard, 100 * rounds + left);
  MPI_Win_flush(right, win);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_sync(win);
  check(call, "what was put", part[0], 100 * rounds + left);
  ++rounds;
  check(call, "the sum", part[2], rounds);
  MPI_Barrier(MPI_COMM_WORLD);
}

static void test_all(void) {
  int flag = 1;
  begin();
  MPI_Testall(kinds, all, &flag, statuses);
  check("Testall", "flag without the message", flag, 0);
  send_message();
  while (!flag) MPI_Testall(kinds, all, &flag, statuses);
  check("Testall", "source", statuses[receive].MPI_SOURCE, left);
  end("Testall");
}

static void test_any(void) {
  int flag = 0, which = -1, completed = 0;
  begin();
  while (completed < receive) {
    MPI_Testany(kinds, all, &which, &flag, statuses);
    if (!flag) continue;
    ++completed;
    check("Testany", "an operation without the message", which >= 0 && which < receive, 1);
  }
  MPI_Testany(kinds, all, &which, &flag, statuses);
  check("Testany", "flag without the message", flag, 0);
  send_message();
  while (!flag) MPI_Testany(kinds, all, &which, &flag, statuses);
  check("Testany", "index of the message", which, receive);
  check("Testany", "source", statuses[0].MPI_SOURCE, left);
  MPI_Testany(kinds, all, &which, &flag, statuses);
  check("Testany", "index when nothing is left", flag && which == MPI_UNDEFINED, 1);
  end("Testany");
}

static void some(const char* name, call_of_some call) {
  int count = 0, indices[kinds], completed = 0;
  begin();
  while (completed < receive) {
    call(kinds, all, &count, indices, statuses);
    for (int i = 0; i < count; ++i) check(name, "an operation without the message", indices[i] < receive, 1);
    completed += count;
  }
  send_message();
  do call(kinds, all, &count, indices, statuses);
  while (count == 0);
  check(name, "count with the message", count, 1);
  check(name, "index of the message", indices[0], receive);
  check(name, "source", statuses[0].MPI_SOURCE, left);
  call(kinds, all, &count, indices, statuses);
  check(name, "count when nothing is left", count, MPI_UNDEFINED);
  end(name);
}

static void get_status(void) {
  const char* const call = "Request_get_status";
  int flag = 0;
  begin();
  for (int i = 0; i < receive; ++i) {
    do MPI_Request_get_status(all[i], &flag, statuses);
    while (!flag);
    check(call, "the request after it", all[i] != MPI_REQUEST_NULL, 1);
  }
  check(call, "what was got at once", got, 1000 + right);
  MPI_Request_get_status(all[receive], &flag, statuses);
  check(call, "flag without the message", flag, 0);
  send_message();
  MPI_Waitall(kinds, all, statuses);
  end(call);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  left = (rank + size - 1) % size, right = (rank + 1) % size;
  part[1] = 1000 + rank;
  MPI_Win_create(part, sizeof part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < 20; ++i) {
    test_all();
    test_any();
    some("Testsome", MPI_Testsome);
    some("Waitsome", MPI_Waitsome);
    get_status();
  }
  MPI_Win_unlock_all(win);
  MPI_Win_free(&win);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("requests: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
