/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Global Arrays: create, patches, gather and scatter, read_inc, locks, groups, dgemm, duplicate, ghosts, non-blocking
 * transfers. Its output does not depend on the ARMCI below nor on the number of processes, but for the first line.
 */
#include <ga.h>
#include <macdecls.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { rows = 60, columns = 44 };

static int me, size;

static double value_at(int i, int j) { return (double)((i * 131 + j * 17) % 1009) - 300; }

static int create(const char* name, int type, int n, int m) {
  int dims[2] = {n, m}, chunk[2] = {-1, -1};
  char text[32];
  snprintf(text, sizeof text, "%s", name);
  return NGA_Create(type, 2, dims, text, chunk);
}

/* Element i counts i % 7 + 1 times, so that what is in the wrong place shows. */
static double digest(int array) {
  static double all[rows * columns];
  int lo[2] = {0, 0}, hi[2] = {rows - 1, columns - 1}, ld[1] = {columns}, i;
  double sum = 0;
  GA_Sync();
  NGA_Get(array, lo, hi, all, ld);
  for (i = 0; i < rows * columns; ++i) sum += all[i] * (i % 7 + 1);
  GA_Sync();
  return sum;
}

static void say(const char* what, double number) {
  if (me == 0) printf("%-28s %.6g\n", what, number);
}

/* Each process puts the rows that are its turn, wherever they are. */
static void fill(int array) {
  double row[columns];
  int i, j;
  for (i = me; i < rows; i += size) {
    int lo[2] = {i, 0}, hi[2] = {i, columns - 1}, ld[1] = {columns};
    for (j = 0; j < columns; ++j) row[j] = value_at(i, j);
    NGA_Put(array, lo, hi, row, ld);
  }
  GA_Sync();
}

static void patches(int array) {
  double box[20][15], scale = 0.5;
  int i, j, lo[2] = {11, 9}, hi[2] = {30, 23}, ld[1] = {15}, turn;
  fill(array);
  say("put", digest(array));
  for (i = 0; i < 20; ++i)
    for (j = 0; j < 15; ++j) box[i][j] = 2.0 * (i + j);
  for (turn = 0; turn < 16; ++turn)
    if (turn % size == me) NGA_Acc(array, lo, hi, box, ld, &scale);
  say("accumulate", digest(array));
  {
    int second = GA_Duplicate(array, (char*)"copy");
    int to_lo[2] = {0, 0}, to_hi[2] = {19, 14};
    GA_Zero(second);
    NGA_Copy_patch('N', array, lo, hi, second, to_lo, to_hi);
    say("copy of a patch", digest(second));
    NGA_Fill_patch(second, lo, hi, &scale);
    say("filled patch", digest(second));
    say("dot product", GA_Ddot(array, second));
    GA_Destroy(second);
  }
}

static void scattered(int array) {
  enum { count = 500 };
  double values[count], back[count];
  int* places[count];
  int where[count][2], i;
  double sum = 0;
  for (i = 0; i < count; ++i) {
    where[i][0] = (i * 7 + me * 13) % rows;
    where[i][1] = (i * 11 + me) % columns;
    places[i] = where[i];
  }
  NGA_Gather(array, back, places, count);
  for (i = 0; i < count; ++i) {
    double expected;
    int ld[1] = {1};
    NGA_Get(array, where[i], where[i], &expected, ld);
    sum += expected == back[i] ? 0 : 1;
  }
  GA_Dgop(&sum, 1, (char*)"+");
  say("gathered wrongly", sum);
  GA_Sync();
  if (me == 0) {
    for (i = 0; i < count; ++i) values[i] = 1000 + where[i][0] * 100 + where[i][1];
    NGA_Scatter(array, values, places, count);
  }
  say("scattered", digest(array));
  if (me == size - 1) {
    double one = 1;
    for (i = 0; i < count; ++i) values[i] = i % 5;
    for (i = 0; i < count; ++i) {
      where[i][0] = i % rows;
      where[i][1] = i / rows;
    }
    NGA_Scatter_acc(array, values, places, count, &one);
  }
  say("scattered and added", digest(array));
}

static void counter_and_locks(void) {
  int dims[1] = {1}, chunk[1] = {-1}, zero[1] = {0}, ld[1] = {1}, i;
  int counter = NGA_Create(C_LONG, 1, dims, (char*)"counter", chunk);
  int shared = NGA_Create(C_DBL, 1, dims, (char*)"shared", chunk);
  long done = 0, all, seen;
  double value;
  GA_Zero(counter);
  GA_Zero(shared);
  GA_Create_mutexes(2);
  while ((seen = NGA_Read_inc(counter, zero, 1)) < 200) {
    ++done;
    GA_Lock(1);
    GA_Init_fence();
    NGA_Get(shared, zero, zero, &value, ld);
    value += (double)seen;
    NGA_Put(shared, zero, zero, &value, ld);
    GA_Fence();
    GA_Unlock(1);
  }
  all = done;
  GA_Lgop(&all, 1, (char*)"+");
  say("tasks", (double)all);
  GA_Sync();
  NGA_Get(shared, zero, zero, &value, ld);
  say("sum under a lock", value);
  GA_Destroy_mutexes();
  for (i = 0; i < 3; ++i) GA_Sync();
  GA_Destroy(counter);
  GA_Destroy(shared);
}

static void groups(void) {
  int members[64], count = 0, p, group, array, dims[2] = {rows, columns}, chunk[2] = {-1, -1};
  double one = 1, sum;
  for (p = 0; p < size && p < 64; p += 2) members[count++] = p;
  group = GA_Pgroup_create(members, count);
  if (me % 2 == 0) {
    array = GA_Create_handle();
    GA_Set_data(array, 2, dims, C_DBL);
    GA_Set_chunk(array, chunk);
    GA_Set_pgroup(array, group);
    GA_Allocate(array);
    GA_Fill(array, &one);
    sum = GA_Ddot(array, array);
    say("dot product in a group", sum);
    GA_Pgroup_sync(group);
    GA_Destroy(array);
  }
  GA_Sync();
}

static void products(void) {
  int a = create("a", C_DBL, rows, columns), b = create("b", C_DBL, columns, rows), c = create("c", C_DBL, rows, rows);
  int lo[2] = {3, 4}, hi[2] = {3, 4}, ld[1] = {1}, i;
  double element, expected = 0;
  fill(a);
  GA_Transpose(a, b);
  GA_Zero(c);
  GA_Dgemm('N', 'N', rows, rows, columns, 2.0, a, b, 0.0, c);
  NGA_Get(c, lo, hi, &element, ld);
  for (i = 0; i < columns; ++i) expected += 2 * value_at(3, i) * value_at(4, i);
  say("product, one element", element - expected);
  say("product, trace", GA_Ddot(c, c) > 0);
  GA_Symmetrize(c);
  GA_Destroy(a);
  GA_Destroy(b);
  GA_Destroy(c);
}

static void ghosts(void) {
  int dims[2] = {rows, columns}, chunk[2] = {-1, -1}, width[2] = {1, 1}, array;
  int lo[2], hi[2], with[2], ld[1], i, j;
  double *mine, sum = 0;
  array = NGA_Create_ghosts(C_DBL, 2, dims, width, (char*)"ghosts", chunk);
  fill(array);
  GA_Update_ghosts(array);
  NGA_Distribution(array, me, lo, hi);
  if (lo[0] >= 0 && lo[0] <= hi[0]) {
    NGA_Access_ghosts(array, with, &mine, ld);
    for (i = 0; i < with[0]; ++i)
      for (j = 0; j < with[1]; ++j) {
        const int row = (lo[0] + i - 1 + rows) % rows, column = (lo[1] + j - 1 + columns) % columns;
        sum += mine[i * ld[0] + j] == value_at(row, column) ? 0 : 1;
      }
    NGA_Release_ghosts(array);
  }
  GA_Dgop(&sum, 1, (char*)"+");
  say("wrong ghosts", sum);
  GA_Destroy(array);
}

static void without_blocking(int array) {
  double box[3][rows][4];
  ga_nbhdl_t handles[3];
  int i, j, turn, ld[1] = {4}, wrong = 0;
  for (turn = 0; turn < 3; ++turn) {
    int lo[2] = {0, 4 * turn}, hi[2] = {rows - 1, 4 * turn + 3};
    for (i = 0; i < rows; ++i)
      for (j = 0; j < 4; ++j) box[turn][i][j] = turn * 1000 + i * 10 + j;
    if (turn % size == me) {
      NGA_NbPut(array, lo, hi, box[turn], ld, &handles[turn]);
      NGA_NbWait(&handles[turn]);
    }
  }
  GA_Sync();
  for (turn = 0; turn < 3; ++turn) {
    int lo[2] = {0, 4 * turn}, hi[2] = {rows - 1, 4 * turn + 3};
    memset(box[turn], 0, sizeof box[turn]);
    NGA_NbGet(array, lo, hi, box[turn], ld, &handles[turn]);
  }
  for (turn = 0; turn < 3; ++turn) {
    NGA_NbWait(&handles[turn]);
    for (i = 0; i < rows; ++i)
      for (j = 0; j < 4; ++j) wrong += box[turn][i][j] != turn * 1000 + i * 10 + j;
  }
  GA_Igop(&wrong, 1, (char*)"+");
  say("non-blocking, wrong", wrong);
}

int main(int argc, char** argv) {
  int array;
  MPI_Init(&argc, &argv);
  GA_Initialize();
  MA_init(C_DBL, 200000, 200000);
  me = GA_Nodeid();
  size = GA_Nnodes();
  if (me == 0) printf("%d processes\n", size);
  array = create("array", C_DBL, rows, columns);
  patches(array);
  scattered(array);
  without_blocking(array);
  GA_Destroy(array);
  counter_and_locks();
  groups();
  products();
  ghosts();
  if (me == 0) printf("arrays: done\n");
  GA_Terminate();
  MPI_Finalize();
  return 0;
}
