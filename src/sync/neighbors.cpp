// SPDX-License-Identifier: Apache-2.0
#include "rma/detail/synchronization_ops.hpp"
#include "sync/fence.hpp"
#include "sync/group.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {

status set_neighbors(window_view& view, const int* targets, std::size_t target_count, const int* origins,
                     std::size_t origin_count) noexcept {
  if (const status s = closable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const window_guard in(w);
  w.refused_rank = -1;
  if (w.fences.has_neighbors) return status::bad_argument;
  if (const status s = check_group(w, targets, target_count); s != status::done) return s;
  if (const status s = check_group(w, origins, origin_count); s != status::done) return s;
  w.fences.neighbor_targets.assign(targets, targets + target_count);
  w.fences.neighbor_origins.assign(origins, origins + origin_count);
  w.fences.has_neighbors = true;
  return status::done;
}

status fence_neighbors(window_view& view, assertion promises) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::fence);
  if (!is_assertion(promises) || !w.fences.has_neighbors) return status::bad_argument;
  const bool among = w.access == access_epoch::neighbors && w.locks_open == 0 && !w.exposed;
  const bool empty = may_fence(w) && !w.used_since_fence();
  if (!among && !empty) return status::wrong_epoch;
  fence_run run(w, promises, true, false);
  return run_to_end(w, run);
}

fence_kind fence_of(const window_view& view) noexcept {
  return is_freed(view) ? fence_kind::automatic : core_of(view).fence;
}

}  // namespace rma::detail
