// SPDX-License-Identifier: Apache-2.0
/// \file
/// Layout schemes "sgrs" (send-gather/receive-scatter) and "host-assisted": lists of pieces of one side are sent into
/// lists of pieces of the other over the network's bulk channel.
///
///   put:  origin --request, layouts--> target: posts receives --ready--> origin: sends
///   get:  origin: posts receives --request, layouts--> target: sends
///
/// They need no copy, and as many work requests on either side as the longer of the two lists needs. The target's
/// processor posts its side, and neither copies nor waits: for "sgrs" any of its threads in the library, for
/// "host-assisted" a permanent helper thread. Source: dissertation, sections 8.1.1 (figure 8.4) and 8.3.2 (figure
/// 8.16).
#include <algorithm>

#include "core/assert.hpp"
#include "xfer/bulk_streams.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

struct sgrs {
  static const char* refuses(const window_core& w, const placement&, const checked_operation& o) noexcept {
    if (o.atomic()) return "sgrs carries out puts and gets";
    if (w.kind == call::create_dynamic) return "the ranges of a dynamic window are found by its handler";
    if (o.args->target == w.team->rank) return "it is this rank's own memory";
    if (is_behind_others(o)) return "behind others that wait for room";
    return w.ctx->network_of(o.peer).caps().bulk_pieces_max != 0 ? nullptr : "the network has no bulk channel";
  }

  /// A put takes one more message: the target announces its posted receives.
  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    const fabric::capabilities& caps = w.ctx->network_of(o.peer).caps();
    const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
    const auto pieces = static_cast<std::int64_t>(std::max(o.origin->blocks(), o.target->blocks()));
    const std::int64_t requests = (pieces - 1) / static_cast<std::int64_t>(caps.bulk_pieces_max) + 1;
    const auto wire_ns = static_cast<std::int64_t>(static_cast<double>(o.bytes) * costs.byte_ns);
    const std::int64_t ways_ns = o.args->kind == call::put ? costs.message_ns : costs.message_ns / 2;
    return ways_ns + costs.write_ns + std::max((requests - 1) * costs.piece_ns, wire_ns) +
           (pieces - 1) * costs.list_entry_ns;
  }

  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    RMA_ASSERT(o.origin != nullptr && o.target != nullptr && o.args->target != w.team->rank);
    std::unique_lock guard(w.ctx->lock());
    engine& e = *w.team->rt->ops;
    operation_record& op = e.record_of(o.record);
    e.track(op, *o.state, false);  // an unlock is not ordered after it, unlike after writes
    e.trace_operation(op, w, o);
    mark_dirty(w, o.args->target, *o.state);
    e.bulk().start(w, o, op);
    return e.finish_posting(guard, op, w, o.peer, o.args->by_value, request);
  }
};

struct host_assisted {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (!w.ctx->serves_beside()) return "the target has no helper: it runs no progress thread";
    return sgrs::refuses(w, at, o);
  }
};

}  // namespace

const protocol sgrs_protocol{layout_scheme::sgrs, "sgrs", true, sgrs::refuses, sgrs::estimate_ns, sgrs::start};
const protocol host_assisted_protocol{layout_scheme::host_assisted, "host-assisted",   true,
                                      host_assisted::refuses,       sgrs::estimate_ns, sgrs::start};

}  // namespace rma::detail
