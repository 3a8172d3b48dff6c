// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "fabric": the network's own write and read, one call for up to 64 pieces on each side where the fabric can
/// do that, else one for each contiguous piece of the target ("multi-w" of the dissertation, ch. 8).
#include <algorithm>
#include <array>
#include <span>

#include "datatype/copy.hpp"
#include "xfer/protocols.hpp"
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t pieces_max = 64;
constexpr std::uint64_t copied_bytes_max = 512;  ///< of a value: cheaper to copy than to wait for

/// Posts the pieces of one operation.
class piece_list {
 public:
  piece_list(window_core& w, const fabric::region_key& region, const checked_operation& o, target_state& state) noexcept
      : w_(w),
        region_(region),
        o_(o),
        state_(state),
        peer_(w.world_rank(o.args->target)),
        network_(w.ctx->network_of(peer_)),
        room_(std::min(pieces_max, network_.caps().remote_slices_max)) {}

  void add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
    const std::size_t most = network_.caps().transfer_bytes_max;
    while (bytes > most) {
      add(here, there, most);
      here += most;
      there += most;
      bytes -= most;
    }
    if (result_ != status::done) return;
    local_[count_] = {here, bytes};
    remote_[count_] = {there, bytes};
    if (++count_ == room_) (void)flush();
  }
  status flush() noexcept {
    if (count_ == 0 || result_ != status::done) return result_;
    if (!post()) {  // no room: until something is over
      const status waited = w_.ctx->wait_for_peer(peer_, [this]() noexcept { return post(); });
      if (waited != status::done) posted_ = waited;
    }
    count_ = 0;
    if (posted_ != status::posted) result_ = posted_;
    return result_;
  }
  /// No more pieces. Null if nothing is under way.
  posted_operation* end() noexcept {
    (void)flush();
    if (operation_ == nullptr) return nullptr;
    const std::lock_guard guard(w_.ctx->lock());
    posted_operation* const op = operation_;
    w_.team->rt->ops->end_posting(*op);
    return op;
  }
  /// Where the first piece is to be read from, if not from the origin: the fabric reads it after the call's return.
  std::byte* copy(const void* from, std::size_t bytes) noexcept {
    const std::lock_guard guard(w_.ctx->lock());
    begin();
    const auto* const first = static_cast<const std::byte*>(from);
    operation_->copy.assign(first, first + bytes);
    return operation_->copy.data();
  }
  [[nodiscard]] status result() const noexcept { return result_; }

 private:
  void begin() noexcept {
    if (operation_ != nullptr) return;
    operation_ = w_.team->rt->ops->new_posted();
    operation_->state = &state_;
    state_.fabric_pending.fetch_add(1);
  }
  /// False if there is no room now.
  bool post() noexcept {
    const std::lock_guard guard(w_.ctx->lock());
    const bool direct = network_.caps().copies_by_cpu;  // over when it returns: nothing to keep track of
    if (!direct) begin();
    const std::uint64_t token = direct ? 0 : token_of(*operation_);
    const std::span<const fabric::local_slice> local(local_.data(), count_);
    const std::span<const fabric::remote_slice> remote(remote_.data(), count_);
    posted_ = o_.args->kind == call::put ? network_.write(peer_, local, region_, remote, token)
                                         : network_.read(peer_, local, region_, remote, token);
    if (posted_ == status::posted) ++operation_->pieces;
    if (posted_ == status::done && !direct) posted_ = status::posted;
    return posted_ != status::retry_queue_full;
  }

  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  target_state& state_;
  int peer_;
  fabric::network& network_;
  std::size_t room_;
  posted_operation* operation_ = nullptr;
  status posted_ = status::done;
  status result_ = status::done;
  std::size_t count_ = 0;
  std::array<fabric::local_slice, pieces_max> local_;
  std::array<fabric::remote_slice, pieces_max> remote_;
};

void keep_track(window_core& w, const checked_operation& o, target_state& state) noexcept {
  const int target = o.args->target;
  if (!state.dirty) {
    state.dirty = true;
    w.dirty.push_back(target);
  }
  if (target_view* const t = view_of(w, target)) t->flushable = 0;
  if (!w.is_far(target) || o.args->kind != call::put) return;
  const fabric::capabilities& caps = w.ctx->network_of(w.world_rank(target)).caps();
  static_cast<far_target&>(state).unplaced = caps.write_means != fabric::write_completion::placed;
}

/// What becomes of the operation under way: somebody's request, or nobody's.
/// `read_already`: the origin's memory may change.
status hand_over(window_core& w, const checked_operation& o, posted_operation& op, bool read_already,
                 request_node** request) noexcept {
  engine& e = *w.team->rt->ops;
  if (o.args->by_value && !read_already) {
    const status s = e.wait_posted(op);
    const std::lock_guard guard(w.ctx->lock());
    if (op.over.load() == 0) {
      op.detached = true;  // the job is being ended
      return s;
    }
    e.told(op);
    e.free_posted(&op);
    if (s == status::transfer_failed) w.ctx->blame(w.world_rank(o.args->target));
    return s;
  }
  const std::lock_guard guard(w.ctx->lock());
  if (request != nullptr) {
    *request = e.new_request(w, w.world_rank(o.args->target), &op);
  } else if (op.over.load() != 0) {
    e.free_posted(&op);
  } else {
    op.detached = true;
  }
  return status::posted;
}

}  // namespace

status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o,
                  request_node** request) noexcept {
  const operation_args& a = *o.args;
  const int target = a.target;
  auto* here = static_cast<std::byte*>(a.kind == call::put ? const_cast<void*>(a.origin) : a.result);
  const std::uint64_t there = (w.kind == call::create_dynamic ? 0 : region.address) + o.offset;
  target_state& state = w.state_of(target);
  piece_list pieces(w, region, o, state);
  const fabric::capabilities& caps = w.ctx->network_of(w.world_rank(target)).caps();
  bool read_already = o.contiguous && o.bytes <= caps.inline_bytes_max;
  if (a.by_value && o.contiguous && !caps.copies_by_cpu && !read_already && o.bytes <= copied_bytes_max) {
    here = pieces.copy(here, o.bytes);
    read_already = true;
  }
  if (o.contiguous) {
    pieces.add(here, there, o.bytes);
  } else {
    for_each_pair(*o.target, *o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t local, std::size_t bytes) {
      pieces.add(here + local, there + static_cast<std::uint64_t>(at), bytes);
    });
  }
  posted_operation* const op = pieces.end();
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::operations_fabric);
  }
  if (op == nullptr) return pieces.result();
  keep_track(w, o, state);
  const status s = hand_over(w, o, *op, read_already, ok(pieces.result()) ? request : nullptr);
  if (!ok(pieces.result()) || !ok(s)) return ok(s) ? pieces.result() : s;
  if (a.signal < 0) return s;
  if (!caps.messages_after_writes) {
    if (const status placed = complete_target(w, target); placed != status::done) return placed;
  }
  notify(w, target, counter_kind::signal, static_cast<std::uint32_t>(a.signal));
  return status::posted;
}

}  // namespace rma::detail
