// SPDX-License-Identifier: Apache-2.0
#include "sync/locking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/names.hpp"
#include "sync/lock_agent.hpp"
#include "sync/lock_network.hpp"
#include "sync/lock_protocol.hpp"
#include "xfer/complete.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

/// The fabric for the lock words of targets: the one between nodes, if there is one.
const fabric::capabilities& lock_fabric(const window_core& w) noexcept {
  return w.ctx->wide() != nullptr ? w.ctx->wide()->caps() : w.ctx->node().caps();
}

void choose_policy(window_core& w) {
  const LockChoice by_setting = w.ctx->config().lock();
  const LockChoice& choice = w.hints.lock.policy != lock_policy::automatic ? w.hints.lock : by_setting;
  const bool is_chosen = !w.defers_far && choice.policy != lock_policy::automatic;
  w.policy = is_chosen ? choice.policy : lock_policy::adaptive;
  w.policy_threshold = choice.threshold;
}

/// True for policy "native" if atomics of the network need the target's processor.
bool stays_in_memory(const window_core& w) noexcept {
  return w.policy == lock_policy::native && !lock_fabric(w).one_sided;
}

deferral wished_deferral(const window_core& w) noexcept {
  if (w.hints.lock.deferred) return deferral::hint;
  const bool by_setting = w.hints.lock.protocol == lock_protocol::automatic && w.ctx->config().lock().deferred;
  return by_setting ? deferral::setting : deferral::none;
}

void choose_scheme(window_core& w) {
  w.scheme = w.hints.lock.scheme;
  if (w.scheme != lock_scheme::automatic) return;
  w.scheme = w.ctx->config().lock().scheme;
  if (w.scheme == lock_scheme::automatic) {
    w.scheme = lock_scheme::word;
  } else if (w.scheme != lock_scheme::word) {
    w.locks_why = "RMA_LOCK";
  }
}

/// True if the lock of an open lock_all epoch covers the targets.
bool is_held_already(const window_core& w) noexcept {
  return w.access == access_epoch::lock_all && w.lock_row->lock_all != nullptr;
}

/// LockCounts excludes locks that are taken only in memory.
bool is_counted(const window_core& w, int target) noexcept {
  return w.lock_row->duty != manager_duty::takes_for_far || !maps_lock(w, target);
}

}  // namespace

bool is_released_by_message(window_core& w, int target, lock_kind kind) noexcept {
  if (target == w.team->rank || w.state_of(target).epoch != nullptr) return false;
  return w.lock_row->path(w, target, kind) == lock_path::agent;
}

bool maps_lock(const window_core& w, int target) noexcept {
  const target_view* const t = w.view_at(target);
  return t != nullptr && t->lock != nullptr;
}

lock_protocol wished_lock(const Hints& hints, const settings& config) noexcept {
  return hints.lock.protocol != lock_protocol::automatic ? hints.lock.protocol : config.lock().protocol;
}

status choose_lock(window_core& w, std::string& why_not) {
  const lock_protocol wished = wished_lock(w.hints, w.ctx->config());
  const bool memory = w.intranode && !w.spans_nodes;
  w.locks = wished;
  w.locks_why = w.hints.lock.protocol != lock_protocol::automatic ? "Hints::lock" : "RMA_LOCK";
  if (wished == lock_protocol::automatic) {
    const bool atomics = lock_fabric(w).atomics;
    // If the target's processor carries out the fabric's atomics, nothing is gained by sending them one by one.
    w.manager_first = w.ctx->wide() != nullptr && !lock_fabric(w).one_sided;
    w.defers_far = !memory && atomics && w.ctx->wide() != nullptr && (w.intranode || w.manager_first);
    w.locks = memory || !atomics ? lock_protocol::cpu : w.defers_far ? lock_protocol::hybrid : lock_protocol::network;
    w.locks_why = memory            ? "the lock words are mapped"
                  : !atomics        ? "the fabric has no atomics"
                  : w.manager_first ? "the fabric needs the target's processor: its lock manager does all at once"
                  : w.intranode     ? "the team spans nodes: each lock as it has cost"
                                    : "RMA_INTRANODE=off";
  }
  w.defers = w.locks == lock_protocol::two_sided;
  w.deferrable = wished_deferral(w);
  if (w.locks == lock_protocol::hybrid) choose_policy(w);
  w.lock_stays = w.locks == lock_protocol::hybrid && stays_in_memory(w);
  if (w.locks == lock_protocol::network) choose_scheme(w);
  w.lock_row = &row_of(w.locks, w.scheme, w.defers_far);
  if (w.lock_row->needs_atomics && !lock_fabric(w).atomics) {
    why_not = fmt::format("lock '{}' ({}) needs a fabric with atomics, and '{}' has none", name_of(w.locks),
                          w.locks_why, lock_fabric(w).name);
    return status::not_supported;
  }
  const auto& places = w.team->places;
  w.alone = std::count_if(places.begin(), places.end(), [](std::int32_t slot) { return slot >= 0; }) <= 1;
  const manager_duty duty = w.lock_row->duty;
  const bool for_all = duty == manager_duty::is_the_lock || duty == manager_duty::counts_readers;
  if (for_all || (duty != manager_duty::none && !memory)) w.agent = std::make_shared<lock_agent>(w);
  return status::done;
}

void await_news_of_death(window_core& w) noexcept {
  constexpr std::int64_t at_most_ns = 1'000'000'000;
  const window_unlock_guard out(w);
  if (w.team->lost_member() == status::done)
    (void)w.ctx->wait(
        {.fails_if = [&w]() noexcept { return w.team->lost_member(); }, .deadline_ns = w.ctx->after_ns(at_most_ns)});
}

lock_home wished_home(const window_core& w) noexcept {
  if (w.lock_stays) return lock_home::cpu;
  if (w.hints.lock.home != lock_home::automatic) return w.hints.lock.home;
  if (w.defers_far && w.alone && !w.manager_first) return lock_home::network;  // no rank of its node would benefit
  const lock_home by_setting = w.ctx->config().lock().home;
  return by_setting != lock_home::automatic ? by_setting : lock_home::cpu;
}

status acquire_all(window_core& w) noexcept {
  return w.lock_row->lock_all != nullptr ? w.lock_row->lock_all(w) : status::done;
}

status release_all(window_core& w) noexcept {
  return w.lock_row->unlock_all != nullptr ? w.lock_row->unlock_all(w) : status::done;
}

status go_unchecked(window_core& w, int target) noexcept {
  if (w.is_far(target) && w.ctx->wide() == nullptr) return status::unreachable;
  target_state& state = w.state_of(target);
  static constexpr lock_explanation unchecked{"none", "no_check"};
  state.lock_explained = &unchecked;
  return status::done;
}

status acquire_lock(window_core& w, int target, lock_kind kind, deferral by) noexcept {
  if (w.is_far(target) && w.ctx->wide() == nullptr) return status::unreachable;
  target_state& state = w.state_of(target);
  state.lock_explained = nullptr;
  state.deferrable = by;
  if (is_held_already(w)) return status::done;
  if (!is_counted(w, target)) return w.lock_row->lock(w, target, kind, by);
  const std::int64_t begin_ns = w.ctx->around().now_ns();
  const std::uint64_t migrations = w.counts.migrations;
  const status s = w.lock_row->lock(w, target, kind, by);
  w.counts.waited_ns += w.ctx->around().now_ns() - begin_ns;
  ++(w.is_far(target) ? w.counts.remote : w.counts.local);
  const std::lock_guard guard(w.ctx->lock());
  w.ctx->count(w.is_far(target) ? counter::locks_remote : counter::locks_local);
  w.ctx->count(counter::lock_migrations, w.counts.migrations - migrations);
  return s;
}

bool release_follows_writes(window_core& w, int target) noexcept {
  if (w.held(target) == held_unchecked || (w.access == access_epoch::lock_all && w.unchecked != 0)) return false;
  const target_state& state = w.state_of(target);
  const bool by_network = w.lock_row->release_follows_writes && state.epoch == nullptr &&
                          w.lock_row->path(w, target, lock_kind::shared) == lock_path::network;
  const fabric::network* const of_lock = w.ctx->wide() != nullptr ? w.ctx->wide() : &w.ctx->node();
  return by_network && &w.ctx->network_of(w.world_rank(target)) == of_lock && only_writes(w, target);
}

void start_release(window_core& w, int target) noexcept {
  if (release_follows_writes(w, target)) w.far(target).releasing = start_release_network(w, target);
}

status finish_release(window_core& w, int target) noexcept {
  far_target& far = w.far(target);
  operation_record* const started = std::exchange(far.releasing, nullptr);
  if (started == nullptr) return release_lock(w, target, lock_kind::shared);
  if (w.defers_far && far.deferrable != deferral::none) far.experience = after_epoch(far.experience, far.epoch_bytes);
  far.path = lock_path::cpu;  // the path of inlined locks, which do not set it
  return finish_release_network(w, target, started);
}

status release_lock(window_core& w, int target, lock_kind kind) noexcept {
  return is_held_already(w) ? status::done : w.lock_row->release(w, target, kind);
}

std::unique_ptr<lock_machine> begin_lock(window_core& w, int target, lock_kind kind, status& failed) {
  if (is_counted(w, target)) ++(w.is_far(target) ? w.counts.remote : w.counts.local);
  return w.lock_row->begin(w, target, kind, failed);
}

}  // namespace rma::detail
