// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "device": the adapter's atomics, for windows whose atomicity it owns (src/xfer/device_protocol.cpp).
#include "core/assert.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

struct device_row {
  static const char* refuses(const window_core& w, const placement&, const checked_operation& o) noexcept {
    return o.atomic() && w.mode == accumulate_mode::direct ? nullptr : "the adapter does not own atomicity";
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return 0; }
  static status start(window_core& w, const placement& at, const checked_operation& o,
                      request_node** request) noexcept {
    RMA_ASSERT(o.atomic() && at.region != nullptr);
    return run_device(w, *at.region, o, request);
  }
  static const char* why(const window_core&, const placement&, const checked_operation&) noexcept {
    return "the adapter owns atomicity";
  }
};

}  // namespace

const protocol device_protocol{layout_scheme::automatic, "device",          false,          device_row::refuses,
                               device_row::estimate_ns,  device_row::start, device_row::why};

}  // namespace rma::detail
