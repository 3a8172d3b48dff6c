// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operands of collectives in memory: they are copied to and from slots, and combined by the tree of `reproducible`.
#pragma once

#include <bit>
#include <cstddef>
#include <cstring>

#include "coll/elements.hpp"
#include "core/assert.hpp"
#include "datatype/copy.hpp"

namespace rma::detail::coll {

/// Copies bytes [offset, offset + bytes) of the data at `from`, which may have a layout, into contiguous memory.
inline void load_bytes(std::byte* into, const void* from, const collective_shape& shape, std::size_t offset,
                       std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (shape.one != nullptr) {
    pack(into, from, *shape.one, offset, bytes);
  } else {
    std::memcpy(into, static_cast<const std::byte*>(from) + offset, bytes);
  }
}
/// The reverse: `shape` describes the data at `into`.
inline void store_bytes(void* into, const collective_shape& shape, const std::byte* from, std::size_t offset,
                        std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (shape.one != nullptr) {
    unpack(into, from, *shape.one, offset, bytes);
  } else {
    std::memcpy(static_cast<std::byte*>(into) + offset, from, bytes);
  }
}
/// Copies bytes [offset, offset + bytes) of the operand into contiguous memory.
inline void load_operand(std::byte* into, const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  RMA_ASSERT(offset + bytes <= c.bytes);
  load_bytes(into, c.in, c.in_shape, offset, bytes);
}
/// Copies contiguous memory to bytes [offset, offset + bytes) of the result.
inline void store_result(const collective_call& c, const std::byte* from, std::size_t offset,
                         std::size_t bytes) noexcept {
  RMA_ASSERT(offset + bytes <= c.bytes);
  store_bytes(c.out, c.out_shape, from, offset, bytes);
}

/// Combines operands [first, last): the largest power of two of them, then the rest, each in the same way. `operand(r)`
/// returns the address of operand r; `spare` has room for one operand for each level of the tree.
template <class Operand>
void combine_operands(const collective_call& c, const Operand& operand, int first, int last, std::size_t bytes,
                      std::byte* into, std::byte* spare, std::size_t spare_bytes) noexcept {
  RMA_ASSERT(first < last);
  if (last - first == 1) {
    std::memcpy(into, operand(first), bytes);
    return;
  }
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  combine_operands(c, operand, first, first + left, bytes, into, spare, spare_bytes);
  if (last - first - left == 1) {
    combine_elements(c, into, operand(first + left), bytes, false);
    return;
  }
  combine_operands(c, operand, first + left, last, bytes, spare, spare + spare_bytes, spare_bytes);
  combine_elements(c, into, spare, bytes, false);
}

}  // namespace rma::detail::coll
