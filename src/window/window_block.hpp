// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shared block of a rank's part of a window: identity, region, lock and counter words, attached ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/node_barrier.hpp"
#include "fabric/fabric.hpp"
#include "rma/detail/view.hpp"

namespace rma::detail {

/// The description of a part. Ranks of other nodes read it once.
struct window_identity {
  std::uint64_t magic;           ///< identifies the window
  std::uint64_t bytes;           ///< bytes of this rank's part
  fabric::region_key wide;       ///< region of this rank's part on the fabric between nodes
  std::uint64_t wide_reachable;  ///< 0: only this rank's handler can access the part
  std::uint64_t slot;            ///< the window's number in immediates
};

/// The location of a dynamic window's list of attached ranges.
struct table_head {
  word64 version;        ///< even while the table is stable
  std::uint64_t offset;  ///< offset in the owner's segment
  std::uint64_t count;
  std::uint64_t key;  ///< key of the region that contains it, on the fabric between nodes
};

/// Counts of the requests for one hybrid lock, kept by the node's ranks: see src/sync/lock_hybrid.hpp.
struct migration_words {
  word32 benefit;
  word32 migration_cost;
  word32 local_streak;
};

/// A rank's block of a window, at the same offset in every member's segment.
/// Arrays of varying length follow it, see `block_layout`.
struct window_block {
  window_identity identity;
  fabric::region_key region;    ///< region of this rank's part for the node's ranks
  word32 failed;                ///< this rank has failed to make the window
  std::uint32_t reachable;      ///< the node's ranks map the memory
  word32 stripe_bias;           ///< see view.hpp
  alignas(64) word32 updating;  ///< this rank is updating an element of any part without its stripe
  alignas(64) table_head table;
  cpu_lock lock;
  migration_words migration;
  alignas(64) word64 network_lock;  ///< see src/sync/lock_network.hpp; only the fabric's atomics access it
  word64 update_lock;     ///< accumulate mode lock-get-modify-put: the holder's world rank + 1, or 0; as network_lock
  word64 network_global;  ///< at member 0, see src/sync/lock_fompi.hpp; as network_lock
  barrier_lines lines;
};

/// The offsets of the arrays after a window_block, and of the data of an allocated window.
struct block_layout {
  std::size_t signals_at = 0;      ///< word64 per signal
  std::size_t posts_at = 0;        ///< word32 per mapped rank, its only writer: number of its posts to this rank
  std::size_t completions_at = 0;  ///< the same for completes; on cache lines of their own, since each array is polled
                                   ///< while the other is written
  std::size_t records_at = 0;      ///< word<u8> per mapped rank: this rank's hold of its lock
  std::size_t waiters_at = 0;      ///< one bit per mapped rank that sleeps for this rank's lock
  std::size_t stripes_at = 0;
  std::size_t data_at = 0;
  std::uint32_t stripes = 1;
};

/// A range attached to a dynamic window.
struct attachment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  fabric::region_key wide{};  ///< region on the fabric between nodes; bytes 0: only the owner's handler can access it
};

}  // namespace rma::detail
