// SPDX-License-Identifier: Apache-2.0
#include "rma/layout.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "core/assert.hpp"
#include "datatype/copy.hpp"
#include "datatype/layout_node.hpp"
#include "rma/error.hpp"

namespace rma {
namespace {

using internals = detail::layout_internals;

[[noreturn]] void reject(const char* builder, const char* why) {
  throw Error(status::bad_size, std::string("Layout::") + builder + ": " + why);
}

constexpr const char* too_large_text =
    "a count, offset or bound does not fit in ptrdiff_t (was a negative number given?), or levels nest too deep";

void require(status s, const char* builder) {
  if (s != status::done) reject(builder, too_large_text);
}

std::ptrdiff_t times(std::ptrdiff_t factor, std::size_t extent, const char* builder) {
  std::ptrdiff_t product = 0;
  if (__builtin_mul_overflow(factor, extent, &product)) reject(builder, too_large_text);
  return product;
}

std::ptrdiff_t plus(std::ptrdiff_t a, std::ptrdiff_t b, const char* builder) {
  std::ptrdiff_t sum = 0;
  if (__builtin_add_overflow(a, b, &sum)) reject(builder, too_large_text);
  return sum;
}

std::ptrdiff_t as_signed(std::size_t n, const char* builder) {
  if (n > static_cast<std::size_t>(PTRDIFF_MAX)) reject(builder, too_large_text);
  return static_cast<std::ptrdiff_t>(n);
}

/// The common part of both forms of `indexed`.
template <class LengthOf>
Layout placed(const Layout& inner, std::span<const std::ptrdiff_t> offsets, LengthOf length_of) {
  std::vector<detail::list_entry> entries;
  entries.reserve(offsets.size() + 1);  // and the sentinel
  std::ptrdiff_t least = PTRDIFF_MAX;
  std::ptrdiff_t end = PTRDIFF_MIN;
  std::size_t last_length = 0;
  std::ptrdiff_t bytes = 0;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const std::size_t length = length_of(i);
    if (length == 0) continue;
    if (length != last_length) bytes = times(as_signed(length, "indexed"), inner.extent(), "indexed");
    last_length = length;
    const std::ptrdiff_t at = times(offsets[i], inner.extent(), "indexed");
    least = std::min(least, at);
    end = std::max(end, plus(at, bytes, "indexed"));
    entries.push_back({at, length});
  }
  Layout made = inner;
  if (entries.empty()) return {};
  require(internals::set_entries(made, std::move(entries), as_signed(inner.extent(), "indexed")), "indexed");
  std::ptrdiff_t extent = 0;
  if (__builtin_sub_overflow(end, least, &extent)) reject("indexed", too_large_text);
  internals::set_extent(made, plus(least, inner.extent_lower(), "indexed"), static_cast<std::size_t>(extent));
  return made;
}

bool same_lists(const detail::layout_level& a, const detail::layout_level& b) noexcept {
  if (a.list == b.list) return true;
  if (a.list == nullptr || b.list == nullptr) return false;
  return std::equal(a.list->begin(), a.list->end(), b.list->begin(), b.list->end(),
                    [](const auto& x, const auto& y) { return x.offset == y.offset && x.first == y.first; });
}

bool same_nodes(const detail::layout_node& a, const detail::layout_node& b) noexcept {
  return a.block == b.block && std::equal(a.levels.begin(), a.levels.end(), b.levels.begin(), b.levels.end(),
                                          [](const auto& x, const auto& y) {
                                            return x.count == y.count && x.stride == y.stride && same_lists(x, y);
                                          });
}

/// True if both select the same bytes in the same order, whatever their blocks.
bool same_bytes(const Layout& a, const Layout& b) noexcept {
  RMA_ASSERT(a.bytes() == b.bytes());
  detail::cursor first(a), second(b);
  bool same = true;
  while (same && first.remaining() > 0) {
    const detail::block x = first.front(), y = second.front();
    const std::size_t bytes = std::min(x.bytes, y.bytes);
    same = x.offset == y.offset;
    first.advance_in_block(bytes);
    second.advance_in_block(bytes);
  }
  RMA_ASSERT(first.remaining() == second.remaining());
  return same;
}

/// Appends all blocks of a part to the list, each with its length in `first`.
void append_blocks(std::vector<detail::list_entry>& entries, const Layout::Part& part) {
  for (std::size_t i = 0; i < part.count && part.layout.bytes() != 0; ++i) {
    const std::ptrdiff_t copy = times(as_signed(i, "structure"), part.layout.extent(), "structure");
    const std::ptrdiff_t base = plus(part.offset, copy, "structure");
    (void)plus(base, part.layout.lower(), "structure");
    (void)plus(base, part.layout.upper(), "structure");
    detail::for_each_block(part.layout, [&](std::ptrdiff_t at, std::size_t bytes) {
      entries.push_back({base + at, bytes});
    });
  }
}

}  // namespace

void Layout::too_large() { reject("contiguous or vector", too_large_text); }

bool Layout::same_as(const Layout& other) const noexcept {
  if (bytes_ != other.bytes_ || lower_ != other.lower_ || upper_ != other.upper_ || extent_ != other.extent_ ||
      extent_lower_ != other.extent_lower_) {
    return false;
  }
  const bool simple = node_ == other.node_ && block_ == other.block_ && stride_ == other.stride_;
  if (simple && blocks_ == other.blocks_ && offset_ == other.offset_) return true;
  if (node_ != nullptr && other.node_ != nullptr && offset_ == other.offset_ && same_nodes(*node_, *other.node_))
    return true;
  return hash() == other.hash() && same_bytes(*this, other);
}

Layout Layout::contiguous(std::size_t count, const Layout& inner) {
  const std::ptrdiff_t extent = times(as_signed(count, "contiguous"), inner.extent(), "contiguous");
  Layout made = inner;
  require(internals::repeat(made, count, as_signed(inner.extent(), "contiguous")), "contiguous");
  internals::set_extent(made, count == 0 ? 0 : inner.extent_lower(), static_cast<std::size_t>(extent));
  return made;
}

Layout Layout::vector(std::size_t count, std::size_t block_length, std::ptrdiff_t stride, const Layout& inner) {
  if (count == 0 || block_length == 0) return {};
  const std::ptrdiff_t block_extent = times(as_signed(block_length, "vector"), inner.extent(), "vector");
  const std::ptrdiff_t stride_bytes = count == 1 ? 0 : times(stride, inner.extent(), "vector");
  const std::ptrdiff_t last = times(stride_bytes, count - 1, "vector");
  if (last == PTRDIFF_MIN) reject("vector", too_large_text);
  const std::ptrdiff_t extent = plus(last < 0 ? -last : last, block_extent, "vector");
  const std::ptrdiff_t lower = plus(inner.extent_lower(), std::min<std::ptrdiff_t>(last, 0), "vector");
  Layout made = inner;
  require(internals::repeat(made, block_length, as_signed(inner.extent(), "vector")), "vector");
  require(internals::repeat(made, count, stride_bytes), "vector");
  internals::set_extent(made, lower, static_cast<std::size_t>(extent));
  return made;
}

Layout Layout::indexed(std::span<const std::size_t> block_lengths, std::span<const std::ptrdiff_t> offsets,
                       const Layout& inner) {
  if (block_lengths.size() != offsets.size()) {
    reject("indexed", "there must be as many block lengths as offsets");
  }
  return placed(inner, offsets, [&](std::size_t i) { return block_lengths[i]; });
}

Layout Layout::indexed(std::size_t block_length, std::span<const std::ptrdiff_t> offsets, const Layout& inner) {
  return placed(inner, offsets, [&](std::size_t) { return block_length; });
}

Layout Layout::subarray(std::span<const std::size_t> sizes, std::span<const std::size_t> subsizes,
                        std::span<const std::size_t> starts, const Layout& inner) {
  if (sizes.size() != subsizes.size() || sizes.size() != starts.size() || sizes.empty()) {
    reject("subarray", "sizes, subsizes and starts must have the same number of dimensions, at least 1");
  }
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (starts[d] > sizes[d] || subsizes[d] > sizes[d] - starts[d]) {
      reject("subarray", "the box must lie inside the array: starts + subsizes <= sizes in each dimension");
    }
  }
  Layout made = inner;
  std::ptrdiff_t row = as_signed(inner.extent(), "subarray");
  std::ptrdiff_t offset = 0;
  for (std::size_t d = sizes.size(); d-- > 0;) {
    require(internals::repeat(made, subsizes[d], row), "subarray");
    const auto row_bytes = static_cast<std::size_t>(row);
    offset = plus(offset, times(as_signed(starts[d], "subarray"), row_bytes, "subarray"), "subarray");
    row = times(as_signed(sizes[d], "subarray"), row_bytes, "subarray");
  }
  require(internals::shift(made, offset), "subarray");
  internals::set_extent(made, inner.extent_lower(), static_cast<std::size_t>(row));
  return made;
}

Layout Layout::structure(std::span<const Part> parts) {
  std::ptrdiff_t least = PTRDIFF_MAX;
  std::ptrdiff_t end = PTRDIFF_MIN;
  bool alike = true;
  const Part* first = nullptr;
  for (const Part& part : parts) {
    if (part.count == 0) continue;
    if (first == nullptr) first = &part;
    alike = alike && part.layout == first->layout;
    const std::ptrdiff_t lower = plus(part.offset, part.layout.extent_lower(), "structure");
    const std::ptrdiff_t bytes = times(as_signed(part.count, "structure"), part.layout.extent(), "structure");
    least = std::min(least, lower);
    end = std::max(end, plus(lower, bytes, "structure"));
  }
  if (first == nullptr) return {};
  std::ptrdiff_t extent = 0;
  if (__builtin_sub_overflow(end, least, &extent)) reject("structure", too_large_text);
  std::vector<detail::list_entry> entries;
  Layout made;
  if (alike) {
    for (const Part& part : parts) entries.push_back({part.offset, part.count});
    made = first->layout;
    require(internals::set_entries(made, std::move(entries), as_signed(made.extent(), "structure")), "structure");
  } else {
    for (const Part& part : parts) append_blocks(entries, part);
    require(internals::make_block(made, 1), "structure");
    require(internals::set_entries(made, std::move(entries), 1), "structure");
  }
  internals::set_extent(made, least, static_cast<std::size_t>(extent));
  return made;
}

Layout Layout::resized(const Layout& inner, std::ptrdiff_t lower, std::size_t extent) {
  as_signed(extent, "resized");
  Layout made = inner;
  internals::set_extent(made, lower, extent);
  return made;
}

Layout Layout::shifted(const Layout& inner, std::ptrdiff_t by) {
  Layout made = inner;
  require(internals::shift(made, by), "shifted");
  internals::set_extent(made, plus(inner.extent_lower(), by, "shifted"), inner.extent());
  return made;
}

void Layout::walk(void (*visit)(void*, std::ptrdiff_t, std::size_t), void* to) const {
  detail::for_each_block(*this, [=](std::ptrdiff_t offset, std::size_t bytes) { visit(to, offset, bytes); });
}

}  // namespace rma
