// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "fabric": the network's own write and read (src/xfer/fabric_protocol.cpp); between processes of a node the
/// kernel's copy.
#include "core/assert.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

struct fabric_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    return only_by_handler(w, at, o);
  }
  static std::int64_t estimate_ns(const window_core& w, const checked_operation& o) noexcept {
    if (o.trial != nullptr) return o.trial->estimate_ns(copy_way::fabric);
    return transfer_estimate_ns(w, o);
  }
  /// Puts of one origin to one location take effect in order, also by different protocols.
  static status start(window_core& w, const placement& at, const checked_operation& o,
                      request_node** request) noexcept {
    RMA_ASSERT(!o.atomic() && at.region != nullptr);
    if (o.far != nullptr) return run_fabric(w, *at.region, o, request);
    if (!promised_are_over(*o.state)) {
      if (const status s = complete_promised(w, o.args->target); s != status::done) return s;
    }
    const status s = run_fabric(w, *at.region, o, request);
    if (s == status::peer_failed) w.ctx->report_lost(o.peer);
    return s;
  }
  static const char* why(const window_core& w, const placement&, const checked_operation& o) noexcept {
    if (o.far != nullptr) return "the target is on another node";
    if (!w.intranode) return "RMA_INTRANODE=off";
    if (w.team->rt->ops->forced() == user_memory::cma) return "RMA_USER_MEMORY=cma";
    if (o.trial != nullptr && o.trial->way() == copy_way::fabric) return o.trial->why();
    return o.contiguous ? "the target computes or sleeps" : "many rows, or the target computes or sleeps";
  }
};

}  // namespace

const protocol fabric_protocol{layout_scheme::automatic, "fabric",          false,          fabric_row::refuses,
                               fabric_row::estimate_ns,  fabric_row::start, fabric_row::why};

}  // namespace rma::detail
