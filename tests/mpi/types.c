// SPDX-License-Identifier: Apache-2.0
// Derived types of every combiner, on each side of put, get and accumulate: MPI_Pack says what the data should be.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { room = 4096, made_max = 32 };

static int rank, size, wrong, made;
static MPI_Datatype types[made_max];
static const char* names[made_max];
static int source[room], packed[room], got[room];
static int* part;
static MPI_Win win;

static void check(const char* name, const char* what, int same) {
  if (same) return;
  ++wrong;
  printf("rank %d: %s: %s\n", rank, name, what);
}

static void keep(const char* name, MPI_Datatype type) {
  MPI_Type_commit(&type);
  types[made] = type;
  names[made++] = name;
}

static void make_simple(void) {
  MPI_Datatype t, u;
  const int lengths[3] = {2, 0, 3}, offsets[3] = {5, 1, 11};
  const MPI_Aint bytes[3] = {40, 0, 4};
  MPI_Type_contiguous(7, MPI_INT, &t), keep("contiguous", t);
  MPI_Type_dup(t, &u), keep("dup", u);
  MPI_Type_vector(5, 2, 3, MPI_INT, &t), keep("vector", t);
  MPI_Type_create_hvector(4, 2, 20, MPI_INT, &u), keep("hvector", u);
  MPI_Type_create_hvector(2, 2, 120, t, &u), keep("hvector of vectors", u);
  MPI_Type_indexed(3, lengths, offsets, MPI_INT, &t), keep("indexed", t);
  MPI_Type_create_hindexed(3, lengths, bytes, MPI_INT, &t), keep("hindexed", t);
  MPI_Type_create_indexed_block(3, 2, offsets, MPI_INT, &t), keep("indexed_block", t);
  MPI_Type_create_hindexed_block(3, 1, bytes, MPI_INT, &t), keep("hindexed_block", t);
  MPI_Type_create_resized(MPI_INT, 0, 12, &t), keep("resized", t);
  MPI_Type_contiguous(3, t, &u), keep("contiguous of resized", u);
}

static void make_arrays(void) {
  MPI_Datatype t, vector, parts[2];
  const int sizes[3] = {4, 5, 6}, subsizes[3] = {2, 3, 2}, starts[3] = {1, 2, 3};
  const int processes[2] = {2, 2}, arrays[2] = {9, 7}, lengths[2] = {2, 1};
  const int by_block[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_CYCLIC};
  const int arguments[2] = {MPI_DISTRIBUTE_DFLT_DARG, 2};
  const MPI_Aint bytes[2] = {8, 200};
  MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_C, MPI_INT, &t), keep("subarray", t);
  MPI_Type_create_subarray(3, sizes, subsizes, starts, MPI_ORDER_FORTRAN, MPI_INT, &t), keep("subarray, Fortran", t);
  for (int r = 0; r < 4; ++r) {
    MPI_Type_create_darray(4, r, 2, arrays, by_block, arguments, processes, MPI_ORDER_C, MPI_INT, &t);
    keep("darray", t);
    MPI_Type_create_darray(4, r, 2, arrays, by_block, arguments, processes, MPI_ORDER_FORTRAN, MPI_INT, &t);
    keep("darray, Fortran", t);
  }
  MPI_Type_vector(3, 1, 2, MPI_INT, &vector);
  parts[0] = MPI_INT, parts[1] = vector;
  MPI_Type_create_struct(2, lengths, bytes, parts, &t), keep("struct", t);
  MPI_Type_free(&vector);
}

static int pack(const void* from, int count, MPI_Datatype type, int* to) {
  int at = 0;
  MPI_Pack(from, count, type, to, room * (int)sizeof(int), &at, MPI_COMM_SELF);
  return at / (int)sizeof(int);
}

static void fill(int* data, int seed) {
  for (int i = 0; i < room; ++i) data[i] = seed * 100000 + i;
}

// The rank to the right has nothing but 0 in its part before, and puts nothing there itself.
static void clear(void) {
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, rank, 0, win);
  memset(part, 0, room * sizeof *part);
  MPI_Win_unlock(rank, win);
  MPI_Win_fence(0, win);
}

static void use(const char* name, MPI_Datatype type, int count) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  fill(source, rank + 1);
  const int n = pack(source, count, type, packed);
  clear();
  MPI_Put(source, count, type, right, 0, n, MPI_INT, win);  // origin's type
  MPI_Win_fence(0, win);
  fill(source, left + 1);
  pack(source, count, type, packed);
  check(name, "put from it", memcmp(part, packed, (size_t)n * sizeof(int)) == 0);
  clear();
  fill(source, rank + 1);
  MPI_Put(source, n, MPI_INT, right, 0, count, type, win);  // target's type
  MPI_Win_fence(0, win);
  fill(source, left + 1);
  pack(part, count, type, packed);
  check(name, "put to it", memcmp(source, packed, (size_t)n * sizeof(int)) == 0);
  memset(got, 0, sizeof got);
  fill(part, rank + 1);
  MPI_Win_fence(0, win);
  MPI_Get(got, count, type, right, 0, count, type, win);  // both
  MPI_Win_fence(0, win);
  fill(source, right + 1);
  pack(source, count, type, packed);
  pack(got, count, type, source);
  check(name, "get", memcmp(source, packed, (size_t)n * sizeof(int)) == 0);
  fill(part, 1);
  fill(source, 1);
  MPI_Win_fence(0, win);
  for (int r = 0; r < size; ++r) MPI_Accumulate(source, count, type, r, 0, count, type, MPI_SUM, win);
  MPI_Win_fence(0, win);
  pack(part, count, type, got);
  pack(source, count, type, packed);
  int same = 1;
  for (int i = 0; i < n; ++i) same = same && got[i] == packed[i] * (size + 1);
  check(name, "accumulate", same);
}

// A type that goes backwards is refused by this library, not by the MPIs. With the argument "refused" it ends the job.
static void refuse(int ends) {
  const char* const preloaded = getenv("LD_PRELOAD");
  if (preloaded == NULL || strstr(preloaded, "librma_mpi") == NULL) return;
  int kind = MPI_SUCCESS;
  MPI_Datatype backwards;
  MPI_Type_create_resized(MPI_INT, 0, -8, &backwards);
  MPI_Type_commit(&backwards);
  MPI_Win_set_errhandler(win, ends ? MPI_ERRORS_ARE_FATAL : MPI_ERRORS_RETURN);
  MPI_Error_class(MPI_Put(source, 1, backwards, (rank + 1) % size, 0, 1, MPI_INT, win), &kind);
  check("resized", "class of a put of a type that goes backwards", kind == MPI_ERR_TYPE);
  MPI_Type_free(&backwards);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  make_simple();
  make_arrays();
  MPI_Win_allocate(room * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  for (int i = 0; i < made; ++i) {
    use(names[i], types[i], 1);
    use(names[i], types[i], 2);
  }
  refuse(argc > 1 && strcmp(argv[1], "refused") == 0);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  for (int i = 0; i < made; ++i) MPI_Type_free(&types[i]);
  MPI_Win_free(&win);
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("types: %d types, %d wrong\n", made, wrong);
  MPI_Finalize();
  return 0;
}
