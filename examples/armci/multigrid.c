/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Multigrid with ARMCI: V-cycles for Poisson's equation on a square, whose lines are dealt out. Before each sweep a
 * process fetches its neighbors' border lines; non-blocking, while it works on the lines between.
 *
 * multigrid [blocking | nonblocking]
 */
#include <armci.h>
#include <math.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { lines = 16, columns = 33, levels = 4 };  /* lines of each process on the finest grid; columns with both borders */

/* A grid of n lines here and w columns; line 0 and n + 1 are the neighbors'. */
struct level {
  int n, w;
  double h2;
  void** u; /* of each process */
  double *b, *next;
};

static int me, size, blocking;
static struct level grid[levels];

static double* line(const struct level* g, double* of, int i) { return of + i * g->w; }

static void fetch_borders(struct level* g, armci_hdl_t* handles) {
  double* const mine = g->u[me];
  const int bytes = g->w * (int)sizeof(double);
  int side;
  for (side = 0; side < 2; ++side) {
    const int from = side == 0 ? me - 1 : me + 1;
    double* const to = line(g, mine, side == 0 ? 0 : g->n + 1);
    ARMCI_INIT_HANDLE(&handles[side]);
    if (from < 0 || from >= size) continue;
    if (blocking) ARMCI_Get(line(g, g->u[from], side == 0 ? g->n : 1), to, bytes, from);
    else ARMCI_NbGet(line(g, g->u[from], side == 0 ? g->n : 1), to, bytes, from, &handles[side]);
  }
}

/* next = u + what Jacobi's method adds (weight 0.8), or the residual. */
static void work_on(struct level* g, int i, int residual) {
  const double *up = line(g, g->u[me], i - 1), *here = line(g, g->u[me], i), *down = line(g, g->u[me], i + 1);
  double* const out = line(g, g->next, i);
  int j;
  for (j = 1; j < g->w - 1; ++j) {
    const double r = line(g, g->b, i)[j] - (4 * here[j] - up[j] - down[j] - here[j - 1] - here[j + 1]) / g->h2;
    out[j] = residual ? r : here[j] + 0.2 * g->h2 * r;
  }
}

static void sweep(struct level* g, int residual) {
  armci_hdl_t handles[2];
  int i;
  ARMCI_Barrier(); /* the neighbors' lines are complete */
  fetch_borders(g, handles);
  for (i = 2; i < g->n; ++i) work_on(g, i, residual);
  ARMCI_Wait(&handles[0]);
  ARMCI_Wait(&handles[1]);
  work_on(g, 1, residual);
  if (g->n > 1) work_on(g, g->n, residual);
  ARMCI_Barrier(); /* and have been fetched */
  if (residual) return;
  for (i = 1; i <= g->n; ++i)
    memcpy(line(g, g->u[me], i) + 1, line(g, g->next, i) + 1, sizeof(double) * (size_t)(g->w - 2));
}

static double norm(struct level* g) {
  double sum = 0;
  int i, j;
  sweep(g, 1);
  for (i = 1; i <= g->n; ++i)
    for (j = 1; j < g->w - 1; ++j) sum += line(g, g->next, i)[j] * line(g, g->next, i)[j];
  armci_msg_dgop(&sum, 1, "+");
  return sqrt(sum);
}

/* Four cells become one: the mean of their residuals down, the correction up. */
static void cycle(int at) {
  struct level *g = &grid[at], *c = g + 1;
  int i, j, k;
  for (k = 0; k < 3; ++k) sweep(g, 0);
  if (at + 1 < levels) {
    sweep(g, 1);
    memset(c->u[me], 0, sizeof(double) * (size_t)((c->n + 2) * c->w));
    for (i = 1; i <= c->n; ++i)
      for (j = 1; j < c->w - 1; ++j)
        line(c, c->b, i)[j] = (line(g, g->next, 2 * i - 1)[2 * j - 1] + line(g, g->next, 2 * i - 1)[2 * j] +
                               line(g, g->next, 2 * i)[2 * j - 1] + line(g, g->next, 2 * i)[2 * j]) /
                              4;
    cycle(at + 1);
    for (i = 1; i <= g->n; ++i)
      for (j = 1; j < g->w - 1; ++j)
        if ((j + 1) / 2 < c->w - 1) line(g, g->u[me], i)[j] += line(c, c->u[me], (i + 1) / 2)[(j + 1) / 2];
  } else {
    for (k = 0; k < 40; ++k) sweep(g, 0);
  }
  for (k = 0; k < 3; ++k) sweep(g, 0);
}

int main(int argc, char** argv) {
  double first, last;
  int i, j, at, failed;
  blocking = argc < 2 || strcmp(argv[1], "nonblocking") != 0;
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  for (at = 0; at < levels; ++at) {
    struct level* g = &grid[at];
    size_t bytes;
    g->n = lines >> at;
    g->w = ((columns - 1) >> at) + 1;
    g->h2 = (double)(1 << at) * (1 << at);
    bytes = sizeof(double) * (size_t)((g->n + 2) * g->w);
    g->u = malloc(sizeof(void*) * (size_t)size);
    g->b = calloc(1, bytes);
    g->next = calloc(1, bytes);
    ARMCI_Malloc(g->u, (armci_size_t)bytes);
    memset(g->u[me], 0, bytes);
  }
  for (i = 1; i <= grid[0].n; ++i)
    for (j = 1; j < grid[0].w - 1; ++j) line(&grid[0], grid[0].b, i)[j] = (me * lines + i) % 5 - 2 + j % 3;
  first = norm(&grid[0]);
  for (i = 0; i < 12; ++i) cycle(0);
  last = norm(&grid[0]);
  failed = !(last < 0.01 * first);
  if (me == 0) {
    printf("MG, %s: %s\n", blocking ? "blocking" : "non-blocking", failed ? "no solution" : "solved");
    if (failed) printf("residual %g, then %g\n", first, last);
  }
  ARMCI_Barrier();
  for (at = levels - 1; at >= 0; --at) {
    ARMCI_Free(grid[at].u[me]);
    free(grid[at].u);
    free(grid[at].b);
    free(grid[at].next);
  }
  ARMCI_Finalize();
  return failed;
}
