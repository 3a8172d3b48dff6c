/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Conjugate gradients with ARMCI, for a matrix of seven diagonals whose rows are dealt out. Each product fetches what the
 * other processes have of the vector; non-blocking, while the part that is here is multiplied.
 *
 * conjugate_gradient [blocking | nonblocking]
 */
#include <armci.h>
#include <math.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 240, diagonals = 7 };

static const int distance[diagonals] = {-60, -12, -1, 0, 1, 12, 60};
static int me, size, total, blocking;
static void** shared;  /* each process's part of the direction */
static double* whole;  /* all of it */

static double entry(int d) { return distance[d] == 0 ? 8 : -1; }

/* y += the columns of process `from` times that part of the vector. */
static void add_columns(double* y, int from) {
  const int first = me * rows;
  int i, d;
  for (i = 0; i < rows; ++i)
    for (d = 0; d < diagonals; ++d) {
      const int column = first + i + distance[d];
      if (column >= from * rows && column < (from + 1) * rows) y[i] += entry(d) * whole[column];
    }
}

static void product(double* y) {
  const int bytes = rows * (int)sizeof(double);
  armci_hdl_t* handles = malloc(sizeof(armci_hdl_t) * (size_t)size);
  int p;
  ARMCI_Barrier(); /* all have stored their parts */
  memset(y, 0, (size_t)bytes);
  memcpy(whole + me * rows, shared[me], (size_t)bytes);
  for (p = 0; p < size; ++p) {
    if (p == me) continue;
    ARMCI_INIT_HANDLE(&handles[p]);
    if (blocking) ARMCI_Get(shared[p], whole + p * rows, bytes, p);
    else ARMCI_NbGet(shared[p], whole + p * rows, bytes, p, &handles[p]);
  }
  add_columns(y, me);
  for (p = 0; p < size; ++p) {
    if (p == me) continue;
    if (!blocking) ARMCI_Wait(&handles[p]);
    add_columns(y, p);
  }
  ARMCI_Barrier(); /* all have fetched */
  free(handles);
}

static double dot(const double* a, const double* b) {
  double sum = 0;
  int i;
  for (i = 0; i < rows; ++i) sum += a[i] * b[i];
  armci_msg_dgop(&sum, 1, "+");
  return sum;
}

int main(int argc, char** argv) {
  double x[rows], r[rows], q[rows], rho, *p;
  int i, turn, failed;
  blocking = argc < 2 || strcmp(argv[1], "nonblocking") != 0;
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  total = size * rows;
  shared = malloc(sizeof(void*) * (size_t)size);
  whole = malloc(sizeof(double) * (size_t)total);
  ARMCI_Malloc(shared, rows * (armci_size_t)sizeof(double));
  p = shared[me];
  for (i = 0; i < rows; ++i) {
    x[i] = 0;
    p[i] = r[i] = 1 + (me * rows + i) % 3;
  }
  rho = dot(r, r);
  for (turn = 0; turn < 60 && rho > 1e-20; ++turn) {
    double alpha, before = rho;
    product(q);
    alpha = rho / dot(p, q);
    for (i = 0; i < rows; ++i) {
      x[i] += alpha * p[i];
      r[i] -= alpha * q[i];
    }
    rho = dot(r, r);
    for (i = 0; i < rows; ++i) p[i] = r[i] + rho / before * p[i];
  }
  /* The residual once more, of the solution itself. */
  memcpy(p, x, sizeof x);
  product(q);
  for (i = 0; i < rows; ++i) r[i] = 1 + (me * rows + i) % 3 - q[i];
  failed = !(sqrt(dot(r, r)) < 1e-8);
  if (me == 0)
    printf("CG, %s: %s\n", blocking ? "blocking" : "non-blocking", failed ? "no solution" : "solved");
  ARMCI_Barrier();
  ARMCI_Free(shared[me]);
  ARMCI_Finalize();
  free(whole);
  free(shared);
  return failed;
}
