/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * The types and constants of ComEx's ARMCI, and a transfer with each that is another than ARMCI-MPI's.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <armci.h>
#include <message.h>

#define IS(what, value) _Static_assert((what) == (value), #what " is not " #value)
IS(sizeof(armci_hdl_t), 4);
IS(sizeof(ARMCI_Group), 4);
IS(offsetof(armci_giov_t, ptr_array_len), 16);
IS(offsetof(armci_giov_t, bytes), 20);
IS(ARMCI_ACC_INT, 37);
IS(ARMCI_ACC_DBL, 38);
IS(ARMCI_ACC_FLT, 39);
IS(ARMCI_ACC_CPL, 40);
IS(ARMCI_ACC_DCP, 41);
IS(ARMCI_ACC_LNG, 42);
IS(ARMCI_SWAP, 10);
IS(ARMCI_SWAP_LONG, 11);
IS(ARMCI_FETCH_AND_ADD, 12);
IS(ARMCI_FETCH_AND_ADD_LONG, 13);
IS(ARMCI_INT, -99);
IS(ARMCI_DOUBLE, -307);
IS(SCOPE_ALL, 333);

int main(void) {
  void* ptrs[64];
  long one = 1, sum[4] = {1, 2, 3, 4}, back[4] = {0, 0, 0, 0}, old = 0;
  void *from[4], *to[4];
  armci_giov_t list;
  armci_hdl_t handle, together;
  ARMCI_Group half;
  int me, size, right, i, rank = -1, members[64], count = 0, wrong = 0;
  ARMCI_Init();
  me = armci_msg_me();
  size = armci_msg_nproc();
  right = (me + 1) % size;
  ARMCI_Malloc(ptrs, 256);
  memset(ptrs[me], 0, 256);
  ARMCI_Barrier();
  for (i = 0; i < 4; ++i) {
    from[i] = (char*)ptrs[right] + 32 * i;
    to[i] = &back[i];
  }
  ARMCI_INIT_HANDLE(&together);
  ARMCI_SET_AGGREGATE_HANDLE(&together);
  for (i = 0; i < 4; ++i) ARMCI_NbAcc(ARMCI_ACC_LNG, &one, &sum[i], from[i], 8, right, &together);
  ARMCI_Wait(&together);
  ARMCI_UNSET_AGGREGATE_HANDLE(&together);
  ARMCI_Fence(right);
  list.src_ptr_array = from;
  list.dst_ptr_array = to;
  list.bytes = 8;
  list.ptr_array_len = 4;
  ARMCI_INIT_HANDLE(&handle);
  ARMCI_NbGetV(&list, 1, right, &handle);
  ARMCI_Wait(&handle);
  if (ARMCI_Test(&handle) != 0 || memcmp(back, sum, sizeof sum) != 0) ++wrong;
  ARMCI_Rmw(ARMCI_FETCH_AND_ADD_LONG, &old, from[3], 5, right);
  if (old != 4 || ARMCI_GetValueLong(from[3], right) != 9) ++wrong;
  for (i = me % 2; i < size; i += 2) members[count++] = i;
  ARMCI_Group_create(count, members, &half);
  if (ARMCI_Group_rank(&half, &rank) != 0 || rank != me / 2 || ARMCI_Absolute_id(&half, rank) != me) ++wrong;
  ARMCI_Group_free(&half);
  if (armci_notify(right) < 1 || armci_notify_wait((me + size - 1) % size, &i) != 0) ++wrong;
  armci_msg_igop(&wrong, 1, "+");
  if (me == 0) printf("ComEx: %d wrong\n", wrong);
  ARMCI_Barrier();
  ARMCI_Free(ptrs[me]);
  ARMCI_Finalize();
  return wrong;
}
