// SPDX-License-Identifier: Apache-2.0
#include "sync/remote_word.hpp"
#include "core/assert.hpp"

#include <mutex>
#include <utility>

#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr unsigned tries_max = 32;

}  // namespace

remote_word::remote_word(window_core& w, int target, std::size_t in_block) noexcept
    : w_(w), rank_(w.world_rank(target)) {
  if (w.ctx->wide() != nullptr) {
    result_ = block_region(w, target, region_);
    address_ = region_.address + in_block;
    wide_ = w.ctx->wide();
  } else {
    region_ = {0, w.board->segment_bytes(), 1};  // the segment is one region, whose key has its start
    address_ = w.block_offset + in_block;
  }
}

status remote_word::request(const network_request& r, std::uint64_t& old) noexcept {
  if (result_ != status::done) return result_;
  engine& e = *w_.team->rt->ops;
  fabric::network& network = wide_ != nullptr ? *wide_ : w_.ctx->node();
  const status s = r.add ? remote_add(e, network, rank_, region_, address_, r.operand, old)
                         : remote_swap(e, network, rank_, region_, address_, r.expected, r.operand, old);
  if (s == status::peer_failed) w_.ctx->set_last_failed(rank_);
  return s;
}

status remote_word::ask_soon(const network_request& r, bool must, std::uint64_t& old) noexcept {
  if (result_ != status::done) return result_;
  engine& e = *w_.team->rt->ops;
  if (asked_ == nullptr) {
    fabric::network& network = wide_ != nullptr ? *wide_ : w_.ctx->node();
    const status s = start_remote_atomic(e, network, rank_, region_, address_, r.add, r.expected, r.operand, asked_);
    if (s == status::retry_queue_full) return status::posted;
    if (s == status::peer_failed) w_.ctx->set_last_failed(rank_);
    if (!ok(s)) return s;
  }
  if (asked_->over.load() == 0) return status::posted;
  const status s = finish_remote_add(e, rank_, std::exchange(asked_, nullptr), old);
  if (s == status::transfer_failed && must && ++failures_ < tries_max) return status::posted;
  failures_ = 0;
  return s;
}

status remote_word::await_answer(bool must, const network_request& r, std::uint64_t& old) noexcept {
  RMA_ASSERT(asked_ != nullptr);
  const status s = finish_remote_add(*w_.team->rt->ops, rank_, std::exchange(asked_, nullptr), old);
  return s == status::transfer_failed && must ? add(r.operand, old) : s;
}

operation_record* remote_word::start_add(std::uint64_t operand) noexcept {
  if (result_ != status::done) return nullptr;
  fabric::network& network = wide_ != nullptr ? *wide_ : w_.ctx->node();
  return start_remote_add(*w_.team->rt->ops, network, rank_, region_, address_, operand);
}

status remote_word::finish_add(operation_record* op, std::uint64_t operand, std::uint64_t& old) noexcept {
  const status s = finish_remote_add(*w_.team->rt->ops, rank_, op, old);
  return s == status::transfer_failed ? add(operand, old) : s;
}

status remote_word::add(std::uint64_t operand, std::uint64_t& old) noexcept {
  for (unsigned failures = 0;;) {
    const status s = request({true, 0, operand}, old);
    if (s != status::transfer_failed || ++failures == tries_max) return s;
  }
}

std::int64_t pause_of_contender(window_core& w, std::int64_t time_ns) noexcept {
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::lock_waits);
  }
  w.rng_state = w.rng_state * 6364136223846793005U + 1442695040888963407U;
  return time_ns / 2 + static_cast<std::int64_t>((w.rng_state >> 33) % static_cast<std::uint64_t>(time_ns / 2 + 1));
}

}  // namespace rma::detail
