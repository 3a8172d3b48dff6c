// SPDX-License-Identifier: Apache-2.0
#include "sync/epochs.hpp"

#include <algorithm>
#include <utility>

#include "sync/deferred.hpp"
#include "sync/fence_news.hpp"
#include "sync/locking.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

bool permits(const window_core& w, int target) noexcept {
  switch (w.access) {
    case access_epoch::fence:
    case access_epoch::lock_all: return true;
    case access_epoch::start:
    case access_epoch::neighbors:
      return std::find(w.access_group.begin(), w.access_group.end(), target) != w.access_group.end();
    default: return false;
  }
}

admission admit(window_core& w, const checked_operation& o, bool requested) noexcept {
  switch (w.access) {
    case access_epoch::fence:
      w.fence_used = w.checks;
      return w.fence == fence_kind::def ? hold_for_fence(w, o, requested) : admission::go();
    case access_epoch::neighbors: w.fence_used = w.checks; return admission::go();
    case access_epoch::lock_all:
      if (const status s = touch(w, o.args->target); s != status::done) return admission::after(s);
      break;
    default: break;
  }
  return o.state->epoch != nullptr ? hold_for_unlock(w, o, requested) : admission::go();
}

void refused(window_core& w, int target) noexcept {
  if (w.access == access_epoch::lock_all) take_back_first_use(w, target);
}

bool immediate(const window_core& w, const checked_operation& o, std::uint32_t& value) noexcept {
  if (o.state->immediates >= immediates_max) return false;
  const std::uint32_t slot =
      o.far != nullptr ? o.far->slot : static_cast<std::uint32_t>(w.identity_of(o.args->target)->identity.slot);
  value = fence_immediate(slot, w.fences.number + 1);
  return true;
}

void written(window_core& w, const checked_operation& o, bool notified) noexcept {
  if (notified) {
    ++o.state->immediates;
  } else {
    o.state->finish_due = true;
  }
  if (!std::exchange(o.state->channel, true)) w.fences.channels.push_back(o.args->target);
}

void last_came(window_core& w, int source, std::uint32_t number) noexcept {
  on_fence_news(w, source, fence_news::finish, number);
}

}  // namespace

void set_access(window_core& w, access_epoch epoch) noexcept {
  w.access = epoch;
  const bool fenced = epoch == access_epoch::fence;
  w.terms.open = fenced;
  w.terms.active = epoch != access_epoch::none && epoch != access_epoch::lock_all;
  w.terms.asks = w.may_hold || (fenced && w.fence == fence_kind::def) ||
                 (w.checks && (fenced || epoch == access_epoch::neighbors));
  w.terms.counts = fenced && w.fence != fence_kind::placed;
  w.terms.immediates = fenced && w.fence == fence_kind::imm_ri;
}

const epoch_rules& rules_of_epochs() noexcept {
  static constexpr epoch_rules rules{permits, admit, refused, immediate, written, last_came, explain_call};
  return rules;
}

}  // namespace rma::detail
