// SPDX-License-Identifier: Apache-2.0
/// \file
/// armci_notify: counters of what each process has told this one.
#pragma once

#include <cstdint>
#include <vector>

#include "rma/rma.hpp"

namespace rma::armci {

/// A word for each process, whose pages are taken when they are used.
class note_board {
 public:
  explicit note_board(const Team& world);
  ~note_board();
  /// How often this process has told `proc`, this time included.
  std::uint64_t tell(int proc);
  /// Waits for one more note of `proc`; how many there were.
  std::uint64_t wait(int proc);

 private:
  Window<std::uint64_t> told_;
  std::vector<std::uint64_t> sent_;
  std::vector<std::uint64_t> taken_;
  int me_;
};

}  // namespace rma::armci
