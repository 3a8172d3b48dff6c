// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blocking reads and atomics by the fabric: for the synchronization with targets that are not mapped.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/fabric.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

struct window_core;
struct far_target;

/// Reads bytes of a region of a rank, at an address of that rank.
status remote_read(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, void* into, std::size_t bytes) noexcept;
/// 64-bit compare-and-swap; `old` gets the old value.
status remote_swap(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                   std::uint64_t address, std::uint64_t expected, std::uint64_t desired, std::uint64_t& old) noexcept;
/// 64-bit addition, modulo 2^64; `old` gets the old value.
status remote_add(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                  std::uint64_t address, std::uint64_t operand, std::uint64_t& old) noexcept;
/// Begins an atomic, an add of `operand` or a swap of `expected` for it. finish_remote_add waits for its end, which the
/// record's `over` shows as well. `retry_queue_full`, or the reason why it was not posted.
status start_remote_atomic(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                           std::uint64_t address, bool add, std::uint64_t expected, std::uint64_t operand,
                           operation_record*& started) noexcept;
/// Begins an addition, for finish_remote_add. Null if there is no room now: nothing was done.
operation_record* start_remote_add(engine& e, fabric::network& network, int world_rank,
                                   const fabric::region_key& region, std::uint64_t address,
                                   std::uint64_t operand) noexcept;
/// Begins a write of memory that must stay until its end: `started` is for finish_remote_add, null if it has ended.
status start_remote_write(engine& e, fabric::network& network, int world_rank, const fabric::region_key& region,
                          std::uint64_t address, const void* from, std::size_t bytes,
                          operation_record*& started) noexcept;
status finish_remote_add(engine& e, int world_rank, operation_record* op, std::uint64_t& old) noexcept;

/// The region of the target's block of this window on the fabric between nodes; read once.
status block_region(window_core& w, int target, fabric::region_key& region) noexcept;
/// The record of a target on another node: reads its description at the first use. The reference stays valid as long as
/// the window. `window_freed` if its block does not belong to this window any more.
status find_far(window_core& w, int target, far_target*& found) noexcept;
/// Reads the ranges that the target of a dynamic window has attached now.
status find_far_table(window_core& w, int target, far_target& far) noexcept;
/// Posts an operation whose end implies that earlier writes to the target are in its memory.
void ask_placed(window_core& w, int target) noexcept;

}  // namespace rma::detail
