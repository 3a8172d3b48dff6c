/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * SUMMA with ARMCI: C = A B of matrices in blocks on a grid of processes. Each step fetches a block of A from the same
 * row and one of B from the same column of the grid; non-blocking, the next ones while these are multiplied.
 *
 * summa [blocking | nonblocking]
 */
#include <armci.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { block = 48 };

static int me, size, grid;

static void multiply(double* c, const double* a, const double* b) {
  int i, j, k;
  for (i = 0; i < block; ++i)
    for (k = 0; k < block; ++k)
      for (j = 0; j < block; ++j) c[i * block + j] += a[i * block + k] * b[k * block + j];
}

static double a_at(int i, int j) { return (i + 2 * j) % 7 - 3; }
static double b_at(int i, int j) { return (3 * i + j) % 5 - 2; }

/* Process `row` * grid + column has block (row, column). */
static int owner(int row, int column) { return row * grid + column; }

static void run(void** a, void** b, double* c, int blocking) {
  const int row = me / grid, column = me % grid, bytes = block * block * (int)sizeof(double);
  double* panels[2][2];
  armci_hdl_t handles[2][2];
  int step, turn;
  for (turn = 0; turn < 2; ++turn) {
    panels[turn][0] = ARMCI_Malloc_local(bytes);
    panels[turn][1] = ARMCI_Malloc_local(bytes);
  }
  for (step = blocking ? 0 : -1; step < grid; ++step) {
    const int next = blocking ? step : step + 1, from_a = owner(row, next % grid), from_b = owner(next % grid, column);
    turn = next % 2;
    if (blocking) {
      ARMCI_Get(a[from_a], panels[turn][0], bytes, from_a);
      ARMCI_Get(b[from_b], panels[turn][1], bytes, from_b);
    } else if (next < grid) {
      ARMCI_INIT_HANDLE(&handles[turn][0]);
      ARMCI_INIT_HANDLE(&handles[turn][1]);
      ARMCI_NbGet(a[from_a], panels[turn][0], bytes, from_a, &handles[turn][0]);
      ARMCI_NbGet(b[from_b], panels[turn][1], bytes, from_b, &handles[turn][1]);
    }
    if (step < 0) continue;
    turn = step % 2;
    if (!blocking) {
      ARMCI_Wait(&handles[turn][0]);
      ARMCI_Wait(&handles[turn][1]);
    }
    multiply(c, panels[turn][0], panels[turn][1]);
  }
  for (turn = 0; turn < 2; ++turn) {
    ARMCI_Free_local(panels[turn][0]);
    ARMCI_Free_local(panels[turn][1]);
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
