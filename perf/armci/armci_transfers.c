/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * armci_transfers strided | busy | overlap [RUNS]: strided gets of process 0 from process 1, in microseconds.
 *
 * strided  64 rows of 8 to 4096 ints, blocking: RMA_LAYOUT chooses the scheme (dissertation, figures 8.10 and 8.12)
 * busy     the same while process 1 computes between its calls of ARMCI: what a get takes that needs the target
 * overlap  a get with a handle, a computation of the same length, and the wait: which part of the get was hidden
 *          (dissertation, figures 9.4 and 9.5)
 *
 * The same program for every ARMCI; all bytes are compared.
 */
#include <armci.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

enum { rows = 64, longest = 4096, runs_max = 101 };

static int me, runs = 11;
static void* ptrs[1024];
static int* local;

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* each) {
  qsort(each, (size_t)runs, sizeof each[0], by_value);
  return each[runs / 2];
}

static volatile double sink;

static void compute(double us) {
  const double begun = now_us();
  double x = 1;
  while (now_us() - begun < us) {
    int i;
    for (i = 0; i < 100; ++i) x = x * 1.0000001 + 1e-9;
  }
  sink = x;
}

/* `ints` of each row of twice the longest: a column of a matrix in process 1. */
static void start_get(int ints, armci_hdl_t* handle) {
  int there[1] = {2 * longest * (int)sizeof(int)}, here[1], counts[2];
  here[0] = counts[0] = ints * (int)sizeof(int);
  counts[1] = rows;
  if (handle != NULL)
    ARMCI_NbGetS(ptrs[1], there, local, here, counts, 1, 1, handle);
  else
    ARMCI_GetS(ptrs[1], there, local, here, counts, 1, 1);
}

static void require(int ints) {
  int r, i;
  for (r = 0; r < rows; ++r)
    for (i = 0; i < ints; ++i)
      if (local[r * ints + i] != r * 2 * longest + i) ARMCI_Error("armci_transfers: wrong bytes", 1);
}

static double time_gets(int ints) {
  double each[runs_max];
  int run;
  for (run = -1; run < runs; ++run) {
    const double begun = now_us();
    memset(local, 0xff, (size_t)(rows * ints) * sizeof(int));
    start_get(ints, NULL);
    if (run >= 0) each[run] = now_us() - begun;
    require(ints);
  }
  return median(each);
}

static void strided(void) {
  int ints;
  if (me != 0) return;
  for (ints = 8; ints <= longest; ints *= 8)
    printf("strided get, %d rows of %4d ints %12.1f us\n", rows, ints, time_gets(ints));
}

/* Process 1 calls ARMCI now and then, as a code does between its loops, until process 0 has what it wants. */
static void busy(void) {
  static const double pauses_us[] = {0, 100, 1000, 5000};
  unsigned p;
  for (p = 0; p < sizeof pauses_us / sizeof *pauses_us; ++p) {
    int* const done = (int*)((char*)ptrs[1] + (size_t)rows * 2 * longest * sizeof(int));
    if (me == 1) {
      while (ARMCI_GetValueInt(done, 1) != (int)p + 1) compute(pauses_us[p]);
    } else if (me == 0) {
      printf("target computes %5.0f us between its calls: get of %d rows of 64 ints %12.1f us\n", pauses_us[p], rows,
             time_gets(64));
      ARMCI_PutValueInt((int)p + 1, done, 1);
      ARMCI_Fence(1);
    }
    armci_msg_barrier();
  }
}

static void overlap(void) {
  int ints, run;
  if (me != 0) return;
  for (ints = 8; ints <= longest; ints *= 8) {
    double each[runs_max];
    const double alone = time_gets(ints);
    double both, hidden;
    for (run = -1; run < runs; ++run) {
      armci_hdl_t handle;
      const double begun = now_us();
      ARMCI_INIT_HANDLE(&handle);
      start_get(ints, &handle);
      compute(alone);
      ARMCI_Wait(&handle);
      if (run >= 0) each[run] = now_us() - begun;
      require(ints);
    }
    both = median(each);
    hidden = 100 * (2 * alone - both) / alone;
    printf("%d rows of %4d ints: get %10.1f us, with as much computation %10.1f us, hidden %3.0f %%\n", rows, ints,
           alone, both,
           hidden < 0     ? 0
           : hidden > 100 ? 100
                          : hidden);
  }
}

int main(int argc, char** argv) {
  const char* what;
  int i;
#ifndef RMA_ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
#endif
  what = argc > 1 ? argv[1] : "strided";
  if (argc > 2) runs = atoi(argv[2]);
  if (runs < 1 || runs > runs_max) runs = 1;
  ARMCI_Init();
  me = armci_msg_me();
  if (armci_msg_nproc() != 2) ARMCI_Error("armci_transfers is for two processes", 1);
  local = malloc((size_t)rows * longest * sizeof(int));
  ARMCI_Malloc(ptrs, (int)(((size_t)rows * 2 * longest + 1) * sizeof(int)));
  for (i = 0; i < rows * 2 * longest; ++i) ((int*)ptrs[me])[i] = i;
  ((int*)ptrs[me])[rows * 2 * longest] = 0;
  ARMCI_Barrier();
  if (strcmp(what, "strided") == 0)
    strided();
  else if (strcmp(what, "busy") == 0)
    busy();
  else if (strcmp(what, "overlap") == 0)
    overlap();
  else
    ARMCI_Error("armci_transfers strided | busy | overlap [RUNS]", 2);
  armci_msg_barrier();
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(local);
  ARMCI_Finalize();
#ifndef RMA_ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return 0;
}
