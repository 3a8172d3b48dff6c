// SPDX-License-Identifier: Apache-2.0
/// \file
/// Optimistic group registration: neighboring pieces of memory are registered as one, with the gaps between them, where
/// this is cheaper than a registration for each. It is optimistic because a gap may be unmapped: then each piece is
/// registered by itself. Source: dissertation, section 8.1.1 ("User Buffer Registration"), after Wu et al.
#include <algorithm>
#include <array>

#include "fabric/verbs/registration_cache.hpp"

namespace rma::verbs {
namespace {

/// A registration costs as much as pinning so many further pages: a system call and the adapter's work.
constexpr std::size_t pages_per_registration = 16;

}  // namespace

// The pieces are then acquired one by one, and find the registrations made here.
void registration_cache::register_groups(std::span<const fabric::local_slice> pieces) noexcept {
  if (pieces.size() < 2 || pieces.size() > group_max || limits_.bytes == 0 || foreign()) return;
  std::array<page_range, group_max> unknown;
  std::size_t count = 0;
  for (const fabric::local_slice& each : pieces) {
    const page_range pages = pages_around(each.at, each.bytes);
    if (find(pages) == nullptr) unknown[count++] = pages;
  }
  std::sort(unknown.begin(), unknown.begin() + static_cast<std::ptrdiff_t>(count),
            [](page_range a, page_range b) { return a.first < b.first; });
  const std::size_t gap_max = pages_per_registration * (page_mask_ + 1);
  for (std::size_t i = 0; i < count;) {
    page_range group = unknown[i];
    std::size_t end = i + 1;
    while (end < count && unknown[end].first <= group.last + gap_max) group = hull(group, unknown[end++]);
    const bool is_group = group != unknown[i] && group.bytes() <= limits_.bytes;
    if (is_group) {
      if (entry* const made = make(merged_with_neighbors(group), purpose::merged)) {
        ++counts_.misses;
        release(made);
      }
    }
    i = end;
  }
}

// Compares pages to pin, as if each gap were as long as the average one.
void registration_cache::register_hull(const fabric::piece_bounds& pieces) noexcept {
  if (pieces.count < 2 || limits_.bytes == 0 || foreign() || take_unmaps() != unmap_watch::outcome::settled) return;
  const page_range hull = pages_around(pieces.hull.at, pieces.hull.bytes);
  if (hull == refused_hull_ || hull.bytes() > limits_.bytes || find(hull) != nullptr) return;
  const std::size_t page = page_mask_ + 1;
  const std::size_t pages_of_each = pieces.bytes / page + pieces.count;
  if (hull.bytes() / page > pages_of_each + (pieces.count - 1) * pages_per_registration) return;
  entry* const made = make(merged_with_neighbors(hull), purpose::merged);
  if (made == nullptr) {
    refused_hull_ = hull;
    return;
  }
  ++counts_.misses;
  release(made);
}

}  // namespace rma::verbs
