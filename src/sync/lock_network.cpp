// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_network.hpp"

#include <algorithm>
#include <cstddef>

#include "sync/lock_attempt.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr unsigned release_tries = 32;
constexpr std::int64_t pause_first_ns = 1'000;
constexpr std::int64_t pause_max_ns = 1'000'000;
/// Shared holders are counted, not named: after a death a count that stands still for so long may be the dead rank's.
constexpr std::int64_t still_ns = 500'000'000;

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

/// The lock word of one target, as the fabric reaches it. On the fabric between nodes the ranks of this node and this
/// rank itself take the same way as everybody: one owner of its atomicity.
class lock_word {
 public:
  lock_word(window_core& w, int target) noexcept : w_(w), rank_(w.world_rank(target)) {
    constexpr std::size_t in_block = offsetof(window_block, lock) + offsetof(cpu_lock, state);
    if (w.ctx->wide() != nullptr) {
      result_ = block_region(w, target, region_);
      address_ = region_.address + in_block;
      wide_ = w.ctx->wide();
    } else {
      region_ = {0, w.board->segment_bytes(), 1};  // the segment is one region: its key says where it starts
      address_ = w.block_offset + in_block;
    }
  }
  /// One remote compare-and-swap. `done` if it hit; `found` is what was there.
  status swap(std::uint64_t& found, std::uint64_t wanted) noexcept {
    if (result_ != status::done) return result_;
    std::uint64_t old = 0;
    const status s = remote_swap(*w_.team->rt->ops, wide_ != nullptr ? *wide_ : w_.ctx->node(), rank_, region_,
                                 address_, found, wanted, old);
    if (s == status::peer_failed) w_.ctx->blame(rank_);
    if (s != status::done) return s;
    const bool hit = old == found;
    found = old;
    return hit ? status::done : status::not_yet;
  }

 private:
  window_core& w_;
  int rank_;
  fabric::network* wide_ = nullptr;
  fabric::region_key region_;
  std::uint64_t address_ = 0;
  status result_ = status::done;
};

/// What a waiter last saw in the word, and since when.
struct sight {
  std::uint64_t state = 0;
  std::int64_t since_ns = 0;
};

/// `peer_failed` if the holder that was seen, or the target, is gone, or may be.
status lost(window_core& w, int target, const sight& seen) noexcept {
  const std::uint64_t found = seen.state;
  const int holder = (found & lock_writer) != 0 ? static_cast<int>((found & ~lock_writer) >> 32) : -1;
  const bool holder_lost = holder >= 0 && w.ctx->gone(holder);
  const bool target_lost = w.ctx->gone(w.world_rank(target));
  if (!holder_lost && !target_lost) {
    const bool still = holder < 0 && w.ctx->around().now_ns() - seen.since_ns > still_ns;
    return still ? w.team->lost_member() : status::done;
  }
  w.ctx->blame(holder_lost ? holder : w.world_rank(target));
  return status::peer_failed;
}

}  // namespace

status acquire_network(window_core& w, int target, lock_kind kind) noexcept {
  lock_word word(w, target);
  std::uint64_t found = 0;
  sight seen{0, w.ctx->around().now_ns()};
  for (std::int64_t pause_ns = pause_first_ns;;) {
    const std::uint64_t wanted = lock_taken(found, kind, w.my_lock_tag);
    status s = word.swap(found, wanted != 0 ? wanted : found);  // what cannot be taken is looked at
    if (wanted != 0 && s != status::not_yet) return s;
    if (s != status::done && s != status::not_yet) return s;
    if (lock_taken(found, kind, w.my_lock_tag) != 0) continue;
    if (found != seen.state) seen = {found, w.ctx->around().now_ns()};
    s = w.ctx->pause(pause_ns, [&]() noexcept { return lost(w, target, seen); });
    if (s != status::done) return s;
    pause_ns = std::min(2 * pause_ns, pause_max_ns);
  }
}

namespace {

/// The steps of acquire_network, one by one: at most one compare-and-swap for each pause.
class network_attempt final : public lock_attempt {
 public:
  network_attempt(window_core& w, int target, lock_kind kind) noexcept
      : w_(w), word_(w, target), target_(target), kind_(kind), seen_{0, w.ctx->around().now_ns()} {}
  status advance() noexcept override {
    if (w_.ctx->around().now_ns() < next_ns_) return status::not_yet;
    const std::uint64_t wanted = lock_taken(found_, kind_, w_.my_lock_tag);
    const status s = word_.swap(found_, wanted != 0 ? wanted : found_);
    if (wanted != 0 && s != status::not_yet) return s;
    if (s != status::done && s != status::not_yet) return s;
    if (lock_taken(found_, kind_, w_.my_lock_tag) != 0) return status::not_yet;
    const std::int64_t now_ns = w_.ctx->around().now_ns();
    if (found_ != seen_.state) seen_ = {found_, now_ns};
    next_ns_ = now_ns + pause_ns_;
    pause_ns_ = std::min(2 * pause_ns_, pause_max_ns);
    return status::not_yet;
  }
  status failed() noexcept override { return lost(w_, target_, seen_); }
  void cancel() noexcept override {}
  [[nodiscard]] bool silent() const noexcept override { return true; }

 private:
  window_core& w_;
  lock_word word_;
  int target_;
  lock_kind kind_;
  std::uint64_t found_ = 0;
  sight seen_;
  std::int64_t next_ns_ = 0;
  std::int64_t pause_ns_ = pause_first_ns;
};

}  // namespace

std::unique_ptr<lock_attempt> attempt_network(window_core& w, int target, lock_kind kind) {
  return std::make_unique<network_attempt>(w, target, kind);
}

status release_network(window_core& w, int target, lock_kind kind) noexcept {
  lock_word word(w, target);
  std::uint64_t found = kind == lock_kind::exclusive ? w.my_lock_tag : 1;
  for (unsigned failures = 0;;) {
    const status s = word.swap(found, lock_given_back(found, kind));
    if (s == status::transfer_failed && ++failures < release_tries) continue;  // or the others would wait for ever
    if (s != status::not_yet) return s;
  }
}

}  // namespace rma::detail
