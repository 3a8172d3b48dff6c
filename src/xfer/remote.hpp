// SPDX-License-Identifier: Apache-2.0
/// \file
/// The fabric's own reads and atomics, waited for: what synchronization needs of a target that is not mapped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

struct window_core;
struct far_target;

/// Bytes of a region of a rank, at an address of that rank's.
status remote_read(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, void* into, std::size_t bytes) noexcept;
/// 64-bit compare-and-swap; `old` is what was there.
status remote_swap(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, std::uint64_t expected, std::uint64_t desired, std::uint64_t& old) noexcept;
/// 64-bit addition, modulo 2^64; `old` is what was there.
status remote_add(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                  std::uint64_t address, std::uint64_t operand, std::uint64_t& old) noexcept;
/// Begins an atomic, an add of `operand` or a swap of `expected` for it, whose end is waited for by finish_remote_add,
/// or seen in the record: `over`. `retry_queue_full`, or why there will be none.
status start_remote_atomic(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                           std::uint64_t address, bool add, std::uint64_t expected, std::uint64_t operand,
                           operation_record*& started) noexcept;
/// The same in two halves. Null: nothing happened, there is no room now.
operation_record* start_remote_add(engine& e, fabric::network& network, int world_rank,
                                   const fabric::region_key& region, std::uint64_t address,
                                   std::uint64_t operand) noexcept;
/// A write of memory that stays until it is over: `started` is for finish_remote_add, null if it is over already.
status start_remote_write(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                          std::uint64_t address, const void* from, std::size_t bytes,
                          operation_record*& started) noexcept;
status finish_remote_add(engine& e, int world_rank, operation_record* op, std::uint64_t& old) noexcept;

/// The fabric between nodes reaches this of the target's block of this window; asked for once.
status block_region(window_core& w, int target, fabric::region_key& region) noexcept;
/// A target on another node: asks its segment who it is, at the first use. The reference stays valid as long as the
/// window. `window_freed` if its block is not that of this window any more.
status find_far(window_core& w, int target, far_target*& found) noexcept;
/// The ranges that the target of a dynamic window has attached, as they are now.
status find_far_table(window_core& w, int target, far_target& far) noexcept;
/// Posts what makes earlier writes to the target be in its memory when it is over.
void ask_placed(window_core& w, int target) noexcept;

}  // namespace rma::detail
