// SPDX-License-Identifier: Apache-2.0
/// \file
/// The rest of a window's life, and what it tells about itself.
#include <algorithm>
#include <cstring>

#include "channel/call_scope.hpp"
#include "core/names.hpp"
#include "rma/detail/window_ops.hpp"
#include "sync/deferred.hpp"
#include "sync/lock_agent.hpp"
#include "sync/locking.hpp"
#include "sync/range_news.hpp"
#include "sync/synchronization.hpp"
#include "window/window_core.hpp"
#include "window/window_memory.hpp"
#include "xfer/complete.hpp"
#include "xfer/engine.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {

const window_view freed_window{};

namespace {

bool idle(const window_core& w) noexcept {
  return w.locks_open == 0 && !w.exposed && (w.access == access_epoch::none || w.access == access_epoch::fence);
}

void forget(window_core& w) noexcept {
  engine& e = *w.team->rt->ops;
  {
    const std::lock_guard guard(w.ctx->lock());
    if (w.agent != nullptr) w.agent->close();
    e.remove(w);
    w.team->rt->syncs->remove(w);
  }
  { const window_guard alone(w); }  // a synchronization that another thread was going on with has made its step
  const std::lock_guard guard(w.ctx->lock());
  for (target_state& state : w.states) e.forget(state);
  for (const auto& [target, far] : w.far_targets) e.forget(*far);
}

/// Puts the list of attached ranges where the others can read it. Readers that meet a change look again.
status publish_table(window_core& w) {
  runtime_core& rt = *w.team->rt;
  const std::size_t bytes = std::max<std::size_t>(w.attachments.size() * sizeof(attachment), 1);
  window_block& mine = w.my_block();
  std::size_t offset = w.table_offset;
  const bool grow = bytes > w.table_bytes;
  if (grow) {
    const std::size_t room = std::max<std::size_t>(2 * bytes, 4096);
    const auto found = rt.take_any(room, 4096);
    if (!found) return status::out_of_memory;
    offset = *found;
    std::swap(offset, w.table_offset);
    const std::size_t before = std::exchange(w.table_bytes, room);
    mine.table.version.fetch_add(1);
    full_fence();
    if (before != 0) rt.give_back(offset, before);
  } else {
    mine.table.version.fetch_add(1);
    full_fence();
  }
  const auto set = [](std::uint64_t& word, std::uint64_t value) noexcept {  // others may be reading it now
    store_value(reinterpret_cast<std::byte*>(&word), value);
  };
  auto* at = reinterpret_cast<attachment*>(w.board->segment(w.board->me()) + w.table_offset);
  for (const attachment& each : w.attachments) {
    set(at->address, each.address);
    set(at->bytes, each.bytes);
    set(at->wide.address, each.wide.address);
    set(at->wide.bytes, each.wide.bytes);
    set(at->wide.key, each.wide.key);
    ++at;
  }
  set(mine.table.offset, w.table_offset);
  set(mine.table.count, w.attachments.size());
  if (w.ctx->wide() != nullptr) set(mine.table.key, rt.own_region(w.table_offset).key);
  mine.table.version.fetch_add(1);
  return status::done;
}

/// From this rank's list; the others see it until the next publish_table. False if there is none at that address.
bool take_out(window_core& w, std::uint64_t address, attachment& removed) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  const auto at = std::find_if(w.attachments.begin(), w.attachments.end(),
                               [address](const attachment& a) { return a.address == address; });
  if (at == w.attachments.end()) return false;
  removed = *at;
  w.attachments.erase(at);
  return true;
}

void end_region(window_core& w, const attachment& range) noexcept {
  if (range.wide.bytes == 0) return;
  const std::lock_guard guard(w.ctx->lock());
  w.ctx->wide()->deregister_region(range.wide);
}

}  // namespace

bool has_open_epoch(window_view& view) noexcept { return closable(view) == status::done && !idle(core_of(view)); }

status free_window(window_view* view) noexcept {
  if (const status s = closable(*view); s != status::done) return s;
  window_core& w = core_of(*view);
  if (!idle(w)) return status::wrong_epoch;
  team_core& team = *w.team;
  const call_scope in(*w.ctx, name_of(call::free).data());
  status s = issue_deferred(w, -1, nullptr);
  if (const status completed = complete_all(w); ok(s)) s = completed;
  const status met = team.barrier();  // no member uses the memory any more
  if (s == status::done) s = met;
  quiesce_agent(w);
  forget(w);
  if (met == status::done) {
    release_window(w);
  } else {
    leave_window(w);  // a member has died: others may not know it, and have open epochs
  }
  delete &w;
  return s == status::peer_failed || s == status::revoked ? status::done : s;
}

// The handle is gone, the others may still use this rank's part.
void drop_window(window_view* view) noexcept {
  if (is_freed(*view)) return;
  window_core& w = core_of(*view);
  if (w.team->rt->forked()) return;
  w.team->rt->ops->give_up_tasks(w);
  for (std::uint32_t i = 0; i < w.near_count(); ++i) {
    if (w.views[i].held != 0)
      abandon_epoch(w, w.views[i].held == held_by_lock_all ? -1 : static_cast<int>(w.first + i));
  }
  for (const auto& [target, far] : w.far_targets) {
    if (far->held != 0) abandon_epoch(w, far->held == held_by_lock_all ? -1 : target);
  }
  leave_results(w, -1);
  if (w.access == access_epoch::lock_all) (void)release_all(w);  // may hold something, though no target was used
  drop_ranges(w);
  quiesce_agent(w);
  forget(w);
  leave_window(w);
  delete &w;
}

status revoke(window_view& view) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  w.team->rt->revoked->revoke(w);
  return status::done;
}

status attach(window_view& view, void* memory, std::size_t bytes, std::uint64_t& displacement) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  displacement = reinterpret_cast<std::uint64_t>(memory);
  if (w.kind != call::create_dynamic) return status::not_supported;
  if (memory == nullptr || bytes == 0) return status::bad_argument;
  attachment added{displacement, bytes, {}};
  {
    const std::lock_guard guard(w.ctx->lock());
    const auto at = std::upper_bound(w.attachments.begin(), w.attachments.end(), added,
                                     [](const attachment& a, const attachment& b) { return a.address < b.address; });
    const bool after = at != w.attachments.end() && displacement + bytes > at->address;
    const bool before = at != w.attachments.begin() && (at - 1)->address + (at - 1)->bytes > displacement;
    if (after || before) return status::bad_argument;
    check_access(w, memory, bytes);
    fabric::network* const wide = w.ctx->wide();
    if (wide != nullptr && (!w.writable || !ok(wide->register_region(memory, bytes, added.wide)))) added.wide = {};
    w.attachments.insert(at, added);
  }
  const status s = publish_table(w);
  if (s != status::done && take_out(w, displacement, added)) end_region(w, added);
  return s;
}

status detach(window_view& view, void* memory) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  if (w.kind != call::create_dynamic) return status::not_supported;
  attachment removed;
  if (!take_out(w, reinterpret_cast<std::uint64_t>(memory), removed)) return status::bad_argument;
  const status s = publish_table(w);  // before the region's end: readers of the table find only valid keys
  end_region(w, removed);
  return s;
}

void* local_base(const window_view& view) noexcept { return is_freed(view) ? nullptr : core_of(view).local_base; }
std::size_t local_bytes(const window_view& view) noexcept { return is_freed(view) ? 0 : core_of(view).local_bytes; }
void* mapped_base(const window_view& view, int rank) noexcept {
  const target_view* const t = is_freed(view) ? nullptr : core_of(view).view_at(rank);
  return t == nullptr ? nullptr : t->base;
}

bool place_in_segment(const window_view& window, std::uint64_t& offset, std::uint64_t& bytes_max) noexcept {
  if (&window == no_window()) return false;
  const window_core& w = core_of(window);
  const bool own = w.kind == call::allocate || (w.kind == call::allocate_shared && !w.hints.contiguous);
  if (!own) return false;
  offset = w.block_offset + w.layout.data_at;
  bytes_max = w.part_bytes_max;
  return true;
}

Team team_of(const window_view& view, const std::source_location& where) {
  if (is_freed(view)) throw Error(status::window_freed, "team of a window that was freed or moved from", -1, where);
  return Team(core_of(view).team);
}

std::string_view name_of_window(const window_view& view) noexcept {
  return is_freed(view) ? std::string_view("(freed)") : std::string_view(core_of(view).hints.name);
}

namespace {

/// Puts and gets to a target on another node; asks the target's segment if need be.
bool reaches_far(window_core& w, int target) noexcept {
  far_target* far = nullptr;
  if (w.ctx->wide() == nullptr) return false;
  if (!w.ctx->wide()->caps().one_sided || w.team->rt->ops->forced() == user_memory::handler) return false;
  if (find_far(w, target, far) != status::done) return false;
  if (w.kind != call::create_dynamic) return far->reachable;
  return find_far_table(w, target, *far) == status::done &&
         std::all_of(far->table.begin(), far->table.end(), [](const attachment& a) { return a.wide.bytes != 0; });
}

}  // namespace

bool one_sided(window_view& view, call kind, int target) noexcept {
  if (is_freed(view)) return false;
  window_core& w = core_of(view);
  const window_guard in(w);
  const bool transfer = kind == call::put || kind == call::get;
  if (target < 0 || target >= w.size()) return false;
  if (target == w.team->rank) return true;
  const bool managed = w.agent != nullptr && (w.block_of(target) == nullptr || w.scheme == lock_scheme::agent);
  if (w.defers || managed) return false;  // its lock manager has a part
  if (w.schedule.aggregate_bytes != 0 && (w.view_at(target) == nullptr || w.view_at(target)->base == nullptr))
    return false;  // small ones are messages
  if (!transfer && is_by_adapter(w.mode)) return w.ctx->wide()->caps().one_sided;
  if (w.is_far(target)) return transfer && reaches_far(w, target);
  const target_view* const t = w.view_at(target);
  const bool memory = t != nullptr && t->base != nullptr;
  if (transfer) {
    return memory || (w.ctx->network_of(w.world_rank(target)).caps().one_sided &&
                      w.team->rt->ops->forced() != user_memory::handler);
  }
  return memory && w.mode != accumulate_mode::handler;
}

// As an operation there would find it.
status part_bytes(window_view& view, int rank, std::size_t& bytes) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  if (rank < 0 || rank >= w.size()) return status::bad_rank;
  if (w.kind == call::create_dynamic) {
    bytes = 0;
    return status::done;
  }
  if (!w.is_far(rank)) {
    bytes = w.identity_of(rank)->identity.bytes;
    return status::done;
  }
  far_target* far = nullptr;
  if (w.ctx->wide() == nullptr) return status::unreachable;
  if (const status s = find_far(w, rank, far); s != status::done) return s;
  bytes = far->bytes;
  return status::done;
}

lock_protocol locking(const window_view& view, int target) noexcept {
  if (is_freed(view) || target < 0 || target >= core_of(view).size()) return lock_protocol::automatic;
  return core_of(view).locks;
}

LockCounts counts_of_locks(const window_view& view) noexcept {
  if (is_freed(view)) return {};
  const window_guard in(core_of(view));
  return core_of(view).counts;
}

std::string_view promotion(const window_view& view) noexcept {
  return is_freed(view) ? std::string_view("the window was freed") : std::string_view(core_of(view).promotion);
}

}  // namespace rma::detail
