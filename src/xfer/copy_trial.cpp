// SPDX-License-Identifier: Apache-2.0
#include "xfer/copy_trial.hpp"

#include "xfer/shared_copy.hpp"

namespace rma::detail {
namespace {

copy_record& record_of(window_core& w, call kind, std::uint64_t bytes) noexcept {
  return w.team->rt->copies()[kind == call::put ? 0 : 1][static_cast<std::size_t>(copy_class(bytes))];
}

copy_experience experience_of(const copy_record& record, std::uint64_t bytes) noexcept {
  copy_experience e = record.load();
  e.ways = ways_of(copy_class(bytes));
  if (bytes <= one_message_max) e.every = message_measured_every;
  return e;
}

plain_way plain_way_of(const copy_choice& next) noexcept {
  if (next.measured) return plain_way::general;
  return next.way == copy_way::fabric ? plain_way::kernel : plain_way::message;
}

}  // namespace

bool has_ways(const window_core& w, const checked_operation& o) noexcept {
  if (!w.intranode || o.atomic() || o.bytes <= always_message_max || !can_share(w, o)) return false;
  const user_memory forced = w.team->rt->ops->forced();
  if (o.bytes <= one_message_max) return forced == user_memory::automatic;
  return forced != user_memory::handler && forced != user_memory::cma;
}

plain_way next_plain_way(window_core& w, const operation_args& a) noexcept {
  if (!w.last_handler_target.tries_ways) return plain_way::message;
  copy_record& record = record_of(w, a.kind, a.bytes);
  plain_way way = record.settled();
  if (way == plain_way::general || record.copies() % message_measured_every == 0) {
    way = plain_way_of(next_copy(experience_of(record, a.bytes)));
    record.decide(way);
  }
  if (way == plain_way::kernel && w.terms.open) return plain_way::general;
  if (way != plain_way::general) record.count();
  return way;
}

copy_trial::copy_trial(window_core& w, const checked_operation& o) noexcept
    : around_(w.ctx->around()), bytes_(o.bytes) {
  switch (w.team->rt->ops->forced()) {
    case user_memory::staged: choice_ = {copy_way::staged, false, "RMA_USER_MEMORY=staged"}; return;
    case user_memory::shared: choice_ = {copy_way::shared, false, "RMA_USER_MEMORY=shared"}; return;
    default: break;
  }
  record_ = &record_of(w, o.args->kind, o.bytes);
  choice_ = next_copy(experience_of(*record_, bytes_));
  if (choice_.measured) began_ns_ = around_.now_ns();
}

std::int64_t copy_trial::estimate_ns(copy_way way) const noexcept {
  if (way == choice_.way) return 0;
  const auto index = static_cast<std::size_t>(way);
  const std::uint32_t cost_ns = record_ == nullptr ? 0 : record_->load().figures[index].cost_ns;
  return cost_ns != 0 ? std::int64_t{cost_ns} : std::int64_t{copy_cost_max_ns} + static_cast<std::int64_t>(index);
}

status copy_trial::over(status s) noexcept {
  if (record_ == nullptr) return s;
  if (s == status::done && choice_.measured) {
    const std::uint32_t cost_ns = copy_cost_ns(bytes_, around_.now_ns() - began_ns_);
    const copy_experience e = experience_of(*record_, bytes_);
    if (!first_use_ || !tells_nothing(e, cost_ns)) record_->store(after_copy(e, choice_.way, cost_ns), choice_.way);
  }
  if (s == status::done) record_->count();
  if (s == status::not_supported)
    record_->store(after_refusal(experience_of(*record_, bytes_), choice_.way), choice_.way);
  return s;
}

}  // namespace rma::detail
