/* SPDX-License-Identifier: Apache-2.0 */
/**
 * \file
 * Extensions of ARMCI-MPI: batches of mutexes, more groups, progress.
 */
#ifndef RMA_ARMCIX_H
#define RMA_ARMCIX_H
#define _ARMCIX_H_

#include <stdint.h>

#include "armci.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Collective over the parent. */
int ARMCIX_Group_split(ARMCI_Group* parent, int color, int key, ARMCI_Group* group);
int ARMCIX_Group_dup(ARMCI_Group* parent, ARMCI_Group* group);

/** The fields are the library's. */
struct armcix_mutex_hdl_s {
  int my_count;
  int max_count;
  ARMCI_Group grp;
  void* windows;
  uint8_t** bases;
};
typedef struct armcix_mutex_hdl_s* armcix_mutex_hdl_t;

/** Collective over the group; `proc` is a number in the world, of a member. */
armcix_mutex_hdl_t ARMCIX_Create_mutexes_hdl(int count, ARMCI_Group* group);
int ARMCIX_Destroy_mutexes_hdl(armcix_mutex_hdl_t handle);
void ARMCIX_Lock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc);
/** 0 if it is locked now; 1 if somebody holds it. */
int ARMCIX_Trylock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc);
void ARMCIX_Unlock_hdl(armcix_mutex_hdl_t handle, int mutex, int proc);

/** Does what others wait for, and never blocks. Beside MPI a thread also does that. */
void ARMCIX_Progress(void);

#ifdef __cplusplus
}
#endif

#endif
