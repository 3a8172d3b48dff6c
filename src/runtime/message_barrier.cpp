// SPDX-License-Identifier: Apache-2.0
#include "runtime/message_barrier.hpp"

#include <mutex>
#include <utility>

#include "coll/machine.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "rma/detail/word_ops.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {

void message_barrier::prepare(team_core& team, std::uint64_t id) noexcept {
  if (run_ != nullptr) [[likely]]
    return;
  of_ = &team.collectives();
  const std::lock_guard guard(of_->all().ctx().lock());
  run_ = &of_->keep_barrier(id);
}

status message_barrier::run(team_core& team, std::uint64_t id, wait_question<status> failed) noexcept {
  if (const status s = failed(); s != status::done || team.size == 1) return s;
  prepare(team, id);
  context& ctx = of_->all().ctx();
  notifications& notices = of_->all().notices();
  notifications::slots& slots = *run_->notified_by();
  {
    const std::lock_guard guard(ctx.lock());
    notices.begin_wait(slots);
    of_->start_barrier(*run_);
    // A message from another node may arrive before a wait has been set up.
    const auto over = [&]() noexcept {
      notices.look(slots);
      return run_->over();
    };
    if (ctx.wide() != nullptr ? ctx.ready_soon(over) : run_->over()) {
      notices.end_wait(slots);
      full_fence();
      return status::done;
    }
  }
  const auto fails = [&]() noexcept {
    const status s = failed();
    const int from = s == status::done ? awaited() : -1;
    if (from < 0 || !ctx.gone(from)) return s;
    ctx.set_last_failed(from);
    return status::peer_failed;
  };
  const status s = ctx.wait({.until = [this]() noexcept { return run_->over(); }, .fails_if = fails});
  const std::lock_guard guard(ctx.lock());
  if (s != status::done) run_->fail(s);
  notices.end_wait(slots);
  full_fence();
  return s;
}

void message_barrier::start(team_core& team, std::uint64_t id) noexcept {
  prepare(team, id);
  const std::lock_guard guard(of_->all().ctx().lock());
  of_->start_barrier(*run_);
}

status message_barrier::state() const noexcept { return run_->state(); }

void message_barrier::give_up(status why) noexcept {
  const std::lock_guard guard(of_->all().ctx().lock());
  run_->fail(why);
}

int message_barrier::awaited() const noexcept {
  const std::lock_guard guard(of_->all().ctx().lock());
  const notifications::slots& slots = *run_->notified_by();
  return slots.awaited == notifications::no_round ? -1 : slots.from;
}

void message_barrier::drop() noexcept {
  if (run_ == nullptr) return;
  const std::lock_guard guard(of_->all().ctx().lock());
  of_->drop_barrier(*std::exchange(run_, nullptr));
}

}  // namespace rma::detail
