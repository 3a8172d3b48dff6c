// SPDX-License-Identifier: Apache-2.0
// traffic SECONDS SEED: threads of each rank mix windows and messages at random, and know what every answer must be.
// Each thread has cells of its own in every rank's part of a common window, and a shadow of them; one counter is
// everybody's. Messages and epochs of active targets are agreed on by random numbers that are the same on all ranks.
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { threads = 2, cells = 512, message_max = 1 << 18, rounds_per_look = 32 };

typedef struct {
  int number;
  MPI_Comm comm;
  MPI_Win own;      // window of this thread alone: epochs of its kind
  long* part;       // its memory here
  uint64_t mine;    // random numbers of this thread
  uint64_t common;  // the same on all ranks
  long* shadow;     // [rank][cell] of the common window
  char *sent, *received;
  long counted;    // in the common counter
  long exclusive;  // updates under exclusive locks
  long rounds, operations, wrong;
  double until_s;
} worker;

static int rank, size;
static MPI_Win all;  // the common window; its epoch is open throughout
static MPI_Datatype every_other;

static uint64_t next(uint64_t* state) {  // splitmix64
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}
static int below(uint64_t* state, int limit) { return (int)(next(state) % (uint64_t)limit); }

static void check(worker* w, const char* what, long is, long should) {
  if (is == should) return;
  if (++w->wrong <= 5)
    printf("rank %d, thread %d, round %ld: %s is %ld, not %ld\n", rank, w->number, w->rounds, what, is, should);
}

static void compare(worker* w, const char* what, const long* got, const long* should, int count) {
  for (int i = 0; i < count; ++i) check(w, what, got[i], should[i]);
}

// An operation of a thread on its cells of one rank: [first, first + count).
typedef struct {
  int target, first, count;
  MPI_Aint at;   // offset of the first one in the window
  long* shadow;  // expected values, from the first one on
  long values[cells], got[cells];
} access;

static void put(worker* w, access* a) {
  MPI_Request request;
  const int by_request = below(&w->mine, 2);
  if (by_request) {
    MPI_Rput(a->values, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG, all, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Put(a->values, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG, all);
  }
  memcpy(a->shadow, a->values, (size_t)a->count * sizeof(long));
}

static void put_every_other(worker* w, access* a) {
  const int count = a->count / 2;
  (void)w;
  MPI_Put(a->values, count, every_other, a->target, a->at, count, every_other, all);
  for (int i = 0; i < count; ++i) a->shadow[2 * i] = a->values[2 * i];
}

static void get(worker* w, access* a) {
  MPI_Request request;
  if (below(&w->mine, 2)) {
    MPI_Rget(a->got, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG, all, &request);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
  } else {
    MPI_Get(a->got, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG, all);
    MPI_Win_flush_local(a->target, all);
  }
  compare(w, "what was got", a->got, a->shadow, a->count);
}

static void accumulate(worker* w, access* a) {
  (void)w;
  MPI_Accumulate(a->values, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG, MPI_SUM, all);
  for (int i = 0; i < a->count; ++i) a->shadow[i] = (long)((uint64_t)a->shadow[i] + (uint64_t)a->values[i]);
}

static void get_accumulate(worker* w, access* a) {
  const int is_max = below(&w->mine, 2);
  MPI_Get_accumulate(a->values, a->count, MPI_LONG, a->got, a->count, MPI_LONG, a->target, a->at, a->count, MPI_LONG,
                     is_max ? MPI_MAX : MPI_BXOR, all);
  MPI_Win_flush_local(a->target, all);
  compare(w, "what was there before", a->got, a->shadow, a->count);
  for (int i = 0; i < a->count; ++i) {
    if (!is_max) a->shadow[i] ^= a->values[i];
    if (is_max && a->values[i] > a->shadow[i]) a->shadow[i] = a->values[i];
  }
}

static void swap(worker* w, access* a) {
  long expected = below(&w->mine, 2) ? a->shadow[0] : a->values[1];
  MPI_Compare_and_swap(a->values, &expected, a->got, MPI_LONG, a->target, a->at, all);
  MPI_Win_flush(a->target, all);
  check(w, "what was there before a swap", a->got[0], a->shadow[0]);
  if (expected == a->shadow[0]) a->shadow[0] = a->values[0];
}

static void count(worker* w, access* a) {
  const long one = 1;
  (void)a;
  MPI_Fetch_and_op(&one, &a->got[0], MPI_LONG, 0, (MPI_Aint)size * threads * cells, MPI_SUM, all);
  MPI_Win_flush(0, all);
  check(w, "a count that is less than before", a->got[0] >= w->counted, 1);
  ++w->counted;
}

static void operate(worker* w) {
  static void (*const kinds[])(worker*, access*) = {put, put_every_other, get, accumulate, get_accumulate, swap, count};
  access a;
  a.target = below(&w->mine, size);
  a.first = below(&w->mine, cells - 1);
  a.count = 2 + below(&w->mine, below(&w->mine, 4) != 0 ? 8 : cells);
  if (a.count > cells - a.first) a.count = cells - a.first;
  a.at = (MPI_Aint)(rank * threads + w->number) * cells + a.first;
  a.shadow = w->shadow + (size_t)a.target * cells + a.first;
  for (int i = 0; i < a.count; ++i) a.values[i] = (long)next(&w->mine);
  kinds[below(&w->mine, sizeof kinds / sizeof *kinds)](w, &a);
  MPI_Win_flush(a.target, all);
  ++w->operations;
}

// A message to one rank and one from another, beside a get whose request is waited for together with them.
static void exchange(worker* w) {
  const int shift = below(&w->common, size), tag = below(&w->common, 1000);
  const int bytes = below(&w->common, 3) != 0 ? below(&w->common, 64) : below(&w->common, message_max);
  const int to = (rank + shift) % size, from = (rank + size - shift) % size, target = below(&w->mine, size);
  const MPI_Aint at = (MPI_Aint)(rank * threads + w->number) * cells;
  MPI_Request requests[3];
  MPI_Status statuses[3];
  long first = 0;
  memset(w->sent, (rank + tag) & 127, (size_t)bytes);
  MPI_Irecv(w->received, message_max, MPI_BYTE, from, tag, w->comm, &requests[0]);
  MPI_Isend(w->sent, bytes, MPI_BYTE, to, tag, w->comm, &requests[1]);
  MPI_Rget(&first, 1, MPI_LONG, target, at, 1, MPI_LONG, all, &requests[2]);
  MPI_Waitall(3, requests, statuses);
  check(w, "a cell got beside messages", first, w->shadow[(size_t)target * cells]);
  for (int i = 0; i < bytes; i += i + 4096 < bytes ? 4096 : 1)
    check(w, "a byte of a message", w->received[i], (from + tag) & 127);
}

static void neighbors(worker* w, MPI_Group* to, MPI_Group* from, int shift) {
  const int target = (rank + shift) % size, origin = (rank + size - shift) % size;
  MPI_Group ranks;
  MPI_Win_get_group(w->own, &ranks);
  MPI_Group_incl(ranks, 1, &target, to);
  MPI_Group_incl(ranks, 1, &origin, from);
  MPI_Group_free(&ranks);
}

// Thread 0 puts between fences, or between neighbors.
static void active(worker* w) {
  const int shift = below(&w->common, size), by_fence = below(&w->common, 2);
  const long value = (long)next(&w->common);
  const int cell = below(&w->common, cells);
  MPI_Group to, from;
  const long mine = value + rank;
  if (by_fence) {
    MPI_Win_fence(0, w->own);
    MPI_Put(&mine, 1, MPI_LONG, (rank + shift) % size, cell, 1, MPI_LONG, w->own);
    MPI_Win_fence(MPI_MODE_NOSUCCEED, w->own);
  } else {
    neighbors(w, &to, &from, shift);
    MPI_Win_post(from, 0, w->own);
    MPI_Win_start(to, 0, w->own);
    MPI_Put(&mine, 1, MPI_LONG, (rank + shift) % size, cell, 1, MPI_LONG, w->own);
    MPI_Win_complete(w->own);
    MPI_Win_wait(w->own);
    MPI_Group_free(&to);
    MPI_Group_free(&from);
  }
  check(w, by_fence ? "put in a fence" : "put in a group", w->part[cell], value + (rank + size - shift) % size);
}

// The other threads count up a word of a rank by get and put, under an exclusive lock.
static void passive(worker* w) {
  const int target = below(&w->mine, size);
  long now = 0;
  MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, w->own);
  MPI_Get(&now, 1, MPI_LONG, target, 0, 1, MPI_LONG, w->own);
  MPI_Win_flush(target, w->own);
  ++now;
  MPI_Put(&now, 1, MPI_LONG, target, 0, 1, MPI_LONG, w->own);
  MPI_Win_unlock(target, w->own);
  ++w->exclusive;
}

static void* work(void* of) {
  worker* const w = of;
  int goes_on = 1;
  while (goes_on) {
    for (int i = 1 + below(&w->mine, 8); i > 0; --i) operate(w);
    exchange(w);
    if (w->number == 0) active(w);
    if (w->number != 0) passive(w);
    if (++w->rounds % rounds_per_look != 0) continue;
    if (rank == 0) goes_on = MPI_Wtime() < w->until_s;
    MPI_Bcast(&goes_on, 1, MPI_INT, 0, w->comm);
  }
  return NULL;
}

static void prepare(worker* w, int number, uint64_t seed, double seconds) {
  memset(w, 0, sizeof *w);
  w->number = number;
  w->common = seed * 1000 + (uint64_t)number;
  w->mine = w->common + 17 * (uint64_t)(rank + 1);
  w->until_s = MPI_Wtime() + seconds;
  w->shadow = calloc((size_t)size * cells, sizeof(long));
  w->sent = malloc(message_max);
  w->received = malloc(message_max);
  MPI_Comm_dup(MPI_COMM_WORLD, &w->comm);
  MPI_Win_allocate(cells * sizeof(long), sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &w->part, &w->own);
  memset(w->part, 0, cells * sizeof(long));
}

static void finish(worker* w) {
  MPI_Win_free(&w->own);
  MPI_Comm_free(&w->comm);
  free(w->shadow);
  free(w->sent);
  free(w->received);
}

// Sums of all ranks: what was counted against the counters.
static void add_up(worker* workers, const long* counter, long sums[6]) {
  long mine[6] = {0, 0, 0, rank == 0 ? *counter : 0,
                  0, 0};  // counted, exclusive, its words, counter, wrong, operations
  for (int t = 0; t < threads; ++t) {
    mine[0] += workers[t].counted;
    mine[1] += workers[t].exclusive;
    if (t != 0) mine[2] += workers[t].part[0];
    mine[4] += workers[t].wrong;
    mine[5] += workers[t].operations;
  }
  MPI_Allreduce(mine, sums, 6, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  sums[4] += (sums[0] != sums[3]) + (sums[1] != sums[2]);
}

int main(int argc, char** argv) {
  const double seconds = argc > 1 ? atof(argv[1]) : 1;
  const uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
  int provided = 0;
  long *memory, sums[6];
  worker workers[threads];
  pthread_t running[threads];
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  if (provided != MPI_THREAD_MULTIPLE) {
    if (rank == 0) printf("skipped: this MPI is not for several threads\n");
    MPI_Finalize();
    return 77;
  }
  const MPI_Aint bytes = ((MPI_Aint)size * threads * cells + 1) * (MPI_Aint)sizeof(long);
  MPI_Win_allocate(bytes, sizeof(long), MPI_INFO_NULL, MPI_COMM_WORLD, &memory, &all);
  memset(memory, 0, (size_t)bytes);
  MPI_Type_create_resized(MPI_LONG, 0, 2 * sizeof(long), &every_other);
  MPI_Type_commit(&every_other);
  for (int t = 0; t < threads; ++t) prepare(&workers[t], t, seed, seconds);
  MPI_Barrier(MPI_COMM_WORLD);
  MPI_Win_lock_all(0, all);
  for (int t = 0; t < threads; ++t) pthread_create(&running[t], NULL, work, &workers[t]);
  for (int t = 0; t < threads; ++t) pthread_join(running[t], NULL);
  MPI_Win_unlock_all(all);
  MPI_Barrier(MPI_COMM_WORLD);
  add_up(workers, &memory[(size_t)size * threads * cells], sums);
  if (rank == 0) {
    printf("seed %llu, %ld rounds of thread 0, %ld operations, %ld counted (%ld there), %ld under locks (%ld there)\n",
           (unsigned long long)seed, workers[0].rounds, sums[5], sums[0], sums[3], sums[1], sums[2]);
    printf("traffic: %ld wrong\n", sums[4]);
  }
  for (int t = 0; t < threads; ++t) finish(&workers[t]);
  MPI_Type_free(&every_other);
  MPI_Win_free(&all);
  MPI_Finalize();
  return sums[4] != 0;
}
