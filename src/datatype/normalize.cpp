// SPDX-License-Identifier: Apache-2.0
/// \file
/// Simplification: every layout is stored in one form, so that equal placements have equal cost and compare equal. The
/// result is contiguous exactly if its bytes are, because each step below removes the adjacency that it could
/// introduce.
#include <algorithm>
#include <cstdint>
#include <utility>

#include "core/assert.hpp"
#include "datatype/layout_node.hpp"

namespace rma::detail {
namespace {

std::size_t copies_of(const std::vector<list_entry>& entries, std::size_t i) noexcept {
  return entries[i + 1].first - entries[i].first;
}

/// Turns lengths in `first` into a running sum, in units of `unit`, and appends the sentinel.
status sum_up(std::vector<list_entry>& entries, std::size_t unit) {
  RMA_ASSERT(!entries.empty() && unit != 0);
  std::size_t total = 0;
  for (list_entry& entry : entries) {
    std::size_t length = 0;
    if (__builtin_mul_overflow(entry.first, unit, &length)) return status::bad_size;
    entry.first = total;
    if (__builtin_add_overflow(total, length, &total)) return status::bad_size;
  }
  entries.push_back({0, total});
  return status::done;
}

/// The bounds of the copies of all entries; lengths are still in `first`.
struct entry_bounds {
  std::ptrdiff_t least = PTRDIFF_MAX;
  std::ptrdiff_t most = PTRDIFF_MIN;
  std::size_t copies_max = 0;  ///< largest number of copies of one entry
};
status find_bounds(const std::vector<list_entry>& entries, std::ptrdiff_t step, entry_bounds& all) noexcept {
  for (const list_entry& entry : entries) {
    std::ptrdiff_t last = entry.offset;
    if (entry.first > 1 &&
        (__builtin_mul_overflow(entry.first - 1, step, &last) || __builtin_add_overflow(last, entry.offset, &last))) {
      return status::bad_size;
    }
    all.least = std::min({all.least, entry.offset, last});
    all.most = std::max({all.most, entry.offset, last});
    all.copies_max = std::max(all.copies_max, entry.first);
  }
  return status::done;
}

/// Drops empty entries and joins those that continue their predecessor; lengths are still in `first`.
status join(std::vector<list_entry>& entries, std::ptrdiff_t step) {
  std::size_t kept = 0;
  std::ptrdiff_t end = 0;
  for (const list_entry entry : entries) {
    if (entry.first == 0) continue;
    std::ptrdiff_t length = 0;
    if (__builtin_mul_overflow(entry.first, step, &length)) return status::bad_size;
    if (kept > 0 && entry.offset == end && step != 0) {
      std::size_t& joined = entries[kept - 1].first;
      if (__builtin_add_overflow(joined, entry.first, &joined)) return status::bad_size;
    } else {
      entries[kept++] = entry;
    }
    if (__builtin_add_overflow(entry.offset, length, &end)) return status::bad_size;
  }
  entries.resize(kept);
  return status::done;
}

/// True if no entry has more than one copy, so that the distance of copies does not matter.
bool single_copies(const std::vector<list_entry>& entries) noexcept {
  return std::all_of(entries.begin(), entries.end(), [](const list_entry& e) { return e.first <= 1; });
}

/// True if all entries have the same length and lie `spacing` apart.
bool evenly_spaced(const std::vector<list_entry>& entries, std::ptrdiff_t& spacing) noexcept {
  RMA_ASSERT(entries.size() > 1);
  if (__builtin_sub_overflow(entries[1].offset, entries[0].offset, &spacing)) return false;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    std::ptrdiff_t gap = 0;
    if (__builtin_sub_overflow(entries[i].offset, entries[i - 1].offset, &gap)) return false;
    if (gap != spacing || entries[i].first != entries[0].first) return false;
  }
  return true;
}

/// True if copies `stride` apart continue a vector of that count and stride.
bool continues(std::size_t count, std::ptrdiff_t vector_stride, std::ptrdiff_t stride) noexcept {
  std::ptrdiff_t span = 0;
  return !__builtin_mul_overflow(count, vector_stride, &span) && span == stride;
}

void add_list(layout_grain& all, const entry_list& list, bool of_blocks) noexcept {
  all.first += list.front().offset;
  for (std::size_t i = 0; i + 1 < list.size(); ++i) {
    all.distances |= static_cast<std::size_t>(list[i].offset) - static_cast<std::size_t>(list.front().offset);
    if (of_blocks) all.lengths |= copies_of(list, i);
  }
}

layout_grain grain_of(const layout_node& node) noexcept {
  layout_grain all{node.block, 0, 0};
  for (const layout_level& level : node.levels) {
    const bool of_blocks = node.block == 0 && &level == &node.levels.back();
    if (!of_blocks) all.distances |= static_cast<std::size_t>(level.stride);
    if (level.list != nullptr) add_list(all, *level.list, of_blocks);
  }
  return all;
}

/// The length of all blocks of a list, or 0 if they differ.
std::size_t entry_bytes_of(const layout_node& node) noexcept {
  if (node.block != 0) return 0;
  const entry_list& list = *node.levels.back().list;
  const std::size_t bytes = copies_of(list, 0);
  for (std::size_t i = 1; i + 1 < list.size(); ++i) {
    if (copies_of(list, i) != bytes) return 0;
  }
  return bytes;
}

/// For assertions: each level places copies of the next one, and lists end with their sentinel.
[[maybe_unused]] bool is_sound(const layout_node& node, std::size_t bytes) noexcept {
  for (const layout_level& level : node.levels) {
    if (level.count == 0 || level.inner_bytes == 0 || level.count * level.inner_bytes != bytes) return false;
    if (level.list != nullptr && (level.list->size() < 2 || level.list->back().first != level.count)) return false;
    bytes = level.inner_bytes;
  }
  return bytes == (node.block == 0 ? 1 : node.block);
}

bool equally_long(const std::vector<list_entry>& entries) noexcept {
  return std::all_of(entries.begin(), entries.end(), [&](const list_entry& e) { return e.first == entries[0].first; });
}

}  // namespace

layout_node layout_internals::opened(const Layout& layout, std::size_t blocks) {
  if (layout.node_ != nullptr) return *layout.node_;
  layout_node node;
  node.block = layout.block_;
  if (blocks > 1) node.levels.push_back({blocks, layout.stride_, layout.block_, nullptr});
  return node;
}

status layout_internals::adopt(Layout& layout, layout_node node) {
  if (node.levels.size() > layout_levels_max) return status::bad_size;
  RMA_ASSERT(!node.levels.empty() && is_sound(node, layout.bytes_));
  node.grain = grain_of(node);
  node.entry_bytes = entry_bytes_of(node);
  layout.block_ = 0;
  layout.stride_ = 0;
  layout.node_ = std::make_shared<const layout_node>(std::move(node));
  return status::done;
}

status layout_internals::widen_bounds(Layout& layout, std::ptrdiff_t least, std::ptrdiff_t most) noexcept {
  std::ptrdiff_t lower = 0;
  std::ptrdiff_t upper = 0;
  std::ptrdiff_t span = 0;
  if (__builtin_add_overflow(layout.lower_, least, &lower) || __builtin_add_overflow(layout.upper_, most, &upper) ||
      __builtin_sub_overflow(upper, lower, &span)) {
    return status::bad_size;
  }
  layout.lower_ = lower;
  layout.upper_ = upper;
  RMA_ASSERT(lower <= upper);
  return status::done;
}

status layout_internals::shift(Layout& layout, std::ptrdiff_t by) noexcept {
  if (layout.bytes_ == 0) return status::done;
  if (widen_bounds(layout, by, by) != status::done) return status::bad_size;
  std::ptrdiff_t offset = 0;
  if (__builtin_add_overflow(layout.offset_, by, &offset)) return status::bad_size;
  layout.offset_ = offset;
  return status::done;
}

status layout_internals::repeat(Layout& layout, std::size_t count, std::ptrdiff_t stride) {
  if (count == 1 || layout.bytes_ == 0) return status::done;
  if (count == 0) {
    layout = Layout();
    return status::done;
  }
  std::ptrdiff_t last = 0;
  std::ptrdiff_t total = 0;
  if (__builtin_mul_overflow(count - 1, stride, &last) || __builtin_mul_overflow(layout.bytes_, count, &total) ||
      widen_bounds(layout, std::min<std::ptrdiff_t>(last, 0), std::max<std::ptrdiff_t>(last, 0)) != status::done) {
    return status::bad_size;
  }
  const std::size_t inner_bytes = std::exchange(layout.bytes_, static_cast<std::size_t>(total));
  if (layout.is_contiguous()) {
    const bool grows = stride == static_cast<std::ptrdiff_t>(inner_bytes);
    layout.blocks_ = grows ? 1 : count;
    layout.block_ = grows ? layout.bytes_ : inner_bytes;
    layout.stride_ = grows ? 0 : stride;
    return status::done;
  }
  layout.blocks_ *= count;
  if (layout.node_ == nullptr && continues(layout.blocks_ / count, layout.stride_, stride)) return status::done;
  layout_node node = opened(layout, layout.blocks_ / count);
  layout_level& outer = node.levels.front();
  if (outer.list == nullptr && continues(outer.count, outer.stride, stride)) {
    outer.count *= count;
  } else {
    node.levels.insert(node.levels.begin(), layout_level{count, stride, inner_bytes, nullptr});
  }
  return adopt(layout, std::move(node));
}

status layout_internals::set_entries(Layout& layout, std::vector<list_entry> entries, std::ptrdiff_t step) {
  if (layout.is_contiguous() && single_copies(entries)) step = static_cast<std::ptrdiff_t>(layout.bytes_);
  const bool dense = layout.is_contiguous() && step == static_cast<std::ptrdiff_t>(layout.bytes_);
  if (join(entries, step) != status::done) return status::bad_size;
  if (entries.empty() || layout.bytes_ == 0) {
    layout = Layout();
    return status::done;
  }
  std::ptrdiff_t spacing = 0;
  if (entries.size() == 1 || evenly_spaced(entries, spacing)) {
    const status inner = repeat(layout, entries[0].first, step);
    const status outer = inner == status::done ? repeat(layout, entries.size(), spacing) : inner;
    return outer == status::done ? shift(layout, entries[0].offset) : outer;
  }
  if (!dense && entries[0].first > 1 && equally_long(entries)) {
    if (repeat(layout, entries[0].first, step) != status::done) return status::bad_size;
    for (list_entry& entry : entries) entry.first = 1;
    step = 0;
  }
  return place_simplified(layout, entries, step, dense);
}

status layout_internals::place_simplified(Layout& layout, std::vector<list_entry>& entries, std::ptrdiff_t step,
                                          bool dense) {
  entry_bounds bounds;
  if (find_bounds(entries, step, bounds) != status::done) return status::bad_size;
  if (sum_up(entries, dense ? layout.bytes_ : 1) != status::done) return status::bad_size;
  RMA_ASSERT(entries.size() > 2);
  const std::size_t copies = dense ? entries.back().first / layout.bytes_ : entries.back().first;
  std::ptrdiff_t total = 0;
  if (__builtin_mul_overflow(layout.bytes_, copies, &total)) return status::bad_size;
  if (widen_bounds(layout, bounds.least, bounds.most) != status::done) return status::bad_size;
  layout_node node = opened(layout, layout.blocks_);
  layout_level level;
  level.count = copies;
  level.stride = bounds.copies_max <= 1 ? 0 : step;
  level.inner_bytes = layout.bytes_;
  layout.blocks_ *= copies;
  if (dense) {  // the entries are blocks of bytes
    level.count = static_cast<std::size_t>(total);
    level.stride = 1;
    level.inner_bytes = 1;
    layout.blocks_ = entries.size() - 1;
    node.block = 0;
  }
  layout.bytes_ = static_cast<std::size_t>(total);
  level.list = std::make_shared<const entry_list>(std::move(entries));
  node.levels.insert(node.levels.begin(), std::move(level));
  return adopt(layout, std::move(node));
}

}  // namespace rma::detail
