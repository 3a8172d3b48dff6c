/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * mutexes fair | killed: first come, first served; and what waits for a mutex whose holder dies.
 *
 * fair    each process draws a ticket just before it asks for the mutex, and looks, while it holds it, how many others
 *         have had it since: at most 2 n
 * killed  the last process takes the mutex and kills itself: the others, which wait, end with one line
 */
#include <armci.h>
#include <armcix.h>
#include <message.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

static int me, size;

static int fair(void) {
  enum { rounds = 200 };
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  long passed_max = 0;
  int i, wrong = 0;
  armcix_mutex_hdl_t batch;
  ARMCI_Group world;
  ARMCI_Malloc(ptrs, 64);
  memset(ptrs[me], 0, 64);
  ARMCI_Create_mutexes(me == 0 ? 1 : 0);
  ARMCI_Barrier();
  for (i = 0; i < rounds; ++i) {
    const long before = ARMCI_GetValueLong(ptrs[0], 0);
    long holds;
    ARMCI_Lock(0, 0);
    holds = ARMCI_GetValueLong(ptrs[0], 0);
    ARMCI_PutValueLong(holds + 1, ptrs[0], 0);
    ARMCI_Fence(0);
    if (holds - before > passed_max) passed_max = holds - before;
    ARMCI_Unlock(0, 0);
  }
  ARMCI_Barrier();
  if (ARMCI_GetValueLong(ptrs[0], 0) != (long)rounds * size) wrong = 1;
  /* Between the look and the place in the queue a process may lose its processor: that is no matter of the mutex. */
  armci_msg_lgop(&passed_max, 1, "min");
  if (passed_max > 2 * size) wrong = 1;
  ARMCI_Barrier();
  ARMCI_Destroy_mutexes();
  ARMCI_Group_get_world(&world);
  batch = ARMCIX_Create_mutexes_hdl(2, &world);
  if (me == 0 && ARMCIX_Trylock_hdl(batch, 1, size - 1) != 0) wrong = 1;
  ARMCI_Barrier();
  if (me != 0 && ARMCIX_Trylock_hdl(batch, 1, size - 1) == 0) wrong = 1;
  ARMCI_Barrier();
  if (me == 0) ARMCIX_Unlock_hdl(batch, 1, size - 1);
  ARMCIX_Progress();
  ARMCIX_Lock_hdl(batch, 1, size - 1);
  ARMCIX_Unlock_hdl(batch, 1, size - 1);
  ARMCIX_Destroy_mutexes_hdl(batch);
  armci_msg_igop(&wrong, 1, "+");
  if (me == 0) printf("mutexes: fair, %d wrong\n", wrong);
  ARMCI_Free(ptrs[me]);
  free(ptrs);
  return wrong;
}

static void killed(void) {
  ARMCI_Create_mutexes(1);
  if (me == size - 1) ARMCI_Lock(0, 0);
  ARMCI_Barrier();
  if (me == size - 1) kill(getpid(), SIGKILL);
  ARMCI_Lock(0, 0);
  printf("process %d has got the mutex of a dead one\n", me);
}

int main(int argc, char** argv) {
  int wrong = 0;
#ifndef RMA_ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
#endif
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  if (argc > 1 && strcmp(argv[1], "killed") == 0) killed();
  else wrong = fair();
  ARMCI_Finalize();
#ifndef RMA_ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return wrong == 0 ? 0 : 1;
}
