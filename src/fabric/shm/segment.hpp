// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which parts of this rank's segment are in use. First fit, page by page. For one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

namespace rma::shm {

class segment_map {
 public:
  explicit segment_map(std::size_t bytes) noexcept : bytes_(bytes) {}

  /// The lowest free place for `bytes` at or above `from`, aligned. Nothing is taken yet: ranks agree first.
  [[nodiscard]] std::optional<std::size_t> propose(std::size_t bytes, std::size_t from, std::size_t alignment) const;
  /// False if some of it is in use: another thread may have taken it since it was proposed.
  [[nodiscard]] bool take(std::size_t offset, std::size_t bytes);
  void give_back(std::size_t offset);
  [[nodiscard]] std::size_t in_use() const noexcept { return in_use_; }
  [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

 private:
  std::size_t bytes_;
  std::size_t in_use_ = 0;
  std::map<std::size_t, std::size_t> taken_;  ///< offset -> bytes
};

}  // namespace rma::shm
