// SPDX-License-Identifier: Apache-2.0
#include "runtime/reclaimer.hpp"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

/// One of a set of ranks; the digest of a set is the sum over its members.
std::uint64_t digest_of(int rank) noexcept {
  std::uint64_t x = (static_cast<std::uint64_t>(rank) + 1) * 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 31)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 29);
}

}  // namespace

struct reclaimer::news {
  enum class step : std::uint32_t { dropped, released, count_ };
  std::uint64_t id;
  std::uint64_t without;
  step what;
  std::uint32_t unused;
};

reclaimer::reclaimer(context& ctx) : ctx_(ctx) { ctx.set_handler(message::dropped, &reclaimer::on_news, this); }

void reclaimer::drop(dropped_object object) {
  const std::lock_guard guard(ctx_.lock());
  fresh_.push_back(std::move(object));
}

// A rank that has left has dropped everything before.
std::vector<bool> reclaimer::gone_ranks() noexcept {
  std::vector<bool> gone(static_cast<std::size_t>(ctx_.size()));
  bool any = false;
  for (int r = 0; r < ctx_.size(); ++r) any = (gone[static_cast<std::size_t>(r)] = ctx_.gone(r)) || any;
  return any ? gone : std::vector<bool>();
}

void reclaimer::announce() noexcept {
  std::unique_lock guard(ctx_.lock());
  const auto is_old = [](const auto& each) { return each.second.is_old; };
  const bool deaths = ctx_.deaths() != 0 && !fresh_.empty();
  const bool look = deaths || std::any_of(records_.begin(), records_.end(), is_old);
  if (fresh_.empty() && !look) return;
  std::vector<bool> gone;
  if (look) {
    guard.unlock();
    gone = gone_ranks();
    guard.lock();
  }
  std::vector<std::uint64_t> moved;
  for (auto& [id, r] : records_) {
    if (!r.dropped) continue;
    r.is_old = true;
    if (move(r, gone)) moved.push_back(id);
  }
  for (dropped_object& each : std::exchange(fresh_, {})) {
    record& r = records_[each.id];
    RMA_ASSERT(!r.dropped && each.rank < each.size);  // an id is used once
    moved.push_back(each.id);
    r.object = std::move(each);
    r.dropped = true;
    move(r, gone);
  }
  for (const std::uint64_t id : moved) advance(records_.find(id));
}

bool reclaimer::move(record& r, const std::vector<bool>& gone) {
  const dropped_object& o = r.object;
  const auto world_rank = [&o](int member) { return o.members == nullptr ? member : o.members[member]; };
  const bool was_placed = r.above >= 0 || !r.below.empty();
  std::vector<int> there;  // members that are not gone, if one is
  std::uint64_t without = 0;
  int me = o.rank;
  int size = o.size;
  if (!gone.empty()) {
    for (int member = 0; member < o.size; ++member) {
      const int rank = world_rank(member);
      if (member == o.rank) me = static_cast<int>(there.size());
      if (gone[static_cast<std::size_t>(rank)]) {
        without += digest_of(rank);
      } else {
        there.push_back(rank);
      }
    }
    size = static_cast<int>(there.size());
  }
  if (was_placed && without == r.without) return false;
  const auto rank_of = [&](int slot) {
    return there.empty() ? world_rank(slot) : there[static_cast<std::size_t>(slot)];
  };
  RMA_ASSERT(me >= 0 && me < size);
  r.without = without;
  r.announced = false;
  r.above = -1;
  r.below.clear();
  for (int bit = 1; bit < size; bit <<= 1) {
    if ((me & bit) != 0) {
      r.above = rank_of(me - bit);
      break;
    }
    if (me + bit < size) r.below.push_back(rank_of(me + bit));
  }
  return true;
}

void reclaimer::advance(records::iterator at) noexcept {
  RMA_ASSERT(ctx_.is_guarded() && at != records_.end());
  record& r = at->second;
  if (!r.dropped || r.announced) return;
  const bool all = std::ranges::all_of(r.below, [&r](int rank) {
    return std::ranges::any_of(r.reports,
                               [&](const report& each) { return each.from == rank && each.without == r.without; });
  });
  if (!all) return;
  RMA_ASSERT(r.above != ctx_.rank() && r.object.rank < r.object.size);
  if (r.above < 0) return release(at);
  r.announced = true;
  ctx_.send_record(r.above, message::dropped, news{at->first, r.without, news::step::dropped, 0});
}

void reclaimer::release(records::iterator at) noexcept {
  RMA_ASSERT(at != records_.end() && at->second.dropped);
  const record& r = at->second;
  for (const int rank : r.below)
    ctx_.send_record(rank, message::dropped, news{at->first, r.without, news::step::released, 0});
  for (const segment_part& part : r.object.parts) {
    if (part.bytes != 0) released_.push_back(part);
  }
  records_.erase(at);
}

// Others may have dropped what this rank has not, and said so.
void reclaimer::on_news(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<reclaimer*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source != me.ctx_.rank());  // a rank is not above or below itself
  constexpr auto kind = static_cast<std::uint16_t>(message::dropped);
  news n{};
  if (payload.size() != sizeof n)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.what >= news::step::count_)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  if (n.what == news::step::released) {
    const auto at = me.records_.find(n.id);
    if (at != me.records_.end() && at->second.dropped) me.release(at);
    return;
  }
  const auto at = me.records_.try_emplace(n.id).first;
  at->second.reports.push_back({source, n.without});
  me.advance(at);
}

std::vector<segment_part> reclaimer::take_released() noexcept {
  const std::lock_guard guard(ctx_.lock());
  return std::exchange(released_, {});
}

}  // namespace rma::detail
