/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * The profiling interface of ARMCI: each ARMCI_ name here is a weak alias, so that a tool may define its own and call
 * these.
 */
#ifndef RMA_PARMCI_H
#define RMA_PARMCI_H

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

int PARMCI_Init(void);
int PARMCI_Init_args(int* argc, char*** argv);
int PARMCI_Init_thread(int requested);
#ifndef RMA_ARMCI_NO_MPI
int PARMCI_Init_thread_comm(int requested, MPI_Comm comm);
#endif
int PARMCI_Initialized(void);
int PARMCI_Finalize(void);
int PARMCI_Malloc(void** ptrs, armci_size_t bytes);
int PARMCI_Free(void* ptr);
void* PARMCI_Malloc_local(armci_size_t bytes);
int PARMCI_Free_local(void* ptr);
void PARMCI_Barrier(void);
void PARMCI_Fence(int proc);
void PARMCI_AllFence(void);
void PARMCI_Access_begin(void* ptr);
void PARMCI_Access_end(void* ptr);
int PARMCI_Get(void* src, void* dst, int bytes, int proc);
int PARMCI_Put(void* src, void* dst, int bytes, int proc);
int PARMCI_Acc(int type, void* scale, void* src, void* dst, int bytes, int proc);
int PARMCI_PutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);
int PARMCI_GetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);
int PARMCI_AccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
                int levels, int proc);
int PARMCI_Put_flag(void* src, void* dst, int bytes, int* flag, int value, int proc);
int PARMCI_PutS_flag(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int* flag,
                     int value, int proc);
int PARMCI_PutV(armci_giov_t* iov, int iov_len, int proc);
int PARMCI_GetV(armci_giov_t* iov, int iov_len, int proc);
int PARMCI_AccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc);
int PARMCI_Wait(armci_hdl_t* handle);
int PARMCI_Test(armci_hdl_t* handle);
int PARMCI_WaitProc(int proc);
int PARMCI_WaitAll(void);
int PARMCI_NbPut(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int PARMCI_NbGet(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int PARMCI_NbAcc(int type, void* scale, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int PARMCI_NbPutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                  armci_hdl_t* handle);
int PARMCI_NbGetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                  armci_hdl_t* handle);
int PARMCI_NbAccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
                  int levels, int proc, armci_hdl_t* handle);
int PARMCI_NbPutV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int PARMCI_NbGetV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int PARMCI_NbAccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int PARMCI_PutValueInt(int src, void* dst, int proc);
int PARMCI_PutValueLong(long src, void* dst, int proc);
int PARMCI_PutValueFloat(float src, void* dst, int proc);
int PARMCI_PutValueDouble(double src, void* dst, int proc);
int PARMCI_NbPutValueInt(int src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueLong(long src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueFloat(float src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_NbPutValueDouble(double src, void* dst, int proc, armci_hdl_t* handle);
int PARMCI_GetValueInt(void* src, int proc);
long PARMCI_GetValueLong(void* src, int proc);
float PARMCI_GetValueFloat(void* src, int proc);
double PARMCI_GetValueDouble(void* src, int proc);
int PARMCI_Create_mutexes(int count);
int PARMCI_Destroy_mutexes(void);
void PARMCI_Lock(int mutex, int proc);
void PARMCI_Unlock(int mutex, int proc);
int PARMCI_Rmw(int op, void* local, void* remote, int value, int proc);
int PARMCI_Malloc_memdev(void** ptrs, armci_size_t bytes, const char* device);
int PARMCI_Malloc_group_memdev(void** ptrs, armci_size_t bytes, ARMCI_Group* group, const char* device);
int PARMCI_Free_memdev(void* ptr);
void parmci_msg_barrier(void);
void parmci_msg_group_barrier(ARMCI_Group* group);

#ifdef __cplusplus
}
#endif

#endif
