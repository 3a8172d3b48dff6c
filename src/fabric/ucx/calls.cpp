// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx/calls.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "rma/error.hpp"

namespace rma::ucx {
namespace {

void* find(void* from, const char* name) {
  void* const found = ::dlsym(from, name);
  if (found == nullptr)
    throw Error(status::unreachable, fmt::format("this machine's UCX has no {}; 1.13 or later is needed", name));
  return found;
}

}  // namespace

// Never unloaded: UCX keeps handlers and threads that would be left behind.
calls::calls() {
  void* const library = ::dlopen("libucp.so.0", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr)
    throw Error(status::unreachable, fmt::format("UCX cannot be loaded ({}); install libucx0", ::dlerror()));
#define RMA_UCX_FIND(name) this->name = reinterpret_cast<decltype(this->name)>(find(library, #name));
  RMA_UCX_CALLS(RMA_UCX_FIND)
#undef RMA_UCX_FIND
}

}  // namespace rma::ucx
