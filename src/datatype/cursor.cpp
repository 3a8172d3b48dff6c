// SPDX-License-Identifier: Apache-2.0
#include "datatype/cursor.hpp"

#include <algorithm>

namespace rma::detail {

// tidy: the arrays are left uninitialized on purpose, a layout of two levels shall not pay for sixteen.
cursor::cursor(const Layout& layout, std::size_t from_byte) noexcept  // NOLINT(cppcoreguidelines-pro-type-member-init)
    : remaining_(layout.bytes()), node_(layout_internals::node(layout)) {
  RMA_ASSERT(from_byte <= layout.bytes());
  if (remaining_ == 0) return;
  if (node_ == nullptr) {
    run_ = {layout_internals::offset(layout), layout_internals::block(layout), layout_internals::stride(layout),
            layout.blocks()};
    if (from_byte > 0) advance(from_byte);
    return;
  }
  origin_[0] = layout_internals::offset(layout);
  remaining_ -= from_byte;
  if (remaining_ > 0) seek(from_byte);
}

std::ptrdiff_t cursor::origin_below(std::size_t k) const noexcept {
  const layout_level& level = node_->levels[k];
  if (level.list == nullptr) return moved(origin_[k], level.stride, copy_[k]);
  const list_entry& entry = (*level.list)[entry_[k]];
  return moved(moved(origin_[k], entry.offset, 1), level.stride, copy_[k] - entry.first);
}

void cursor::seek(std::size_t byte) noexcept {
  const std::size_t depth = node_->levels.size();
  for (std::size_t k = 0; k < depth; ++k) {
    const layout_level& level = node_->levels[k];
    copy_[k] = byte / level.inner_bytes;
    byte %= level.inner_bytes;
    if (level.list != nullptr) {
      const auto after = std::upper_bound(level.list->begin(), level.list->end(), copy_[k],
                                          [](std::size_t copy, const list_entry& e) { return copy < e.first; });
      entry_[k] = static_cast<std::size_t>(after - level.list->begin()) - 1;
    }
    if (k + 1 < depth) origin_[k + 1] = origin_below(k);
  }
  load_run();
  const layout_level& last = node_->levels.back();
  skipped_ = node_->block == 0 ? copy_[depth - 1] - (*last.list)[entry_[depth - 1]].first : byte;
}

/// Loads the run of the innermost level that begins with its current copy.
void cursor::load_run() noexcept {
  const std::size_t k = node_->levels.size() - 1;
  const layout_level& level = node_->levels[k];
  if (level.list == nullptr) {
    run_ = {origin_below(k), node_->block, level.stride, level.count - copy_[k]};
    return;
  }
  RMA_ASSERT(entry_[k] + 1 < level.list->size());  // never at the sentinel
  const list_entry* const entry = level.list->data() + entry_[k];
  const std::size_t end = entry[1].first;
  if (node_->block == 0) {
    run_ = {moved(origin_[k], entry->offset, 1), end - entry->first, 0, 1};
  } else {
    run_ = {origin_below(k), node_->block, level.stride, end - copy_[k]};
  }
}

/// Advances to the next copy of level k; returns false if there is none.
bool cursor::step(std::size_t k) noexcept {
  const layout_level& level = node_->levels[k];
  RMA_ASSERT(copy_[k] < level.count);
  if (++copy_[k] == level.count) return false;
  if (level.list != nullptr && copy_[k] == (*level.list)[entry_[k] + 1].first) ++entry_[k];
  return true;
}

void cursor::next_run() noexcept {
  if (remaining_ == 0) {
    run_ = {};
    return;
  }
  RMA_ASSERT(node_ != nullptr);
  std::size_t k = node_->levels.size() - 1;
  const layout_level& last = node_->levels[k];
  if (last.list != nullptr && (*last.list)[entry_[k] + 1].first < last.count) {
    copy_[k] = (*last.list)[++entry_[k]].first;
    load_run();
    return;
  }
  do {
    RMA_ASSERT(k > 0);  // otherwise nothing would remain
    --k;
  } while (!step(k));
  for (; k + 1 < node_->levels.size(); ++k) {
    origin_[k + 1] = origin_below(k);
    copy_[k + 1] = 0;
    entry_[k + 1] = 0;
  }
  load_run();
}

block_list cursor::irregular_blocks() const noexcept {
  if (node_ == nullptr || node_->block != 0 || skipped_ != 0 || remaining_ == 0) return {};
  const std::size_t k = node_->levels.size() - 1;
  const entry_list& list = *node_->levels[k].list;
  RMA_ASSERT(entry_[k] + 1 < list.size());
  return {origin_[k], list.data() + entry_[k], list.size() - 1 - entry_[k], node_->entry_bytes};
}

void cursor::advance_irregular(std::size_t count, std::size_t bytes) noexcept {
  RMA_ASSERT(skipped_ == 0 && count > 0 && bytes <= remaining_);
  remaining_ -= bytes;
  entry_[node_->levels.size() - 1] += count - 1;
  next_run();
}

run_repeat cursor::repeats() const noexcept {
  if (node_ == nullptr || skipped_ != 0 || node_->levels.size() < 2) return {};
  const std::size_t k = node_->levels.size() - 2;
  const layout_level& last = node_->levels[k + 1];
  if (last.list != nullptr || run_.count != last.count) return {};
  const layout_level& level = node_->levels[k];
  const std::size_t end = level.list == nullptr ? level.count : (*level.list)[entry_[k] + 1].first;
  return {level.stride, end - copy_[k]};
}

void cursor::advance_runs(std::size_t count) noexcept {
  RMA_ASSERT(count > 0 && count <= repeats().count);
  remaining_ -= count * run_.count * run_.bytes;
  if (count > 1) copy_[node_->levels.size() - 2] += count - 1;
  drop_blocks(run_.count);
}

void cursor::advance(std::size_t bytes) noexcept {
  RMA_ASSERT(bytes <= remaining_);
  while (bytes > 0) {
    if (skipped_ == 0 && bytes >= run_.bytes) {
      const std::size_t whole = std::min(bytes / run_.bytes, run_.count);
      bytes -= whole * run_.bytes;
      advance_blocks(whole);
      continue;
    }
    const std::size_t piece = std::min(bytes, run_.bytes - skipped_);
    bytes -= piece;
    advance_in_block(piece);
  }
}

}  // namespace rma::detail
