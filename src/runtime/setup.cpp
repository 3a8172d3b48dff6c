// SPDX-License-Identifier: Apache-2.0
/// \file
/// The collectives that make teams and windows: schedules of src/coll, which run on a state of their own that is
/// dropped after each. They are numbered apart from the collectives of the program, which may be pending meanwhile.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <vector>

#include "coll/algorithms/builders.hpp"
#include "coll/machine.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "rma/schedule.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {
namespace {

using coll::running;

constexpr std::uint64_t setup_collectives = 0x7365747570;  // no other state of the team has this in its id
constexpr std::int64_t result_under_way_ns = 500'000'000;  ///< at most

/// Member 0's answer in an allgather_alike: its result, and all parts behind it.
constexpr std::size_t answer_head_bytes = 8;

coll::shape shape_of(const team_core& team, std::size_t bytes, std::size_t element_bytes) noexcept {
  coll::shape s;
  s.rank = team.rank;
  s.size = team.size;
  s.bytes = bytes;
  s.element_bytes = element_bytes;
  return s;
}

/// Runs schedules from the number `turn` on.
class setup_run {
 public:
  setup_run(team_core& team, std::uint64_t turn)
      : ctx_(*team.rt->ctx), state_(*team.rt->collectives, team, team.id ^ setup_collectives) {
    state_.number_next(turn);
  }

  running& start(const Schedule& steps, const void* in, void* out, element type = element::u8,
                 operation op = operation::no_op) noexcept {
    collective_call c;
    c.what = collective::schedule;
    c.name = "setup";
    c.in = in;
    c.out = out;
    c.type = type;
    c.op = op;
    c.combines = op != operation::no_op;
    c.schedule = &steps;
    const std::lock_guard guard(ctx_.lock());
    return state_.start(c, {});
  }
  /// Returns the record of a run that has ended. Members in different calls have also given different sizes.
  status end(running& r) noexcept {
    RMA_ASSERT(r.over());
    const std::lock_guard guard(ctx_.lock());
    const status s = r.state();
    (void)r.release();
    return s == status::bad_argument ? status::bad_size : s;
  }
  /// Waits for its end; `failed` is as wait_spec::fails_if.
  template <class Failed>
  status finish(running& r, Failed&& failed) noexcept {
    const auto over = [&r]() noexcept { return r.over(); };
    if (!comes_soon(over)) {
      const status s = ctx_.wait({.until = over, .fails_if = failed});
      if (s != status::done) r.give_up(s);
    }
    return end(r);
  }

  /// True if it has ended: a message of another node may arrive sooner than a wait is set up.
  template <class Over>
  bool comes_soon(Over&& over) noexcept {
    const std::lock_guard guard(ctx_.lock());
    return ctx_.wide() != nullptr && ctx_.ready_soon(over);
  }

 private:
  context& ctx_;
  coll::team_state state_;
};

}  // namespace

status team_core::allreduce(void* data, std::size_t count, element type, operation op) noexcept {
  RMA_ASSERT(defined_for(op, type) && count != 0);
  const auto failed = [this]() noexcept { return lost_member(); };
  if (const status s = failed(); s != status::done || size == 1) return s;
  Schedule steps;
  coll::binomial::allreduce(shape_of(*this, count * bytes_of(type), bytes_of(type)), steps);
  setup_run run(*this, ++sequence);
  return run.finish(run.start(steps, data, data, type, op), failed);
}

status team_core::allgather(std::span<const std::byte> mine, std::byte* all) noexcept {
  RMA_ASSERT(!mine.empty());
  const auto failed = [this]() noexcept { return lost_member(); };
  if (const status s = failed(); s != status::done) return s;
  const std::size_t bytes = mine.size();
  Schedule steps;
  if (rank != 0) steps.send(input(), bytes, 0);
  if (rank == 0) steps.copy(input(), output(), bytes);
  for (int r = 1; rank == 0 && r < size; ++r) steps.recv(output(static_cast<std::size_t>(r) * bytes), bytes, r);
  steps.round();
  const std::size_t all_bytes = bytes * static_cast<std::size_t>(size);
  coll::binomial_broadcast(coll::everybody(shape_of(*this, all_bytes, 1)), 0, output(), all_bytes, steps);
  setup_run run(*this, ++sequence);
  return run.finish(run.start(steps, mine.data(), all), failed);
}

// Each member's answer is a run of its own at member 0, so that a dead member keeps it from no other.
status team_core::allgather_alike(std::span<const std::byte> mine, std::byte* all) noexcept {
  RMA_ASSERT(!mine.empty());
  const std::uint64_t turn = sequence + 1;  // number of the gather; member r's answer has that of r turns later
  sequence += static_cast<std::uint64_t>(size);
  const std::size_t bytes = mine.size() * static_cast<std::size_t>(size);
  std::vector<std::byte> answer(answer_head_bytes + bytes);
  const status s = rank == 0 ? answer_all(turn, mine, answer) : await_answer(turn, mine, answer);
  if (s == status::done) std::memcpy(all, answer.data() + answer_head_bytes, bytes);
  return s;
}

status team_core::answer_all(std::uint64_t turn, std::span<const std::byte> mine,
                             std::span<std::byte> answer) noexcept {
  const auto failed = [this]() noexcept { return lost_member(); };
  status s = failed();
  std::byte* const all = answer.data() + answer_head_bytes;
  std::memcpy(all, mine.data(), mine.size());
  if (s == status::done && size > 1) {
    Schedule gather;
    for (int r = 1; r < size; ++r) gather.recv(output(static_cast<std::size_t>(r) * mine.size()), mine.size(), r);
    setup_run run(*this, turn);
    s = run.finish(run.start(gather, nullptr, all), failed);
  }
  const auto outcome = static_cast<std::int64_t>(s);
  std::memcpy(answer.data(), &outcome, sizeof outcome);
  setup_run run(*this, turn + 1);
  std::vector<running*> pending;
  for (int r = 1; r < size; ++r) {
    Schedule tell;
    running& each = run.start(tell.send(input(), answer.size(), r), answer.data(), nullptr);
    if (each.over()) {
      (void)run.end(each);
    } else {
      pending.push_back(&each);
    }
  }
  if (pending.empty()) return s;
  const auto over = [&pending]() noexcept { return std::ranges::all_of(pending, [](auto* r) { return r->over(); }); };
  if (rt->ctx->wait({.until = over, .fails_if = failed}) != status::done)
    (void)rt->ctx->wait({.until = over, .deadline_ns = rt->ctx->after_ns(result_under_way_ns)});
  for (running* const each : pending) {
    if (!each->over()) each->give_up(status::peer_failed);
    (void)run.end(*each);
  }
  return s;
}

// A member that learns of a death before the answer arrives waits on for a while: the answer may be under way, unless
// member 0 has noticed the death in another call.
status team_core::await_answer(std::uint64_t turn, std::span<const std::byte> mine,
                               std::span<std::byte> answer) noexcept {
  const auto failed = [this]() noexcept { return lost_member(); };
  if (const status s = failed(); s != status::done) return s;  // and member 0 waits in vain
  {
    Schedule tell;
    setup_run run(*this, turn);
    const status s = run.finish(run.start(tell.send(input(), mine.size(), 0), mine.data(), nullptr), failed);
    if (s != status::done) return s;
  }
  Schedule take;
  setup_run run(*this, turn + static_cast<std::uint64_t>(rank));
  running& r = run.start(take.recv(output(), answer.size(), 0), nullptr, answer.data());
  const auto over = [&r]() noexcept { return r.over(); };
  status s = run.comes_soon(over) ? status::done : rt->ctx->wait({.until = over, .fails_if = failed});
  if (s == status::peer_failed) {
    const auto gone = [this]() noexcept { return rt->ctx->gone(world_rank(0)) ? status::peer_failed : status::done; };
    (void)rt->ctx->wait({.until = over, .fails_if = gone, .deadline_ns = rt->ctx->after_ns(result_under_way_ns)});
  }
  if (!r.over()) r.give_up(s);
  s = run.end(r);
  if (s != status::done) return s;
  std::int64_t outcome = 0;
  std::memcpy(&outcome, answer.data(), sizeof outcome);
  s = static_cast<status>(outcome);
  // This member reports a death or a revocation when it knows of it itself: its error names the rank.
  return s != status::peer_failed && s != status::revoked ? s : rt->ctx->wait({.fails_if = failed});
}

}  // namespace rma::detail
