// SPDX-License-Identifier: Apache-2.0
/// \file
/// Puts, gets and accumulates of any shape, blocking or not: all of ARMCI's calls for them use these.
///
///   memory mapped here     row by row, at once; a handle has nothing to wait for
///   other nodes            one operation with layouts; blocking: flushed, so that the next one sees it
///   own private memory     row by row, plainly
#pragma once

#include <cstddef>
#include <span>

#include "armci/state.hpp"

namespace rma::armci {

enum class kind : std::uint8_t { put, get, accumulate };

struct action {
  const char* call;
  kind what;
  int proc;
  element type = element::u8;
  const void* scale = nullptr;  ///< null: 1, or no accumulate
};
/// Makes an accumulate; ends the job if ARMCI has no such type.
action accumulate_of(const char* call, int proc, int armci_type, const void* scale);

/// ARMCI's strided shape: counts[0] bytes are contiguous.
struct strided {
  int levels;
  const int* counts;
  const int* local_strides;
  const int* remote_strides;
};

/// The completion of an operation: blocking, or with a handle (null: the implicit one).
struct ending {
  bool blocking = true;
  armci_hdl_t* handle = nullptr;
};

void transfer(state& s, const action& op, void* local, void* remote, std::size_t bytes, const ending& by = {});
void transfer(state& s, const action& op, void* local, void* remote, const strided& shape, const ending& by = {});
void transfer(state& s, const action& op, std::span<const armci_giov_t> segments, const ending& by = {});

/// Issues one operation of the library. `room` stores the products of an accumulate with a factor.
status issue(const action& op, const spot& where, void* local, const Layout& local_layout, const Layout& remote_layout,
             std::vector<std::byte>& room, Request* request);

}  // namespace rma::armci
