// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layouts: where the bytes of a non-contiguous buffer lie, like an MPI datatype.
///
///   auto column = rma::Layout::vector<double>(rows, 1, columns);           // one column of a matrix
///   auto face = rma::Layout::subarray<float>(sizes, subsizes, starts);     // a box of an array, C order
///   auto pairs = rma::Layout::indexed<int>(2, offsets);                    // two ints at each offset
///   auto both = rma::Layout::structure({{column, 0}, {face, 4096}});       // different layouts, offsets in bytes
///
/// A layout is a sequence of blocks (offset, bytes), which `for_each_block` tells; the data are these bytes in this
/// order. Offsets count from the address that goes with the layout in a call and may be negative. Layouts are immutable
/// values: contiguous and simple strided ones are held inline (no allocation), others share their description.
///
/// These headings hold for every builder below:
///
/// Shape      local
/// Completes  when it returns
/// Memory     none; a layout may be read by any number of threads
/// Units      counts, lengths, offsets and strides in elements of T (or extents of `inner`); of `structure` in bytes
/// Errors     throws Error(bad_size) if a size, offset or bound does not fit in ptrdiff_t, or a count is negative,
///            if a subarray leaves its array, or if nested deeper than 16 levels after simplification
/// Threads    any
/// Cost       contiguous and vector of T: a few instructions; structure of unequal parts O(their blocks), others
///            O(arguments), and may allocate
/// Source     MPI-4.1 chapter 5 (derived datatypes)
/// See        src/datatype/layout.cpp · tests/datatype/layout_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <span>
#include <type_traits>

// Declared before the push: users' code has pointers to them only, and their members are not exported.
namespace rma::detail {
struct layout_node;
struct layout_internals;
}  // namespace rma::detail

#pragma GCC visibility push(default)

namespace rma {

/// A sequence of blocks of bytes. A value: copies share their description. See the top of this file.
class Layout {
 public:
  struct Part;

  /// The layout of no bytes.
  Layout() noexcept = default;

  /// `count` contiguous elements.
  template <class T>
  [[nodiscard]] static Layout contiguous(std::size_t count) {
    return strided(1, count, 0, sizeof(element<T>));
  }
  /// `count` copies of `inner`, each one extent after the one before.
  [[nodiscard]] static Layout contiguous(std::size_t count, const Layout& inner);

  /// `count` blocks of `block_length` elements, `stride` elements from start to start (may be negative).
  template <class T>
  [[nodiscard]] static Layout vector(std::size_t count, std::size_t block_length, std::ptrdiff_t stride) {
    return strided(count, block_length, stride, sizeof(element<T>));
  }
  [[nodiscard]] static Layout vector(std::size_t count, std::size_t block_length, std::ptrdiff_t stride,
                                     const Layout& inner);

  /// Block i has `block_lengths[i]` elements and begins at `offsets[i]`.
  template <class T>
  [[nodiscard]] static Layout indexed(std::span<const std::size_t> block_lengths,
                                      std::span<const std::ptrdiff_t> offsets) {
    return indexed(block_lengths, offsets, contiguous<T>(1));
  }
  [[nodiscard]] static Layout indexed(std::span<const std::size_t> block_lengths,
                                      std::span<const std::ptrdiff_t> offsets, const Layout& inner);

  /// Blocks of equal length.
  template <class T>
  [[nodiscard]] static Layout indexed(std::size_t block_length, std::span<const std::ptrdiff_t> offsets) {
    return indexed(block_length, offsets, contiguous<T>(1));
  }
  [[nodiscard]] static Layout indexed(std::size_t block_length, std::span<const std::ptrdiff_t> offsets,
                                      const Layout& inner);

  /// The box of `subsizes` elements that begins at `starts` in an array of `sizes`; the last dimension varies
  /// fastest (C order). The extent is that of the whole array.
  template <class T>
  [[nodiscard]] static Layout subarray(std::span<const std::size_t> sizes, std::span<const std::size_t> subsizes,
                                       std::span<const std::size_t> starts) {
    return subarray(sizes, subsizes, starts, contiguous<T>(1));
  }
  [[nodiscard]] static Layout subarray(std::span<const std::size_t> sizes, std::span<const std::size_t> subsizes,
                                       std::span<const std::size_t> starts, const Layout& inner);

  /// A sequence of different layouts, each at an offset in bytes, like MPI_Type_create_struct.
  [[nodiscard]] static Layout structure(std::span<const Part> parts);
  [[nodiscard]] static Layout structure(std::initializer_list<Part> parts);

  /// The bytes of `inner`, with another extent: copies of it in other layouts lie `extent` bytes apart (0 or more).
  /// `lower` is the lower bound of the extent; it moves no data.
  [[nodiscard]] static Layout resized(const Layout& inner, std::ptrdiff_t lower, std::size_t extent);

  /// The blocks of `inner`, moved by `by` bytes.
  [[nodiscard]] static Layout shifted(const Layout& inner, std::ptrdiff_t by);

  /// Number of bytes of data.
  [[nodiscard]] std::size_t bytes() const noexcept { return bytes_; }
  /// Offset of the lowest byte from the buffer's address; 0 if there is none.
  [[nodiscard]] std::ptrdiff_t lower() const noexcept { return lower_; }
  /// Offset of the byte behind the highest one.
  [[nodiscard]] std::ptrdiff_t upper() const noexcept { return upper_; }
  /// Distance in bytes of copies of this layout in a larger one.
  [[nodiscard]] std::size_t extent() const noexcept { return extent_; }
  /// The lower bound of the extent, like MPI's.
  [[nodiscard]] std::ptrdiff_t extent_lower() const noexcept { return extent_lower_; }
  /// Number of contiguous blocks after simplification.
  [[nodiscard]] std::size_t blocks() const noexcept { return blocks_; }
  /// Calls `visit(offset, bytes)` for each block in the order of the data, `blocks()` times: the offset from the
  /// buffer's address, and the length. An exception from it ends the walk. Cost       an indirect call for each block
  template <class Visit>
    requires std::is_invocable_v<Visit&, std::ptrdiff_t, std::size_t>
  void for_each_block(Visit&& visit) const {
    walk(
        [](void* to, std::ptrdiff_t offset, std::size_t bytes) {
          static_cast<void>((*static_cast<std::remove_reference_t<Visit>*>(to))(offset, bytes));
        },
        const_cast<void*>(static_cast<const void*>(std::addressof(visit))));
  }
  /// True if the data are the bytes [lower(), upper()) in order, or none. Note that lower() may differ from 0.
  [[nodiscard]] bool is_contiguous() const noexcept { return blocks_ <= 1; }

  /// True if both select the same bytes in the same order and have the same extent, however they were built.
  friend bool operator==(const Layout& a, const Layout& b) noexcept { return a.same_as(b); }
  /// Equal layouts have equal hashes. The cost grows with the number of blocks only for irregular layouts.
  [[nodiscard]] std::size_t hash() const noexcept;

 private:
  friend struct detail::layout_internals;

  template <class T>
  struct checked {
    static_assert(std::is_trivially_copyable_v<T>, "rma::Layout needs a trivially copyable T: bytes travel");
    using type = T;
  };
  template <class T>
  using element = typename checked<T>::type;

  static Layout strided(std::size_t count, std::size_t block_length, std::ptrdiff_t stride, std::size_t element_bytes) {
    std::size_t block = 0;
    std::ptrdiff_t stride_bytes = 0;
    if (count <= 1 || block_length == 0) stride = 0;
    const bool bad = __builtin_mul_overflow(block_length, element_bytes, &block) ||
                     __builtin_mul_overflow(stride, static_cast<std::ptrdiff_t>(element_bytes), &stride_bytes);
    Layout made;
    if (bad || !made.set_strided(count, block, stride_bytes)) [[unlikely]]
      too_large();
    return made;
  }

  /// Sets this layout to `count` blocks from offset 0 on; false if a bound overflows.
  bool set_strided(std::size_t count, std::size_t block, std::ptrdiff_t stride) noexcept {
    std::ptrdiff_t last = 0;
    std::ptrdiff_t end = 0;
    std::ptrdiff_t data = 0;
    if (count == 0 || block == 0) return true;
    if (__builtin_mul_overflow(count, block, &data) || __builtin_mul_overflow(count - 1, stride, &last)) return false;
    if (last == PTRDIFF_MIN) return false;
    const std::ptrdiff_t span = last < 0 ? -last : last;
    if (__builtin_add_overflow(span, block, &end)) return false;
    bytes_ = static_cast<std::size_t>(data);
    lower_ = last < 0 ? last : 0;
    upper_ = lower_ + end;
    extent_ = static_cast<std::size_t>(end);
    extent_lower_ = lower_;
    if (count == 1 || stride == static_cast<std::ptrdiff_t>(block)) {
      blocks_ = 1;
      block_ = bytes_;
    } else {
      blocks_ = count;
      block_ = block;
      stride_ = stride;
      offset_ = 0;
    }
    return true;
  }

  void walk(void (*visit)(void*, std::ptrdiff_t, std::size_t), void* to) const;
  [[noreturn]] static void too_large();
  bool same_as(const Layout& other) const noexcept;

  // Without a node: `blocks_` blocks of `block_` bytes, the first at `offset_`, `stride_` apart. With a node:
  // `offset_` is added to all of the node's offsets, and blocks_ is the number of its blocks.
  std::size_t bytes_ = 0;
  std::size_t blocks_ = 0;
  std::size_t block_ = 0;
  std::ptrdiff_t stride_ = 0;
  std::ptrdiff_t offset_ = 0;
  std::ptrdiff_t lower_ = 0;
  std::ptrdiff_t upper_ = 0;
  std::ptrdiff_t extent_lower_ = 0;
  std::size_t extent_ = 0;
  std::shared_ptr<const detail::layout_node> node_;
};

/// One part of a structure: `count` copies of `layout`, one extent apart, the first `offset` bytes from its start.
struct Layout::Part {
  Layout layout;              ///< layout of one copy
  std::ptrdiff_t offset = 0;  ///< offset of the first copy in bytes
  std::size_t count = 1;      ///< number of copies
};

inline Layout Layout::structure(std::initializer_list<Part> parts) {
  return structure(std::span<const Part>(parts.begin(), parts.size()));
}

}  // namespace rma

#pragma GCC visibility pop

/// Equal layouts have equal hashes.
template <>
struct std::hash<rma::Layout> {
  /// Returns Layout::hash().
  std::size_t operator()(const rma::Layout& layout) const noexcept { return layout.hash(); }
};
