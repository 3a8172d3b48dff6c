// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_network.hpp"

#include <algorithm>

namespace rma::detail {
namespace {

constexpr std::int64_t pause_first_ns = 1'000;
constexpr std::int64_t pause_max_ns = 1'000'000;

/// What the state word becomes if `kind` takes it, or 0 if it cannot now. All shared holders are counted.
constexpr std::uint64_t lock_taken(std::uint64_t state, lock_kind kind, std::uint64_t tag) noexcept {
  if ((state & lock_writer) != 0) return 0;
  if (kind == lock_kind::shared) return state + 1;
  return (state & lock_readers) == 0 ? tag : 0;
}

constexpr std::uint64_t lock_given_back(std::uint64_t state, lock_kind kind) noexcept {
  return kind == lock_kind::shared ? state - 1 : 0;
}

static_assert(lock_taken(0, lock_kind::exclusive, lock_tag(3)) == lock_tag(3));
static_assert(lock_taken(2, lock_kind::exclusive, lock_tag(3)) == 0);
static_assert(lock_taken(2, lock_kind::shared, lock_tag(3)) == 3);
static_assert(lock_taken(lock_tag(1), lock_kind::shared, lock_tag(3)) == 0);

/// One remote compare-and-swap on the target's lock word.
status swap(window_core& w, int target, std::uint64_t expected, std::uint64_t desired, std::uint64_t& old) noexcept {
  const std::size_t place = static_cast<std::size_t>(w.team->place(target));
  const std::byte* const segment = w.board->segment(place);
  auto* const block = w.block_at(static_cast<int>(place));
  const auto offset = static_cast<std::uint64_t>(reinterpret_cast<std::byte*>(&block->lock.state) - segment);
  // The segment is one region: its key says where it starts for everybody.
  const fabric::region_key region{0, w.board->segment_bytes(), 1};
  const std::lock_guard guard(w.ctx->lock());
  return w.ctx->network_of(w.world_rank(target))
      .compare_swap(w.world_rank(target), region, offset, expected, desired, old, 0);
}

/// Changes the word by `change(found)` (0: not now). True if done.
template <class Change>
status step(window_core& w, int target, std::uint64_t& found, Change&& change) noexcept {
  const std::uint64_t wanted = change(found);
  if (wanted == found) return status::not_yet;
  std::uint64_t old = 0;
  const status s = swap(w, target, found, wanted, old);
  if (s != status::done) return s;
  const bool hit = old == found;
  found = old;
  return hit ? status::done : status::not_yet;
}

}  // namespace

status acquire_network(window_core& w, int target, lock_kind kind) noexcept {
  std::uint64_t found = 0;
  std::int64_t pause_ns = pause_first_ns;
  std::int64_t next_ns = 0;
  status s = status::not_yet;
  const auto ready = [&]() noexcept {
    const std::int64_t now = w.ctx->around().now_ns();
    if (now < next_ns) return false;
    const std::uint64_t before = found;
    s = step(w, target, found, [&](std::uint64_t state) noexcept {
      const std::uint64_t taken = lock_taken(state, kind, w.my_lock_tag);
      return taken == 0 ? state : taken;
    });
    if (s == status::not_yet && lock_taken(before, kind, w.my_lock_tag) == 0) {
      std::uint64_t old = 0;
      if (swap(w, target, 0, 0, old) == status::done) found = old;  // a look at the word
      next_ns = now + pause_ns;
      pause_ns = std::min(2 * pause_ns, pause_max_ns);
    }
    return s != status::not_yet;
  };
  const auto failed = [&]() noexcept {
    const int holder = static_cast<int>((found & ~lock_writer) >> 32);
    const bool lost = ((found & lock_writer) != 0 && w.ctx->gone(holder)) || w.ctx->gone(w.world_rank(target));
    if (lost) w.ctx->blame((found & lock_writer) != 0 && w.ctx->gone(holder) ? holder : w.world_rank(target));
    return lost ? status::peer_failed : status::done;
  };
  const status waited = w.ctx->wait_until(ready, failed);
  return waited == status::done ? s : waited;
}

status release_network(window_core& w, int target, lock_kind kind) noexcept {
  std::uint64_t found = kind == lock_kind::exclusive ? w.my_lock_tag : 1;
  for (;;) {
    const status s =
        step(w, target, found, [kind](std::uint64_t state) noexcept { return lock_given_back(state, kind); });
    if (s != status::not_yet) return s;
  }
}

}  // namespace rma::detail
