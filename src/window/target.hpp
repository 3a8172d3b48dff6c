// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank knows each target of a window by one record of what goes there, and one of what has come from there.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "channel/context.hpp"
#include "core/assert.hpp"
#include "window/lock_experience.hpp"
#include "window/window_block.hpp"
#include "xfer/operation_record.hpp"
#include "xfer/scheduling.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

/// By which way this rank holds a lock that has several.
enum class lock_path : std::uint8_t { cpu, network, agent };

/// How often this rank has told another by post and complete, ever, as it wrote into the other's block, and how many of
/// the other's posts it has used up.
struct epoch_counts {
  std::uint32_t posts = 0;
  std::uint32_t completions = 0;
  std::uint32_t starts = 0;
};

/// The same with a rank that tells by messages: how often this rank has posted to it, and what has come from it.
struct message_counts {
  std::uint32_t posted = 0;
  std::uint32_t posts = 0;
  std::uint32_t completions = 0;
};

/// By what a lock may be taken later than by its lock call.
enum class deferral : std::uint8_t {
  none,     ///< it may not
  call,     ///< rma::deferrable
  hint,     ///< Hints::deferrable
  setting,  ///< RMA_LOCK=...:deferred
};

/// An epoch of lock "two-sided" or "auto" that the target knows nothing of yet. Its operations are in the target's
/// queue.
struct deferred_epoch {
  lock_kind kind = lock_kind::shared;
  std::uint32_t count = 0;  ///< of the operations
  std::uint64_t bytes = 0;  ///< of data, in either direction
  bool fetches = false;     ///< not all of them are puts
};

/// The last request to the lock manager of one target, and its answer.
struct lock_request {
  std::uint32_t number = 0;
  word32 answered{};  ///< the number of the last that was answered
  lock_answer result = lock_answer::granted;
  int blamed = -1;                     ///< world rank that the result is about
  std::int64_t waited_ns = 0;          ///< there, for others that held the lock
  bool alone = false;                  ///< the target, see lock_header
  std::int64_t home_asked_ns = -1;     ///< lock_word::home went out, and was not settled yet
  std::int64_t home_answered_ns = -1;  ///< lock_word::welcome came
  bool welcome = false;
};

struct protocol;

/// A protocol that was chosen, and why.
struct route {
  const protocol* chosen = nullptr;
  const char* why = "";
};

/// A rank has told these by messages, ever or last. Written by handlers; guarded by the progress lock.
struct target_news {
  message_counts told;
  std::uint32_t through = 0;              ///< the fence that it is through, as it has said when asked (fence "def")
  std::uint32_t neighbor_finished = 0;    ///< its last fence among neighbors that it has finished
  std::uint32_t neighbor_opened = 0;      ///< and opened
  std::unique_ptr<lock_request> request;  ///< this rank's last to its lock manager
};

/// The engine keeps this of what it has under way towards one target of one window.
struct target_state {
  context::peer* peer = nullptr;        ///< null until a handler operation went there
  std::uint64_t last_operation = 0;     ///< number of the peer's last handler operation that was ours
  fabric::region_key block;             ///< its window_block as the fabric between nodes reaches it; bytes 0: not asked
  std::uint32_t malformed_notices = 0;  ///< the peer's that have been reported
  std::uint64_t last_promised = 0;      ///< of these, the last that the target is bound to handle
  operation_record::queue held;         ///< see held_operations.hpp; these two are guarded by the progress lock
  operation_record::list under_way;
  word64 queued{};                ///< of `held`, those that wait for room; 0 is stored after all else that they change
  window_core* window = nullptr;  ///< set when one waits for room
  /// How contiguous operations go: puts and gets of few bytes, of many, and atomics. Null: not chosen yet.
  std::array<route, 3> routes{};
  word64 fabric_pending{};          ///< of these, those that the fabric has
  word32 fabric_failed{};           ///< minus the status of one that failed, or was turned down, and was not reported
  std::uint32_t failures = 0;       ///< how many; these three are written by who holds the progress lock
  std::uint32_t reports = 0;        ///< how often failures have been reported by a call that completes all
  bool dirty = false;               ///< in window_core::dirty
  bool fetches = false;             ///< of what is posted not all are writes, which alone others follow in order
  lock_path path = lock_path::cpu;  ///< of the lock that this rank holds there
  lock_experience experience;       ///< of its hybrid lock
  std::uint64_t epoch_bytes = 0;    ///< of the open epoch, if it goes by the network (lock "auto")
  const char* lock_how = "";        ///< how the lock was taken last if not as all of its window, and why: for the trace
  const char* lock_why = "";
  deferral deferrable = deferral::none;   ///< of the lock that this rank has asked for last
  std::uint64_t left_wanted = 0;          ///< its network word as this rank left it, if others wanted it
  std::unique_ptr<deferred_epoch> epoch;  ///< whose lock is deferred, until it is sent
  scheduled_operations scheduled;
  std::uint32_t immediates = 0;    ///< that went there in this fence epoch, and have not failed
  bool channel = false;            ///< in fence_state::channels
  bool finish_due = false;         ///< a put of this fence epoch went there without an immediate
  std::uint64_t posted_count = 0;  ///< operations that went to the fabric, ever

  void begin_posted(bool write) noexcept {
    const std::uint64_t pending = fabric_pending.load(std::memory_order_relaxed);
    fetches = !write || (fetches && pending != 0);
    fabric_pending.store(pending + 1);
  }
  void fail(status why) noexcept {
    RMA_ASSERT(!ok(why));
    fabric_failed.store(static_cast<std::uint32_t>(-static_cast<int>(why)));
    ++failures;
  }
  void end_posted() noexcept {
    RMA_ASSERT(fabric_pending.load(std::memory_order_relaxed) != 0);
    fabric_pending.store(fabric_pending.load(std::memory_order_relaxed) - 1);
  }
};

/// A target whose memory is not mapped because it is on another node.
struct far_target : target_state {
  bool known = false;      ///< its identity was read: bytes, region, reachable
  bool reachable = false;  ///< by the fabric, not only by its handler
  bool plain = false;      ///< puts and gets always go by the fabric: nothing has to be chosen
  bool unplaced = false;   ///< writes went there whose completion does not say that they are in its memory
  std::uint8_t held = 0;   ///< lock_kind that this rank holds, held_..., or 0 none
  operation_record* releasing = nullptr;  ///< the atomic that lets go of the lock, under way
  std::uint32_t starts = 0;               ///< posts used up
  std::uint64_t bytes = 0;                ///< of its part
  std::uint32_t slot = 0;                 ///< what the window is called there in immediates
  fabric::region_key region;              ///< of its part
  std::uint64_t table_version = ~std::uint64_t{0};
  std::vector<attachment> table;  ///< as it was at that version
};

static_assert(sizeof(target_news) <= 32);
static_assert(sizeof(target_state) <= 304);
static_assert(sizeof(far_target) <= 400);

/// A target of this node whose handler was asked last, inside the library and bound to answer: see run_plain_promised.
struct near_target {
  int target = -1;
  int peer = -1;            ///< its rank in the world
  std::uint64_t bytes = 0;  ///< of its part
  target_state* state = nullptr;
  target_view* view = nullptr;
  fabric::network* network = nullptr;  ///< that leads there
  const fabric::region_key* region = nullptr;
  bool tries_ways = false;  ///< medium transfers go by message or copy, as either has cost
};

}  // namespace rma::detail
