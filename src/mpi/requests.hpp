// SPDX-License-Identifier: Apache-2.0
/// \file
/// Requests of Rput, Rget and the like: they are generalized requests of MPI, so that its calls accept them beside its
/// own. The program's calls of MPI_Wait, MPI_Test and the like advance them, by wrappers.
#pragma once

#include <list>
#include <mutex>

#include "mpi/state.hpp"

namespace rma::mpi {

class request_list {
 public:
  /// Gives the program a request that is complete when `ours` is.
  int add(window& w, const char* call, Request ours, MPI_Request* theirs);

  /// Advances all pending requests. Returns true if some are still pending.
  bool advance() noexcept { return count_.load(std::memory_order_acquire) != 0 && advance_slow(); }

 private:
  struct entry {
    window* in;
    const char* call;
    Request ours;
    MPI_Request theirs;
  };
  bool advance_slow() noexcept;

  std::atomic<std::size_t> count_ = 0;
  std::mutex mutex_;
  std::list<entry> entries_;
};

/// Issues an operation by `issue(request)`, and makes an MPI request of it.
template <class Issue>
int begin(window& w, const char* call, int target, MPI_Request* theirs, Issue&& issue) {
  Request ours;
  if (const status s = issue(ours); !ok(s)) return report(w, call, s, target);
  return current()->requests->add(w, call, std::move(ours), theirs);
}

}  // namespace rma::mpi
