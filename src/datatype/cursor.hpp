// SPDX-License-Identifier: Apache-2.0
/// \file
/// A position in a layout's data that can be stored, advanced, and started at any byte.
#pragma once

#include <array>
#include <cstddef>

#include "core/assert.hpp"
#include "datatype/layout_node.hpp"

namespace rma::detail {

/// A range of contiguous bytes.
struct block {
  std::ptrdiff_t offset;
  std::size_t bytes;
};

/// Equal blocks at equal distances: the unit of copies.
struct block_run {
  std::ptrdiff_t offset = 0;  ///< offset of the first block
  std::size_t bytes = 0;      ///< size of each block
  std::ptrdiff_t stride = 0;
  std::size_t count = 0;  ///< blocks
};

/// Blocks of any size at any place: number i has entries[i + 1].first - entries[i].first bytes.
struct block_list {
  std::ptrdiff_t origin = 0;  ///< added to the offsets
  const list_entry* entries = nullptr;
  std::size_t count = 0;
  std::size_t bytes = 0;  ///< size of each block; 0: they differ
};

/// Equal runs at equal distances.
struct run_repeat {
  std::ptrdiff_t stride = 0;  ///< between the first blocks of two runs
  std::size_t count = 1;      ///< runs
};

/// Adds `steps` strides. Blocks lie inside the layout's checked bounds, but an intermediate sum (levels far apart in
/// both directions, the place after the last row) may not: it wraps.
inline std::ptrdiff_t moved(std::ptrdiff_t offset, std::ptrdiff_t stride, std::size_t steps) noexcept {
  return static_cast<std::ptrdiff_t>(static_cast<std::size_t>(offset) + static_cast<std::size_t>(stride) * steps);
}

/// Walks the blocks of a layout in order. Refers to the layout, which must outlive it. Neither allocates nor recurses.
class cursor {
 public:
  explicit cursor(const Layout& layout, std::size_t from_byte = 0) noexcept;
  /// Over that many bytes from offset 0 on.
  static cursor contiguous(std::size_t bytes) noexcept {
    cursor all;
    all.remaining_ = bytes;
    if (bytes != 0) all.run_ = {0, bytes, 0, 1};
    return all;
  }

  /// Bytes from here to the end.
  [[nodiscard]] std::size_t remaining() const noexcept { return remaining_; }

  /// The rest of the current block; 0 bytes at the end.
  [[nodiscard]] block front() const noexcept {
    return {run_.offset + static_cast<std::ptrdiff_t>(skipped_), run_.bytes - skipped_};
  }

  /// The current run from the current block on. If `skipped()` is not 0, its first block has been begun.
  [[nodiscard]] const block_run& run() const noexcept { return run_; }
  [[nodiscard]] std::size_t skipped() const noexcept { return skipped_; }

  /// At the beginning of a block of an irregular level: that block and those after it in the same list, where `first`
  /// is a running sum of bytes. Otherwise no blocks. The cursor is not needed to walk them.
  [[nodiscard]] block_list irregular_blocks() const noexcept;
  /// Advances over `count` of them, not 0, which have that many bytes.
  void advance_irregular(std::size_t count, std::size_t bytes) noexcept;

  /// The runs that follow the current one without a gap in a list, itself included: the two innermost levels of a
  /// nested vector. It is alone if one of its blocks has been begun or passed.
  [[nodiscard]] run_repeat repeats() const noexcept;
  /// Advances over `count` of them, not 0.
  void advance_runs(std::size_t count) noexcept;

  /// Advances inside the current block, at most to its end.
  void advance_in_block(std::size_t bytes) noexcept {
    RMA_ASSERT(bytes <= run_.bytes - skipped_);
    skipped_ += bytes;
    remaining_ -= bytes;
    if (skipped_ == run_.bytes) {
      skipped_ = 0;
      drop_blocks(1);
    }
  }

  /// Advances over whole blocks of the current run; none may have been begun.
  void advance_blocks(std::size_t count) noexcept {
    RMA_ASSERT(skipped_ == 0 && count <= run_.count);
    remaining_ -= count * run_.bytes;
    drop_blocks(count);
  }

  /// Advances by any number of bytes up to `remaining()`.
  void advance(std::size_t bytes) noexcept;

 private:
  // tidy: the arrays are left uninitialized on purpose, a layout of two levels shall not pay for sixteen.
  cursor() noexcept {}  // NOLINT(cppcoreguidelines-pro-type-member-init,modernize-use-equals-default)
  void drop_blocks(std::size_t count) noexcept {
    run_.count -= count;
    run_.offset = moved(run_.offset, run_.stride, count);
    if (run_.count == 0) next_run();
  }
  void next_run() noexcept;
  void seek(std::size_t byte) noexcept;
  /// The offset of the current copy at level k, given the origin of that level.
  std::ptrdiff_t origin_below(std::size_t k) const noexcept;
  bool step(std::size_t k) noexcept;
  void load_run() noexcept;

  block_run run_;
  std::size_t skipped_ = 0;  ///< bytes of the run's first block that have been passed
  std::size_t remaining_ = 0;
  const layout_node* node_ = nullptr;
  // For each level: its origin, its current copy, and the entry of that copy. Only those of the node are set.
  std::array<std::ptrdiff_t, layout_levels_max> origin_;
  std::array<std::size_t, layout_levels_max> copy_;
  std::array<std::size_t, layout_levels_max> entry_;
};

}  // namespace rma::detail
