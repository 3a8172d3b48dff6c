// SPDX-License-Identifier: Apache-2.0
#include "datatype/oracle.hpp"

#include <array>

namespace rma::test {
namespace {

pair_of_both random_element(random_engine& random) {
  switch (between(random, 0, 3)) {
    case 0: return {Layout::contiguous<char>(1), oracle_of_element(1)};
    case 1: return {Layout::contiguous<int>(1), oracle_of_element(4)};
    case 2: return {Layout::contiguous<double>(1), oracle_of_element(8)};
    default: return {Layout::contiguous<std::array<char, 3>>(1), oracle_of_element(3)};
  }
}

pair_of_both random_vector(random_engine& random, const pair_of_both& inner) {
  const auto count = between<std::size_t>(random, 0, 4);
  const auto length = between<std::size_t>(random, 0, 3);
  const auto stride = between<std::ptrdiff_t>(random, -5, 5);
  std::vector<std::ptrdiff_t> offsets;
  for (std::size_t i = 0; i < count; ++i) offsets.push_back(static_cast<std::ptrdiff_t>(i) * stride);
  return {Layout::vector(count, length, stride, inner.layout),
          oracle_of_blocks(inner.plain, std::vector<std::size_t>(count, length), offsets)};
}

pair_of_both random_indexed(random_engine& random, const pair_of_both& inner, bool equal_lengths) {
  const auto count = between<std::size_t>(random, 0, 5);
  std::vector<std::size_t> lengths;
  std::vector<std::ptrdiff_t> offsets;
  const auto length = between<std::size_t>(random, 0, 3);
  std::ptrdiff_t next = 0;
  for (std::size_t i = 0; i < count; ++i) {
    lengths.push_back(equal_lengths ? length : between<std::size_t>(random, 0, 3));
    // Often right behind the block before, so that joining them is tried.
    offsets.push_back(between(random, 0, 2) == 0 ? next : between<std::ptrdiff_t>(random, -9, 9));
    next = offsets.back() + static_cast<std::ptrdiff_t>(lengths.back());
  }
  const oracle plain = oracle_of_blocks(inner.plain, lengths, offsets);
  if (equal_lengths) return {Layout::indexed(length, offsets, inner.layout), plain};
  return {Layout::indexed(lengths, offsets, inner.layout), plain};
}

pair_of_both random_subarray(random_engine& random, const pair_of_both& inner) {
  const auto dimensions = between<std::size_t>(random, 1, 3);
  std::vector<std::size_t> sizes, subsizes, starts;
  for (std::size_t d = 0; d < dimensions; ++d) {
    sizes.push_back(between<std::size_t>(random, 1, 4));
    subsizes.push_back(between<std::size_t>(random, between(random, 0, 7) == 0 ? 0 : 1, sizes[d]));
    starts.push_back(between<std::size_t>(random, 0, sizes[d] - subsizes[d]));
  }
  std::vector<std::ptrdiff_t> offsets;
  std::ptrdiff_t all = 1;
  for (const std::size_t size : sizes) all *= static_cast<std::ptrdiff_t>(size);
  for (std::ptrdiff_t i = 0; i < all; ++i) {
    std::size_t rest = static_cast<std::size_t>(i);
    bool inside = true;
    for (std::size_t d = dimensions; d-- > 0; rest /= sizes[d]) {
      const std::size_t x = rest % sizes[d];
      inside = inside && x >= starts[d] && x < starts[d] + subsizes[d];
    }
    if (inside) offsets.push_back(i);
  }
  oracle plain = oracle_of_blocks(inner.plain, std::vector<std::size_t>(offsets.size(), 1), offsets);
  plain.extent = all * inner.plain.extent;
  plain.extent_lower = inner.plain.extent_lower;
  return {Layout::subarray(sizes, subsizes, starts, inner.layout), plain};
}

pair_of_both random_resized(random_engine& random, pair_of_both inner) {
  inner.plain.extent = between<std::ptrdiff_t>(random, 0, inner.plain.extent + 9);
  inner.plain.extent_lower = between<std::ptrdiff_t>(random, -9, 9);
  inner.layout = Layout::resized(inner.layout, inner.plain.extent_lower, static_cast<std::size_t>(inner.plain.extent));
  return inner;
}

pair_of_both random_contiguous(random_engine& random, const pair_of_both& inner) {
  const auto count = between<std::size_t>(random, 0, 4);
  return {Layout::contiguous(count, inner.layout), oracle_of_blocks(inner.plain, {count}, {0})};
}

pair_of_both random_shifted(random_engine& random, pair_of_both inner) {
  const auto by = between<std::ptrdiff_t>(random, -20, 20);
  for (std::ptrdiff_t& byte : inner.plain.bytes) byte += by;
  inner.plain.extent_lower += by;
  inner.layout = Layout::shifted(inner.layout, by);
  return inner;
}

/// Different layouts, often one right behind the other.
pair_of_both random_structure(random_engine& random, int depth, const pair_of_both& first) {
  std::vector<Layout::Part> parts;
  pair_of_both made{{}, {}};
  std::ptrdiff_t least = PTRDIFF_MAX, most = PTRDIFF_MIN, next = 0;
  for (int n = between(random, 1, 3); n > 0; --n) {
    const pair_of_both inner = parts.empty() || between(random, 0, 2) == 0 ? first : random_layout(random, depth - 1);
    const auto count = between<std::size_t>(random, 0, 3);
    const std::ptrdiff_t offset = between(random, 0, 2) == 0 ? next : between<std::ptrdiff_t>(random, -99, 99);
    parts.push_back({inner.layout, offset, count});
    if (count == 0) continue;
    for (std::size_t i = 0; i < count; ++i) {
      for (const std::ptrdiff_t byte : inner.plain.bytes)
        made.plain.bytes.push_back(offset + static_cast<std::ptrdiff_t>(i) * inner.plain.extent + byte);
    }
    const std::ptrdiff_t bytes = static_cast<std::ptrdiff_t>(count) * inner.plain.extent;
    least = std::min(least, offset + inner.plain.extent_lower);
    most = std::max(most, offset + inner.plain.extent_lower + bytes);
    next = offset + bytes;
  }
  if (least != PTRDIFF_MAX) {
    made.plain.extent = most - least;
    made.plain.extent_lower = least;
  }
  made.layout = Layout::structure(parts);
  return made;
}

}  // namespace

pair_of_both random_layout(random_engine& random, int depth) {
  if (depth == 0) return random_element(random);
  const pair_of_both inner = random_layout(random, depth - 1);
  if (inner.plain.bytes.size() > 3000) return inner;
  switch (between(random, 0, 7)) {
    case 0: return random_contiguous(random, inner);
    case 1: return random_vector(random, inner);
    case 2: return random_indexed(random, inner, false);
    case 3: return random_indexed(random, inner, true);
    case 4: return random_subarray(random, inner);
    case 5: return random_resized(random, inner);
    case 6: return random_structure(random, depth, inner);
    default: return random_shifted(random, inner);
  }
}

}  // namespace rma::test
