// SPDX-License-Identifier: Apache-2.0
#include "fabric/ucx/calls.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>

#include "fabric/ucx/added_variables.hpp"
#include "rma/error.hpp"

namespace rma::ucx {
namespace {

/// The constructor of libucs reads these variables, so that `ucp_config_modify` would be too late.
constexpr std::array<variable, 3> read_at_load{{
    {"UCX_HANDLE_ERRORS=none", {"UCX_HANDLE_ERRORS", "UCX_ERROR_SIGNALS"}},
    {"UCX_DEBUG_SIGNO=0", {"UCX_DEBUG_SIGNO"}},
    {"UCX_MEM_EVENTS=n", {"UCX_MEM_EVENTS", "UCX_MEM_MMAP_HOOK_MODE"}},
}};

void* find(void* from, const char* name) {
  void* const found = ::dlsym(from, name);
  if (found == nullptr)
    throw Error(status::unreachable, fmt::format("this machine's UCX has no {}; 1.13 or later is needed", name));
  return found;
}

// The library is never unloaded, because UCX keeps threads and callbacks. If it is loaded already, settings are too
// late.
void* load() {
  constexpr const char* name = "libucp.so.0";
  constexpr int how = RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE;
  if (void* const loaded = ::dlopen(name, how | RTLD_NOLOAD)) return loaded;
  const added_variables settings(read_at_load);
  return ::dlopen(name, how);
}

}  // namespace

calls::calls() {
  void* const library = load();
  if (library == nullptr)
    throw Error(status::unreachable, fmt::format("UCX cannot be loaded ({}); install libucx0", ::dlerror()));
#define RMA_UCX_FIND(name) this->name = reinterpret_cast<decltype(this->name)>(find(library, #name));
  RMA_UCX_CALLS(RMA_UCX_FIND)
#undef RMA_UCX_FIND
}

}  // namespace rma::ucx
