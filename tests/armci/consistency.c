/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * consistency SEQUENCES [SEED]: random sequences of puts, gets and accumulates of any shape, blocking or with handles,
 * against a copy that is changed in program order. Each process has a part of its right neighbor's memory to itself,
 * and one of its own: what it does to one place takes effect in order.
 */
#include <armci.h>
#include <message.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

enum { words = 512, width = 32, lines = words / width };

static int me, size, wrong;
static unsigned long long state;
static double shadow[words], buffer[words], scratch[words];
static double* there;
static int target;

static int draw(int below) {
  state = state * 6364136223846793005ULL + 1442695040888963407ULL;
  return (int)((state >> 33) % (unsigned)below);
}

static void report(const char* what, int at, double seen, double expected) {
  if (++wrong <= 5) printf("process %d: %s: word %d is %g, not %g\n", me, what, at, seen, expected);
}

enum how { blocking, explicit_handle, aggregate_handle, implicit_handle };

static armci_hdl_t handle;

static armci_hdl_t* begin(enum how how) {
  if (how == implicit_handle) return NULL;
  ARMCI_INIT_HANDLE(&handle);
  if (how == aggregate_handle) ARMCI_SET_AGGREGATE_HANDLE(&handle);
  return &handle;
}

static void end(enum how how) {
  if (how == blocking) return;
  if (how == implicit_handle) {
    if (draw(2)) ARMCI_WaitAll();
    else ARMCI_WaitProc(target);
  } else {
    while (draw(2) && ARMCI_Test(&handle) != 0) continue;
    ARMCI_Wait(&handle);
  }
  ARMCI_Fence(target);
}

/* One operation on words first, first + 1, ...: count of them. */
static void contiguous(enum how how) {
  const int first = draw(words), count = 1 + draw(words - first), bytes = count * 8;
  double scale = 1 + draw(3);
  int i;
  armci_hdl_t* h = how == blocking ? NULL : begin(how);
  switch (draw(3)) {
    case 0:
      for (i = 0; i < count; ++i) buffer[i] = shadow[first + i] = draw(1000);
      if (how == blocking) ARMCI_Put(buffer, there + first, bytes, target);
      else ARMCI_NbPut(buffer, there + first, bytes, target, h);
      end(how);
      break;
    case 1:
      for (i = 0; i < count; ++i) shadow[first + i] += scale * (buffer[i] = draw(1000));
      if (how == blocking) ARMCI_Acc(ARMCI_ACC_DBL, &scale, buffer, there + first, bytes, target);
      else ARMCI_NbAcc(ARMCI_ACC_DBL, &scale, buffer, there + first, bytes, target, h);
      end(how);
      break;
    default:
      if (how == blocking) ARMCI_Get(there + first, scratch, bytes, target);
      else ARMCI_NbGet(there + first, scratch, bytes, target, h);
      end(how);
      for (i = 0; i < count; ++i)
        if (scratch[i] != shadow[first + i]) report("get", first + i, scratch[i], shadow[first + i]);
  }
}

/* A box of lines and columns; here it lies together. */
static void strided(enum how how) {
  const int row = draw(lines), column = draw(width), rows = 1 + draw(lines - row), columns = 1 + draw(width - column);
  int there_strides[1] = {width * 8}, here_strides[1], counts[2], i, j;
  double* const at = there + row * width + column;
  double scale = 1 + draw(3);
  armci_hdl_t* h = how == blocking ? NULL : begin(how);
  here_strides[0] = counts[0] = columns * 8;
  counts[1] = rows;
  const int what = draw(3);
  for (i = 0; i < rows && what < 2; ++i)
    for (j = 0; j < columns; ++j) {
      double* const word = &shadow[(row + i) * width + column + j];
      const double value = buffer[i * columns + j] = draw(1000);
      *word = what == 0 ? value : *word + scale * value;
    }
  if (what == 0 && how == blocking) ARMCI_PutS(buffer, here_strides, at, there_strides, counts, 1, target);
  if (what == 0 && how != blocking) ARMCI_NbPutS(buffer, here_strides, at, there_strides, counts, 1, target, h);
  if (what == 1 && how == blocking)
    ARMCI_AccS(ARMCI_ACC_DBL, &scale, buffer, here_strides, at, there_strides, counts, 1, target);
  if (what == 1 && how != blocking)
    ARMCI_NbAccS(ARMCI_ACC_DBL, &scale, buffer, here_strides, at, there_strides, counts, 1, target, h);
  if (what == 2 && how == blocking) ARMCI_GetS(at, there_strides, scratch, here_strides, counts, 1, target);
  if (what == 2 && how != blocking) ARMCI_NbGetS(at, there_strides, scratch, here_strides, counts, 1, target, h);
  end(how);
  for (i = 0; i < rows && what == 2; ++i)
    for (j = 0; j < columns; ++j) {
      const double expected = shadow[(row + i) * width + column + j];
      if (scratch[i * columns + j] != expected)
        report("strided get", (row + i) * width + column + j, scratch[i * columns + j], expected);
    }
}

/* Words here and there, none twice. */
static void segments(enum how how) {
  const int count = 1 + draw(20), first = draw(words), what = draw(3);
  void *here[20], *far[20];
  double scale = 1 + draw(3);
  armci_giov_t list;
  int i;
  armci_hdl_t* h = how == blocking ? NULL : begin(how);
  for (i = 0; i < count; ++i) {
    const int at = (first + i * 37) % words;
    double* const word = &shadow[at];
    here[i] = what == 2 ? &scratch[i] : &buffer[i];
    far[i] = there + at;
    if (what < 2) buffer[i] = draw(1000);
    if (what == 0) *word = buffer[i];
    if (what == 1) *word += scale * buffer[i];
  }
  list.src_ptr_array = what == 2 ? far : here;
  list.dst_ptr_array = what == 2 ? here : far;
  list.bytes = 8;
  list.ptr_array_len = count;
  if (what == 0 && how == blocking) ARMCI_PutV(&list, 1, target);
  if (what == 0 && how != blocking) ARMCI_NbPutV(&list, 1, target, h);
  if (what == 1 && how == blocking) ARMCI_AccV(ARMCI_ACC_DBL, &scale, &list, 1, target);
  if (what == 1 && how != blocking) ARMCI_NbAccV(ARMCI_ACC_DBL, &scale, &list, 1, target, h);
  if (what == 2 && how == blocking) ARMCI_GetV(&list, 1, target);
  if (what == 2 && how != blocking) ARMCI_NbGetV(&list, 1, target, h);
  end(how);
  for (i = 0; i < count && what == 2; ++i)
    if (scratch[i] != shadow[(first + i * 37) % words])
      report("vector get", (first + i * 37) % words, scratch[i], shadow[(first + i * 37) % words]);
}

static void one_word(void) {
  const int at = draw(words);
  long fetched = 0;
  double value = draw(1000), bits;
  if (draw(2)) {
    ARMCI_PutValueDouble(value, there + at, target);
    shadow[at] = value;
  }
  bits = ARMCI_GetValueDouble(there + at, target);
  if (bits != shadow[at]) report("value", at, bits, shadow[at]);
  memcpy(&fetched, &value, 8);
  ARMCI_Rmw(ARMCI_SWAP_LONG, &fetched, there + at, 0, target);
  memcpy(&bits, &fetched, 8);
  if (bits != shadow[at]) report("swap", at, bits, shadow[at]);
  shadow[at] = value;
}

static void sequence(void) {
  int left = 1 + draw(8);
  while (left-- > 0) {
    const enum how how = draw(2) ? blocking : (enum how)draw(4);
    switch (draw(4)) {
      case 0: contiguous(how); break;
      case 1: strided(how); break;
      case 2: segments(how); break;
      default: one_word();
    }
  }
}

int main(int argc, char** argv) {
  void** ptrs;
  long i, sequences;
#ifndef RMA_ARMCI_NO_MPI
  MPI_Init(&argc, &argv);
#endif
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  sequences = argc > 1 ? atol(argv[1]) : 1000;
  state = (argc > 2 ? strtoull(argv[2], NULL, 10) : 1) * 1000003ULL + (unsigned)me;
  ptrs = malloc(sizeof(void*) * (size_t)size);
  ARMCI_Malloc(ptrs, 2 * sizeof shadow);
  memset(ptrs[me], 0, 2 * sizeof shadow);
  ARMCI_Barrier();
  for (i = 0; i < sequences; ++i) {
    if (i % (sequences / 2 + 1) == 0) {
      target = i == 0 ? (me + 1) % size : me;
      there = (double*)ptrs[target] + (i == 0 ? 0 : words);
      memset(shadow, 0, sizeof shadow);
    }
    sequence();
  }
  armci_msg_igop(&wrong, 1, "+");
  if (me == 0) printf("consistency: %ld sequences on each of %d, %d wrong\n", sequences, size, wrong);
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  free(ptrs);
  ARMCI_Finalize();
#ifndef RMA_ARMCI_NO_MPI
  MPI_Finalize();
#endif
  return wrong == 0 ? 0 : 1;
}
