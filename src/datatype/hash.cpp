// SPDX-License-Identifier: Apache-2.0
/// \file
/// The hash of a layout: a polynomial over the offsets of its bytes in their order, so that it does not depend on how
/// the layout was built. Copies at equal distances are a power of one affine map, which takes logarithmic time.
#include <cstdint>

#include "core/assert.hpp"
#include "datatype/layout_node.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t base = 0x9e3779b97f4a7c15;
constexpr std::uint64_t per_byte = 0xd1b54a32d192ed03;

/// hash' = scale * hash + by_offset * offset + add; offset' = offset + moved. All numbers wrap.
struct step {
  std::uint64_t scale = 1, by_offset = 0, add = 0, moved = 0;

  /// This map, then `next`.
  [[nodiscard]] step then(const step& next) const noexcept {
    return {scale * next.scale, by_offset * next.scale + next.by_offset,
            add * next.scale + next.by_offset * moved + next.add, moved + next.moved};
  }
  [[nodiscard]] step times(std::uint64_t count) const noexcept {
    step result;
    for (step power = *this; count != 0; count >>= 1, power = power.then(power)) {
      if ((count & 1) != 0) result = result.then(power);
    }
    return result;
  }
  /// The same map, but it leaves the offset `by` beyond its start.
  [[nodiscard]] step moving(std::uint64_t by) const noexcept { return {scale, by_offset, add, by}; }
  /// The same map, `by` further on.
  [[nodiscard]] step at(std::uint64_t by) const noexcept { return {scale, by_offset, add + by_offset * by, moved}; }
};

step block_of(std::uint64_t bytes) noexcept { return step{base, 1, per_byte, 1}.times(bytes).moving(0); }

step level_of(const layout_level& level, const step& inner) noexcept {
  const step copy = inner.moving(static_cast<std::uint64_t>(level.stride));
  if (level.list == nullptr) return copy.times(level.count).moving(0);
  RMA_ASSERT(level.list->size() > 1);
  step all;
  for (std::size_t i = 0; i + 1 < level.list->size(); ++i) {
    const list_entry& entry = (*level.list)[i];
    const std::uint64_t copies = (*level.list)[i + 1].first - entry.first;
    all = all.then(copy.times(copies).moving(0).at(static_cast<std::uint64_t>(entry.offset)));
  }
  return all;
}

step whole(const Layout& layout) noexcept {
  using in = layout_internals;
  const layout_node* const node = in::node(layout);
  if (node == nullptr) {
    const step block = block_of(in::block(layout));
    return block.moving(static_cast<std::uint64_t>(in::stride(layout))).times(layout.blocks());
  }
  RMA_ASSERT(!node->levels.empty());
  step all = block_of(node->block == 0 ? 1 : node->block);
  for (std::size_t k = node->levels.size(); k-- > 0;) all = level_of(node->levels[k], all);
  return all;
}

std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 31)) * 0x7fb5d329728ea185;
  x = (x ^ (x >> 27)) * 0x81dadef4bc2dd44d;
  return x ^ (x >> 33);
}

}  // namespace
}  // namespace rma::detail

std::size_t rma::Layout::hash() const noexcept {
  using namespace detail;
  std::uint64_t sum = 0;
  if (bytes_ != 0) {
    const step all = whole(*this);
    sum = all.add + all.by_offset * static_cast<std::uint64_t>(offset_);
  }
  sum = mixed(sum + bytes_);
  sum = mixed(sum + extent_);
  return mixed(sum + static_cast<std::uint64_t>(extent_lower_));
}
