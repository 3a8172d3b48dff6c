// SPDX-License-Identifier: Apache-2.0
/// \file
/// PMIx's functions, found when a PMIx launcher has started this process: others neither load PMIx nor need it.
#pragma once

#include <pmix.h>

#define RMA_PMIX_CALLS(call)                                                                                     \
  call(PMIx_Abort) call(PMIx_Commit) call(PMIx_Error_string) call(PMIx_Fence) call(PMIx_Finalize) call(PMIx_Get) \
      call(PMIx_Init) call(PMIx_Put)

namespace rma::boot {

/// Each function by its own name.
struct pmix_calls {
  /// Throws Error(bad_boot) if this machine has no PMIx.
  pmix_calls();

#define RMA_PMIX_DECLARE(name) decltype(&::name) name = nullptr;
  RMA_PMIX_CALLS(RMA_PMIX_DECLARE)
#undef RMA_PMIX_DECLARE
};

}  // namespace rma::boot
