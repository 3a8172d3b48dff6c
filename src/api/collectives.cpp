// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives: from a call that has been described to a request.
#include <algorithm>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/call_scope.hpp"
#include "coll/machine.hpp"
#include "coll/team_state.hpp"
#include "rma/collectives.hpp"
#include "rma/team.hpp"
#include "runtime/team_core.hpp"
#include "xfer/engine.hpp"

namespace rma {
namespace {

using detail::coll::running;
using detail::coll::start_progress;

detail::coll::team_state& state_of(detail::team_core& team) { return team.collectives(); }

/// The root, where there is one.
std::optional<int> root_of(const detail::collective_call& c) noexcept {
  using kind = detail::collective;
  const bool rooted =
      c.what == kind::broadcast || c.what == kind::reduce || c.what == kind::gather || c.what == kind::scatter;
  return rooted ? std::optional<int>(c.root) : std::nullopt;
}

/// This member may start one, and all others are there. A rank that is no member is a mistake that others cannot make
/// up for: nothing happens.
status may_start(detail::team_core& team, status wrong = status::done, std::optional<int> root = {}) noexcept {
  if (wrong == status::bad_rank) {
    team.refused_root = root;
    return wrong;
  }
  const status may = team.rt->ctx->check_caller();
  return may != status::done ? may : team.lost_member();
}

/// Does what RMA_NBC_PROGRESS says of a start, without the lock.
void progress_of_start(detail::context& ctx, running& r, start_progress how) noexcept {
  constexpr std::int64_t patience_ns = 5'000;  // about what the paper found a send to cost
  if (how == start_progress::test_on_init) {
    (void)ctx.progress();
    return;
  }
  const std::int64_t times = how == start_progress::wait_on_send ? std::max<std::int64_t>(r.sends_started(), 1) : 1;
  const std::int64_t until_ns = ctx.around().now_ns() + times * patience_ns;
  const auto sent = [&]() noexcept {
    const std::lock_guard guard(ctx.lock());
    return r.over() || r.sends_over();
  };
  while (!sent() && ctx.around().now_ns() < until_ns) (void)ctx.progress();
}

/// As `root_of`, with -1 for none.
int target_of(const detail::collective_call& c) noexcept { return root_of(c).value_or(-1); }

/// One event of the trace: a blocking call, or a start.
class traced {
 public:
  traced(detail::team_core& team, const detail::collective_call& call) noexcept
      : core_(*team.rt), call_(call), begin_ns_(core_.trace == nullptr ? 0 : core_.around->now_ns()) {}
  [[nodiscard]] bool wanted() const noexcept { return core_.trace != nullptr; }
  void end(std::string_view algorithm, std::string_view why) const noexcept {
    if (core_.trace == nullptr) [[likely]]
      return;
    const std::size_t bytes = std::max({call_.bytes, call_.sent.each_bytes, call_.received.each_bytes});
    core_.trace->add({call_.name, "", target_of(call_), bytes, algorithm, why, begin_ns_, core_.around->now_ns()});
  }
  void end(running& r) const noexcept {
    if (core_.trace == nullptr) [[likely]]
      return;
    const auto* const chosen = r.of().chosen;
    end(chosen == nullptr ? "schedule" : chosen->name, r.of().reason);
  }

 private:
  detail::runtime_core& core_;
  const detail::collective_call& call_;
  std::int64_t begin_ns_;
};

/// Waits for its end, and gives it back; `why` gets the text of a failure, if it is wanted.
status finish_call(detail::context& ctx, running& r, std::string* why) noexcept {
  if (!r.over()) {
    // Ranks that share a core take turns without a sleep: what is looked for before one is looked for here, too.
    constexpr std::uint32_t looks_between = 4096;
    std::uint32_t looks = 0;
    const auto over = [&]() noexcept {
      if (++looks % looks_between == 0 && !r.over()) {
        const std::lock_guard guard(ctx.lock());
        r.look_at_team();
      }
      return r.over();
    };
    const status s = ctx.wait({.until = over, .fails_if = [&]() noexcept { return r.failed(); }});
    if (s != status::done) r.give_up(s);
  }
  if (why != nullptr && !ok(r.state())) r.wait_for_place();
  const std::lock_guard guard(ctx.lock());
  const status s = r.state();
  if (!ok(s) && why != nullptr) *why = r.why();
  r.release();
  return s;
}

/// Runs it to its end; `why` gets the text of a failure, if it is wanted.
status run_call(detail::team_core& team, const detail::collective_call& call, const std::source_location& where,
                std::string* why) noexcept {
  detail::context& ctx = *team.rt->ctx;
  const detail::call_scope in(ctx, call.name, target_of(call), true);
  // A caller that gets peer_failed may use the buffers of all pending collectives of the team.
  const auto reported = [&team](status s) noexcept {
    if (s == status::peer_failed) [[unlikely]]
      state_of(team).give_up_all(s);
    return s;
  };
  if (const status s = may_start(team, call.wrong, root_of(call)); s != status::done) return reported(s);
  detail::coll::team_state& state = state_of(team);
  const traced event(team, call);
  if (state.in_memory(call)) {
    const status s = state.run_in_memory(call, where, why);
    if (event.wanted()) [[unlikely]]
      event.end(state.form_in_memory(), state.reason_in_memory(call));
    return reported(s);
  }
  running* r = nullptr;
  {
    const std::lock_guard guard(ctx.lock());
    r = &state.start(call, where);
  }
  detail::coll::plan& used = r->of();
  const status s = finish_call(ctx, *r, why);
  event.end(used.chosen == nullptr ? "none" : used.chosen->name, used.reason);
  return reported(s);
}

/// The caller holds the lock.
Request request_of(detail::team_core& team, running& r) {
  if (r.state() == status::done) {  // at once: nothing is left to wait for
    r.release();
    return Request(nullptr);
  }
  detail::request_node* const node = team.rt->ops->new_request(r);
  r.set_request(node);
  r.set_awaited(false);
  return Request(node);
}

/// Starts it by `start`, which returns its record, under the lock.
template <class Start>
void start_with(detail::team_core& team, Request& made, Start&& start) {
  detail::context& ctx = *team.rt->ctx;
  const start_progress how = team.rt->collectives->progress_of_start();
  std::unique_lock guard(ctx.lock());
  running& r = start();
  if (how != start_progress::none) [[unlikely]] {
    guard.unlock();
    progress_of_start(ctx, r, how);
    guard.lock();
  }
  made = request_of(team, r);
}

status start_call(detail::team_core& team, const detail::collective_call& call, const std::source_location& where,
                  Request& made) noexcept {
  detail::context& ctx = *team.rt->ctx;
  const detail::call_scope in(ctx, call.name, target_of(call), true);
  if (const status s = may_start(team, call.wrong, root_of(call)); s != status::done) return s;
  detail::coll::team_state& state = state_of(team);
  const traced event(team, call);
  start_with(team, made, [&]() -> running& {
    running& r = state.start(call, where);
    event.end(r);
    return r;
  });
  return status::done;
}

/// True if a name is set for barriers: the blocking one is started like any other collective then.
bool is_named(const detail::team_core& team) noexcept {
  return team.rt->collectives->forced(detail::collective::barrier) != nullptr;
}

[[gnu::noinline, gnu::cold]] status traced_barrier(detail::team_core& team) noexcept {
  const detail::collective_call call;
  const traced event(team, call);
  const status s = team.barrier();
  const bool in_memory = team.has_lines && team.rt->intranode;
  event.end(in_memory ? "flags" : "dissemination",
            in_memory ? "all members share memory" : "auto: the schedule that is kept");
  return s;
}

/// The barrier of teams and windows: flags in memory, or a schedule that is kept.
status own_barrier(detail::team_core& team) noexcept {
  const detail::call_scope in(*team.rt->ctx, "barrier", -1, true);
  if (const status s = team.rt->ctx->check_caller(); s != status::done) return s;
  if (team.rt->trace != nullptr) [[unlikely]]
    return traced_barrier(team);
  return team.barrier();
}

}  // namespace

void Team::barrier(source where) {
  if (is_named(*core_)) [[unlikely]]
    return run(of_barrier(), where);
  require("barrier", own_barrier(*core_), where);
}

status Team::try_barrier() noexcept {
  if (is_named(*core_)) [[unlikely]]
    return try_run(of_barrier());
  return own_barrier(*core_);
}

void Team::set_reproducible(bool on, source where) { require("set_reproducible", try_set_reproducible(on), where); }

status Team::try_set_reproducible(bool on) noexcept {
  detail::context& ctx = *core_->rt->ctx;
  if (const status s = ctx.check_caller(); s != status::done) return s;
  detail::coll::team_state& state = state_of(*core_);
  const std::lock_guard guard(ctx.lock());
  state.set_reproducible(on);
  return status::done;
}

bool Team::reproducible() const noexcept {
  return core_->has_collectives() ? core_->collectives().reproducible() : core_->rt->collectives->reproducible();
}

int TeamBase::rank() const noexcept { return core_->rank; }
int TeamBase::size() const noexcept { return core_->size; }

void TeamBase::run(const described& what, const source& where) {
  std::string why;
  const status s = run_call(*core_, what, where, &why);
  if (!ok(s)) detail::raise_team(*core_, what.name, s, where, why);
}

status TeamBase::try_run(const described& what) noexcept { return run_call(*core_, what, source{}, nullptr); }

Request TeamBase::start(const described& what, const source& where) {
  Request made;
  if (const status s = start_call(*core_, what, where, made); !ok(s)) detail::raise_team(*core_, what.name, s, where);
  return made;
}

status TeamBase::try_start(const described& what, Request& made) noexcept {
  return start_call(*core_, what, source{}, made);
}

Collective TeamBase::keep(const described& what, const source& where) {
  if (const status s = may_start(*core_, what.wrong, root_of(what)); !ok(s))
    detail::raise_team(*core_, what.name, s, where);
  detail::coll::team_state& state = state_of(*core_);
  const std::lock_guard guard(core_->rt->ctx->lock());
  Collective made;
  made.core_ = core_;
  made.kept_ = &state.keep(what, where);
  return made;
}

// One that is under way is left to itself.
void Collective::drop() noexcept {
  if (kept_ == nullptr) return;
  const std::lock_guard guard(core_->rt->ctx->lock());
  running& r = *std::exchange(kept_, nullptr);
  r.set_kept(false);
  if (r.over() && r.request() == nullptr) r.team().give_back(r);
}

Request Collective::start(std::source_location where) {
  Request made;
  const status s = try_start(made);
  if (!ok(s)) detail::raise_team(*core_, "start of a persistent collective", s, where);
  return made;
}

status Collective::try_start(Request& made) noexcept {
  if (kept_ == nullptr) return status::bad_argument;
  const detail::call_scope in(*core_->rt->ctx, kept_->call().name, -1, true);
  if (const status s = may_start(*core_); s != status::done) return s;
  if (!kept_->over() || kept_->request() != nullptr) return status::bad_argument;
  start_with(*core_, made, [this]() -> running& {
    kept_->team().start(*kept_);
    return *kept_;
  });
  return status::done;
}

CollectiveDescriptions::described CollectiveDescriptions::of_schedule(const Schedule& schedule,
                                                                      std::span<const std::byte> in,
                                                                      std::span<std::byte> out, operation op,
                                                                      element type) const noexcept {
  described c = describe(kind::schedule, "schedule", in.data(), out.data());
  c.schedule = &schedule;
  c.op = op;
  c.type = type;
  c.combines = op != operation::no_op;
  demand(c, schedule.bytes_of(Schedule::Buffer::input) <= in.size(), status::bad_size);
  demand(c, schedule.bytes_of(Schedule::Buffer::output) <= out.size(), status::bad_size);
  for (const Schedule::Step& s : schedule.steps()) {
    const bool names_peer = s.peer >= 0;
    demand(c, !names_peer || s.peer < size(), status::bad_rank);
  }
  return c;
}

}  // namespace rma
