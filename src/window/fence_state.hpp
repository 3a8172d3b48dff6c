// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of a window's fences between calls: counts of announced puts, and the operations that `def` has
/// deferred.
///
/// Fences of a window are numbered. Messages for fence n are counted at n mod 4: a rank may be one fence ahead of
/// another, and the count of fence n is cleared at fence n - 2, when no message can arrive for it.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "rma/detail/word.hpp"
#include "runtime/message_barrier.hpp"
#include "runtime/reduce_scatter.hpp"

namespace rma::detail {

/// Counts of one kind of message by the number of the fence modulo 4. Written by handlers.
class fence_counts {
 public:
  void add(std::uint32_t number) noexcept {
    word32& count = of_[number % 4];
    count.store(count.load(std::memory_order_relaxed) + 1);
  }
  [[nodiscard]] std::uint32_t at(std::uint32_t number) const noexcept { return of_[number % 4].load(); }
  void clear(std::uint32_t number) noexcept { of_[number % 4].store(0); }

 private:
  std::array<word32, 4> of_{};
};

struct fence_state {
  std::uint32_t number = 0;  ///< number of the fence before this epoch
  word32 over{};             ///< number of the last fence that this rank has completed
  fence_counts arrived{};    ///< finish messages and immediates
  fence_counts opened{};
  message_barrier barrier;                              ///< barrier of all fences but `placed`
  std::vector<int> channels{};                          ///< targets of this epoch's puts by the fabric
  std::unique_ptr<reduce_scatter> counts{};             ///< counts of the announced puts; null before the first
  std::vector<std::pair<int, std::uint32_t>> askers{};  ///< world rank, fence; guarded by the progress lock

  // Fences among neighbors. The neighbors are set once.
  bool has_neighbors = false;
  std::vector<int> neighbor_targets{}, neighbor_origins{};
  std::uint32_t neighbor_number = 0;
  bool no_put_promised = false;  ///< the last fence promised no_put
};

}  // namespace rma::detail
