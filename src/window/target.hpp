// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rank's records of each target of a window: one of outgoing operations, one of the messages that it has received.
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

/// The path by which this rank holds a lock that has several.
enum class lock_path : std::uint8_t { cpu, network, agent };

/// Total numbers of this rank's posts and completes to another rank, as written into the other's block, and of the
/// other's posts that it has consumed.
struct epoch_counts {
  std::uint32_t posts = 0;
  std::uint32_t completions = 0;
  std::uint32_t starts = 0;
};

/// The same for a rank that notifies by messages: this rank's posts to it, and the messages from it.
struct message_counts {
  std::uint32_t posted = 0;
  std::uint32_t posts = 0;
  std::uint32_t completions = 0;
};

/// The permission to acquire a lock later than in its lock call.
enum class deferral : std::uint8_t {
  none,     ///< no permission
  call,     ///< rma::deferrable
  hint,     ///< LockChoice::deferred
  setting,  ///< RMA_LOCK=...:deferred
};

/// An epoch of lock "two-sided" or "auto" of which the target has not been notified. Its operations are held in the
/// queue of the target.
struct deferred_epoch {
  lock_kind kind = lock_kind::shared;
  std::uint32_t count = 0;  ///< number of operations
  std::uint64_t bytes = 0;  ///< bytes of data in both directions
  bool fetches = false;     ///< some are not puts
};

/// The last request to the lock manager of one target, and the reply.
struct lock_request {
  std::uint32_t number = 0;
  word32 answered{};  ///< number of the last request with a reply
  lock_answer result = lock_answer::granted;
  int blamed = -1;                         ///< world rank that caused the result
  std::int64_t waited_ns = 0;              ///< time that it waited for other holders
  bool alone = false;                      ///< see lock_header
  std::int64_t migrate_requested_ns = -1;  ///< time of the pending lock_word::migrate_request; -1: none
  std::int64_t migrate_replied_ns = -1;    ///< time of the reply lock_word::migrate_reply; -1: none
  bool may_migrate = false;
};

struct protocol;

/// A chosen protocol, and the reason of the choice.
struct route {
  const protocol* chosen = nullptr;
  const char* why = "";
};

/// The messages received from one rank. Written by handlers; guarded by the progress lock.
struct target_news {
  message_counts messages;
  std::uint32_t through = 0;              ///< the last fence that it has completed, by its reply (fence "def")
  std::uint32_t neighbor_finished = 0;    ///< last fence among neighbors that it has finished
  std::uint32_t neighbor_opened = 0;      ///< last fence among neighbors that it has opened
  std::unique_ptr<lock_request> request;  ///< this rank's last request to its lock manager
};

/// The path of a lock's acquisition and its reason, for the trace. Both are literals.
struct lock_explanation {
  const char* how;
  const char* why;
};

/// The engine's state of the pending operations of one window to one target.
struct target_state {
  context::peer* peer = nullptr;     ///< null until the first operation for its handler
  std::uint64_t last_operation = 0;  ///< number of this window's last operation among those for the peer's handler
  fabric::region_key block;          ///< its window_block on the fabric between nodes; bytes 0: not read yet
  std::uint64_t last_promised = 0;   ///< the last of them with a reserved delivery
  operation_record::queue held;      ///< see held_operations.hpp; guarded by the progress lock, as the next
  operation_record::list under_way;
  word64 queued{};                ///< those of `held` that wait for room; 0 is stored after all their other effects
  window_core* window = nullptr;  ///< set when an operation waits for room
  /// The protocols of contiguous operations: puts and gets of few bytes, of many, and atomics. Null: not chosen yet.
  std::array<route, 3> routes{};
  word64 fabric_pending{};              ///< those that are posted to the fabric
  word32 fabric_failed{};               ///< minus the status of an unreported failure
  std::uint32_t failures = 0;           ///< number of failures; these three are written under the progress lock
  std::uint32_t reports = 0;            ///< number of reports of failures by calls that complete all operations
  std::uint32_t malformed_notices = 0;  ///< the number of the peer's notices that has been reported
  std::uint32_t immediates = 0;         ///< writes with immediates in this fence epoch that have not failed
  bool dirty = false;                   ///< it is in window_core::dirty
  bool fetches = false;                 ///< some posted operations are not writes; only writes are followed in order
  bool channel = false;                 ///< it is in fence_state::channels
  bool finish_due = false;              ///< this fence epoch has a put without an immediate
  std::uint64_t posted_count = 0;       ///< total number of operations posted to the fabric
  std::uint64_t epoch_bytes = 0;        ///< bytes of the open epoch, if it uses the network lock (lock "auto")
  std::uint64_t left_wanted = 0;        ///< the network word that this rank left behind, if others wanted the lock
  lock_experience experience;           ///< experience with its hybrid lock
  const lock_explanation* lock_explained = nullptr;  ///< reason for the last acquisition's path, if unlike the others
  std::unique_ptr<deferred_epoch> epoch;             ///< the epoch with a deferred lock, until it is sent
  scheduled_operations scheduled;
  lock_path path = lock_path::cpu;       ///< path of the lock that this rank holds there
  deferral deferrable = deferral::none;  ///< deferral of the last lock that this rank requested

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

/// A target on another node, whose memory is not mapped.
struct far_target : target_state {
  bool known = false;        ///< its description was read: bytes, region, reachable
  bool reachable = false;    ///< the fabric can access its memory, not only its handler
  bool plain = false;        ///< puts and gets always use the fabric: no choice is needed
  bool unplaced = false;     ///< there were writes whose completion does not imply that they are in its memory
  std::uint8_t held = 0;     ///< lock_kind that this rank holds, held_..., or 0 none
  std::uint32_t starts = 0;  ///< number of posts consumed
  std::uint32_t slot = 0;    ///< the window's number there in immediates
  operation_record* releasing = nullptr;  ///< the pending atomic that releases the lock
  std::uint64_t bytes = 0;                ///< bytes of its part
  fabric::region_key region;              ///< region of its part
  std::uint64_t table_version = ~std::uint64_t{0};
  std::vector<attachment> table;  ///< the table at that version
};

static_assert(sizeof(target_news) <= 32);
static_assert(sizeof(target_state) <= 272);
static_assert(sizeof(far_target) <= 352);

/// The last target of this node whose handler was used with a reserved delivery: see run_plain_promised.
struct near_target {
  int target = -1;
  int peer = -1;            ///< its rank in the world
  std::uint64_t bytes = 0;  ///< bytes of its part
  target_state* state = nullptr;
  target_view* view = nullptr;
  fabric::network* network = nullptr;  ///< that leads there
  const fabric::region_key* region = nullptr;
  bool tries_ways = false;  ///< medium transfers use a message or a copy, whichever has cost less
};

}  // namespace rma::detail
