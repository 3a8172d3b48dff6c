// SPDX-License-Identifier: Apache-2.0
/// \file
/// The representation of a layout that is neither contiguous nor a simple vector.
///
/// Every layout has one inner layout, so that nesting is a chain: levels from the outermost to the innermost, each of
/// which places copies of the next, and a block at the end. No recursion is needed to walk, encode or check it.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "rma/error.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

/// The most levels that a layout may have after simplification; cursors store one position for each.
inline constexpr std::size_t layout_levels_max = 16;

/// One entry of an irregular level: copies first .. (first of the next entry) - 1 lie at `offset`, offset + step, ...
struct list_entry {
  std::ptrdiff_t offset;
  std::size_t first;
};

/// The list ends with a sentinel whose `first` is the number of copies.
using entry_list = std::vector<list_entry>;

/// Places copies of the next level. Without a list, copy i is at i * stride. With one: see list_entry, step = stride.
/// If `inner_bytes` is 1 and it is the last level, the entries are themselves blocks, and `first` counts bytes.
struct layout_level {
  std::size_t count = 0;        ///< copies
  std::ptrdiff_t stride = 0;    ///< bytes
  std::size_t inner_bytes = 0;  ///< data bytes of one copy
  std::shared_ptr<const entry_list> list;
};

/// The common grain of all blocks: a power of two divides one of the first two exactly if it divides each of them.
struct layout_grain {
  std::size_t lengths = 0;
  std::size_t distances = 0;  ///< from the first block
  std::ptrdiff_t first = 0;   ///< offset of the first block
};

struct layout_node {
  std::vector<layout_level> levels;  ///< outermost first
  std::size_t block = 0;             ///< bytes of each innermost block; 0: the last level's entries are the blocks
  std::size_t entry_bytes = 0;       ///< size of each such entry; 0: they differ
  layout_grain grain;
};

/// Gives the rest of src/datatype access to the inside of a Layout.
struct layout_internals {
  /// Repeats the layout as a vector does: copy i at i * stride bytes. Sets all but the extent.
  static status repeat(Layout& layout, std::size_t count, std::ptrdiff_t stride);
  /// Places copies at each entry (offset, copies in `first`), `step` bytes apart within an entry. Sets all but the
  /// extent.
  static status set_entries(Layout& layout, std::vector<list_entry> entries, std::ptrdiff_t step);
  static status shift(Layout& layout, std::ptrdiff_t by) noexcept;
  /// Makes it one block of that many bytes at offset 0.
  static status make_block(Layout& layout, std::size_t bytes) noexcept {
    layout = Layout();
    return layout.set_strided(1, bytes, 0) ? status::done : status::bad_size;
  }
  static void set_extent(Layout& layout, std::ptrdiff_t lower, std::size_t extent) noexcept {
    layout.extent_lower_ = lower;
    layout.extent_ = extent;
  }

  static layout_grain grain(const Layout& layout) noexcept {
    if (layout.node_ == nullptr) return {layout.block_, static_cast<std::size_t>(layout.stride_), layout.offset_};
    layout_grain all = layout.node_->grain;
    all.first += layout.offset_;
    return all;
  }
  static const layout_node* node(const Layout& layout) noexcept { return layout.node_.get(); }
  static std::size_t block(const Layout& layout) noexcept { return layout.block_; }
  static std::ptrdiff_t stride(const Layout& layout) noexcept { return layout.stride_; }
  static std::ptrdiff_t offset(const Layout& layout) noexcept { return layout.offset_; }

 private:
  static layout_node opened(const Layout& layout, std::size_t blocks);
  static status adopt(Layout& layout, layout_node node);
  static status widen_bounds(Layout& layout, std::ptrdiff_t least, std::ptrdiff_t most) noexcept;
  static status place_simplified(Layout& layout, std::vector<list_entry>& entries, std::ptrdiff_t step, bool dense);
};

}  // namespace rma::detail
