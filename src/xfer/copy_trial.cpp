// SPDX-License-Identifier: Apache-2.0
#include "xfer/copy_trial.hpp"

#include "xfer/shared_copy.hpp"

namespace rma::detail {
namespace {

/// What is smaller goes in the message itself, if the target answers.
constexpr std::uint64_t large_bytes_min = operation_message_max / 2;

}  // namespace

copy_trial::copy_trial(window_core& w, const checked_operation& o) noexcept
    : around_(w.ctx->around()), bytes_(o.bytes) {
  switch (w.team->rt->ops->forced()) {
    case user_memory::staged: choice_ = {copy_way::staged, false, "RMA_USER_MEMORY=staged"}; return;
    case user_memory::shared: choice_ = {copy_way::shared, false, "RMA_USER_MEMORY=shared"}; return;
    default: break;
  }
  auto& classes = w.team->rt->copies[o.args->kind == call::put ? 0 : 1];
  record_ = &classes[static_cast<std::size_t>(copy_class(o.bytes))];
  choice_ = next_copy(experience());
  if (choice_.measured) began_ns_ = around_.now_ns();
}

status copy_trial::over(status s) noexcept {
  if (record_ == nullptr) return s;
  if (s == status::done && choice_.measured) {
    const std::uint32_t cost_ns = copy_cost_ns(bytes_, around_.now_ns() - began_ns_);
    const copy_experience e = experience();
    if (!first_use_ || !tells_nothing(e, cost_ns)) record_->store(after_copy(e, choice_.way, cost_ns), choice_.way);
  }
  if (s == status::done) record_->count();
  if (s == status::not_supported) record_->store(after_refusal(experience(), choice_.way), choice_.way);
  return s;
}

status run_large(window_core& w, const fabric::region_key& region, checked_operation& o) noexcept {
  if (o.bytes < large_bytes_min || !can_share(w, o)) {
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
