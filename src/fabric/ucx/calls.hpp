// SPDX-License-Identifier: Apache-2.0
/// \file
/// The functions of UCX, loaded when the fabric is first used: a process that does not use it neither loads UCX nor
/// needs it installed.
#pragma once

#include <ucp/api/ucp.h>
#include <ucs/debug/log_def.h>

#define RMA_UCX_CALLS(call)                                                                                        \
  call(ucp_am_send_nbx) call(ucp_atomic_op_nbx) call(ucp_cleanup) call(ucp_config_modify) call(ucp_config_read)    \
      call(ucp_config_release) call(ucp_context_print_info) call(ucp_ep_close_nbx) call(ucp_ep_create)             \
          call(ucp_ep_flush_nbx) call(ucp_ep_print_info) call(ucp_ep_rkey_unpack) call(ucp_get_nbx)                \
              call(ucp_get_version) call(ucp_init_version) call(ucp_mem_map) call(ucp_mem_unmap) call(ucp_put_nbx) \
                  call(ucp_request_check_status) call(ucp_request_free) call(ucp_rkey_buffer_release)              \
                      call(ucp_rkey_destroy) call(ucp_rkey_pack) call(ucp_worker_arm) call(ucp_worker_create)      \
                          call(ucp_worker_destroy) call(ucp_worker_get_address) call(ucp_worker_get_efd)           \
                              call(ucp_worker_progress) call(ucp_worker_release_address)                           \
                                  call(ucp_worker_set_am_recv_handler) call(ucs_log_pop_handler)                   \
                                      call(ucs_log_push_handler) call(ucs_status_string)

namespace rma::ucx {

/// Pointers to the functions, with the functions' names.
struct calls {
  /// Loads UCX without its changes to the process: signal handlers (one is for SIGHUP), and hooks of mremap, munmap and
  /// so on, which no cache here needs. Changes that the user's UCX_* variables request are kept. Throws
  /// Error(unreachable) if this machine has no UCX.
  calls();

#define RMA_UCX_DECLARE(name) decltype(&::name) name = nullptr;
  RMA_UCX_CALLS(RMA_UCX_DECLARE)
#undef RMA_UCX_DECLARE
};

}  // namespace rma::ucx
