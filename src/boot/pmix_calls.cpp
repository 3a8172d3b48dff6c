// SPDX-License-Identifier: Apache-2.0
#include "boot/pmix_calls.hpp"

#include <dlfcn.h>

#include <string>

#include "rma/error.hpp"

namespace rma::boot {
namespace {

void* find(void* from, const char* name) {
  void* const found = ::dlsym(from, name);
  if (found == nullptr) throw Error(status::bad_boot, "this machine's PMIx has no " + std::string(name));
  return found;
}

}  // namespace

// Never unloaded: PMIx keeps a thread. If MPI uses PMIx in this process, it is the same library.
pmix_calls::pmix_calls() {
  void* const library = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    throw Error(status::bad_boot, std::string("a PMIx launcher started this process, but PMIx cannot be loaded (") +
                                      ::dlerror() + "); install libpmix2, or set RMA_BOOT=alone for jobs of one rank");
  }
#define RMA_PMIX_FIND(name) this->name = reinterpret_cast<decltype(this->name)>(find(library, #name));
  RMA_PMIX_CALLS(RMA_PMIX_FIND)
#undef RMA_PMIX_FIND
}

}  // namespace rma::boot
