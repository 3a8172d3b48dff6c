// SPDX-License-Identifier: Apache-2.0
#include "xfer/copy_trial.hpp"

#include "xfer/shared_copy.hpp"

namespace rma::detail {
namespace {

copy_record& record_of(window_core& w, call kind, std::uint64_t bytes) noexcept {
  return w.team->rt->copies[kind == call::put ? 0 : 1][static_cast<std::size_t>(copy_class(bytes))];
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

/// A copy that fits one message, but may take less time by the kernel.
bool goes_by_experience(const window_core& w, const checked_operation& o) noexcept {
  return o.bytes > always_message_max && o.bytes <= one_message_max && can_share(w, o) &&
         w.team->rt->ops->forced() == user_memory::automatic;
}

}  // namespace

plain_way next_plain_way(window_core& w, const operation_args& a) noexcept {
  if (!w.last_near.tries_ways) return plain_way::message;
  copy_record& record = record_of(w, a.kind, a.bytes);
  plain_way way = record.settled();
  if (way == plain_way::general || record.copies() % message_measured_every == 0) {
    way = plain_way_of(next_copy(experience_of(record, a.bytes)));
    record.settle(way);
  }
  if (way == plain_way::kernel && w.access == access_epoch::fence) return plain_way::general;
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

status run_short(window_core& w, const fabric::region_key& region, checked_operation& o,
                 request_node** request) noexcept {
  o.choose("handler", "the target is inside the library and bound to answer");
  if (!goes_by_experience(w, o)) return run_promised(w, o, request);
  copy_trial trial(w, o);
  if (trial.way() == copy_way::fabric) {
    // Puts of one origin to one place take effect in order, whatever way each goes.
    if (const status s = complete_promised(w, o.args->target); s != status::done) return s;
    o.choose("fabric", trial.why());
    if (const status s = trial.over(copy_here(w, region, o, 0, o.bytes)); s != status::not_supported) return s;
    o.choose("handler", "the fabric refused");
    return run_promised(w, o, request);
  }
  o.choose("handler", trial.why());
  const status s = run_promised(w, o, request);
  if (s != status::posted) return s;
  const status arrived = trial.measured() ? complete_promised(w, o.args->target) : status::done;
  if (arrived == status::done) (void)trial.over(status::done);
  return s;  // what became of the target, the flush will say
}

status run_large(window_core& w, const fabric::region_key& region, checked_operation& o) noexcept {
  if (o.bytes <= one_message_max || !can_share(w, o)) {
    o.choose("fabric", o.contiguous ? "the target computes or sleeps" : "many rows, or the target computes or sleeps");
    return status::not_supported;
  }
  copy_trial trial(w, o);
  if (trial.way() == copy_way::staged) {
    o.choose("staged", trial.why());
    if (const status s = run_staged(w, region, o, trial); s != status::not_supported) return trial.over(s);
  }
  const bool instead = trial.way() == copy_way::staged && trial.learns();
  if (trial.way() == copy_way::shared || instead) {
    o.choose("shared", instead ? "no slots are free" : trial.why());
    const status s = run_shared(w, region, o);
    if (s != status::not_supported) return instead ? s : trial.over(s);
  }
  const bool alone = trial.way() == copy_way::fabric;
  o.choose("fabric", alone ? trial.why() : "the target computes or sleeps");
  return alone ? trial.over(copy_here(w, region, o, 0, o.bytes)) : status::not_supported;
}

}  // namespace rma::detail
