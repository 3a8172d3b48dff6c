// SPDX-License-Identifier: Apache-2.0
#include "runtime/reduce_scatter.hpp"

#include <algorithm>
#include <bit>
#include <mutex>

#include "coll/machine.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "rma/schedule.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {
namespace {

Schedule schedule_of(const team_core& team) {
  Schedule steps;
  const auto size = static_cast<unsigned>(team.size);
  const auto rank = static_cast<unsigned>(team.rank);
  for (unsigned ahead = size == 1 ? 0 : std::bit_floor(size - 1); ahead != 0; ahead /= 2) {
    const std::size_t bytes = (std::min(size, 2 * ahead) - ahead) * sizeof(std::uint32_t);
    steps.send(output(ahead * sizeof(std::uint32_t)), bytes, static_cast<int>((rank + ahead) % size));
    steps.recv(scratch(), bytes, static_cast<int>((rank + size - ahead) % size)).round();
    steps.combine(scratch(), output(), bytes);
  }
  return steps;
}

}  // namespace

reduce_scatter::reduce_scatter(team_core& team, std::uint64_t id)
    : values_(static_cast<std::size_t>(team.size)),
      state_(std::make_unique<coll::team_state>(*team.rt->collectives, team, id)) {
  RMA_ASSERT(id != team.id);
  const Schedule steps = schedule_of(team);
  collective_call c;
  c.what = collective::schedule;
  c.name = "fence";
  c.out = values_.data();
  c.type = element::u32;
  c.op = operation::sum;
  c.combines = true;
  c.schedule = &steps;
  const std::lock_guard guard(team.rt->ctx->lock());
  run_ = &state_->keep(c, {});
}

reduce_scatter::~reduce_scatter() = default;

void reduce_scatter::start(std::uint64_t turn) noexcept {
  RMA_ASSERT(turn != 0 && run_->over());
  const std::lock_guard guard(state_->all().ctx().lock());
  state_->number_next(turn);
  state_->start(*run_);
}

status reduce_scatter::state() const noexcept { return run_->state(); }

void reduce_scatter::give_up(status why) noexcept {
  if (!run_->over()) run_->give_up(why);
}

}  // namespace rma::detail
