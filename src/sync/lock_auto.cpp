// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_auto.hpp"

#include <cstddef>
#include <utility>

#include "sync/hybrid_machine.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/lock_two_sided.hpp"
#include "xfer/complete.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr lock_explanation in_memory{"cpu", "auto: the lock is in its node's memory"};
constexpr lock_explanation by_manager{"cpu", "auto: the lock manager has answered well"};
constexpr lock_explanation by_manager_not_small{"cpu",
                                                "auto: the lock manager has answered well; more than a small epoch"};
constexpr lock_explanation in_network{"network", "auto: the lock is in the network"};

status lock_now(window_core& w, int target, lock_kind kind) noexcept {
  if (const status s = send_deferred_before(w, -1); s != status::done) return s;
  const status s = lock_by<hybrid_machine>(w, target, kind);
  explain_path(w.state_of(target));
  return s;
}

/// Runs an epoch that the manager could not run: the lock is in network mode, or this rank brings it there.
status run_by_network(window_core& w, int target, const deferred_epoch& epoch, lock_step answer) noexcept {
  const hybrid_stage first = after_epoch_answer(answer);
  RMA_ASSERT(first != hybrid_stage::held);
  status s = status::done;
  if (first == hybrid_stage::claiming) {
    hybrid_machine m(w, target, epoch.kind, first);
    if (wait_for(w, m) != lock_step::held) s = m.why();
  } else {
    s = lock_by<hybrid_machine>(w, target, epoch.kind);
  }
  if (s != status::done) return s;
  explain_path(w.state_of(target));
  if (epoch.count != 0) send_operations(w, target);
  const status completed = complete_target(w, target);
  const status released = release_hybrid(w, target, epoch.kind);
  return completed != status::done ? completed : released;
}

status release_epoch(window_core& w, int target, const deferred_epoch& epoch) noexcept {
  target_state& state = w.state_of(target);
  const std::int64_t begin_ns = w.ctx->around().now_ns();
  const epoch_end end = await_epoch(w, target, epoch, excess_locks(state.experience));
  state.experience.alone = end.request->alone;
  if (end.step == lock_step::held && end.why == status::done)
    state.experience = after_answer(state.experience, w.ctx->around().now_ns() - begin_ns - end.request->waited_ns,
                                    atomics_of_epoch(epoch.bytes, !epoch.fetches));
  if (end.step != lock_step::migrates && end.step != lock_step::moved) return end.why;
  state.experience = after_no(found_at(state.experience, lock_place::network));
  return run_by_network(w, target, epoch, end.step);
}

status release_deferred(window_core& w, int target) noexcept {
  const std::unique_ptr<deferred_epoch> epoch = take_deferred(w, target);
  // The operations of an abandoned epoch are dropped.
  const status s = w.failed() ? status::done : release_epoch(w, target, *epoch);
  end_epoch(w, target);
  return s;
}

// ---- a rank of another node brings the lock to CPU mode -----------------------------------------------------------

migration_reply take_reply(window_core& w, int target) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  lock_request& r = request_to(w, target);
  if (r.migrate_requested_ns < 0) return migration_reply::not_asked;
  if (r.migrate_replied_ns < 0) return migration_reply::asked;
  const std::int64_t took_ns = r.migrate_replied_ns - r.migrate_requested_ns;
  r.migrate_requested_ns = r.migrate_replied_ns = -1;
  if (r.may_migrate && answers_well(w.state_of(target).experience, took_ns)) return migration_reply::yes;
  if (r.may_migrate) tell_agent(w, target, lock_word::migrate_cancel, 0, lock_kind::exclusive, true, {});
  return migration_reply::no;
}

void request_migration(window_core& w, int target) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  request_to(w, target).migrate_requested_ns = w.ctx->around().now_ns();
  tell_agent(w, target, lock_word::migrate_request, 0, lock_kind::exclusive, true, {});
}

void cancel_migration(window_core& w, int target) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  tell_agent(w, target, lock_word::migrate_cancel, 0, lock_kind::exclusive, true, {});
}

/// True if the CPU word still names this rank as the one that migrates the lock. Any other rank would have to hold the
/// network word first, which this rank holds now.
bool is_named(window_core& w, int target) noexcept {
  fabric::region_key region;
  std::uint64_t state = 0;
  const std::uint64_t address = offsetof(window_block, lock) + offsetof(cpu_lock, state);
  status s = block_region(w, target, region);
  if (s == status::done)
    s = remote_read(*w.team->rt->ops, *w.ctx->wide(), w.world_rank(target), region, region.address + address, &state,
                    sizeof state);
  return s == status::done && may_migrate_to_cpu(state, w.ctx->rank());
}

status migrate_to_cpu(window_core& w, int target) noexcept {
  target_state& state = w.state_of(target);
  full_fence();  // orders the epoch's stores before the adapter's atomic
  if (const status s = leave_network(w, target); s != status::done) return s;
  state.path = lock_path::cpu;
  state.experience = found_at(state.experience, lock_place::cpu);
  state.experience.small_epochs = 0;
  ++w.counts.migrations;
  const std::lock_guard guard(w.ctx->lock());
  w.ctx->count(counter::lock_migrations, 1);
  tell_agent(w, target, lock_word::migrated, 0, lock_kind::exclusive, true, {});
  return status::done;
}

/// Ends an epoch whose lock was acquired by the network.
status release_there(window_core& w, int target, lock_kind kind) noexcept {
  target_state& state = w.state_of(target);
  state.experience = after_epoch(state.experience, state.epoch_bytes);
  if (!prefers_cpu(state.experience) || kind != lock_kind::exclusive) return release_hybrid(w, target, kind);
  const migration_reply reply = take_reply(w, target);
  const auto_end end = end_of(reply, reply == migration_reply::yes && is_named(w, target));
  if (end == auto_end::migrate) return migrate_to_cpu(w, target);
  if (end == auto_end::cancel) cancel_migration(w, target);
  if (reply == migration_reply::yes || reply == migration_reply::no) state.experience = after_no(state.experience);
  const status s = release_hybrid(w, target, kind);
  if (end == auto_end::request_migration && s == status::done) request_migration(w, target);
  return s;
}

}  // namespace

void explain_path(target_state& state) noexcept {
  switch (state.path) {
    case lock_path::cpu: state.lock_explained = &in_memory; break;
    case lock_path::agent:
      state.lock_explained = state.deferrable == deferral::none ? &by_manager : &by_manager_not_small;
      break;
    case lock_path::network: state.lock_explained = &in_network; break;
  }
}

status lock_auto(window_core& w, int target, lock_kind kind, deferral by) noexcept {
  target_state& state = w.state_of(target);
  state.epoch_bytes = 0;
  // With several threads no epoch is deferred, see lock_two_sided.
  const bool deferrable = by != deferral::none && w.block_of(target) == nullptr && w.access != access_epoch::lock_all &&
                          !w.shared_by_threads;
  const auto_begin begin = begin_of(deferrable, state.experience.manager);
  if (begin == auto_begin::at_once) return lock_now(w, target, kind);
  if (begin == auto_begin::network_first) {
    if (const status s = send_deferred_before(w, -1); s != status::done) return s;
    hybrid_machine m(w, target, kind, hybrid_stage::network_only);
    const lock_step s = wait_for(w, m);
    explain_path(state);
    if (s != lock_step::moved) return m.why();
    state.experience = found_at(state.experience, lock_place::cpu);
  }
  begin_deferred(w, target, kind);
  return status::done;
}

status release_auto(window_core& w, int target, lock_kind kind) noexcept {
  target_state& state = w.state_of(target);
  if (state.epoch != nullptr) return release_deferred(w, target);
  const bool may_come = state.deferrable != deferral::none && w.block_of(target) == nullptr;
  if (state.path == lock_path::network && may_come && !w.failed() && !w.shared_by_threads)
    return release_there(w, target, kind);
  return release_hybrid(w, target, kind);
}

}  // namespace rma::detail
