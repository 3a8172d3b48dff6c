// SPDX-License-Identifier: Apache-2.0
#include "xfer/protocol/rows.hpp"

namespace rma::detail {
namespace {

/// The target makes progress while the operation is under way: it has a thread for that, or will take part in the end
/// of the epoch. Elsewhere `auto` leaves operations one-sided that are.
bool target_serves(const window_core& w, const checked_operation& o) noexcept {
  const bool active = w.access != access_epoch::none && w.access != access_epoch::lock_all;
  return active || w.ctx->config().on(knob::progress_thread) || !w.ctx->network_of(o.peer).caps().one_sided;
}

}  // namespace

std::span<const protocol* const> protocols() noexcept { return protocol_rows; }

choice choose_protocol(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  const protocol* best = &generic_protocol;
  std::int64_t best_ns = INT64_MAX;
  const char* why = "no other scheme can";
  for (const protocol* const each : protocol_rows) {
    const bool asked_for = each->scheme == w.scheme_of_layouts;
    if (const char* const reason = each->refuses(w, at, o); reason != nullptr) {
      if (asked_for) return {&generic_protocol, reason};
      continue;
    }
    if (asked_for) return {each, w.layout_why};
    if (each->needs_target && !target_serves(w, o)) continue;
    const std::int64_t ns = each->estimate_ns(w, o);
    why = best_ns == INT64_MAX ? "auto: no other scheme can" : "auto: the least estimate";
    if (ns >= best_ns) continue;
    best = each;
    best_ns = ns;
  }
  return {best, why};
}

}  // namespace rma::detail
