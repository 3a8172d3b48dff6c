// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "direct": loads, stores and locked instructions on mapped memory (src/xfer/direct.cpp). It is complete when
/// it returns.
#include "xfer/entry_scope.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

/// True for a copy that is long enough to let other threads into the window meanwhile.
bool is_long_copy(const checked_operation& o) noexcept {
  constexpr std::uint64_t long_bytes = 4096;
  return !o.atomic() && o.bytes >= long_bytes;
}

struct direct_row {
  static const char* refuses(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    if (!at.mapped) return "the target's memory is not mapped";
    if (!o.atomic()) return nullptr;
    if (is_by_adapter(w.mode)) return "the window's updates go by the network";
    return w.mode == accumulate_mode::handler ? "the handlers own atomicity" : nullptr;
  }
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return 0; }
  static status start(window_core& w, const placement& at, const checked_operation& o, request_node**) noexcept {
    const window_unlock_guard out(w, !o.put_off && is_long_copy(o));
    const status s = run_direct(w, w.views[w.index_of(o.args->target)], at.base, o);
    if (w.observed) w.ctx->around().charge(cost_kind::copy, o.bytes);
    return s;
  }
  static const char* why(const window_core& w, const placement&, const checked_operation& o) noexcept {
    if (w.trace == nullptr) return "the target's memory is mapped";
    return why_direct(w, w.views[w.index_of(o.args->target)], o);
  }
};

}  // namespace

const protocol direct_protocol{layout_scheme::automatic, "direct",          false,          direct_row::refuses,
                               direct_row::estimate_ns,  direct_row::start, direct_row::why};

}  // namespace rma::detail
