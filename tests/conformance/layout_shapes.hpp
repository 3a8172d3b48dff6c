// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layouts together with an oracle: the offset of every byte in order, and the extent, worked out by the plain rules
/// of MPI's datatypes without looking at the library.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include <rma/layout.hpp>

namespace conformance {

struct shape {
  rma::Layout layout;
  std::vector<std::ptrdiff_t> bytes;  ///< offset of each byte of data, in the order of the data
  std::ptrdiff_t low = 0;             ///< where the extent begins
  std::size_t extent = 0;

  [[nodiscard]] std::ptrdiff_t first() const { return bytes.empty() ? 0 : std::ranges::min(bytes); }
  [[nodiscard]] std::ptrdiff_t end() const { return bytes.empty() ? 0 : std::ranges::max(bytes) + 1; }
};

/// `count` bytes in a row, as elements of `granule` bytes.
inline shape row(std::size_t granule, std::size_t count) {
  shape s;
  switch (granule) {
    case 2: s.layout = rma::Layout::contiguous<std::uint16_t>(count); break;
    case 4: s.layout = rma::Layout::contiguous<std::uint32_t>(count); break;
    case 8: s.layout = rma::Layout::contiguous<double>(count); break;
    default: s.layout = rma::Layout::contiguous<std::uint8_t>(count * granule); break;
  }
  s.extent = count * granule;
  for (std::size_t i = 0; i < s.extent; ++i) s.bytes.push_back(static_cast<std::ptrdiff_t>(i));
  return s;
}

/// Copies of `inner` at `places`, which count extents; a zero-length result is not meant.
inline shape copies(const shape& inner, const std::vector<std::ptrdiff_t>& places, rma::Layout layout) {
  shape s;
  s.layout = std::move(layout);
  const auto step = static_cast<std::ptrdiff_t>(inner.extent);
  for (const std::ptrdiff_t place : places) {
    for (const std::ptrdiff_t b : inner.bytes) s.bytes.push_back(place * step + b);
  }
  if (places.empty()) return s;
  const std::ptrdiff_t least = std::ranges::min(places);
  s.low = least * step + inner.low;
  s.extent = static_cast<std::size_t>((std::ranges::max(places) - least + 1) * step);
  return s;
}

inline shape repeated(std::size_t count, const shape& inner) {
  std::vector<std::ptrdiff_t> places(count);
  for (std::size_t i = 0; i < count; ++i) places[i] = static_cast<std::ptrdiff_t>(i);
  return copies(inner, places, rma::Layout::contiguous(count, inner.layout));
}

inline shape strided(std::size_t count, std::size_t length, std::ptrdiff_t stride, const shape& inner) {
  std::vector<std::ptrdiff_t> places;
  for (std::size_t i = 0; i < count; ++i) {
    for (std::size_t k = 0; k < length; ++k) {
      places.push_back(static_cast<std::ptrdiff_t>(i) * stride + static_cast<std::ptrdiff_t>(k));
    }
  }
  return copies(inner, places, rma::Layout::vector(count, length, stride, inner.layout));
}

inline shape listed(const std::vector<std::size_t>& lengths, const std::vector<std::ptrdiff_t>& offsets,
                    const shape& inner) {
  std::vector<std::ptrdiff_t> places;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    for (std::size_t k = 0; k < lengths[i]; ++k) places.push_back(offsets[i] + static_cast<std::ptrdiff_t>(k));
  }
  return copies(inner, places, rma::Layout::indexed(std::span(lengths), std::span(offsets), inner.layout));
}

inline shape listed(std::size_t length, const std::vector<std::ptrdiff_t>& offsets, const shape& inner) {
  shape s = listed(std::vector<std::size_t>(offsets.size(), length), offsets, inner);
  s.layout = rma::Layout::indexed(length, std::span(offsets), inner.layout);
  return s;
}

/// A box in an array of up to three dimensions; the extent is the whole array.
inline shape box(const std::vector<std::size_t>& sizes, const std::vector<std::size_t>& parts,
                 const std::vector<std::size_t>& starts, const shape& inner) {
  std::vector<std::ptrdiff_t> places = {0};
  std::size_t cells = 1;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    cells *= sizes[d];
    std::vector<std::ptrdiff_t> next;
    for (const std::ptrdiff_t p : places) {
      for (std::size_t k = 0; k < parts[d]; ++k) {
        next.push_back(p * static_cast<std::ptrdiff_t>(sizes[d]) + static_cast<std::ptrdiff_t>(starts[d] + k));
      }
    }
    places = next;
  }
  shape s =
      copies(inner, places, rma::Layout::subarray(std::span(sizes), std::span(parts), std::span(starts), inner.layout));
  s.low = inner.low;
  s.extent = cells * inner.extent;
  return s;
}

inline shape resized(const shape& inner, std::ptrdiff_t low, std::size_t extent) {
  shape s = inner;
  s.layout = rma::Layout::resized(inner.layout, low, extent);
  s.low = low;
  s.extent = extent;
  return s;
}

inline shape moved(const shape& inner, std::ptrdiff_t by) {
  shape s = inner;
  s.layout = rma::Layout::shifted(inner.layout, by);
  for (std::ptrdiff_t& b : s.bytes) b += by;
  s.low += by;
  return s;
}

/// Different shapes, each at an offset in bytes.
inline shape structure(const std::vector<std::pair<shape, std::ptrdiff_t>>& parts) {
  shape s;
  std::vector<rma::Layout::Part> layouts;
  std::ptrdiff_t least = PTRDIFF_MAX, most = PTRDIFF_MIN;
  for (const auto& [part, offset] : parts) {
    layouts.push_back({part.layout, offset});
    for (const std::ptrdiff_t b : part.bytes) s.bytes.push_back(offset + b);
    least = std::min(least, offset + part.low);
    most = std::max(most, offset + part.low + static_cast<std::ptrdiff_t>(part.extent));
  }
  s.layout = rma::Layout::structure(layouts);
  s.low = least;
  s.extent = static_cast<std::size_t>(most - least);
  return s;
}

/// Bytes around what a test uses, to see what it must not touch.
inline constexpr std::size_t margin = 24;

/// Both sides with the same number of bytes: each repeated as often as the other needs.
inline std::pair<shape, shape> balanced(const shape& a, const shape& b) {
  const std::size_t common = std::gcd(a.bytes.size(), b.bytes.size());
  return {repeated(b.bytes.size() / common, a), repeated(a.bytes.size() / common, b)};
}

/// Where a buffer that holds all bytes of `s` must have its address: `before` bytes in front of the first one.
inline std::size_t base_of(const shape& s, std::size_t before = margin) {
  return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(before) - std::min<std::ptrdiff_t>(0, s.first()));
}

/// Bytes of a part that holds `s` with margins. Its extent may be less: blocks may lie outside of it.
inline std::size_t room_for(const shape& s) {
  return base_of(s) + static_cast<std::size_t>(std::max<std::ptrdiff_t>(0, s.end())) + margin;
}

/// Index of the byte at `offset` from `base`.
inline std::size_t place(std::size_t base, std::ptrdiff_t offset) {
  return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(base) + offset);
}

/// A random nested layout whose bytes do not overlap; everything is a multiple of `granule`.
class random_shapes {
 public:
  random_shapes(std::mt19937_64& random, std::size_t granule) : random_(&random), granule_(granule) {}

  shape make(int depth) {
    if (depth == 0) return row(granule_, 1 + below(5));
    const shape inner = make(depth - 1);
    switch (below(8)) {
      case 0: return repeated(1 + below(4), inner);
      case 1: return made_strided(inner);
      case 2: return listed(1, offsets(1 + below(4), 1), inner);
      case 3: return made_listed(inner);
      case 4: return made_box(inner);
      case 5: return made_resized(inner);
      case 6: return made_structure(depth, inner);
      default: return moved(inner, static_cast<std::ptrdiff_t>(granule_) * (static_cast<std::ptrdiff_t>(below(9)) - 4));
    }
  }

 private:
  std::size_t below(std::size_t n) { return (*random_)() % n; }

  shape made_strided(const shape& inner) {
    const std::size_t length = 1 + below(3);
    const auto stride = static_cast<std::ptrdiff_t>(length + below(4));
    return strided(1 + below(4), length, below(3) == 0 ? -stride : stride, inner);
  }
  std::vector<std::ptrdiff_t> offsets(std::size_t count, std::size_t length) {
    std::vector<std::ptrdiff_t> all;
    auto next = static_cast<std::ptrdiff_t>(below(5)) - 2;
    for (std::size_t i = 0; i < count; ++i) {
      all.push_back(next);
      next += static_cast<std::ptrdiff_t>(length + below(3));
    }
    std::ranges::shuffle(all, *random_);
    return all;
  }
  shape made_listed(const shape& inner) {
    const std::size_t count = 1 + below(4);
    std::vector<std::size_t> lengths(count);
    for (std::size_t& length : lengths) length = 1 + below(3);
    return listed(lengths, offsets(count, 3), inner);
  }
  shape made_box(const shape& inner) {
    const std::size_t dimensions = 1 + below(3);
    std::vector<std::size_t> sizes(dimensions);
    std::vector<std::size_t> parts(dimensions);
    std::vector<std::size_t> starts(dimensions);
    for (std::size_t d = 0; d < dimensions; ++d) {
      sizes[d] = 1 + below(4);
      parts[d] = 1 + below(sizes[d]);
      starts[d] = below(sizes[d] - parts[d] + 1);
    }
    return box(sizes, parts, starts, inner);
  }
  shape made_resized(const shape& inner) {
    const auto span = static_cast<std::size_t>(inner.end() - inner.first());
    const auto low = inner.low + static_cast<std::ptrdiff_t>(granule_) * (static_cast<std::ptrdiff_t>(below(5)) - 2);
    return resized(inner, low, span + granule_ * below(4));
  }
  /// One part behind the other. Copies of it must not overlap, so that its extent holds all of its bytes.
  shape made_structure(int depth, const shape& inner) {
    std::vector<std::pair<shape, std::ptrdiff_t>> parts = {{inner, 0}};
    std::ptrdiff_t end = inner.end();
    for (std::size_t n = below(3); n > 0; --n) {
      shape next = below(3) == 0 ? inner : make(depth - 1);
      const std::ptrdiff_t gap = static_cast<std::ptrdiff_t>(granule_ * below(3));
      const std::ptrdiff_t offset = end + gap - next.first();
      end = offset + next.end();
      parts.emplace_back(std::move(next), offset);
    }
    const shape made = structure(parts);
    const auto span = static_cast<std::size_t>(made.end() - made.first());
    return span <= made.extent ? made : resized(made, made.low, span);
  }

  std::mt19937_64* random_;
  std::size_t granule_;
};

}  // namespace conformance
