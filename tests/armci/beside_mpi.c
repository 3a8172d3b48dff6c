/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * beside_mpi blocked | part | killed: ARMCI and MPI in one program.
 *
 * blocked  a process that waits in MPI is put into, added to and locked by others meanwhile, and woken by MPI then
 * part     ARMCI runs among half of the processes, and MPI among all
 * killed   one process is killed while the others wait for it: the job ends
 */
#include <mpi.h>
#include <armci.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, size;

static int blocked(void) {
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  int turn, wrong = 0, got = 0;
  double one = 1, ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
  const int last = size - 1;
  ARMCI_Init();
  ARMCI_Malloc(ptrs, 4096);
  memset(ptrs[rank], 0, 4096);
  ARMCI_Create_mutexes(1);
  ARMCI_Barrier();
  for (turn = 0; turn < 20; ++turn) {
    if (rank == last) {
      MPI_Recv(&got, 1, MPI_INT, 0, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      if (((double*)ptrs[last])[3] != (turn + 1.0) * 2 || got != turn) wrong = 1;
      MPI_Send(&got, 1, MPI_INT, 0, 6, MPI_COMM_WORLD);
    } else if (rank == 0) {
      long old = 0;
      ARMCI_Lock(0, last);
      ARMCI_Acc(ARMCI_ACC_DBL, &one, ones, ptrs[last], (int)sizeof ones, last);
      ARMCI_Acc(ARMCI_ACC_DBL, &one, ones, ptrs[last], (int)sizeof ones, last);
      ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, (char*)ptrs[last] + 1024, 1, last);
      ARMCI_Unlock(0, last);
      ARMCI_Fence(last);
      if (old != turn) wrong = 1;
      MPI_Send(&turn, 1, MPI_INT, last, 5, MPI_COMM_WORLD);
      MPI_Recv(&got, 1, MPI_INT, last, 6, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }
  ARMCI_Barrier();
  ARMCI_Destroy_mutexes();
  ARMCI_Free(ptrs[rank]);
  ARMCI_Finalize();
  free(ptrs);
  return wrong;
}

static int part(void) {
  MPI_Comm half;
  int sum = 0, mine = 1, wrong = 0;
  MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
  if (rank % 2 == 0) {
    ARMCI_Init_thread_comm(0, half);
    if (armci_msg_me() != rank / 2 || armci_msg_nproc() != (size + 1) / 2) wrong = 1;
    armci_msg_igop(&mine, 1, "+");
    if (mine != (size + 1) / 2) wrong = 1;
    ARMCI_Finalize();
  }
  MPI_Allreduce(&wrong, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Comm_free(&half);
  return sum;
}

static int killed(void) {
  ARMCI_Init();
  ARMCI_Barrier();
  if (rank == size - 1) kill(getpid(), SIGKILL);
  ARMCI_Barrier();
  return 0;
}

int main(int argc, char** argv) {
  int wrong;
  const char* const what = argc > 1 ? argv[1] : "blocked";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  wrong = strcmp(what, "part") == 0 ? part() : strcmp(what, "killed") == 0 ? killed() : blocked();
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("beside MPI: %s, %d wrong\n", what, wrong);
  MPI_Finalize();
  return 0;
}
