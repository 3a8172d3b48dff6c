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
#include "fabric/fabric.hpp"
#include "rma/detail/view.hpp"
#include "rma/epoch.hpp"
#include "rma/hints.hpp"
#include "runtime/team_core.hpp"
#include "window/fence_state.hpp"
#include "window/lock_experience.hpp"
#include "window/range_state.hpp"
#include "xfer/door.hpp"
#include "xfer/epoch_rules.hpp"
#include "xfer/gathered_copies.hpp"
#include "xfer/operation_record.hpp"
#include "xfer/scheduling.hpp"

namespace rma::detail {

class trace_file;

/// What ranks of other nodes read, once.
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

/// What the node's ranks write down about the requests for one hybrid lock, see src/sync/lock_hybrid.hpp.
struct migration_words {
  word32 rent;
  word32 price;
  word32 home_run;
};

/// By which way this rank holds a lock that has several.
enum class lock_path : std::uint8_t { cpu, network, agent };

/// What one rank publishes about its part of a window; at the same offset in every member's segment.
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
  status result = status::done;
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

/// What the engine has under way towards one target of one window.
struct target_state {
  context::peer* peer = nullptr;     ///< null until a handler operation went there
  std::uint64_t last_operation = 0;  ///< number of the peer's last handler operation that was ours
  std::uint32_t protests = 0;        ///< the peer's that have been reported
  std::uint64_t last_promised = 0;   ///< of these, the last that the target is bound to handle
  operation_record::queue held;      ///< see held_operations.hpp; these two are guarded by the progress lock
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
  std::uint32_t immediates = 0;  ///< that went there in this fence epoch, and have not failed
  bool channel = false;          ///< in fence_state::channels
  bool finish_due = false;       ///< a put of this fence epoch went there without an immediate

  std::uint64_t posted_count = 0;  ///< operations that went to the fabric, ever

  void begin_posted(bool write) noexcept {
    const std::uint64_t pending = fabric_pending.load(std::memory_order_relaxed);
    fetches = !write || (fetches && pending != 0);
    fabric_pending.store(pending + 1);
  }
  void fail(status why) noexcept {
    fabric_failed.store(static_cast<std::uint32_t>(-static_cast<int>(why)));
    ++failures;
  }
  void end_posted() noexcept { fabric_pending.store(fabric_pending.load(std::memory_order_relaxed) - 1); }
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
  fabric::region_key block;               ///< of its window_block; bytes 0: not asked for yet
  std::uint64_t table_version = ~std::uint64_t{0};
  std::vector<attachment> table;  ///< as it was at that version
};

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

struct window_core : window_view {
  std::shared_ptr<team_core> team;
  context* ctx = nullptr;
  shm::board* board = nullptr;
  trace_file* trace = nullptr;          ///< null: nothing is traced
  bool watched = false;                 ///< no call is inlined: all are traced, or cost virtual time
  const epoch_rules* epochs = nullptr;  ///< what src/sync answers the engine
  epoch_terms terms;                    ///< of the open epoch
  bool crowded = false;     ///< several threads may use the window at once; at `multiple` no call is inlined
  bool attended = false;    ///< one of the two, or checks: entry_scope has something to do
  bool checks = false;      ///< RMA_CHECK: no operation is inlined, so that it is known which epochs were used
  bool fence_used = false;  ///< the open fence epoch was, if that is known
  /// Of a crowded window: guards what neither the progress lock guards nor is atomic. Taken before the progress lock.
  mutable door entrance;
  unsigned tasks = 0;        ///< synchronisations behind requests, which any thread that makes progress goes on with
  std::vector<int> claimed;  ///< targets whose lock a thread of this rank is taking or giving back
  unsigned claimants = 0;    ///< threads that wait for one of these
  std::vector<int> wanted;   ///< targets whose lock a request (ilock) asks for; counted among locks_open
  /// Why not every call is carried out, see `usable`.
  std::atomic<std::uint8_t> objections = 0;
  static constexpr std::uint8_t given_up = 1;    ///< an epoch was abandoned by an exception
  static constexpr std::uint8_t one_thread = 2;  ///< only the thread that made the runtime may call
  std::atomic<bool> revoked = false;             ///< the window itself, see revocations.hpp
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
  fabric::region_key own_block{};              ///< of this rank's block, for the fabric between nodes
  lock_scheme scheme = lock_scheme::word;      ///< of lock "network"; never automatic
  lock_policy policy = lock_policy::adaptive;  ///< of a hybrid lock; never automatic
  std::uint32_t policy_threshold = 0;
  bool alone = false;  ///< no other member is on this node
  LockCounts counts;
  std::vector<int> deferred;                 ///< targets with an epoch that is not sent, in the order of their locks
  bool defers = false;                       ///< lock "two-sided": deferrable epochs wait for their end
  bool defers_far = false;                   ///< lock "auto": small ones towards other nodes may
  deferral deferrable = deferral::none;      ///< each lock of this window
  deferral all_deferrable = deferral::none;  ///< those of the open lock_all epoch
  bool manager_first = false;                ///< ... and its lock manager answers when the fabric's atomics would
  std::shared_ptr<class lock_agent> agent;   ///< the lock manager of this rank's part; null: nobody needs one
  std::unordered_map<int, std::unique_ptr<lock_request>> lock_requests;  ///< by target; guarded by the progress lock
  std::uint64_t lock_pauses = 0;                                         ///< of waits for network locks
  std::uint64_t dice = 0;                                                ///< where contenders' pauses are drawn from

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
  dissemination::seat far_seat{};  ///< of the barrier by messages
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
  near_target last_near;
  std::atomic<int> dropped_by = -1;  ///< world rank that has said last that it has dropped the window
  int last_far = -1;                 ///< the far target that was asked for last
  far_target* last_far_target = nullptr;
  std::unordered_map<int, fabric::region_key> near_blocks;  ///< as the fabric between nodes reaches them
  std::vector<int> far_used;                                ///< locked by this lock_all epoch
  std::unordered_map<int, message_counts> told_by_message;  ///< by world rank; guarded by the progress lock
  std::uint32_t held_count = 0;                             ///< operations in the targets' queues
  gathered_copies gathered;

  /// `revoked` if this window or its team is: waits for other members end with that.
  [[nodiscard]] status revocation() const noexcept {
    return revoked.load(std::memory_order_relaxed) ? status::revoked : team->revocation();
  }
  [[nodiscard]] int size() const noexcept { return team->size; }
  [[nodiscard]] int world_rank(int target) const noexcept { return team->world_rank(target); }
  [[nodiscard]] std::size_t index_of(int target) const noexcept { return static_cast<std::size_t>(target) - first; }
  [[nodiscard]] bool is_far(int target) const noexcept { return team->place(target) < 0; }
  [[nodiscard]] far_target& far(int target) { return target == last_far ? *last_far_target : find_far_target(target); }
  [[nodiscard]] target_state& state_of(int target) { return is_far(target) ? far(target) : states[index_of(target)]; }
  /// The lock_kind that this rank holds there, held_..., or 0 none.
  [[nodiscard]] std::uint8_t held(int target) const noexcept;
  /// The block of a member whose segment is mapped here; null elsewhere or with RMA_INTRANODE=off.
  [[nodiscard]] window_block* block_of(int target) const noexcept;
  /// What a member publishes about its part (size, region), however far its memory is; null if not known.
  [[nodiscard]] const window_block* identity_of(int target) const noexcept {
    const int place = team->place(target);
    return place < 0 ? nullptr : block_at(place);
  }
  [[nodiscard]] window_block& my_block() const noexcept { return *block_at(team->place(team->rank)); }
  [[nodiscard]] window_block* block_at(int place) const noexcept {
    return reinterpret_cast<window_block*>(board->segment(static_cast<std::size_t>(place)) + block_offset);
  }
  template <class T>
  [[nodiscard]] T* array(window_block& block, std::size_t at) const noexcept {
    return reinterpret_cast<T*>(reinterpret_cast<std::byte*>(&block) + at);
  }
  void ring(int target) const noexcept {
    const int place = team->place(target);
    if (place >= 0) board->ring_doorbell(static_cast<std::size_t>(place));
  }

  /// For what only the target's program may wait for.
  void ring_waiters(int target) const noexcept {
    const int place = team->place(target);
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
  /// One synchronisation more goes on behind a request, or one less. Called by the thread whose window it is, or alone
  /// in the window.
  void count_task(bool more) noexcept {
    tasks += more ? 1U : ~0U;
    crowded = tasks != 0 || ctx->threads() == thread_level::multiple;
    attended = watched || crowded || checks;
  }
  [[nodiscard]] bool failed() const noexcept { return (objections.load(std::memory_order_relaxed) & given_up) != 0; }

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
inline void mark_dirty(window_core& w, int target, target_state& state) noexcept {
  if (!state.dirty) {
    state.dirty = true;
    w.dirty.push_back(target);
  }
  if (target_view* const t = w.view_at(target)) t->flushable = 0;
}

/// Messages have been sent to the target's handler: flushes wait for them. The caller holds the progress lock.
inline void mark_sent(window_core& w, int target, target_state& state, context::peer& peer) {
  if (state.peer == nullptr) state.protests = peer.protests.load();
  state.peer = &peer;
  state.last_operation = peer.operations_sent;
  mark_dirty(w, target, state);
}

/// Completes everything under way towards `target` (fabric and handler operations). Used by flush and by closing calls.
status complete_target(window_core& w, int target) noexcept;
/// The same of what has been issued: what is scheduled stays held.
status complete_issued(window_core& w, int target) noexcept;
/// The same at a fraction of the cost, after plain operations alone (plain.cpp) on the target that was used last, in an
/// epoch that holds it. False: the other one has to see to it, and may find it done.
[[nodiscard]] bool complete_plain(window_core& w, int target) noexcept;
/// Waits only until this rank's memory is free again and results are there: writes may still be on their way into the
/// target's memory. The same as complete_target where the fabric says no less than that they are there.
status complete_locally(window_core& w, int target) noexcept;
/// After an epoch was abandoned (of one target, -1: of all), or a window dropped: what the buffers were may be gone.
/// What is still to come is not written, or waited for where the fabric writes it, but for what somebody has a request
/// of.
void leave_results(window_core& w, int target) noexcept;
/// Waits for the operations under way that the target is bound to handle: what goes another way must not overtake them.
status complete_promised(window_core& w, int target) noexcept;
inline bool promised_are_over(const target_state& state) noexcept {
  return state.peer == nullptr || state.peer->operations_done.load() >= state.last_promised;
}
/// Whether all that is under way towards the target are the fabric's writes: one of its atomics, posted now, takes
/// effect after them (fabric.hpp).
bool only_writes(window_core& w, int target) noexcept;
/// complete_target after such an atomic has been done: the writes are in the target's memory.
status complete_followed(window_core& w, int target) noexcept;
/// complete_target without waiting: `not_yet` if something is still under way.
status try_complete_target(window_core& w, int target) noexcept;
/// What has been issued to a target until now.
struct issued_mark {
  int target = -1;
  bool set = false;  ///< not while operations wait for room, which have no number yet
  std::uint64_t posted = 0, messages = 0;
};
/// Sets it if that is possible now.
void mark_issued(window_core& w, issued_mark& mark) noexcept;
/// Whether all until the mark, which is set, is complete here: `done`, `not_yet`, or what failed.
status issued_state(window_core& w, const issued_mark& mark) noexcept;
/// The same as complete_target for all targets.
status complete_all(window_core& w) noexcept;
/// Adds to a counter of the target's block, there or by message, and wakes it.
enum class counter_kind : std::uint32_t { signal, completion, post };
void notify(window_core& w, int target, counter_kind kind, std::uint32_t index) noexcept;

}  // namespace rma::detail
