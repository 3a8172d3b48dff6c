// SPDX-License-Identifier: Apache-2.0
// Updates: every operator, the types that no processor updates (pairs, long double), requests, units that differ and
// displacements that no window has.
#include <complex.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank, size, wrong;

static void check(const char* what, double is, double should) {
  if (is == should) return;
  ++wrong;
  printf("rank %d: %s is %g, not %g\n", rank, what, is, should);
}

// False if the program runs by the MPI alone.
static int is_taken_over(void) {
  const char* const preloaded = getenv("LD_PRELOAD");
  return preloaded != NULL && strstr(preloaded, "librma_mpi") != NULL;
}

static void operators(MPI_Win win, int* part) {
  const MPI_Op ops[] = {MPI_SUM,  MPI_PROD, MPI_MAX, MPI_MIN,  MPI_LAND,   MPI_LOR,
                        MPI_LXOR, MPI_BAND, MPI_BOR, MPI_BXOR, MPI_REPLACE};
  const char* const names[] = {"sum", "prod", "max", "min", "land", "lor", "lxor", "band", "bor", "bxor", "replace"};
  const int should[] = {12 + 10, 12 * 10, 12, 10, 1, 1, 0, 12 & 10, 12 | 10, 12 ^ 10, 10};
  const int count = sizeof ops / sizeof *ops, ten = 10;
  for (int i = 0; i < count; ++i) part[i] = 12;
  MPI_Win_fence(0, win);
  for (int i = 0; i < count; ++i) MPI_Accumulate(&ten, 1, MPI_INT, (rank + 1) % size, i, 1, MPI_INT, ops[i], win);
  MPI_Win_fence(0, win);
  for (int i = 0; i < count; ++i) check(names[i], part[i], should[i]);
  int old = -1;
  MPI_Fetch_and_op(NULL, &old, MPI_INT, rank, 0, MPI_NO_OP, win);
  MPI_Win_fence(0, win);
  check("no_op", old, 22);
}

// All add to rank 0's pair, in turns of no order: the greatest value and the least rank of those that have it.
static void pairs(void) {
  struct {
    double value;
    int where;
  } *part, mine = {rank % 2, rank}, old = {0, 0};
  long double *sum, one = 1.0L;
  MPI_Win win;
  MPI_Win_allocate(2 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  part[0].value = -1, part[0].where = 99;
  part[1].value = 99, part[1].where = 99;
  MPI_Win_fence(0, win);
  MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 0, 1, MPI_DOUBLE_INT, MPI_MAXLOC, win);
  MPI_Accumulate(&mine, 1, MPI_DOUBLE_INT, 0, 1, 1, MPI_DOUBLE_INT, MPI_MINLOC, win);
  MPI_Win_fence(0, win);
  if (rank == 0) {
    check("greatest", part[0].value, size > 1);
    check("its rank", part[0].where, size > 1);
    check("least", part[1].value, 0);
    check("its rank", part[1].where, 0);
  }
  MPI_Fetch_and_op(&mine, &old, MPI_DOUBLE_INT, 0, 1, MPI_MINLOC, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("fetched", old.value, 0);
  MPI_Win_free(&win);
  MPI_Win_allocate(sizeof *sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &win);
  *sum = 0;
  MPI_Win_fence(0, win);
  for (int i = 0; i < 20; ++i) MPI_Accumulate(&one, 1, MPI_LONG_DOUBLE, 0, 0, 1, MPI_LONG_DOUBLE, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (rank == 0) check("sum of long doubles", (double)*sum, 20 * size);
  MPI_Win_free(&win);
}

// Every form of an update of pairs, each of whose elements has one writer.
static void forms_of_pairs(void) {
  struct pair {
    long double value;
    int where;
  } *part, mine = {rank + 0.5L, rank}, less = {-1.5L, rank}, old = {0, 0}, none = {0, 0};
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const MPI_Datatype type = MPI_LONG_DOUBLE_INT;
  MPI_Request request;
  MPI_Win win;
  MPI_Win_allocate(3 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  part[0] = part[1] = part[2] = (struct pair){-1, 77};
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, win);
  MPI_Accumulate(&mine, 1, type, right, 0, 1, type, MPI_REPLACE, win);
  MPI_Get_accumulate(&none, 1, type, &old, 1, type, right, 0, 1, type, MPI_NO_OP, win);
  MPI_Win_flush(right, win);
  check("replaced value", (double)old.value, rank + 0.5);
  check("replaced index", old.where, rank);
  MPI_Raccumulate(&less, 1, type, right, 0, 1, type, MPI_MINLOC, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  MPI_Rget_accumulate(&mine, 1, type, &old, 1, type, right, 0, 1, type, MPI_MAXLOC, win, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  check("least value", (double)old.value, -1.5);
  MPI_Fetch_and_op(&less, &old, type, right, 0, MPI_REPLACE, win);
  MPI_Win_flush(right, win);
  check("greatest value", (double)old.value, rank + 0.5);
  MPI_Get_accumulate(&mine, 1, type, &old, 1, type, right, 2, 1, type, MPI_MAXLOC, win);
  MPI_Win_flush(right, win);
  check("index before", old.where, 77);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  check("value at the end", (double)part[0].value, -1.5);
  check("index at the end", part[0].where, left);
  check("greatest at the end", (double)part[2].value, left + 0.5);
  check("what nobody has updated", part[1].where, 77);
  MPI_Win_free(&win);
}

// All ranks update rank 0's pairs of one type, every second one of four: the greatest value and its least index.
#define PAIRS_OF(NAME, VALUE, TYPE)                                                      \
  static void NAME(void) {                                                               \
    struct pair {                                                                        \
      VALUE value;                                                                       \
      int index;                                                                         \
    } *part, mine[2] = {{(VALUE)(rank / 2), rank}, {(VALUE)-1, rank}}, old[2];           \
    const int last = size - 1;                                                           \
    MPI_Datatype apart;                                                                  \
    MPI_Win win;                                                                         \
    MPI_Type_vector(2, 1, 2, TYPE, &apart);                                              \
    MPI_Type_commit(&apart);                                                             \
    MPI_Win_allocate(4 * sizeof *part, 1, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);   \
    for (int i = 0; i < 4; ++i) part[i] = (struct pair){(VALUE)-5, 50 + i};              \
    MPI_Win_fence(0, win);                                                               \
    MPI_Accumulate(mine, 2, TYPE, 0, 0, 1, apart, MPI_MAXLOC, win);                      \
    MPI_Win_fence(0, win);                                                               \
    if (rank == 0) {                                                                     \
      check(#NAME " greatest", (double)part[0].value, last / 2);                         \
      check(#NAME " its index", part[0].index, last / 2 * 2);                            \
      check(#NAME " of equal ones", part[2].index, 0);                                   \
      check(#NAME " between", part[1].index, 51);                                        \
    }                                                                                    \
    MPI_Win_fence(0, win);                                                               \
    mine[0].value = mine[1].value = (VALUE)-9;                                           \
    MPI_Get_accumulate(mine, 2, TYPE, old, 2, TYPE, rank, 0, 1, apart, MPI_MINLOC, win); \
    MPI_Win_fence(MPI_MODE_NOSUCCEED, win);                                              \
    check(#NAME " least", (double)part[2].value, -9);                                    \
    check(#NAME " fetched", (double)old[0].value, rank == 0 ? last / 2 : -5);            \
    check(#NAME " fetched index", old[1].index, rank == 0 ? 0 : 52);                     \
    check(#NAME " behind", part[3].index, 53);                                           \
    MPI_Win_free(&win);                                                                  \
    MPI_Type_free(&apart);                                                               \
  }
PAIRS_OF(short_int, short, MPI_SHORT_INT)
PAIRS_OF(two_int, int, MPI_2INT)
PAIRS_OF(long_int, long, MPI_LONG_INT)
PAIRS_OF(float_int, float, MPI_FLOAT_INT)
PAIRS_OF(double_int, double, MPI_DOUBLE_INT)
PAIRS_OF(long_double_int, long double, MPI_LONG_DOUBLE_INT)

// A pair of ints is aligned as an int is.
static void pairs_between_words(void) {
  int *part, mine[2] = {rank, rank};
  MPI_Win win;
  MPI_Win_allocate(3 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  part[0] = part[1] = part[2] = -1;
  MPI_Win_fence(0, win);
  MPI_Accumulate(mine, 1, MPI_2INT, 0, 1, 1, MPI_2INT, MPI_MAXLOC, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (rank == 0) {
    check("before the pair", part[0], -1);
    check("value of a pair between words", part[1], size - 1);
    check("its index", part[2], size - 1);
  }
  MPI_Win_free(&win);
}

// The MPIs do not check displacements.
static void negative_displacements(void) {
  if (!is_taken_over()) return;
  const MPI_Aint displacements[] = {-1, -8, -((MPI_Aint)1 << 61),
                                    -((MPI_Aint)1 << 62)};  // the last are a multiple of 2^64
  double *part, value = 7;
  MPI_Win win;
  MPI_Win_allocate(4 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  for (int i = 0; i < 4; ++i) part[i] = i;
  MPI_Win_set_errhandler(win, MPI_ERRORS_RETURN);
  MPI_Win_fence(0, win);
  for (int i = 0; i < 4; ++i) {
    int kind = MPI_SUCCESS;
    const MPI_Aint at = displacements[i];
    MPI_Error_class(MPI_Put(&value, 1, MPI_DOUBLE, rank, at, 1, MPI_DOUBLE, win), &kind);
    check("class of a put at a negative displacement", kind, MPI_ERR_RMA_RANGE);
    MPI_Error_class(MPI_Accumulate(&value, 1, MPI_DOUBLE, rank, at, 1, MPI_DOUBLE, MPI_SUM, win), &kind);
    check("class of a sum at a negative displacement", kind, MPI_ERR_RMA_RANGE);
  }
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  for (int i = 0; i < 4; ++i) check("memory after refused calls", part[i], i);
  MPI_Win_free(&win);
}

static void complexes(void) {
  double complex *part, factor = 2 * I;
  MPI_Win win;
  MPI_Win_allocate(sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  *part = 3;
  MPI_Win_fence(0, win);
  MPI_Accumulate(&factor, 1, MPI_C_DOUBLE_COMPLEX, (rank + 1) % size, 0, 1, MPI_C_DOUBLE_COMPLEX, MPI_PROD, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("imaginary part", cimag(*part), 6);
  MPI_Win_free(&win);
  long double complex *sum, add = rank + 1 - I;
  MPI_Win_allocate(sizeof *sum, sizeof *sum, MPI_INFO_NULL, MPI_COMM_WORLD, &sum, &win);
  *sum = 0.5L;
  MPI_Win_fence(0, win);
  MPI_Accumulate(&add, 1, MPI_C_LONG_DOUBLE_COMPLEX, 0, 0, 1, MPI_C_LONG_DOUBLE_COMPLEX, MPI_SUM, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (rank == 0) {
    check("real part of a long sum", (double)creall(*sum), 0.5 + size * (size + 1) / 2);
    check("its imaginary part", (double)cimagl(*sum), -size);
  }
  MPI_Win_free(&win);
}

// Types that a Fortran program asks for by their precision: those of C's double, its complex and a long.
static void types_by_precision(void) {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  double *part, values[4] = {rank, -1, rank + 0.5, -1};
  double complex *sum, z = rank + 2 * I;
  long *whole, number = 3 + rank;
  MPI_Datatype real, integer, pair, strided;
  MPI_Win win;
  MPI_Type_create_f90_real(15, 307, &real);
  MPI_Type_create_f90_integer(18, &integer);
  MPI_Type_create_f90_complex(15, 307, &pair);
  MPI_Type_vector(2, 1, 2, real, &strided);
  MPI_Type_commit(&strided);
  MPI_Win_allocate(16 * sizeof *part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &part, &win);
  for (int i = 0; i < 16; ++i) part[i] = 8;
  whole = (long*)&part[8], sum = (double complex*)&part[10];
  *whole = 40, *sum = 1;
  MPI_Win_fence(0, win);
  MPI_Put(values, 1, strided, right, 0, 1, strided, win);
  MPI_Accumulate(values, 1, strided, right, 4, 1, strided, MPI_SUM, win);
  MPI_Accumulate(&number, 1, integer, right, 8, 1, integer, MPI_SUM, win);
  MPI_Accumulate(&z, 1, pair, right, 10, 1, pair, MPI_SUM, win);
  MPI_Accumulate(&values[2], 1, real, right, 12, 1, real, MPI_MAX, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("real that was put", part[2], left + 0.5);
  check("real between", part[1], 8);
  check("sum of reals", part[6], left + 8.5);
  check("sum of integers", *whole, 43 + left);
  check("real part of a sum", creal(*sum), left + 1);
  check("imaginary part of a sum", cimag(*sum), 2);
  check("greatest real", part[12], 8);
  MPI_Type_free(&strided);
  MPI_Win_free(&win);
}

static void requests(MPI_Win win, int* part) {
  enum { count = 8 };
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  int values[count], got[count], old = -1, one = 1, message = rank, heard = -1;
  MPI_Request all[count + 2];
  MPI_Status status, statuses[count + 2];
  MPI_Win_lock_all(0, win);
  for (int i = 0; i < count; ++i) {
    values[i] = 10 * rank + i;
    MPI_Rput(&values[i], 1, MPI_INT, right, i, 1, MPI_INT, win, &all[i]);
  }
  MPI_Irecv(&heard, 1, MPI_INT, left, 1, MPI_COMM_WORLD, &all[count]);
  MPI_Isend(&message, 1, MPI_INT, right, 1, MPI_COMM_WORLD, &all[count + 1]);
  MPI_Waitall(count + 2, all, statuses);
  check("message", heard, left);
  MPI_Win_flush(right, win);
  for (int i = 0; i < count; ++i) MPI_Rget(&got[i], 1, MPI_INT, right, i, 1, MPI_INT, win, &all[i]);
  for (int i = 0; i < count; ++i) {
    int which = -1;
    MPI_Waitany(count, all, &which, &status);
    check("got by request", got[which], 10 * rank + which);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Raccumulate(&one, 1, MPI_INT, right, 0, 1, MPI_INT, MPI_SUM, win, &all[0]);
  MPI_Wait(&all[0], &status);
  MPI_Win_flush(right, win);
  MPI_Rget_accumulate(&one, 1, MPI_INT, &old, 1, MPI_INT, right, 0, 1, MPI_INT, MPI_SUM, win, &all[0]);
  for (int over = 0; !over;) MPI_Test(&all[0], &over, MPI_STATUS_IGNORE);
  check("old by request", old, 10 * rank + 1);
  MPI_Rput(&one, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win, &all[0]);
  MPI_Wait(&all[0], MPI_STATUS_IGNORE);
  MPI_Win_unlock_all(win);
  MPI_Barrier(MPI_COMM_WORLD);
  check("updated by requests", part[0], 10 * left + 2);
}

// Each rank counts its part in another unit.
static void units(void) {
  const int right = (rank + 1) % size, unit_there = 4 << (right % 2);
  int part[16], value = rank;
  MPI_Win win;
  memset(part, -1, sizeof part);
  MPI_Win_create(part, sizeof part, 4 << (rank % 2), MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  MPI_Win_fence(0, win);
  MPI_Put(&value, 1, MPI_INT, right, 32 / unit_there, 1, MPI_INT, win);
  MPI_Put(&value, 1, MPI_INT, MPI_PROC_NULL, 0, 1, MPI_INT, win);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  check("put in another's unit", part[8], (rank + size - 1) % size);
  MPI_Win_free(&win);
}

int main(int argc, char** argv) {
  int part[16];
  MPI_Win win;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  MPI_Win_create(part, sizeof part, sizeof *part, MPI_INFO_NULL, MPI_COMM_WORLD, &win);
  operators(win, part);
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  requests(win, part);
  MPI_Win_free(&win);
  pairs();
  forms_of_pairs();
#ifdef OPEN_MPI
  if (is_taken_over())  // Open MPI 4.1.4 updates no pairs of a short and an int that are apart
#endif
    short_int();
  two_int();
  long_int();
  float_int();
  double_int();
  long_double_int();
  pairs_between_words();
  negative_displacements();
  complexes();
  types_by_precision();
  units();
  MPI_Reduce(rank == 0 ? MPI_IN_PLACE : &wrong, &wrong, 1, MPI_INT, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("updates: %d wrong\n", wrong);
  MPI_Finalize();
  return 0;
}
