// SPDX-License-Identifier: Apache-2.0
/// \file
/// The library's state of a window: the view for inlined calls, the shared blocks, the open epochs.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "channel/node_barrier.hpp"
#include "core/assert.hpp"
#include "fabric/fabric.hpp"
#include "rma/detail/view.hpp"
#include "rma/epoch.hpp"
#include "rma/hints.hpp"
#include "runtime/team_core.hpp"
#include "window/fence_state.hpp"
#include "window/range_state.hpp"
#include "window/target.hpp"
#include "window/window_block.hpp"
#include "xfer/epoch_rules.hpp"
#include "xfer/gathered_copies.hpp"
#include "xfer/operation_record.hpp"
#include "xfer/scheduling.hpp"
#include "xfer/window_mutex.hpp"

namespace rma::detail {

class trace_file;

struct window_core : window_view {
  std::shared_ptr<team_core> team;
  context* ctx = nullptr;
  shm::board* board = nullptr;
  trace_file* trace = nullptr;          ///< null: nothing is traced
  bool observed = false;                ///< no call is inlined: calls are traced, or take virtual time
  const epoch_rules* epochs = nullptr;  ///< the rules of src/sync for the engine
  epoch_terms terms;                    ///< terms of the open epoch
  bool shared_by_threads = false;       ///< several threads may use the window at once (`multiple`); no call is inlined
  bool needs_entry_scope = false;       ///< one of the two, or `checks`: entry_scope has work to do
  bool checks = false;                  ///< RMA_CHECK: no operation is inlined, so that the use of each epoch is known
  bool fence_used = false;              ///< the open fence epoch was used, as far as known
  /// The mutex of a window that threads share: it guards state that is neither atomic nor guarded by the progress lock.
  /// It is taken before the progress lock.
  mutable window_mutex mutex;
  unsigned tasks = 0;        ///< synchronization requests, which any thread that makes progress advances
  std::vector<int> claimed;  ///< targets whose lock a thread of this rank is acquiring or releasing
  unsigned claimants = 0;    ///< threads that wait for one of them
  std::vector<int> wanted;   ///< targets whose lock is requested by ilock; included in locks_open
  /// The reasons why calls are refused, see `usable`.
  std::atomic<std::uint8_t> blocked_by = 0;
  bool left_by_exception = false;  ///< why it has failed: an exception left an epoch's scope, or its end failed
  static constexpr std::uint8_t window_failed = 1;  ///< an epoch was abandoned by an exception
  static constexpr std::uint8_t wrong_thread = 2;   ///< only the thread that made the runtime may call
  std::atomic<bool> revoked = false;                ///< the window itself is revoked, see revocations.hpp
  std::uint64_t id = 0;
  std::uint32_t slot = 0;  ///< its number in immediates to this rank
  call kind = call::allocate;
  Hints hints;
  std::size_t unit = 1;  ///< bytes per displacement
  std::size_t element_bytes = 1;

  std::size_t block_offset = 0;
  std::size_t block_bytes = 0;       ///< bytes of this rank's segment, data included
  std::uint64_t part_bytes_max = 0;  ///< length of the longest part
  block_layout layout;
  std::byte* local_base = nullptr;
  std::uint64_t local_bytes = 0;
  bool writable = true;  ///< this rank's memory was writable when the window was made; else each access is checked
  std::string promotion = "the window is not over user memory";  ///< reason why it is not promoted; empty if it is
  std::uint64_t promoted_bytes = 0;
  std::size_t promoted_offset = 0;
  lock_protocol locks = lock_protocol::cpu;  ///< never automatic
  const char* locks_why = "";
  const struct lock_protocol_row* lock_row = nullptr;  ///< carries them out, see sync/lock_protocol.hpp
  fabric::region_key own_block{};                      ///< region of this rank's block on the fabric between nodes
  lock_scheme scheme = lock_scheme::word;              ///< scheme of lock "network"; never automatic
  lock_policy policy = lock_policy::adaptive;          ///< policy of a hybrid lock; never automatic
  std::uint32_t policy_threshold = 0;
  bool lock_stays = false;  ///< a hybrid lock never migrates
  bool alone = false;       ///< no other member is on this node
  LockCounts counts;
  std::vector<int> deferred;                 ///< targets with an unsent deferred epoch, in the order of their locks
  bool defers = false;                       ///< lock "two-sided": deferrable epochs are sent at their end
  bool defers_far = false;                   ///< lock "auto": small epochs to other nodes may be sent at their end
  deferral deferrable = deferral::none;      ///< permission for each lock of this window
  deferral all_deferrable = deferral::none;  ///< permission for the locks of the open lock_all epoch
  bool manager_first = false;                ///< the lock manager answers as soon as the fabric would
  std::shared_ptr<class lock_agent> agent;   ///< the lock manager of this rank's part; null: not needed
  std::uint64_t rng_state = 0;               ///< state of the random numbers for contenders' pauses

  mutable std::atomic<std::uint64_t> in_call =
      0;                     ///< see entry_scope; a relaxed store for each call that is not inlined
  bool intranode = true;     ///< memory of the node's ranks may be accessed directly
  bool spans_nodes = false;  ///< some members' memory is not mapped
  bool all_mapped = false;
  operation refused_op = operation::no_op;  ///< operator of the last bad_type, for its message
  element refused_type = element::u8;
  int refused_rank = -1;                ///< the invalid rank of the last refused group or list
  std::vector<attachment> attachments;  ///< attachments of a dynamic window, sorted by address
  std::size_t table_offset = 0, table_bytes = 0;

  bool exposed = false;                ///< between post and wait
  std::vector<int> access_group;       ///< targets of start
  std::vector<int> exposure_group;     ///< origins of post
  std::vector<epoch_counts> notified;  ///< per mapped rank
  std::vector<int> dirty;              ///< targets with pending operations
  node_barrier barrier;
  std::uint64_t barrier_id = 0;
  message_barrier far_barrier;  ///< the barrier otherwise
  layout_scheme scheme_of_layouts = layout_scheme::automatic;
  const char* layout_why = "RMA_LAYOUT";
  fence_kind fence = fence_kind::placed;  ///< never automatic
  const char* fence_why = "auto";
  fence_state fences;
  range_state ranges;
  scheduling schedule;
  bool may_hold = false;  ///< operations may be held until the end of their epoch: the short path is closed

  std::vector<target_view> views;    ///< the array of window_view::targets
  std::vector<target_state> states;  ///< per mapped rank
  std::unordered_map<int, std::unique_ptr<far_target>> far_targets;
  near_target last_handler_target;
  std::atomic<int> dropped_by = -1;  ///< the last world rank that has reported dropping the window
  int last_fabric_target = -1;       ///< the last used target on another node
  far_target* last_fabric_state = nullptr;
  std::vector<int> far_used;                  ///< targets on other nodes locked by this lock_all epoch
  std::unordered_map<int, target_news> news;  ///< by world rank; guarded by the progress lock
  std::uint32_t held_count = 0;               ///< number of operations in the targets' queues
  gathered_copies gathered;

  /// `revoked` if this window or its team is revoked: waits for other members end with it.
  [[nodiscard]] status revocation() const noexcept {
    return revoked.load(std::memory_order_relaxed) ? status::revoked : team->revocation();
  }
  [[nodiscard]] int size() const noexcept { return team->size; }
  [[nodiscard]] int world_rank(int target) const noexcept { return team->world_rank(target); }
  [[nodiscard]] std::size_t index_of(int target) const noexcept { return static_cast<std::size_t>(target) - first; }
  [[nodiscard]] bool is_far(int target) const noexcept { return team->node_index(target) < 0; }
  [[nodiscard]] far_target& far(int target) {
    return target == last_fabric_target ? *last_fabric_state : find_far_target(target);
  }
  [[nodiscard]] target_state& state_of(int target) { return is_far(target) ? far(target) : states[index_of(target)]; }
  /// The lock_kind that this rank holds on the target, held_..., or 0 for none.
  [[nodiscard]] std::uint8_t held(int target) const noexcept;
  /// The block of a member whose segment this rank maps; null for others, and with RMA_INTRANODE=off.
  [[nodiscard]] window_block* block_of(int target) const noexcept;
  /// A member's description of its part (size, region), on any node; null if it is not known.
  [[nodiscard]] const window_block* identity_of(int target) const noexcept {
    const int node_slot = team->node_index(target);
    return node_slot < 0 ? nullptr : block_at(node_slot);
  }
  [[nodiscard]] window_block& my_block() const noexcept { return *block_at(team->node_index(team->rank)); }
  [[nodiscard]] window_block* block_at(int node_slot) const noexcept {
    return reinterpret_cast<window_block*>(board->segment(static_cast<std::size_t>(node_slot)) + block_offset);
  }
  template <class T>
  [[nodiscard]] T* array(window_block& block, std::size_t at) const noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(&block) + at);
  }
  void ring(int target) const noexcept {
    const int node_slot = team->node_index(target);
    if (node_slot >= 0) board->ring_doorbell(static_cast<std::size_t>(node_slot));
  }

  /// For what only the target's program may wait for.
  void ring_waiters(int target) const noexcept {
    const int node_slot = team->node_index(target);
    if (node_slot >= 0) board->ring_waiters(static_cast<std::size_t>(node_slot));
  }

  /// Opens or closes the inlined path to a mapped target.
  static void open(target_view& t) noexcept {
    t.limit = t.limit_open;
    t.atomic_limit = t.atomic_limit_open;
  }
  static void close(target_view& t) noexcept {
    t.limit = 0;
    t.atomic_limit = 0;
  }
  /// The view of a target that may be mapped, else null. (view_of is for inlined calls, and may find none.)
  [[nodiscard]] target_view* view_at(int target) noexcept {
    const std::size_t index = static_cast<std::uint32_t>(target) - first;
    return index < views.size() ? &views[index] : nullptr;
  }
  [[nodiscard]] const target_view* view_at(int target) const noexcept {
    return const_cast<window_core*>(this)->view_at(target);
  }
  /// Number of members from `first` on that may be mapped.
  [[nodiscard]] std::uint32_t near_count() const noexcept { return static_cast<std::uint32_t>(views.size()); }
  /// Sets whether other epochs allow inlined locks. Never written where nothing is inlined.
  void allow_locks(bool yes) noexcept {
    if (inline_sync != 0) may_lock = yes && wanted.empty() ? 1 : 0;
  }
  /// True if operations were issued in the open fence epoch: pending ones count, and others only with `checks`.
  [[nodiscard]] bool used_since_fence() const noexcept {
    return fence_used || (access != access_epoch::none && !dirty.empty());
  }
  /// Counts one more synchronization request, or one less. Called by the thread that owns the window, or alone in the
  /// window.
  void count_task(bool more) noexcept {
    RMA_ASSERT(more || tasks != 0);
    tasks += more ? 1U : ~0U;
    const bool shared = tasks != 0 || ctx->threads() == thread_level::multiple;
    if (shared == shared_by_threads) return;  // other threads read them without the window's mutex
    shared_by_threads = shared;
    needs_entry_scope = observed || shared_by_threads || checks;
  }
  [[nodiscard]] bool failed() const noexcept {
    return (blocked_by.load(std::memory_order_relaxed) & window_failed) != 0;
  }

  far_target& find_far_target(int target);
  void open_all() noexcept {
    for (auto& t : views) open(t);
  }
  void close_all() noexcept {
    for (auto& t : views) close(t);
  }
};

inline window_core& core_of(window_view& view) noexcept { return static_cast<window_core&>(view); }
inline const window_core& core_of(const window_view& view) noexcept { return static_cast<const window_core&>(view); }
inline bool is_freed(const window_view& view) noexcept { return &view == &freed_window; }

/// Notes pending operations to the target, which flushes must complete.
void note_dirty(window_core& w, int target, target_state& state) noexcept;
[[gnu::always_inline]] inline void mark_dirty(window_core& w, int target, target_state& state) noexcept {
  if (!state.dirty) note_dirty(w, target, state);
  if (target_view* const t = w.view_at(target)) t->flushable = 0;
}

/// Notes messages to the target's handler, for which flushes wait. The caller holds the progress lock.
inline void mark_sent(window_core& w, int target, target_state& state, context::peer& peer) {
  if (state.peer == nullptr) state.malformed_notices = peer.malformed_notices.load();
  state.peer = &peer;
  state.last_operation = peer.operations_sent;
  mark_dirty(w, target, state);
}

}  // namespace rma::detail
