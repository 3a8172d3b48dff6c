// SPDX-License-Identifier: Apache-2.0
/// \file
/// PMIx's functions, found when a PMIx launcher has started this process: others neither load PMIx nor need it.
#pragma once

#include <pmix.h>

#include <algorithm>
#include <string_view>

#define RMA_PMIX_CALLS(call)                                                                                        \
  call(PMIx_Abort) call(PMIx_Commit) call(PMIx_Error_string) call(PMIx_Fence_nb) call(PMIx_Finalize) call(PMIx_Get) \
      call(PMIx_Init) call(PMIx_Put) call(PMIx_Query_info_nb)

namespace rma::boot {

/// An attribute that is true by being there.
inline pmix_info_t directive(std::string_view key) {
  pmix_info_t made{};
  std::copy_n(key.begin(), std::min<std::size_t>(key.size(), PMIX_MAX_KEYLEN), made.key);
  made.value.type = PMIX_BOOL;
  made.value.data.flag = true;
  return made;
}

/// Each function by its own name.
struct pmix_calls {
  /// Throws Error(bad_boot) if this machine has no PMIx.
  pmix_calls();

#define RMA_PMIX_DECLARE(name) decltype(&::name) name = nullptr;
  RMA_PMIX_CALLS(RMA_PMIX_DECLARE)
#undef RMA_PMIX_DECLARE
};

}  // namespace rma::boot
