// SPDX-License-Identifier: Apache-2.0
/// \file
/// Promotion: private pages of the user are replaced, at the same address, by pages of this rank's segment, so that
/// the node's ranks map them too. docs/decisions/0004-promotion.md has the consequences for fork, madvise and free.
#pragma once

#include <cstddef>
#include <string>

namespace rma::shm {

class board;

/// The whole pages around [at, at + bytes).
struct page_range {
  std::byte* at = nullptr;
  std::size_t bytes = 0;
};
page_range pages_around(void* at, std::size_t bytes) noexcept;

/// The reason why these pages cannot be promoted now, in one line; empty if they can.
std::string promotion_obstacle(page_range pages);

/// Copies the pages into the segment at `offset` (already populated) and maps them over the originals. Returns an empty
/// text, or the reason of a failure; then nothing has changed.
std::string promote(board& node, page_range pages, std::size_t offset);

/// Replaces promoted pages by private ones with the current contents. False if that part of the segment must be neither
/// freed nor populated again: other threads run, or there is no memory for private pages, and the old ones stay.
bool demote(board& node, page_range pages, std::size_t offset) noexcept;

}  // namespace rma::shm
