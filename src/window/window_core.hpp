// SPDX-License-Identifier: Apache-2.0
/// \file
/// A window as the library sees it: the view of the inlined calls, the shared blocks behind it, epoch state.
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
  bool observed = false;                ///< no call is inlined: all are traced, or cost virtual time
  const epoch_rules* epochs = nullptr;  ///< what src/sync answers the engine
  epoch_terms terms;                    ///< of the open epoch
  bool shared_by_threads = false;  ///< several threads may use the window at once; at `multiple` no call is inlined
  bool needs_entry_scope = false;  ///< one of the two, or checks: entry_scope has something to do
  bool checks = false;             ///< RMA_CHECK: no operation is inlined, so that it is known which epochs were used
  bool fence_used = false;         ///< the open fence epoch was, if that is known
  /// Of a window that threads share: guards what neither the progress lock guards nor is atomic. Taken before the
  /// progress lock.
  mutable window_mutex mutex;
  unsigned tasks = 0;        ///< synchronizations behind requests, which any thread that makes progress goes on with
  std::vector<int> claimed;  ///< targets whose lock a thread of this rank is taking or giving back
  unsigned claimants = 0;    ///< threads that wait for one of these
  std::vector<int> wanted;   ///< targets whose lock a request (ilock) asks for; counted among locks_open
  /// Why not every call is carried out, see `usable`.
  std::atomic<std::uint8_t> blocked_by = 0;
  static constexpr std::uint8_t window_failed = 1;  ///< an epoch was abandoned by an exception
  static constexpr std::uint8_t wrong_thread = 2;   ///< only the thread that made the runtime may call
  std::atomic<bool> revoked = false;                ///< the window itself, see revocations.hpp
  std::uint64_t id = 0;
  std::uint32_t slot = 0;  ///< what it is called in immediates to this rank
  call kind = call::allocate;
  Hints hints;
  std::size_t unit = 1;  ///< bytes per displacement
  std::size_t element_bytes = 1;

  std::size_t block_offset = 0;
  std::size_t block_bytes = 0;       ///< taken of this rank's segment, data included
  std::uint64_t part_bytes_max = 0;  ///< of the members' parts
  block_layout layout;
  std::byte* local_base = nullptr;
  std::uint64_t local_bytes = 0;
  bool writable = true;  ///< all of this rank's memory could be written when it was given; else each access is checked
  std::string promotion = "the window is not over user memory";  ///< why not promoted; empty if it is
  std::uint64_t promoted_bytes = 0;
  std::size_t promoted_offset = 0;
  lock_protocol locks = lock_protocol::cpu;  ///< never automatic
  const char* locks_why = "";
  const struct lock_protocol_row* lock_row = nullptr;  ///< what carries them out, see sync/lock_protocol.hpp
  fabric::region_key own_block{};                      ///< of this rank's block, for the fabric between nodes
  lock_scheme scheme = lock_scheme::word;              ///< of lock "network"; never automatic
  lock_policy policy = lock_policy::adaptive;          ///< of a hybrid lock; never automatic
  std::uint32_t policy_threshold = 0;
  bool lock_stays = false;  ///< a hybrid lock never migrates
  bool alone = false;       ///< no other member is on this node
  LockCounts counts;
  std::vector<int> deferred;                 ///< targets with an epoch that is not sent, in the order of their locks
  bool defers = false;                       ///< lock "two-sided": deferrable epochs wait for their end
  bool defers_far = false;                   ///< lock "auto": small ones towards other nodes may
  deferral deferrable = deferral::none;      ///< each lock of this window
  deferral all_deferrable = deferral::none;  ///< those of the open lock_all epoch
  bool manager_first = false;                ///< ... and its lock manager answers when the fabric's atomics would
  std::shared_ptr<class lock_agent> agent;   ///< the lock manager of this rank's part; null: nobody needs one
  std::uint64_t rng_state = 0;               ///< where contenders' pauses are drawn from

  mutable std::atomic<std::uint64_t> in_call =
      0;                     ///< see entry_scope; a relaxed store for each call that is not inlined
  bool intranode = true;     ///< memory of the node's ranks may be used directly
  bool spans_nodes = false;  ///< some members' memory is not mapped
  bool all_mapped = false;
  operation refused_op = operation::no_op;  ///< of the last bad_type, for its message
  element refused_type = element::u8;
  int refused_rank = -1;                ///< of the last group or list that was refused
  std::vector<attachment> attachments;  ///< dynamic, sorted by address
  std::size_t table_offset = 0, table_bytes = 0;

  bool exposed = false;             ///< between post and wait
  std::vector<int> access_group;    ///< of start
  std::vector<int> exposure_group;  ///< of post
  std::vector<epoch_counts> told;   ///< per mapped rank
  std::vector<int> dirty;           ///< targets with something under way
  node_barrier barrier;
  std::uint64_t barrier_id = 0;
  dissemination::barrier_handle far_barrier{};  ///< of the barrier by messages
  layout_scheme scheme_of_layouts = layout_scheme::automatic;
  const char* layout_why = "RMA_LAYOUT";
  fence_kind fence = fence_kind::placed;  ///< never automatic
  const char* fence_why = "auto";
  fence_state fences;
  range_state ranges;
  scheduling schedule;
  bool may_hold = false;  ///< operations may wait for the end of their epoch: none takes a short way

  std::vector<target_view> views;    ///< what window_view::targets points to
  std::vector<target_state> states;  ///< per mapped rank
  std::unordered_map<int, std::unique_ptr<far_target>> far_targets;
  near_target last_handler_target;
  std::atomic<int> dropped_by = -1;  ///< world rank that has said last that it has dropped the window
  int last_fabric_target = -1;       ///< the far target that was asked for last
  far_target* last_fabric_state = nullptr;
  std::vector<int> far_used;                  ///< locked by this lock_all epoch
  std::unordered_map<int, target_news> news;  ///< by world rank; guarded by the progress lock
  std::uint32_t held_count = 0;               ///< operations in the targets' queues
  gathered_copies gathered;

  /// `revoked` if this window or its team is: waits for other members end with that.
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
  /// The lock_kind that this rank holds there, held_..., or 0 none.
  [[nodiscard]] std::uint8_t held(int target) const noexcept;
  /// The block of a member whose segment is mapped here; null elsewhere or with RMA_INTRANODE=off.
  [[nodiscard]] window_block* block_of(int target) const noexcept;
  /// A member publishes this about its part (size, region), however far its memory is; null if not known.
  [[nodiscard]] const window_block* identity_of(int target) const noexcept {
    const int place = team->node_index(target);
    return place < 0 ? nullptr : block_at(place);
  }
  [[nodiscard]] window_block& my_block() const noexcept { return *block_at(team->node_index(team->rank)); }
  [[nodiscard]] window_block* block_at(int place) const noexcept {
    return reinterpret_cast<window_block*>(board->segment(static_cast<std::size_t>(place)) + block_offset);
  }
  template <class T>
  [[nodiscard]] T* array(window_block& block, std::size_t at) const noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(&block) + at);
  }
  void ring(int target) const noexcept {
    const int place = team->node_index(target);
    if (place >= 0) board->ring_doorbell(static_cast<std::size_t>(place));
  }

  /// For what only the target's program may wait for.
  void ring_waiters(int target) const noexcept {
    const int place = team->node_index(target);
    if (place >= 0) board->ring_waiters(static_cast<std::size_t>(place));
  }

  /// Opens or closes the inline path towards a mapped target.
  static void open(target_view& t) noexcept {
    t.limit = t.limit_open;
    t.atomic_limit = t.atomic_limit_open;
  }
  static void close(target_view& t) noexcept {
    t.limit = 0;
    t.atomic_limit = 0;
  }
  /// The view of a target that may be mapped, else null. (view_of is for inlined calls, and may know of none.)
  [[nodiscard]] target_view* view_at(int target) noexcept {
    const std::size_t index = static_cast<std::uint32_t>(target) - first;
    return index < views.size() ? &views[index] : nullptr;
  }
  [[nodiscard]] const target_view* view_at(int target) const noexcept {
    return const_cast<window_core*>(this)->view_at(target);
  }
  /// Members from `first` on that may be mapped.
  [[nodiscard]] std::uint32_t near_count() const noexcept { return static_cast<std::uint32_t>(views.size()); }
  /// Whether lock() may be inlined, as far as other epochs are concerned. Never written where nothing is inlined.
  void allow_locks(bool yes) noexcept {
    if (inline_sync != 0) may_lock = yes && wanted.empty() ? 1 : 0;
  }
  /// Whether operations were issued in the open fence epoch: those under way say so, and others if there are `checks`.
  [[nodiscard]] bool used_since_fence() const noexcept {
    return fence_used || (access != access_epoch::none && !dirty.empty());
  }
  /// One synchronization more goes on behind a request, or one less. Called by the thread whose window it is, or alone
  /// in the window.
  void count_task(bool more) noexcept {
    RMA_ASSERT(more || tasks != 0);
    tasks += more ? 1U : ~0U;
    const bool shared = tasks != 0 || ctx->threads() == thread_level::multiple;
    if (shared == shared_by_threads) return;  // other threads look at them outside of the window's mutex
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

/// Something is under way there: flushes have to look after it.
void note_dirty(window_core& w, int target, target_state& state) noexcept;
[[gnu::always_inline]] inline void mark_dirty(window_core& w, int target, target_state& state) noexcept {
  if (!state.dirty) note_dirty(w, target, state);
  if (target_view* const t = w.view_at(target)) t->flushable = 0;
}

/// Messages have been sent to the target's handler: flushes wait for them. The caller holds the progress lock.
inline void mark_sent(window_core& w, int target, target_state& state, context::peer& peer) {
  if (state.peer == nullptr) state.malformed_notices = peer.malformed_notices.load();
  state.peer = &peer;
  state.last_operation = peer.operations_sent;
  mark_dirty(w, target, state);
}

}  // namespace rma::detail
