/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Messages and global operations of ARMCI.
 *
 * Scopes: all processes; this one (SCOPE_NODE: each process is a domain of its own, see armci.h); one of each domain,
 * which are all. Operators: + * max min absmax absmin or, && || & | land lor band bor.
 */
#ifndef RMA_ARMCI_MESSAGE_H
#define RMA_ARMCI_MESSAGE_H
#define HAVE_ARMCI_MSG_H

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

#ifdef RMA_ARMCI_COMEX
enum armci_scope_e { SCOPE_ALL = 333, SCOPE_NODE = 337, SCOPE_MASTERS = 339 };
enum armci_type_e {
  ARMCI_INT = -99,
  ARMCI_LONG = -101,
  ARMCI_LONG_LONG = -102,
  ARMCI_FLOAT = -306,
  ARMCI_DOUBLE = -307
};
#else
enum armci_scope_e { SCOPE_ALL, SCOPE_NODE, SCOPE_MASTERS };
enum armci_type_e { ARMCI_INT, ARMCI_LONG, ARMCI_LONG_LONG, ARMCI_FLOAT, ARMCI_DOUBLE };
#endif

int armci_msg_me(void);
int armci_msg_nproc(void);
void armci_msg_abort(int code);
/** Seconds since some moment. */
double armci_timer(void);

void armci_msg_snd(int tag, void* buffer, int bytes, int to);
/** `received` may be NULL. A message that is longer than the buffer ends the job. */
void armci_msg_rcv(int tag, void* buffer, int bytes, int* received, int from);
/** Returns the number of the sender. */
int armci_msg_rcvany(int tag, void* buffer, int bytes, int* received);

void armci_msg_barrier(void);
void armci_msg_group_barrier(ARMCI_Group* group);
/** This process's neighbors in a binary tree of all; -1 where there is none. */
void armci_msg_bintree(int scope, int* root, int* up, int* left, int* right);
void armci_msg_bcast(void* buffer, int bytes, int root);
void armci_msg_bcast_scope(int scope, void* buffer, int bytes, int root);
void armci_msg_brdcst(void* buffer, int bytes, int root);
/** `root` is a number in the world. */
void armci_msg_group_bcast_scope(int scope, void* buffer, int bytes, int root, ARMCI_Group* group);

/** The result is at process 0. */
void armci_msg_reduce(void* x, int n, char* op, int type);
void armci_msg_reduce_scope(int scope, void* x, int n, char* op, int type);
/** All get one record of those contributed: the one whose first element is the least or the greatest. */
void armci_msg_sel(void* x, int bytes, char* op, int type, int contribute);
void armci_msg_sel_scope(int scope, void* x, int bytes, char* op, int type, int contribute);
/** Each process gives its own entry and gets the others'. */
void armci_exchange_address(void** ptrs, int n);
void armci_exchange_address_grp(void** ptrs, int n, ARMCI_Group* group);

void armci_msg_clus_brdcst(void* buffer, int bytes);
void armci_msg_clus_igop(int* x, int n, char* op);
void armci_msg_clus_fgop(float* x, int n, char* op);
void armci_msg_clus_lgop(long* x, int n, char* op);
void armci_msg_clus_llgop(long long* x, int n, char* op);
void armci_msg_clus_dgop(double* x, int n, char* op);
void armci_grp_clus_brdcst(void* buffer, int bytes, int master, int domain_procs, ARMCI_Group* masters);

/** All get the result, the same bits. */
void armci_msg_gop_scope(int scope, void* x, int n, char* op, int type);
void armci_msg_igop(int* x, int n, char* op);
void armci_msg_lgop(long* x, int n, char* op);
void armci_msg_llgop(long long* x, int n, char* op);
void armci_msg_fgop(float* x, int n, char* op);
void armci_msg_dgop(double* x, int n, char* op);
void armci_msg_group_gop_scope(int scope, void* x, int n, char* op, int type, ARMCI_Group* group);
void armci_msg_group_igop(int* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_lgop(long* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_llgop(long long* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_fgop(float* x, int n, char* op, ARMCI_Group* group);
void armci_msg_group_dgop(double* x, int n, char* op, ARMCI_Group* group);

#ifdef __cplusplus
}
#endif

#endif
