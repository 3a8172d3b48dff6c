// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "shared": a large copy between private memory of two processes, each of which makes a half
/// (src/xfer/shared_protocol.cpp).
#include "core/assert.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct shared_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (const char* const reason = only_near(w, at, o); reason != nullptr) return reason;
    if (o.trial == nullptr) return "not contiguous, or the processor does not copy";
    return o.bytes <= shared_bytes_min - 1 ? "too little to share" : nullptr;
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation& o) noexcept {
    return o.trial->estimate_ns(copy_way::shared);
  }
  /// Puts of one origin to one location take effect in order, also by different protocols.
  static status start(window_core& w, const placement& at, const checked_operation& o, request_node**) noexcept {
    RMA_ASSERT(o.trial != nullptr && o.far == nullptr && !at.mapped);
    if (const status s = complete_promised(w, o.args->target); s != status::done) return s;
    return run_shared(w, *at.region, o);
  }
  static const char* why(const window_core&, const placement&, const checked_operation& o) noexcept {
    return o.trial->way() == copy_way::shared ? o.trial->why() : "nothing else can, at this size";
  }
};

}  // namespace

const protocol shared_protocol{layout_scheme::automatic, "shared",          true,           shared_row::refuses,
                               shared_row::estimate_ns,  shared_row::start, shared_row::why};

}  // namespace rma::detail
