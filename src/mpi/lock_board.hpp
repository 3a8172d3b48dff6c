// SPDX-License-Identifier: Apache-2.0
/// \file
/// Locks internal to this library, for updates that neither the network nor the processor does: of pairs, of long
/// double. Each rank has one, for its parts of all windows. MPI requires atomicity only among updates of one type, and
/// all updates of such a type use these locks.
#pragma once

#include <mutex>

#include "mpi/state.hpp"

namespace rma::mpi {

class lock_board {
 public:
  /// Collective.
  explicit lock_board(const Team& world) : parts_(Window<std::byte>::allocate(world, 0)) {}

  /// `target` is a rank in the world. Waits while another rank, or another thread of this one, has the lock.
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
