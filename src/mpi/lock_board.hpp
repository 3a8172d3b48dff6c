// SPDX-License-Identifier: Apache-2.0
/// \file
/// Locks of this library's own, for updates that the network and the processor do not do: of pairs, of long double.
/// Each rank has one, for its parts of all windows. MPI asks for atomicity only among updates of one type, and all of
/// such a type come here.
#pragma once

#include <mutex>

#include "mpi/state.hpp"

namespace rma::mpi {

class lock_board {
 public:
  /// Collective.
  explicit lock_board(const Team& world) : parts_(Window<std::byte>::allocate(world, 0)) {}

  /// `target` is a number in the world. Waits while another rank, or another thread of this one, has the lock.
  status lock(int target) noexcept {
    mutex_.lock();
    const status s = parts_.lock_nothrow(exclusive, target);
    if (!ok(s)) mutex_.unlock();
    return s;
  }
  status unlock(int target) noexcept {
    const status s = parts_.try_unlock(target);
    mutex_.unlock();
    return s;
  }

 private:
  std::mutex mutex_;  ///< among the threads of this rank, one of which may hold one of the locks
  Window<std::byte> parts_;
};

}  // namespace rma::mpi
