/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * A little of everything, with numbers that do not depend on how many processes there are: one program for every
 * ARMCI there is. Prints "basics: N checks, 0 wrong".
 */
#include <armci.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

enum { words = 1024 };

static int me, size, checks, wrong;

static void require(int good, const char* what) {
  ++checks;
  if (!good) {
    ++wrong;
    printf("process %d: wrong: %s\n", me, what);
  }
}

static void contiguous(void) {
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  double mine[words], back[words];
  const int right = (me + 1) % size, left = (me + size - 1) % size;
  int i, good = 1;
  require(ARMCI_Malloc(ptrs, words * (armci_size_t)sizeof(double)) == 0, "ARMCI_Malloc");
  for (i = 0; i < words; ++i) mine[i] = me * 1000.0 + i;
  ARMCI_Put(mine, ptrs[right], (int)sizeof mine, right);
  ARMCI_Get(ptrs[right], back, (int)sizeof back, right);
  require(memcmp(mine, back, sizeof mine) == 0, "a get behind a put");
  ARMCI_Barrier();
  for (i = 0; i < words; ++i) good = good && ((double*)ptrs[me])[i] == left * 1000.0 + i;
  require(good, "what the left neighbor has put");
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
}

static void accumulates(void) {
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  int ints[4] = {1, 2, 3, 4};
  double doubles[4] = {1, 2, 3, 4}, complex_numbers[4] = {1, 2, 3, 4};
  int int_scale = 3, p, i, good = 1;
  double scale = 0.5, complex_scale[2] = {0, 1};
  ARMCI_Malloc(ptrs, 1024);
  memset(ptrs[me], 0, 1024);
  ARMCI_Barrier();
  for (p = 0; p < size; ++p) {
    char* to = ptrs[p];
    ARMCI_Acc(ARMCI_ACC_INT, &int_scale, ints, to, (int)sizeof ints, p);
    ARMCI_Acc(ARMCI_ACC_DBL, &scale, doubles, to + 64, (int)sizeof doubles, p);
    ARMCI_Acc(ARMCI_ACC_DCP, complex_scale, complex_numbers, to + 128, (int)sizeof complex_numbers, p);
  }
  ARMCI_Barrier();
  for (i = 0; i < 4; ++i) {
    good = good && ((int*)ptrs[me])[i] == 3 * size * (i + 1);
    good = good && ((double*)((char*)ptrs[me] + 64))[i] == 0.5 * size * (i + 1);
  }
  require(good, "accumulates of all");
  {
    const double* z = (double*)((char*)ptrs[me] + 128);
    require(z[0] == -2.0 * size && z[1] == 1.0 * size && z[2] == -4.0 * size && z[3] == 3.0 * size, "complex sums");
  }
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
}

static void counters(void) {
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  long old = 0, swapped = me + 1;
  int i, int_old = 0;
  ARMCI_Malloc(ptrs, me == 0 ? 64 : 0);
  if (me == 0) memset(ptrs[0], 0, 64);
  ARMCI_Barrier();
  for (i = 0; i < 100; ++i) {
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, ptrs[0], 1, 0);
    ARMCI_Rmw(ARMCI_FETCH_AND_ADD, &int_old, (char*)ptrs[0] + 8, 2, 0);
  }
  ARMCI_Barrier();
  require(ARMCI_GetValueLong(ptrs[0], 0) == 100L * size, "100 times one of each");
  require(ARMCI_GetValueInt((char*)ptrs[0] + 8, 0) == 200 * size, "100 times two of each");
  ARMCI_Rmw(ARMCI_SWAP_LONG, &swapped, (char*)ptrs[0] + 16, 0, 0);
  armci_msg_lgop(&swapped, 1, "+");
  ARMCI_Barrier();
  require(swapped + ARMCI_GetValueLong((char*)ptrs[0] + 16, 0) == (long)size * (size + 1) / 2,
          "nothing is lost by swaps");
  ARMCI_Barrier();
  ARMCI_Free(me == 0 ? ptrs[0] : NULL);
  free(ptrs);
}

static void mutexes(void) {
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  int i;
  ARMCI_Malloc(ptrs, 64);
  memset(ptrs[me], 0, 64);
  ARMCI_Create_mutexes(me == size - 1 ? 2 : 0);
  ARMCI_Barrier();
  for (i = 0; i < 50; ++i) {
    long value;
    ARMCI_Lock(1, size - 1);
    value = ARMCI_GetValueLong(ptrs[0], 0);
    ARMCI_PutValueLong(value + 1, ptrs[0], 0);
    ARMCI_Fence(0);
    ARMCI_Unlock(1, size - 1);
  }
  ARMCI_Barrier();
  require(ARMCI_GetValueLong(ptrs[0], 0) == 50L * size, "a mutex excludes");
  ARMCI_Barrier();
  ARMCI_Destroy_mutexes();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
}

/* A box of 3 x 4 x 5 ints in arrays of other sizes. */
static void strided(void) {
  enum { x = 8, y = 7, z = 6 };
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  const int right = (me + 1) % size;
  int local[5][4][3], back[5][4][3];
  int local_strides[2] = {3 * (int)sizeof(int), 12 * (int)sizeof(int)};
  int remote_strides[2] = {x * (int)sizeof(int), x * y * (int)sizeof(int)};
  int counts[3] = {3 * (int)sizeof(int), 4, 5};
  int i, j, k, one = 1, good = 1;
  int* mine;
  ARMCI_Malloc(ptrs, x * y * z * (armci_size_t)sizeof(int));
  mine = ptrs[me];
  for (i = 0; i < x * y * z; ++i) mine[i] = -1;
  ARMCI_Barrier();
  for (k = 0; k < 5; ++k)
    for (j = 0; j < 4; ++j)
      for (i = 0; i < 3; ++i) local[k][j][i] = 100 * k + 10 * j + i;
  ARMCI_PutS(local, local_strides, (int*)ptrs[right] + x * y + x + 1, remote_strides, counts, 2, right);
  ARMCI_AccS(ARMCI_ACC_INT, &one, local, local_strides, (int*)ptrs[right] + x * y + x + 1, remote_strides, counts, 2,
             right);
  ARMCI_GetS((int*)ptrs[right] + x * y + x + 1, remote_strides, back, local_strides, counts, 2, right);
  for (k = 0; k < 5; ++k)
    for (j = 0; j < 4; ++j)
      for (i = 0; i < 3; ++i) good = good && back[k][j][i] == 2 * local[k][j][i];
  require(good, "a box that was put, added to and fetched");
  ARMCI_Barrier();
  for (good = 1, k = 0; k < z; ++k)
    for (j = 0; j < y; ++j)
      for (i = 0; i < x; ++i) {
        const int in = k >= 1 && j >= 1 && j < 5 && i >= 1 && i < 4;
        good = good && mine[(k * y + j) * x + i] == (in ? 2 * (100 * (k - 1) + 10 * (j - 1) + i - 1) : -1);
      }
  require(good, "the box, and nothing else");
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
}

static void vectors(void) {
  enum { segments = 10 };
  void** ptrs = malloc(sizeof(void*) * (size_t)size);
  const int right = (me + 1) % size;
  double from[segments], back[segments];
  void *sources[segments], *targets[segments], *backs[segments];
  armci_giov_t put, get;
  armci_hdl_t handle;
  int i, good = 1;
  ARMCI_Malloc(ptrs, 4096);
  for (i = 0; i < segments; ++i) {
    from[i] = me + 0.25 * i;
    sources[i] = &from[i];
    targets[i] = (char*)ptrs[right] + 8 * ((i * 7) % 64);
    backs[i] = &back[i];
  }
  put.src_ptr_array = sources;
  put.dst_ptr_array = targets;
  get.src_ptr_array = targets;
  get.dst_ptr_array = backs;
  put.bytes = get.bytes = (int)sizeof(double);
  put.ptr_array_len = get.ptr_array_len = segments;
  ARMCI_Barrier();
  ARMCI_PutV(&put, 1, right);
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_NbGetV(&get, 1, right, &handle);
  ARMCI_Wait(&handle);
  for (i = 0; i < segments; ++i) good = good && back[i] == from[i];
  require(good, "segments there and back");
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_SET_AGGREGATE_HANDLE(&handle);
  for (i = 0; i < segments; ++i) ARMCI_NbPutValueDouble(from[i] + 1, targets[i], right, &handle);
  ARMCI_Wait(&handle);
  ARMCI_UNSET_AGGREGATE_HANDLE(&handle);
  ARMCI_Fence(right);
  for (good = 1, i = 0; i < segments; ++i) good = good && ARMCI_GetValueDouble(targets[i], right) == from[i] + 1;
  require(good, "values by an aggregate handle");
  ARMCI_NbGet(targets[3], &back[3], 8, right, NULL);
  ARMCI_WaitAll();
  require(back[3] == from[3] + 1, "a get without a handle");
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
}

static void groups(void) {
  ARMCI_Group half, world;
  int members[64], count = 0, rank = -1, p, sum = me;
  for (p = me % 2; p < size && count < 64; p += 2) members[count++] = p;
  ARMCI_Group_get_world(&world);
  ARMCI_Group_create(count, members, &half);
  require(ARMCI_Group_rank(&half, &rank) == 0 && rank == me / 2, "the rank in a group");
  require(ARMCI_Absolute_id(&half, count - 1) == members[count - 1], "absolute ids");
  armci_msg_group_igop(&sum, 1, "max", &half);
  require(sum == members[count - 1], "a maximum in a group");
  {
    void** ptrs = malloc(sizeof(void*) * (size_t)count);
    ARMCI_Malloc_group(ptrs, 64, &half);
    ARMCI_PutValueInt(me + 7, ptrs[(rank + 1) % count], members[(rank + 1) % count]);
    ARMCI_Fence(members[(rank + 1) % count]);
    armci_msg_group_barrier(&half);
    require(*(int*)ptrs[rank] == members[(rank + count - 1) % count] + 7, "a put in a group's memory");
    armci_msg_group_barrier(&half);
    ARMCI_Free_group(ptrs[rank], &half);
    free(ptrs);
  }
  ARMCI_Group_free(&half);
}

/* A megabyte goes around; tags are received in another order than they were sent; process 0 takes from any. */
static void long_and_unordered_messages(void) {
  enum { count = 1 << 17 };
  const int right = (me + 1) % size, left = (me + size - 1) % size;
  double* mine = malloc(count * sizeof(double));
  double* got = malloc(count * sizeof(double));
  int i, p, value, bytes, good = 1, sum = 0;
  for (i = 0; i < count; ++i) mine[i] = me + 0.5 * i;
  if (size == 1) {
    memcpy(got, mine, count * sizeof(double));
  } else if (me == 0) {
    armci_msg_snd(3, mine, count * (int)sizeof(double), right);
    armci_msg_rcv(3, got, count * (int)sizeof(double), &bytes, left);
  } else {
    armci_msg_rcv(3, got, count * (int)sizeof(double), &bytes, left);
    armci_msg_snd(3, mine, count * (int)sizeof(double), right);
  }
  for (i = 0; i < count; ++i) good = good && got[i] == left + 0.5 * i;
  require(good, "a megabyte from the left");
  if (me == 0) {
    for (p = 1; p < size; ++p) {
      armci_msg_rcv(5, &value, sizeof value, NULL, p);
      require(value == 50 + p, "the second message first");
    }
    for (p = 1; p < size; ++p) {
      require(armci_msg_rcvany(4, &value, sizeof value, &bytes) == value && bytes == (int)sizeof value, "from any");
      sum += value;
    }
    require(sum == size * (size - 1) / 2, "one from each");
  } else {
    value = me;
    armci_msg_snd(4, &value, sizeof value, 0);
    value = 50 + me;
    armci_msg_snd(5, &value, sizeof value, 0);
  }
  free(mine);
  free(got);
}

static void messages(void) {
  int i, value = me * 3, got = -1, bytes = 0;
  double values[3] = {me, -me, 1};
  armci_msg_bcast(&value, sizeof value, size - 1);
  require(value == 3 * (size - 1), "a broadcast");
  armci_msg_dgop(values, 3, "absmax");
  require(values[0] == size - 1 && values[1] == size - 1 && values[2] == 1, "absolute maxima");
  for (i = 0; i < 3; ++i) {
    if (me % 2 == 0 && me + 1 < size) armci_msg_snd(17, &me, sizeof me, me + 1);
    if (me % 2 == 1) {
      armci_msg_rcv(17, &got, sizeof got, &bytes, me - 1);
      require(got == me - 1 && bytes == (int)sizeof got, "a message");
    }
  }
  long_and_unordered_messages();
  armci_msg_barrier();
}

int main(int argc, char** argv) {
#ifndef RMA_ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
#else
  (void)argc;
  (void)argv;
#endif
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  contiguous();
  accumulates();
  counters();
  mutexes();
  strided();
  vectors();
  groups();
  messages();
  armci_msg_igop(&wrong, 1, "+");
  if (me == 0) printf("basics: %d checks, %d wrong\n", checks, wrong);
  ARMCI_Finalize();
#ifndef RMA_ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return wrong == 0 ? 0 : 1;
}
