// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "deferred": operations of a deferrable epoch of lock "two-sided", or of a small one of lock "auto", wait at
/// the origin for its end. lock_two_sided.cpp makes the messages of them that the target's handler gets. Source:
/// dissertation ch. 4 (the baseline that direct passive is compared with).
#include <algorithm>
#include <mutex>

#include "xfer/held_operations.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t waiting_bytes_max = std::uint64_t{1} << 20;  ///< beyond, the epoch is sent before its end

}  // namespace

status run_deferred(window_core& w, const checked_operation& o, bool requested) noexcept {
  deferred_epoch& epoch = *o.state->epoch;
  if (o.args->signal >= 0) return status::not_supported;  // somebody waits for it, perhaps before the epoch ends
  if (requested || (o.args->by_value && o.fetches())) return status::not_supported;    // somebody waits for it
  if (o.atomic() && w.mode != accumulate_mode::handler) return status::not_supported;  // not the handler's to do
  if (o.bytes > waiting_bytes_max - std::min(epoch.bytes, waiting_bytes_max)) return status::not_supported;
  if (w.defers_far && epoch.bytes + o.bytes > deferral_bytes_max) return status::not_supported;
  epoch.bytes += o.bytes;
  if (o.args->kind != call::put) epoch.fetches = true;
  const std::lock_guard guard(w.ctx->lock());
  hold(w, o, hold_reason::unlock);
  ++epoch.count;
  w.ctx->count(counter::operations_handler);
  return status::posted;
}

}  // namespace rma::detail
