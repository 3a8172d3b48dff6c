/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * armci_latency [RUNS]: what ARMCI's calls take between process 0 and 1, in nanoseconds: the median, the least and the
 * greatest of some runs. The same program for every ARMCI; docs/armci.md has two side by side.
 */
#include <armci.h>
#include <message.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { runs_max = 64, words = 8192 };

static int me, runs = 9;
static void* ptrs[1024];
static double local[words];

static double now_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void put_8(void) { ARMCI_Put(local, ptrs[1], 8, 1); }
static void get_8(void) { ARMCI_Get(ptrs[1], local, 8, 1); }
static void put_64k(void) { ARMCI_Put(local, ptrs[1], 65536, 1); }
static void get_64k(void) { ARMCI_Get(ptrs[1], local, 65536, 1); }

/* 64 rows of 8 ints, 64 ints apart there. */
static void rows(int put) {
  int here[1] = {32}, there[1] = {256}, counts[2] = {32, 64};
  if (put) ARMCI_PutS(local, here, ptrs[1], there, counts, 1, 1);
  else ARMCI_GetS(ptrs[1], there, local, here, counts, 1, 1);
}
static void put_rows(void) { rows(1); }
static void get_rows(void) { rows(0); }

static void accumulate_64k(void) {
  double one = 1;
  ARMCI_Acc(ARMCI_ACC_DBL, &one, local, ptrs[1], 65536, 1);
}
static void accumulate_scaled(void) {
  double half = 0.5;
  ARMCI_Acc(ARMCI_ACC_DBL, &half, local, ptrs[1], 65536, 1);
}
static void fetch_and_add(void) {
  long old;
  ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, ptrs[1], 1, 1);
}
static void lock_unlock(void) {
  ARMCI_Lock(0, 1);
  ARMCI_Unlock(0, 1);
}

static void measure(const char* name, void (*call)(void), int iterations) {
  double each[runs_max];
  int run, i;
  for (run = -1; run < runs; ++run) {
    const double begun = now_ns();
    for (i = 0; i < iterations; ++i) call();
    ARMCI_Fence(1);
    if (run >= 0) each[run] = (now_ns() - begun) / iterations;
  }
  qsort(each, (size_t)runs, sizeof each[0], by_value);
  printf("%-20s median %10.1f min %10.1f max %10.1f ns\n", name, each[runs / 2], each[0], each[runs - 1]);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  if (argc > 1) runs = atoi(argv[1]) < runs_max ? atoi(argv[1]) : runs_max;
  if (runs < 1) runs = 1;
  ARMCI_Init();
  me = armci_msg_me();
  if (armci_msg_nproc() != 2) ARMCI_Error("armci_latency is for two processes", 1);
  ARMCI_Malloc(ptrs, sizeof local);
  memset(ptrs[me], 0, sizeof local);
  ARMCI_Create_mutexes(1);
  ARMCI_Barrier();
  if (me == 0) {
    const int n = runs > 1 ? 20000 : 10;
    measure("put 8 B", put_8, n);
    measure("get 8 B", get_8, n);
    measure("put 64 KiB", put_64k, n / 10);
    measure("get 64 KiB", get_64k, n / 10);
    measure("put 64 x 8 ints", put_rows, n / 4);
    measure("get 64 x 8 ints", get_rows, n / 4);
    measure("accumulate 64 KiB", accumulate_64k, n / 20 + 1);
    measure("scaled 64 KiB", accumulate_scaled, n / 20 + 1);
    measure("fetch and add", fetch_and_add, n);
    measure("lock and unlock", lock_unlock, n / 4);
  }
  armci_msg_barrier(); /* by messages: the other process waits without a one-sided call */
  ARMCI_Barrier();
  ARMCI_Destroy_mutexes();
  ARMCI_Free(ptrs[me]);
  ARMCI_Finalize();
  MPI_Finalize();
  return 0;
}
