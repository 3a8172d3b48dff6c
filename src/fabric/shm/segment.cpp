// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/segment.hpp"

#include "core/assert.hpp"

namespace rma::shm {

std::optional<std::size_t> segment_map::propose(std::size_t bytes, std::size_t from, std::size_t alignment) const {
  const auto align = [alignment](std::size_t at) { return (at + alignment - 1) / alignment * alignment; };
  std::size_t at = align(from);
  for (const auto& [offset, length] : taken_) {
    if (offset + length <= at) continue;
    if (offset >= at && offset - at >= bytes) break;
    at = align(offset + length);
  }
  if (at > bytes_ || bytes > bytes_ - at) return std::nullopt;
  return at;
}

bool segment_map::take(std::size_t offset, std::size_t bytes) {
  RMA_ASSERT(bytes > 0);
  if (propose(bytes, offset, 1) != offset) return false;
  taken_.emplace(offset, bytes);
  in_use_ += bytes;
  return true;
}

void segment_map::give_back(std::size_t offset) {
  const auto at = taken_.find(offset);
  RMA_ASSERT(at != taken_.end());
  in_use_ -= at->second;
  taken_.erase(at);
}

}  // namespace rma::shm
