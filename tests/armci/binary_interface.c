/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Sizes, offsets and constants that compiled programs contain: compiled against Debian's header and against this
 * library's, with each MPI. That it compiles is the test.
 */
#include <stddef.h>

#include <armci.h>
#include <armcix.h>
#include <message.h>

#define IS(what, value) _Static_assert((what) == (value), #what " is not " #value)

IS(sizeof(armci_size_t), 8);
IS(sizeof(armci_hdl_t), 8);
IS(offsetof(armci_hdl_t, target), 0);
IS(offsetof(armci_hdl_t, aggregate), 4);
IS(sizeof(armci_giov_t), 24);
IS(offsetof(armci_giov_t, src_ptr_array), 0);
IS(offsetof(armci_giov_t, dst_ptr_array), 8);
IS(offsetof(armci_giov_t, bytes), 16);
IS(offsetof(armci_giov_t, ptr_array_len), 20);
IS(sizeof(ARMCI_Group), 2 * sizeof(MPI_Comm) + 24);
IS(offsetof(ARMCI_Group, comm), 0);
IS(offsetof(ARMCI_Group, noncoll_pgroup_comm), sizeof(MPI_Comm));
IS(offsetof(ARMCI_Group, grp_to_abs), 2 * sizeof(MPI_Comm));
IS(offsetof(ARMCI_Group, abs_to_grp), 2 * sizeof(MPI_Comm) + 8);
IS(offsetof(ARMCI_Group, rank), 2 * sizeof(MPI_Comm) + 16);
IS(offsetof(ARMCI_Group, size), 2 * sizeof(MPI_Comm) + 20);
IS(sizeof(armci_domain_t), 4);
IS(sizeof(armcix_mutex_hdl_t), 8);
IS(sizeof(struct armcix_mutex_hdl_s), 8 + sizeof(ARMCI_Group) + 16);
IS(offsetof(struct armcix_mutex_hdl_s, my_count), 0);
IS(offsetof(struct armcix_mutex_hdl_s, max_count), 4);
IS(offsetof(struct armcix_mutex_hdl_s, grp), 8);
IS(offsetof(struct armcix_mutex_hdl_s, windows), 8 + sizeof(ARMCI_Group));
IS(offsetof(struct armcix_mutex_hdl_s, bases), 16 + sizeof(ARMCI_Group));

IS(ARMCI_ACC_INT, 0);
IS(ARMCI_ACC_LNG, 1);
IS(ARMCI_ACC_FLT, 2);
IS(ARMCI_ACC_DBL, 3);
IS(ARMCI_ACC_CPL, 4);
IS(ARMCI_ACC_DCP, 5);
IS(ARMCI_FETCH_AND_ADD, 0);
IS(ARMCI_FETCH_AND_ADD_LONG, 1);
IS(ARMCI_SWAP, 2);
IS(ARMCI_SWAP_LONG, 3);
IS(ARMCI_DOMAIN_SMP, 0);
IS(SCOPE_ALL, 0);
IS(SCOPE_NODE, 1);
IS(SCOPE_MASTERS, 2);
IS(ARMCI_INT, 0);
IS(ARMCI_LONG, 1);
IS(ARMCI_LONG_LONG, 2);
IS(ARMCI_FLOAT, 3);
IS(ARMCI_DOUBLE, 4);

/* The types of functions, as a caller has them compiled. */
typedef int transfer(void*, void*, int, int);
typedef int strided_accumulate(int, void*, void*, int*, void*, int*, int*, int, int);
typedef int started(void*, int*, void*, int*, int*, int, int, armci_hdl_t*);
transfer* const put = ARMCI_Put;
transfer* const get = ARMCI_Get;
strided_accumulate* const acc_s = ARMCI_AccS;
started* const nb_put_s = ARMCI_NbPutS;
int (*const put_v)(armci_giov_t*, int, int) = ARMCI_PutV;
int (*const rmw)(int, void*, void*, int, int) = ARMCI_Rmw;
int (*const allocate)(void**, armci_size_t) = ARMCI_Malloc;
int (*const allocate_in)(void**, armci_size_t, ARMCI_Group*) = ARMCI_Malloc_group;
void (*const init_handle)(armci_hdl_t*) = ARMCI_INIT_HANDLE;
void (*const make_group)(int, int*, ARMCI_Group*) = ARMCI_Group_create;
int (*const begin)(int, MPI_Comm) = ARMCI_Init_thread_comm;
void (*const select_one)(int, void*, int, char*, int, int) = armci_msg_sel_scope;
