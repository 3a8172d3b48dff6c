// SPDX-License-Identifier: Apache-2.0
/// \file
/// An allocator of this rank's segment: first fit, in pages. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

namespace rma::shm {

/// Gaps are indexed by size: neither used parts nor gaps of less than half a request are visited.
class segment_map {
 public:
  explicit segment_map(std::size_t bytes) : bytes_(bytes) {
    if (bytes != 0) add_gap(0, bytes);
  }

  /// The lowest free offset for `bytes` at or above `from`, aligned. It is not taken yet: ranks agree first.
  [[nodiscard]] std::optional<std::size_t> propose(std::size_t bytes, std::size_t from, std::size_t alignment) const;
  /// False if some of it is in use: another thread may have taken it since it was proposed.
  [[nodiscard]] bool take(std::size_t offset, std::size_t bytes);
  void give_back(std::size_t offset);
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  using gaps = std::map<std::size_t, std::size_t>;  ///< offset -> bytes

  [[nodiscard]] gaps::const_iterator gap_at(std::size_t offset) const;
  void add_gap(std::size_t offset, std::size_t bytes);
  void remove_gap(gaps::const_iterator gap);

  std::size_t bytes_;
  std::size_t in_use_ = 0;
  gaps gaps_;                                           ///< no two are adjacent
  std::map<int, std::set<std::size_t>> gaps_of_size_;   ///< offsets, by the logarithm of their bytes
  std::unordered_map<std::size_t, std::size_t> taken_;  ///< offset -> bytes
};

}  // namespace rma::shm
