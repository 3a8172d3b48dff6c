// SPDX-License-Identifier: Apache-2.0
/// \file
/// armci_notify: counters of the notifications from each process.
#pragma once

#include <cstdint>
#include <vector>

#include "rma/rma.hpp"

namespace rma::armci {

/// One word for each process; its pages are allocated on first use.
class note_board {
 public:
  explicit note_board(const Team& world);
  ~note_board();
  /// Notifies `proc`; returns the number of its notifications from this process, this one included.
  std::uint64_t tell(int proc);
  /// Waits for one more notification from `proc`; returns their number.
  std::uint64_t wait(int proc);

 private:
  Window<std::uint64_t> told_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> taken_;
  int me_;
};

}  // namespace rma::armci
