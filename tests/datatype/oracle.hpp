// SPDX-License-Identifier: Apache-2.0
/// \file
/// A layout as a plain list of byte offsets, built by the same calls as rma::Layout and with none of its cleverness.
#pragma once

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "rma/layout.hpp"

namespace rma::test {

using random_engine = std::mt19937_64;

/// Catch2 prints its seed with the test's results; --rng-seed replays it.
inline random_engine engine_of_this_run() { return random_engine(Catch::rngSeed()); }

template <class T>
T between(random_engine& random, T least, T most) {
  return std::uniform_int_distribution<T>(least, most)(random);
}

struct oracle {
  std::vector<std::ptrdiff_t> bytes;  ///< offset of every data byte, in order
  std::ptrdiff_t extent = 0;
  std::ptrdiff_t extent_lower = 0;
};

inline oracle oracle_of_element(std::ptrdiff_t element_bytes) {
  oracle made;
  for (std::ptrdiff_t i = 0; i < element_bytes; ++i) made.bytes.push_back(i);
  made.extent = element_bytes;
  return made;
}

/// `length` copies of inner one extent apart, from each of `offsets` (in extents) on.
inline oracle oracle_of_blocks(const oracle& inner, const std::vector<std::size_t>& lengths,
                               const std::vector<std::ptrdiff_t>& offsets) {
  oracle made;
  std::ptrdiff_t least = PTRDIFF_MAX;
  std::ptrdiff_t most = PTRDIFF_MIN;
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    for (std::size_t j = 0; j < lengths[i]; ++j) {
      const std::ptrdiff_t at = (offsets[i] + static_cast<std::ptrdiff_t>(j)) * inner.extent;
      for (const std::ptrdiff_t byte : inner.bytes) made.bytes.push_back(at + byte);
      least = std::min(least, at);
      most = std::max(most, at + inner.extent);
    }
  }
  if (least == PTRDIFF_MAX) return made;
  made.extent = most - least;
  made.extent_lower = least + inner.extent_lower;
  return made;
}

struct pair_of_both {
  Layout layout;
  oracle plain;
};

pair_of_both random_layout(random_engine& random, int depth);

/// Memory that a layout can be applied to, whatever its bounds.
class arena {
 public:
  explicit arena(const Layout& layout, unsigned char fill = 0)
      : lower_(layout.lower()), bytes_(static_cast<std::size_t>(layout.upper() - layout.lower()), fill) {}
  /// The address from which the layout's offsets count. It may lie outside the arena: an address, not a pointer into
  /// it.
  void* base() {
    return reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(bytes_.data()) -
                                   static_cast<std::uintptr_t>(lower_));
  }
  unsigned char& at(std::ptrdiff_t offset) { return bytes_[static_cast<std::size_t>(offset - lower_)]; }
  std::vector<unsigned char>& all() { return bytes_; }

 private:
  std::ptrdiff_t lower_;
  std::vector<unsigned char> bytes_;
};

/// The data of `plain` in memory, in order.
inline std::vector<unsigned char> data_of(arena& memory, const oracle& plain) {
  std::vector<unsigned char> data;
  for (const std::ptrdiff_t offset : plain.bytes) data.push_back(memory.at(offset));
  return data;
}

inline void fill_randomly(std::vector<unsigned char>& bytes, random_engine& random) {
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>(random());
}

inline bool overlaps_itself(const oracle& plain) {
  std::vector<std::ptrdiff_t> sorted = plain.bytes;
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

}  // namespace rma::test
