/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * SUMMA with ARMCI: C = A B of matrices in blocks on a grid of processes. Each step fetches some columns of a block of
 * A from the same row of the grid, which is strided, and as many rows of one of B from the same column; non-blocking,
 * the next ones while these are multiplied.
 *
 * summa [blocking | nonblocking]
 */
#include <armci.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block = 48, chunk = 16, chunks = block / chunk };

static int me, size, grid;

static void multiply(double* c, const double* a, const double* b) {
  int i, j, k;
  for (i = 0; i < block; ++i)
    for (k = 0; k < chunk; ++k)
      for (j = 0; j < block; ++j) c[i * block + j] += a[i * chunk + k] * b[k * block + j];
}

static double a_at(int i, int j) { return (i + 2 * j) % 7 - 3; }
static double b_at(int i, int j) { return (3 * i + j) % 5 - 2; }

/* Process `row` * grid + column has block (row, column). */
static int owner(int row, int column) { return row * grid + column; }

/* Columns of A and rows of B of one step, and their gets. */
struct panels {
  double *a, *b;
  armci_hdl_t got_a, got_b;
};

static void fetch(struct panels* to, void** a, void** b, int step, int blocking) {
  const int from_a = owner(me / grid, step / chunks), from_b = owner(step / chunks, me % grid);
  const int bytes = chunk * block * (int)sizeof(double);
  double *columns = (double*)a[from_a] + step % chunks * chunk,
         *rows = (double*)b[from_b] + step % chunks * chunk * block;
  int from_stride = block * (int)sizeof(double), to_stride = chunk * (int)sizeof(double);
  int counts[2] = {chunk * (int)sizeof(double), block};
  if (blocking) {
    ARMCI_GetS(columns, &from_stride, to->a, &to_stride, counts, 1, from_a);
    ARMCI_Get(rows, to->b, bytes, from_b);
    return;
  }
  ARMCI_INIT_HANDLE(&to->got_a);
  ARMCI_INIT_HANDLE(&to->got_b);
  ARMCI_NbGetS(columns, &from_stride, to->a, &to_stride, counts, 1, from_a, &to->got_a);
  ARMCI_NbGet(rows, to->b, bytes, from_b, &to->got_b);
}

static void run(void** a, void** b, double* c, int blocking) {
  const int bytes = chunk * block * (int)sizeof(double), steps = grid * chunks;
  struct panels both[2];
  int step;
  for (step = 0; step < 2; ++step) {
    both[step].a = ARMCI_Malloc_local(bytes);
    both[step].b = ARMCI_Malloc_local(bytes);
  }
  if (!blocking) fetch(&both[0], a, b, 0, 0);
  for (step = 0; step < steps; ++step) {
    struct panels* these = &both[step % 2];
    if (blocking) {
      fetch(these, a, b, step, 1);
    } else {
      ARMCI_Wait(&these->got_a);
      ARMCI_Wait(&these->got_b);
      if (step + 1 < steps) fetch(&both[(step + 1) % 2], a, b, step + 1, 0);
    }
    multiply(c, these->a, these->b);
  }
  for (step = 0; step < 2; ++step) {
    ARMCI_Free_local(both[step].a);
    ARMCI_Free_local(both[step].b);
  }
}

int main(int argc, char** argv) {
  const int blocking = argc < 2 || strcmp(argv[1], "nonblocking") != 0, bytes = block * block * (int)sizeof(double);
  void **a, **b;
  double* c = calloc(block * block, sizeof(double));
  int i, j, k, wrong = 0;
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  for (grid = 1; (grid + 1) * (grid + 1) <= size; ++grid) continue;
  a = malloc(sizeof(void*) * (size_t)size);
  b = malloc(sizeof(void*) * (size_t)size);
  ARMCI_Malloc(a, me < grid * grid ? bytes : 0);
  ARMCI_Malloc(b, me < grid * grid ? bytes : 0);
  if (me < grid * grid) {
    const int top = me / grid * block, left = me % grid * block;
    for (i = 0; i < block; ++i)
      for (j = 0; j < block; ++j) {
        ((double*)a[me])[i * block + j] = a_at(top + i, left + j);
        ((double*)b[me])[i * block + j] = b_at(top + i, left + j);
      }
  }
  ARMCI_Barrier();
  if (me < grid * grid) {
    const int top = me / grid * block, left = me % grid * block;
    run(a, b, c, blocking);
    for (i = 0; i < block; i += 5)
      for (j = 0; j < block; j += 3) {
        double expected = 0;
        for (k = 0; k < grid * block; ++k) expected += a_at(top + i, k) * b_at(k, left + j);
        wrong += c[i * block + j] != expected;
      }
  }
  armci_msg_igop(&wrong, 1, "+");
  if (me == 0) printf("SUMMA, %s: %d elements wrong\n", blocking ? "blocking" : "non-blocking", wrong);
  ARMCI_Barrier();
  ARMCI_Free(me < grid * grid ? b[me] : NULL);
  ARMCI_Free(me < grid * grid ? a[me] : NULL);
  ARMCI_Finalize();
  free(a);
  free(b);
  free(c);
  return wrong != 0;
}
