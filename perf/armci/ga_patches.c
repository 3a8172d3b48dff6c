/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * ga_patches [RUNS]: what GA_Get, GA_Put and GA_Acc of patches of doubles take that lie at another process, in
 * microseconds: the median of some runs. Linked with Debian's Global Arrays on this library and on ARMCI-MPI.
 */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { side = 1024, largest = 512, runs_max = 101, calls = 50 };

static int runs = 11, array;
static double patch[largest * largest];

static double now_us(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a, y = *(const double*)b;
  return (x > y) - (x < y);
}

static void call(int which, int lo[2], int hi[2], int ld[1]) {
  double one = 1;
  if (which == 0)
    NGA_Get(array, lo, hi, patch, ld);
  else if (which == 1)
    NGA_Put(array, lo, hi, patch, ld);
  else
    NGA_Acc(array, lo, hi, patch, ld, &one);
}

int main(int argc, char** argv) {
  static const char* const names[] = {"GA_Get", "GA_Put", "GA_Acc"};
  int dims[2] = {side, side}, chunk[2] = {-1, side}, lo[2], hi[2];
  double zero = 0;
  int n, which, run, i;
  MPI_Init(&argc, &argv);
  if (argc > 1) runs = atoi(argv[1]);
  if (runs < 1 || runs > runs_max) runs = 1;
  GA_Initialize();
  MA_init(MT_C_DBL, 1000000, 1000000);
  array = NGA_Create(MT_C_DBL, 2, dims, "patches", chunk);
  GA_Fill(array, &zero);
  if (GA_Nodeid() == 0) {
    NGA_Distribution(array, GA_Nnodes() - 1, lo, hi);
    for (n = 8; n <= largest / 2; n *= 2) {
      int from[2], to[2], ld[1];
      from[0] = lo[0];
      from[1] = 16;
      to[0] = lo[0] + n - 1;
      to[1] = 16 + n - 1;
      ld[0] = n;
      for (which = 0; which < 3; ++which) {
        double each[runs_max];
        for (run = -1; run < runs; ++run) {
          const double begun = now_us();
          for (i = 0; i < calls; ++i) call(which, from, to, ld);
          GA_Init_fence();
          GA_Fence();
          if (run >= 0) each[run] = (now_us() - begun) / calls;
        }
        qsort(each, (size_t)runs, sizeof each[0], by_value);
        printf("%s of %3d x %3d %10.2f us\n", names[which], n, n, each[runs / 2]);
      }
    }
  }
  GA_Sync();
  GA_Destroy(array);
  GA_Terminate();
  MPI_Finalize();
  return 0;
}
