// SPDX-License-Identifier: Apache-2.0
#include "runtime/revocations.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "core/assert.hpp"
#include "runtime/team_core.hpp"
#include "window/window_core.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

struct revocations::news {
  enum class object : std::uint32_t { team, window, count_ };
  std::uint64_t id;
  object what;
  std::uint32_t unused;
};

revocations::revocations(context& ctx, engine& ops) : ctx_(ctx), ops_(ops) {
  ctx.set_handler(message::revoke, &revocations::on_news, this);
}

bool revocations::came_early(std::uint64_t id) const noexcept {
  return std::find(early_.begin(), early_.end(), id) != early_.end();
}

void revocations::add(team_core& team) {
  const std::lock_guard guard(ctx_.lock());
  teams_.emplace(team.id, &team);
  if (came_early(team.id)) mark(team.revoked, team, {team.id, news::object::team, 0});
}

void revocations::remove(const team_core& team) noexcept {
  const std::lock_guard guard(ctx_.lock());
  teams_.erase(team.id);
}

void revocations::add(window_core& w) noexcept {
  if (came_early(w.id)) mark(w.revoked, *w.team, {w.id, news::object::window, 0});
}

// A thread of this rank may sleep in a wait for it.
void revocations::revoke(team_core& team) noexcept {
  {
    const std::lock_guard guard(ctx_.lock());
    mark(team.revoked, team, {team.id, news::object::team, 0});
  }
  ctx_.around().ring(ctx_.rank());
}

void revocations::revoke(window_core& w) noexcept {
  {
    const std::lock_guard guard(ctx_.lock());
    mark(w.revoked, *w.team, {w.id, news::object::window, 0});
  }
  ctx_.around().ring(ctx_.rank());
}

void revocations::mark(std::atomic<bool>& flag, const team_core& members, const news& n) noexcept {
  if (flag.exchange(true)) return;
  ctx_.note_revocation();
  spread(members, n);
}

void revocations::spread(const team_core& members, const news& n) noexcept {
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(members.rank >= 0 && members.rank < members.size);
  for (int distance = 1; distance < members.size; distance <<= 1) {
    for (const int step : {distance, members.size - distance}) {
      const int to = members.world_rank((members.rank + step) % members.size);
      if (!ctx_.gone(to)) ctx_.send_record(to, message::revoke, n);
    }
  }
}

void revocations::on_news(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<revocations*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  constexpr auto kind = static_cast<std::uint16_t>(message::revoke);
  news n{};
  if (payload.size() != sizeof n)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.what >= news::object::count_)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  if (n.what == news::object::window) {
    if (window_core* const w = me.ops_.find(n.id)) return me.mark(w->revoked, *w->team, n);
  } else if (const auto team = me.teams_.find(n.id); team != me.teams_.end()) {
    return me.mark(team->second->revoked, *team->second, n);
  }
  if (!me.came_early(n.id)) me.early_[me.next_early_++ % me.early_.size()] = n.id;
  RMA_ASSERT(me.came_early(n.id));  // the object will be revoked when this rank makes it
}

}  // namespace rma::detail
