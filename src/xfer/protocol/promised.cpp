// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "promised": a put or get of another process's private memory in messages, if the target is inside the
/// library and certain to handle each before it leaves (src/xfer/protocol/handler.cpp, docs/architecture.md, "Life
/// of one put").
#include "xfer/copy_trial.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct promised_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (const char* const reason = only_near(w, at, o); reason != nullptr) return reason;
    const std::uint64_t most = o.contiguous ? one_message_max : promised_bytes_max;
    return o.bytes > most ? "more than messages are made for" : nullptr;
  }
  /// The least estimate for one message, unless the kernel's copy has been faster for this size.
  static std::int64_t estimate_ns(const window_core&, const checked_operation& o) noexcept {
    return o.trial != nullptr ? o.trial->estimate_ns(copy_way::staged) : 0;
  }
  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    return run_promised(w, o, request);
  }
  static const char* why(const window_core&, const placement&, const checked_operation& o) noexcept {
    return o.trial != nullptr && o.trial->way() == copy_way::staged
               ? o.trial->why()
               : "the target is inside the library and bound to answer";
  }
};

}  // namespace

const protocol promised_protocol{
    layout_scheme::automatic, "promised",       true, promised_row::refuses, promised_row::estimate_ns,
    promised_row::start,      promised_row::why};

}  // namespace rma::detail
