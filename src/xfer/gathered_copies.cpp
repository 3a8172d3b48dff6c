// SPDX-License-Identifier: Apache-2.0
#include "xfer/gathered_copies.hpp"

#include <mutex>
#include <span>
#include <utility>

#include "rma/detail/window_ops.hpp"
#include "xfer/protocols.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {
namespace {

/// By the kernel once more, or where it refuses by the target's handler.
status copy_alone(window_core& w, const gathered_copies& all, std::uint32_t index) noexcept {
  const fabric::local_slice& here = all.here[index];
  const fabric::region_key& region = w.identity_of(all.target)->region;
  const operation_args args =
      all.write ? put_args(here.at, here.bytes, all.target, 0) : get_args(here.at, here.bytes, all.target, 0);
  checked_operation o;
  o.args = &args;
  o.contiguous = true;
  o.bytes = here.bytes;
  o.offset = all.there[index].address - region.address;
  o.peer = all.peer;
  o.state = &w.state_of(all.target);
  const status s = run_fabric(w, region, o, nullptr);
  if (s == status::peer_failed) w.ctx->lost(o.peer);
  return s == status::not_supported ? run_handler(w, o, nullptr) : s;
}

}  // namespace

void copy_gathered(window_core& w) noexcept {
  gathered_copies& all = w.gathered;
  const std::uint32_t count = std::exchange(all.count, 0);
  const std::span here = std::span(all.here).first(count);
  const std::span there = std::span(all.there).first(count);
  const fabric::region_key& region = w.identity_of(all.target)->region;
  {
    const std::lock_guard guard(w.ctx->lock());
    const status s = all.write ? all.network->write(all.peer, here, region, there, 0)
                               : all.network->read(all.peer, here, region, there, 0);
    if (s == status::done) return;
  }
  for (std::uint32_t i = 0; i < count; ++i) {
    const status s = copy_alone(w, all, i);
    if (ok(s)) continue;
    const std::lock_guard guard(w.ctx->lock());
    w.state_of(all.target).fail(s);
  }
}

}  // namespace rma::detail
