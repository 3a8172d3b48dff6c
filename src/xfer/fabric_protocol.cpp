// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "fabric": the network's own write and read, one call for up to 64 pieces on each side.
#include <array>

#include "datatype/copy.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t pieces_max = 64;

class piece_list {
 public:
  piece_list(window_core& w, const fabric::region_key& region, const checked_operation& o, target_state& state) noexcept
      : w_(w), region_(region), o_(o), state_(state) {}

  void add(std::byte* here, std::uint64_t there, std::size_t bytes) noexcept {
    if (result_ != status::done) return;
    local_[count_] = {here, bytes};
    remote_[count_] = {there, bytes};
    if (++count_ == pieces_max) (void)flush();
  }
  status flush() noexcept {
    if (count_ == 0 || result_ != status::done) return result_;
    const int peer = w_.world_rank(o_.args->target);
    const auto token = reinterpret_cast<std::uint64_t>(&state_);
    const std::span<const fabric::local_slice> local(local_.data(), count_);
    const std::span<const fabric::remote_slice> remote(remote_.data(), count_);
    status s = status::retry_queue_full;
    while (s == status::retry_queue_full) {
      const std::lock_guard guard(w_.ctx->lock());
      s = o_.args->kind == call::put ? w_.ctx->network_of(peer).write(peer, local, region_, remote, token)
                                     : w_.ctx->network_of(peer).read(peer, local, region_, remote, token);
      if (s == status::retry_queue_full) w_.ctx->network_of(peer).poll(*w_.ctx, 16);
    }
    count_ = 0;
    if (s == status::posted) {
      state_.fabric_pending.fetch_add(1);
      posted_ = true;
    } else {
      result_ = s;
    }
    return result_;
  }
  [[nodiscard]] bool posted() const noexcept { return posted_; }

 private:
  window_core& w_;
  const fabric::region_key& region_;
  const checked_operation& o_;
  target_state& state_;
  status result_ = status::done;
  bool posted_ = false;
  std::size_t count_ = 0;
  std::array<fabric::local_slice, pieces_max> local_;
  std::array<fabric::remote_slice, pieces_max> remote_;
};

}  // namespace

status run_fabric(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  const int target = a.target;
  auto* const here = static_cast<std::byte*>(a.kind == call::put ? const_cast<void*>(a.origin) : a.result);
  const std::uint64_t there = (w.kind == call::create_dynamic ? 0 : region.address) + o.offset;
  target_state& state = w.state_of(target);
  piece_list pieces(w, region, o, state);
  if (o.contiguous) {
    pieces.add(here, there, o.bytes);
  } else {
    for_each_pair(*o.target, *o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t local, std::size_t bytes) {
      pieces.add(here + local, there + static_cast<std::uint64_t>(at), bytes);
    });
  }
  const status s = pieces.flush();
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::operations_fabric);
  }
  if (!pieces.posted()) return s;
  if (!state.dirty) {
    state.dirty = true;
    w.dirty.push_back(target);
  }
  if (target_view* const t = view_of(w, target)) t->flushable = 0;
  if (!ok(s) || a.signal < 0) return ok(s) ? status::posted : s;
  return complete_target(w, target);  // the signal must not overtake the data
}

}  // namespace rma::detail
