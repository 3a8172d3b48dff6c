// SPDX-License-Identifier: Apache-2.0
#include "xfer/stripes.hpp"

#include <algorithm>
#include <mutex>

#include "core/membarrier.hpp"

namespace rma::detail {
namespace {

/// A stripe is released by a store, which wakes no thread: a waiting thread tests it again after a pause, in case its
/// holder was preempted.
constexpr std::int64_t stripe_pause_ns = 20'000;
constexpr std::int64_t stripe_pause_max_ns = 1'000'000;

constexpr std::uint64_t bulk_elements = 8;  ///< larger updates end the bias

bool anyone_updates(window_core& w) noexcept {
  const auto& places = w.team->places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool updates = w.block_at(places[i])->updating.load() != 0;
    if (updates && !w.ctx->dead(w.world_rank(static_cast<int>(w.first + i)))) return true;
  }
  return false;
}

/// Single elements are updated under their stripes from now on, without a mark.
void forget_bias(target_view& t) noexcept {
  if (t.elements != element_path::biased) return;
  t.elements = element_path::stripe;
  t.stored = t.stored_at_rest = 1;
}

/// True if no rank updates single elements of this target without its stripe any more. It never waits: if a rank is in
/// the middle of an update, the bias stays this time.
bool end_bias(window_core& w, target_view& t) noexcept {
  t.stripe_bias->store(stripes_ending);
  fence_for_others();
  if (anyone_updates(w)) return false;
  t.stripe_bias->store(stripes_needed);
  return true;
}

}  // namespace

status lock_stripe(window_core& w, stripe_lock& stripe) noexcept {
  if (try_lock_stripe(w, stripe)) return status::done;
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::stripe_waits);
  }
  bool mine = false;
  const auto ready = [&]() noexcept { return mine = stripe.owner.load() == 0 && try_lock_stripe(w, stripe); };
  const auto take_from_dead = [&]() noexcept {
    std::uint32_t owner = stripe.owner.load();
    if (owner != 0 && w.ctx->dead(static_cast<int>(owner - 1))) stripe.owner.compare_exchange(owner, 0);
    return status::done;
  };
  status s = status::done;
  long_wait whole(*w.ctx);
  for (std::int64_t pause_ns = stripe_pause_ns; s == status::done && !mine;
       pause_ns = std::min(2 * pause_ns, stripe_pause_max_ns)) {
    s = w.ctx->wait({.until = ready,
                     .fails_if = take_from_dead,
                     .woken_by = wakes::memory,
                     .deadline_ns = w.ctx->after_ns(pause_ns),
                     .whole = &whole});
  }
  return s;
}

bool owns_stripe(window_core& w, target_view& t, std::uint64_t elements) noexcept {
  const std::uint32_t bias = t.stripe_bias->load();
  const bool ends = elements > bulk_elements || bias == stripes_ending;
  if (bias != stripes_needed && !(ends && end_bias(w, t))) return false;
  forget_bias(t);
  return true;
}

}  // namespace rma::detail
