// SPDX-License-Identifier: Apache-2.0
/// \file
/// Each rank publishes of its part of a window: identity, region, lock and counter words, attached ranges.
#pragma once

#include <cstddef>
#include <cstdint>

#include "channel/node_barrier.hpp"
#include "fabric/fabric.hpp"
#include "rma/detail/view.hpp"

namespace rma::detail {

/// Ranks of other nodes read this, once.
struct window_identity {
  std::uint64_t magic;           ///< of this window; anything else is not it
  std::uint64_t bytes;           ///< of this rank's part
  fabric::region_key wide;       ///< of this rank's part, for the fabric between nodes
  std::uint64_t wide_reachable;  ///< 0: only by this rank's handler
  std::uint64_t slot;            ///< what it is called in immediates
};

/// Of a dynamic window: where the list of attached ranges is.
struct table_head {
  word64 version;        ///< even while the table is stable
  std::uint64_t offset;  ///< in the owner's segment
  std::uint64_t count;
  std::uint64_t key;  ///< of the region that it lies in, for the fabric between nodes
};

/// The node's ranks keep count of the requests for one hybrid lock here, see src/sync/lock_hybrid.hpp.
struct migration_words {
  word32 benefit;
  word32 migration_cost;
  word32 local_streak;
};

/// One rank publishes this about its part of a window; at the same offset in every member's segment.
/// Arrays of varying length follow, see `block_layout`.
struct window_block {
  window_identity identity;
  fabric::region_key region;    ///< of this rank's part, for the node's ranks
  word32 failed;                ///< this rank gave up on the window
  std::uint32_t reachable;      ///< memory is mapped by the node's ranks
  word32 stripe_bias;           ///< see view.hpp
  alignas(64) word32 updating;  ///< this rank updates an element of somebody's part without its stripe
  alignas(64) table_head table;
  cpu_lock lock;
  migration_words migration;
  alignas(64) word64 network_lock;  ///< see src/sync/lock_network.hpp; the fabric's atomics own it
  word64 update_lock;     ///< accumulate mode lock-get-modify-put: the holder's world rank + 1, or 0; the same
  word64 network_global;  ///< at member 0, see src/sync/lock_fompi.hpp; the same
  barrier_lines lines;
};

/// Where the arrays after a window_block lie, and the data of an allocated window.
struct block_layout {
  std::size_t signals_at = 0;  ///< word64 per signal
  std::size_t posts_at = 0;    ///< word32 per mapped rank, which alone writes it: how often it has posted to this rank
  std::size_t completions_at = 0;  ///< the same: completed here; on lines of their own, for each is looked at while the
                                   ///< other is written
  std::size_t records_at = 0;      ///< word<u8> per mapped rank: what this rank holds there
  std::size_t waiters_at = 0;      ///< bits per mapped rank: who sleeps for this rank's lock
  std::size_t stripes_at = 0;
  std::size_t data_at = 0;
  std::uint32_t stripes = 1;
};

/// A range attached to a dynamic window.
struct attachment {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  fabric::region_key wide{};  ///< for the fabric between nodes; bytes 0: only by the owner's handler
};

}  // namespace rma::detail
