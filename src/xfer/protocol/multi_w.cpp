// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout scheme "multi-w": one of the network's writes (or reads) for each piece that is contiguous on both sides,
/// linked so that one call posts several.
///
///   origin: write, write, write, ... ----> target's memory
///
/// It needs no copy and no help of the target, but a work request for each piece. It is fastest for large pieces.
/// Source: dissertation, section 8.1 ("Multiple RDMA Writes").
#include <algorithm>

#include "core/assert.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

struct multi_w {
  static const char* refuses(const window_core&, const placement& at, const checked_operation& o) noexcept {
    if (o.atomic()) return "multi-w carries out puts and gets";
    return at.registered ? nullptr : "the target's memory is not registered";
  }

  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
    const auto pieces = static_cast<std::int64_t>(std::max(o.origin->blocks(), o.target->blocks()));
    const auto wire_ns = static_cast<std::int64_t>(static_cast<double>(o.bytes) * costs.byte_ns);
    return costs.write_ns + std::max((pieces - 1) * costs.piece_ns, wire_ns);
  }

  static status start(window_core& w, const placement& at, const checked_operation& o,
                      request_node** request) noexcept {
    RMA_ASSERT(!o.atomic() && at.region != nullptr);
    return run_fabric(w, *at.region, o, request);
  }
};

}  // namespace

const protocol multi_w_protocol{layout_scheme::multi_w, "multi-w",     false, multi_w::refuses,
                                multi_w::estimate_ns,   multi_w::start};

}  // namespace rma::detail
