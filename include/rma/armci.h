/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * ARMCI on this library, for C and C++: a program compiled against this header, or against that of ARMCI-MPI 0.3.1
 * (Debian's libarmci-mpi-dev), links with librma_armci_openmpi or librma_armci_mpich. See docs/armci.md.
 *
 * RMA_ARMCI_NO_MPI  no MPI: the program links with librma_armci and is started by rmarun
 * RMA_ARMCI_COMEX   types and constants of ComEx's ARMCI (Global Arrays' own); librma_armci_comex. Implies no MPI
 *
 * Unless it is said otherwise: `proc` is a number in the world; remote pointers are those of the process that owns the
 * memory; functions return 0; what cannot be done prints one line and ends the job, as in other implementations.
 *
 * Memory     blocking operations of one process to another take effect in program order. Non-blocking ones do not,
 *            towards each other, until they are waited for. A fence makes them visible at the target
 */
#ifndef RMA_ARMCI_H
#define RMA_ARMCI_H
#define _ARMCI_H_ /* the guard of other implementations' headers: one of them is enough */

#ifdef RMA_ARMCI_COMEX
#ifndef RMA_ARMCI_NO_MPI
#define RMA_ARMCI_NO_MPI
#endif
#endif
#ifndef RMA_ARMCI_NO_MPI
#include <mpi.h>
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef long armci_size_t;

#ifdef RMA_ARMCI_COMEX
enum ARMCI_Acc_e { ARMCI_ACC_INT = 37, ARMCI_ACC_DBL, ARMCI_ACC_FLT, ARMCI_ACC_CPL, ARMCI_ACC_DCP, ARMCI_ACC_LNG };
enum ARMCI_Rmw_e { ARMCI_SWAP = 10, ARMCI_SWAP_LONG, ARMCI_FETCH_AND_ADD, ARMCI_FETCH_AND_ADD_LONG };
/** Segments of one length: sources and destinations. */
typedef struct {
  void** src_ptr_array;
  void** dst_ptr_array;
  int ptr_array_len;
  int bytes;
} armci_giov_t;
typedef int armci_hdl_t;
typedef int ARMCI_Group;
#else
enum ARMCI_Acc_e { ARMCI_ACC_INT, ARMCI_ACC_LNG, ARMCI_ACC_FLT, ARMCI_ACC_DBL, ARMCI_ACC_CPL, ARMCI_ACC_DCP };
enum ARMCI_Rmw_e { ARMCI_FETCH_AND_ADD, ARMCI_FETCH_AND_ADD_LONG, ARMCI_SWAP, ARMCI_SWAP_LONG };
/** Segments of one length: sources and destinations. */
typedef struct {
  void** src_ptr_array;
  void** dst_ptr_array;
  int bytes;
  int ptr_array_len;
} armci_giov_t;
/** The fields are the library's. */
typedef struct armci_hdl_s {
  int target;
  int aggregate;
} armci_hdl_t;
/** A set of processes; the caller keeps it, copies are the same group. */
typedef struct {
#ifndef RMA_ARMCI_NO_MPI
  MPI_Comm comm; /**< communicator of the members; the program may use it */
  MPI_Comm noncoll_pgroup_comm;
#endif
  int* grp_to_abs;
  int* abs_to_grp;
  int rank;
  int size;
} ARMCI_Group;
#endif

#define ARMCI_MAX_STRIDE_LEVEL 8

/* ---- life ------------------------------------------------------------------------------------------------------- */

/** Collective. Beside MPI, which is started if it is not yet, the processes are those of MPI_COMM_WORLD; without MPI
 * those that rmarun or another launcher has started. May be called again; then Finalize has
 * to be called as often. */
int ARMCI_Init(void);
int ARMCI_Init_args(int* argc, char*** argv);
/** `requested`: MPI_THREAD_SINGLE to MPI_THREAD_MULTIPLE, or 0 to 3. */
int ARMCI_Init_thread(int requested);
#ifndef RMA_ARMCI_NO_MPI
/** The processes of `comm`, which may be a part of the job. */
int ARMCI_Init_thread_comm(int requested, MPI_Comm comm);
#endif
int ARMCI_Initialized(void);
int ARMCI_Finalize(void);
void ARMCI_Cleanup(void);
void ARMCI_Error(const char* msg, int code);

/* ---- memory ----------------------------------------------------------------------------------------------------- */

/** Collective; `ptrs[i]`: where process i has its part, NULL if that is empty. */
int ARMCI_Malloc(void** ptrs, armci_size_t bytes);
/** Collective; `ptr` as this process got it, NULL where its part is empty. */
int ARMCI_Free(void* ptr);
int ARMCI_Malloc_group(void** ptrs, armci_size_t bytes, ARMCI_Group* group);
int ARMCI_Free_group(void* ptr, ARMCI_Group* group);
/** Devices are not told apart. */
int ARMCI_Malloc_memdev(void** ptrs, armci_size_t bytes, const char* device);
int ARMCI_Malloc_group_memdev(void** ptrs, armci_size_t bytes, ARMCI_Group* group, const char* device);
int ARMCI_Free_memdev(void* ptr);
void* ARMCI_Malloc_local(armci_size_t bytes);
int ARMCI_Free_local(void* ptr);
/** Around loads and stores of this process's own part. */
void ARMCI_Access_begin(void* ptr);
void ARMCI_Access_end(void* ptr);

/* ---- order ------------------------------------------------------------------------------------------------------ */

/** Completes the operations of this process on `proc`, there. */
void ARMCI_Fence(int proc);
void ARMCI_AllFence(void);
/** AllFence and a barrier of all processes. */
void ARMCI_Barrier(void);
void ARMCI_Copy(void* src, void* dst, int bytes);

/* ---- blocking operations ---------------------------------------------------------------------------------------- */

int ARMCI_Put(void* src, void* dst, int bytes, int proc);
int ARMCI_Get(void* src, void* dst, int bytes, int proc);
/** dst[i] += *scale * src[i], each element atomic. */
int ARMCI_Acc(int type, void* scale, void* src, void* dst, int bytes, int proc);

/** `counts[0]` bytes lie together; `counts[i + 1]` of these are `stride[i]` bytes apart. */
int ARMCI_PutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);
int ARMCI_GetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc);
int ARMCI_AccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels,
               int proc);

/** The flag is set when the data are there. */
int ARMCI_Put_flag(void* src, void* dst, int bytes, int* flag, int value, int proc);
int ARMCI_PutS_flag(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int* flag,
                    int value, int proc);

int ARMCI_PutV(armci_giov_t* iov, int iov_len, int proc);
int ARMCI_GetV(armci_giov_t* iov, int iov_len, int proc);
int ARMCI_AccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc);

int ARMCI_PutValueInt(int src, void* dst, int proc);
int ARMCI_PutValueLong(long src, void* dst, int proc);
int ARMCI_PutValueFloat(float src, void* dst, int proc);
int ARMCI_PutValueDouble(double src, void* dst, int proc);
int ARMCI_GetValueInt(void* src, int proc);
long ARMCI_GetValueLong(void* src, int proc);
float ARMCI_GetValueFloat(void* src, int proc);
double ARMCI_GetValueDouble(void* src, int proc);

/** Fetch-and-add: *local = *remote, *remote += value. Swap: both change places. */
int ARMCI_Rmw(int op, void* local, void* remote, int value, int proc);

/* ---- non-blocking operations ------------------------------------------------------------------------------------ */

/** A null handle: completed by WaitProc or WaitAll. Operations on an aggregate handle are sent together, by Wait. */
#ifdef RMA_ARMCI_COMEX
#define ARMCI_INIT_HANDLE(handle) (*(handle) = 0)
#else
void ARMCI_INIT_HANDLE(armci_hdl_t* handle);
#endif
void ARMCI_SET_AGGREGATE_HANDLE(armci_hdl_t* handle);
void ARMCI_UNSET_AGGREGATE_HANDLE(armci_hdl_t* handle);

int ARMCI_NbPut(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int ARMCI_NbGet(void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int ARMCI_NbAcc(int type, void* scale, void* src, void* dst, int bytes, int proc, armci_hdl_t* handle);
int ARMCI_NbPutS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                 armci_hdl_t* handle);
int ARMCI_NbGetS(void* src, int* src_strides, void* dst, int* dst_strides, int* counts, int levels, int proc,
                 armci_hdl_t* handle);
int ARMCI_NbAccS(int type, void* scale, void* src, int* src_strides, void* dst, int* dst_strides, int* counts,
                 int levels, int proc, armci_hdl_t* handle);
int ARMCI_NbPutV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int ARMCI_NbGetV(armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int ARMCI_NbAccV(int type, void* scale, armci_giov_t* iov, int iov_len, int proc, armci_hdl_t* handle);
int ARMCI_NbPutValueInt(int src, void* dst, int proc, armci_hdl_t* handle);
int ARMCI_NbPutValueLong(long src, void* dst, int proc, armci_hdl_t* handle);
int ARMCI_NbPutValueFloat(float src, void* dst, int proc, armci_hdl_t* handle);
int ARMCI_NbPutValueDouble(double src, void* dst, int proc, armci_hdl_t* handle);

/** Complete here: buffers are the program's again, what was fetched is there. */
int ARMCI_Wait(armci_hdl_t* handle);
/** 0 if it is complete. */
int ARMCI_Test(armci_hdl_t* handle);
int ARMCI_WaitProc(int proc);
int ARMCI_WaitAll(void);

/* ---- mutexes and notes ------------------------------------------------------------------------------------------ */

/** Collective: `count` mutexes here; each process may have another number. */
int ARMCI_Create_mutexes(int count);
int ARMCI_Destroy_mutexes(void);
/** First come, first served. */
void ARMCI_Lock(int mutex, int proc);
void ARMCI_Unlock(int mutex, int proc);

/** Tells `proc`, after what this process has done to it; returns how often it has. */
int armci_notify(int proc);
/** Waits for the next note of `proc`; `*count` becomes how many there were. */
int armci_notify_wait(int proc, int* count);

/* ---- groups ----------------------------------------------------------------------------------------------------- */

/** Collective over the default group (of `create_child`: over the parent); the list holds ranks in that. */
void ARMCI_Group_create(int size, int* members, ARMCI_Group* group);
void ARMCI_Group_create_child(int size, int* members, ARMCI_Group* group, ARMCI_Group* parent);
void ARMCI_Group_free(ARMCI_Group* group);
/** 0 if this process is a member. */
int ARMCI_Group_rank(ARMCI_Group* group, int* rank);
void ARMCI_Group_size(ARMCI_Group* group, int* size);
void ARMCI_Group_set_default(ARMCI_Group* group);
void ARMCI_Group_get_default(ARMCI_Group* group);
void ARMCI_Group_get_world(ARMCI_Group* group);
int ARMCI_Absolute_id(ARMCI_Group* group, int rank);

/* ---- places ----------------------------------------------------------------------------------------------------- */

/** Processes of a domain may use each other's pointers as their own. Here each process is one. */
typedef int armci_domain_t;
enum armci_domain_e { ARMCI_DOMAIN_SMP };
int armci_domain_nprocs(armci_domain_t domain, int id);
int armci_domain_id(armci_domain_t domain, int proc);
int armci_domain_glob_proc_id(armci_domain_t domain, int id, int local_proc);
int armci_domain_my_id(armci_domain_t domain);
int armci_domain_count(armci_domain_t domain);
int armci_domain_same_id(armci_domain_t domain, int proc);
int ARMCI_Same_node(int proc);
int ARMCI_Uses_shm(void);
int ARMCI_Uses_shm_grp(ARMCI_Group* group);
void ARMCI_Set_shm_limit(unsigned long bytes);

/** Packs strided data, and the other way round. */
void armci_write_strided(void* ptr, int levels, int* strides, int* counts, char* buffer);
void armci_read_strided(void* ptr, int levels, int* strides, int* counts, char* buffer);

#ifdef __cplusplus
}
#endif

#include "message.h"
#include "parmci.h"

#endif
