// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives in memory that move blocks: allgather and alltoall (flat), gather and scatter (release-gather).
///
///   members that give     own block, or one for each member, into the slot | publish the turn
///   members that take     wait for the turns of those that give | copy their blocks from the slots
///
/// Blocks that do not fit a slot move in pieces, a turn for each.
#include <algorithm>

#include "coll/memory.hpp"
#include "coll/memory_operands.hpp"
#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {
namespace {

/// The offset of a block in the user's memory.
std::size_t offset_of(const collective_shape& shape, int block, std::size_t block_bytes) noexcept {
  return static_cast<std::size_t>(block) * (shape.one != nullptr ? shape.one->extent() : block_bytes);
}

}  // namespace

bool memory_collectives::fits_slot(const collective_call& c) const noexcept {
  return block_bytes_of(c) <= piece_bytes_max(c);
}

int memory_collectives::blocks_given(const collective_call& c) const noexcept {
  return c.what == collective::alltoall || c.what == collective::scatter ? team_.size : 1;
}

// The own block moves through the slot as well: in place, it may lie where another one belongs.
std::size_t memory_collectives::piece_bytes_max(const collective_call& c) const noexcept {
  return slot_bytes_ / static_cast<std::size_t>(blocks_given(c));
}

status memory_collectives::move_blocks(const collective_call& c) noexcept {
  const bool rooted = c.what == collective::gather || c.what == collective::scatter;
  form_ = rooted ? form_kind::release_gather : form_kind::flat;
  const std::size_t block = block_bytes_of(c);
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(piece_bytes_max(c), block - offset);
    if (const status s = move_pieces(c, offset, bytes); s != status::done) return s;
    offset += bytes;
  } while (offset < block);
  return status::done;
}

// In a gather only the root waits, and in a scatter all but the root.
status memory_collectives::move_pieces(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  const bool root_gives = c.what == collective::scatter;
  if (!root_gives || team_.rank == c.root) {
    if (const status s = next_slot(); s != status::done) return s;
    give_pieces(c, offset, bytes);
    publish();
  } else {
    slot_ ^= 1;
    ++turn_;
    show();
  }
  if (root_gives) {
    if (team_.rank != c.root) {
      if (const status s = wait_for(c.root, turn_); s != status::done) return s;
    }
    take_piece(c, c.root, offset, bytes);
    return status::done;
  }
  if (c.what == collective::gather && team_.rank != c.root) return status::done;
  if (const status s = wait_for_all(turn_); s != status::done) return s;
  for (int r = 0; r < team_.size; ++r) take_piece(c, r, offset, bytes);
  return status::done;
}

void memory_collectives::give_pieces(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  const int blocks = blocks_given(c);
  RMA_ASSERT(static_cast<std::size_t>(blocks) * bytes <= slot_bytes_);
  std::byte* into = slot(team_.rank);
  for (int b = 0; b < blocks; ++b, into += bytes) {
    const auto* const block = static_cast<const std::byte*>(c.in) + offset_of(c.in_shape, b, block_bytes_of(c));
    load_bytes(into, block, c.in_shape, offset, bytes);
  }
}

void memory_collectives::take_piece(const collective_call& c, int from, std::size_t offset,
                                    std::size_t bytes) noexcept {
  const std::byte* const piece = slot(from) + (blocks_given(c) == 1 ? 0 : static_cast<std::size_t>(team_.rank) * bytes);
  const int block = c.what == collective::scatter ? 0 : from;
  store_bytes(static_cast<std::byte*>(c.out) + offset_of(c.out_shape, block, block_bytes_of(c)), c.out_shape, piece,
              offset, bytes);
}

}  // namespace rma::detail::coll
