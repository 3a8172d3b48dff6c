// SPDX-License-Identifier: Apache-2.0
/// \file
/// Locks of this library's own, for updates that the network and the processor do not do: of pairs, of long double.
/// Each rank has some words; a window's number says which one stands for its part. MPI asks for atomicity only among
/// updates of one type, and all of such a type come here.
#pragma once

#include <array>
#include <mutex>

#include "mpi/state.hpp"

namespace rma::mpi {

class lock_board {
 public:
  static constexpr std::size_t words = 64;

  /// Collective.
  explicit lock_board(const Team& world) : rank_(world.rank()), words_(Window<std::uint64_t>::allocate(world, words)) {
    (void)words_.try_lock_all(no_check);
  }

  /// `target` is a number in the world. Waits while another rank holds the word.
  status lock(int target, std::uint32_t number) noexcept {
    mutex_.lock();
    const std::uint64_t mine = static_cast<std::uint64_t>(rank_) + 1;
    waiting between;
    for (std::uint64_t found = 1; found != 0;) {
      if (const status s = words_.try_compare_and_swap(0, mine, found, target, number % words); !ok(s)) {
        mutex_.unlock();
        return s;
      }
      if (found != 0) between.pause();
    }
    return status::done;
  }
  status unlock(int target, std::uint32_t number) noexcept {
    std::uint64_t found = 0;
    const status s = words_.try_fetch_and_op(0, found, target, number % words, replace);
    mutex_.unlock();
    return s;
  }

 private:
  int rank_;
  std::mutex mutex_;  ///< among the threads of this rank
  Window<std::uint64_t> words_;
};

}  // namespace rma::mpi
