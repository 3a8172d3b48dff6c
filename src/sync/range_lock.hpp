// SPDX-License-Identifier: Apache-2.0
/// \file
/// Locks of byte ranges. The target's handlers keep a table of its part (window/range_table.hpp has the states): a
/// request and an answer, a release that nobody waits for. A rank that holds ranges of a target holds its whole lock
/// shared, so that lock(exclusive) keeps out all of them, and so that operations, flushes and deaths are those of any
/// epoch.
///
///   origin: lock(shared) unless a range is held --> request --> answer      target: table
///           operations --> flush --> release --> unlock if it was the last
///
/// A holder dies: who waits tells the target, which fails the waiters of what the dead rank held, once, and frees it
/// (RMA_LOCK_RECOVERY=on).
/// Source: dissertation, "finer-grain locks" (future work).
#pragma once

#include "rma/detail/synchronization_ops.hpp"
#include "sync/range_news.hpp"
