// SPDX-License-Identifier: Apache-2.0
#include "sync/reader_hold.hpp"

#include <algorithm>
#include <cstddef>

#include "window/window_core.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t revoke_first_ns = 2'000;
constexpr std::int64_t revoke_max_ns = 1'000'000;
constexpr std::int64_t yield_ns = 1'000'000;       ///< a waiting writer has read the word by then
constexpr std::int64_t readers_turn_ns = 500'000;  ///< the turn of readers, or of a writer

/// True for phases that end by time.
constexpr bool has_turns(readers_phase p) noexcept {
  return p == readers_phase::pausing || p == readers_phase::held || p == readers_phase::closed;
}

}  // namespace

reader_hold::reader_hold(window_core& w) noexcept : w_(w), r_(readers_of(w.ctx->rank())) {}

bool reader_hold::advance(bool read, bool asked) noexcept {
  bool changed = collect();
  while (under_way_ == nullptr) {
    const readers_phase before = r_.phase;
    r_ = step(r_, readers_want(r_, read && !stopped_, asked && !stopped_));
    if (before != r_.phase) set_turn();
    if (before == readers_phase::none) yields_until_ns_ = turn_ns_ + yield_ns;
    if (has_turns(r_.phase) && w_.ctx->around().now_ns() >= turn_ns_) {
      const bool enough = turn_ns_ >= yields_until_ns_;
      if (enough) r_ = step(r_, readers_event::yielded);
      r_ = step(r_, readers_event::turn);
      set_turn();
    }
    changed = changed || before != r_.phase;
    if (!readers_ask(r_) || !post()) break;
    changed = true;
  }
  const bool full = under_way_ == nullptr && readers_ask(r_);
  if (full) w_.ctx->call_duty_at(w_.ctx->around().now_ns() + revoke_first_ns);
  if (r_.phase == readers_phase::pausing || r_.phase == readers_phase::closed) w_.ctx->call_duty_at(turn_ns_);
  return changed;
}

/// Takes the result of the adapter's atomic, if it is available.
bool reader_hold::collect() noexcept {
  if (under_way_ == nullptr || under_way_->over.load() == 0) return false;
  operation_record& op = *under_way_;
  under_way_ = nullptr;
  const readers_phase before = r_.phase;
  if (op.result == status::done) {
    r_ = step(r_, op.value);
  } else if (stopped_) {
    r_.phase = readers_phase::none;
  }  // else it is repeated
  w_.team->rt->ops->free_operation(op);
  if (r_.phase != before) set_turn();
  return true;
}

/// Posts the next atomic. False if it is to be posted again in the next round.
bool reader_hold::post() noexcept {
  engine& e = *w_.team->rt->ops;
  fabric::network* const wide = w_.ctx->wide();
  fabric::network& network = wide != nullptr ? *wide : w_.ctx->node();
  const fabric::region_key region =
      wide != nullptr ? w_.own_block : fabric::region_key{0, w_.board->segment_bytes(), 1};
  const std::uint64_t address =
      (wide != nullptr ? region.address : w_.block_offset) + offsetof(window_block, network_lock);
  const network_request q = request_of(r_);
  const int me = w_.ctx->rank();
  operation_record& op = e.new_operation();
  const status s = q.add ? network.fetch_add(me, region, address, q.operand, op.value, token_of(op))
                         : network.compare_swap(me, region, address, q.expected, q.operand, op.value, token_of(op));
  if (s == status::posted) {
    under_way_ = &op;
    return true;
  }
  const std::uint64_t old = op.value;
  e.free_operation(op);
  if (s != status::done) {
    if (stopped_ && s != status::retry_queue_full) r_.phase = readers_phase::none;
    return false;
  }
  const readers_phase before = r_.phase;
  r_ = step(r_, old);
  if (r_.phase != before) set_turn();
  return true;
}

void reader_hold::set_turn() noexcept {
  turn_ns_ = w_.ctx->around().now_ns();
  if (r_.phase == readers_phase::held || r_.phase == readers_phase::closed) {
    turn_ns_ += readers_turn_ns;
    pause_ns_ = 0;
  } else if (r_.phase == readers_phase::pausing) {
    pause_ns_ = std::clamp(2 * pause_ns_, revoke_first_ns, revoke_max_ns);
    turn_ns_ += pause_ns_;
  }
}

void reader_hold::remove_writer() noexcept {
  if (under_way_ != nullptr || writer() < 0) return;
  r_.dead_hold = network_hold(writer(), lock_kind::exclusive);
  r_.phase = readers_phase::asking;
}

bool reader_hold::stop() noexcept {
  stopped_ = true;
  (void)advance(false, false);
  return under_way_ == nullptr && !busy();
}

}  // namespace rma::detail
