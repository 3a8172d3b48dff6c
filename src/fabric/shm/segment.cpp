// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/segment.hpp"

#include <algorithm>
#include <bit>

#include "core/assert.hpp"

namespace rma::shm {
namespace {

int class_of(std::size_t bytes) noexcept { return static_cast<int>(std::bit_width(bytes)); }

/// The offset at which `bytes` fit into the gap, at or above `from`.
std::optional<std::size_t> place_in(std::size_t gap, std::size_t gap_bytes, std::size_t bytes, std::size_t from,
                                    std::size_t alignment) noexcept {
  const std::size_t end = gap + gap_bytes;
  const std::size_t at = (std::max(gap, from) + alignment - 1) / alignment * alignment;
  if (at > end || bytes > end - at) return std::nullopt;
  return at;
}

}  // namespace

// The gap that contains `from` comes first; then the lowest gap above it that is large enough, of any size class.
std::optional<std::size_t> segment_map::propose(std::size_t bytes, std::size_t from, std::size_t alignment) const {
  RMA_ASSERT(bytes > 0);
  if (const auto gap = gap_at(from); gap != gaps_.end()) {
    if (const auto at = place_in(gap->first, gap->second, bytes, from, alignment)) return at;
  }
  std::optional<std::size_t> lowest;
  for (auto each = gaps_of_size_.lower_bound(class_of(bytes)); each != gaps_of_size_.end(); ++each) {
    const std::set<std::size_t>& offsets = each->second;
    for (auto gap = offsets.upper_bound(from); gap != offsets.end() && (!lowest || *gap < *lowest); ++gap) {
      const auto at = place_in(*gap, gaps_.find(*gap)->second, bytes, from, alignment);
      if (!at) continue;
      lowest = lowest ? std::min(*lowest, *at) : *at;
      break;
    }
  }
  return lowest;
}

bool segment_map::take(std::size_t offset, std::size_t bytes) {
  RMA_ASSERT(bytes > 0);
  const auto gap = gap_at(offset);
  if (gap == gaps_.end() || !place_in(gap->first, gap->second, bytes, offset, 1)) return false;
  const auto [first, length] = *gap;
  remove_gap(gap);
  if (offset > first) add_gap(first, offset - first);
  if (first + length > offset + bytes) add_gap(offset + bytes, first + length - offset - bytes);
  taken_.emplace(offset, bytes);
  in_use_ += bytes;
  return true;
}

void segment_map::give_back(std::size_t offset) {
  const auto at = taken_.find(offset);
  RMA_ASSERT(at != taken_.end());
  std::size_t first = offset;
  std::size_t bytes = at->second;
  in_use_ -= bytes;
  taken_.erase(at);
  if (const auto behind = gaps_.find(offset + bytes); behind != gaps_.end()) {
    bytes += behind->second;
    remove_gap(behind);
  }
  if (const auto before = first == 0 ? gaps_.end() : gap_at(first - 1); before != gaps_.end()) {
    first = before->first;
    bytes += before->second;
    remove_gap(before);
  }
  add_gap(first, bytes);
}

/// The gap that contains this offset, or end().
segment_map::gaps::const_iterator segment_map::gap_at(std::size_t offset) const {
  auto gap = gaps_.upper_bound(offset);
  if (gap == gaps_.begin()) return gaps_.end();
  --gap;
  return offset < gap->first + gap->second ? gap : gaps_.end();
}

void segment_map::add_gap(std::size_t offset, std::size_t bytes) {
  gaps_.emplace(offset, bytes);
  gaps_of_size_[class_of(bytes)].insert(offset);
}

void segment_map::remove_gap(gaps::const_iterator gap) {
  const auto of_size = gaps_of_size_.find(class_of(gap->second));
  of_size->second.erase(gap->first);
  if (of_size->second.empty()) gaps_of_size_.erase(of_size);
  gaps_.erase(gap);
}

}  // namespace rma::shm
