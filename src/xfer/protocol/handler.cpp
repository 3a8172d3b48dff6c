// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "handler": messages to the target's handler (src/xfer/handler_protocol.cpp). It supports all operations,
/// and is the only protocol for atomics on memory that is not mapped, unless the adapter owns atomicity.
#include <algorithm>

#include "xfer/held_operations.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct handler_row {
  static const char* refuses(const window_core&, const placement&, const checked_operation&) noexcept {
    return nullptr;
  }
  /// More than that of any other protocol.
  static std::int64_t estimate_ns(const window_core&, const checked_operation&) noexcept { return INT64_MAX - 1; }
  static status start(window_core& w, const placement&, const checked_operation& o, request_node** request) noexcept {
    return run_handler(w, o, request);
  }
  static const char* why(const window_core& w, const placement& at, const checked_operation& o) noexcept {
    const char* const reason = only_by_handler(w, at, o);
    return reason != nullptr ? reason : "the fabric refused";
  }
};

const char* only_by_far_handler(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  const fabric::capabilities& caps = w.ctx->wide()->caps();
  if (w.team->rt->ops->forced() == user_memory::handler) return "RMA_USER_MEMORY=handler";
  if (!at.registered) return "the target's memory is not registered";
  if (o.put_off && ends_epoch_by_message(o.contiguous, o.bytes, caps.message_bytes_max))
    return "data and synchronization in one message";
  const std::size_t most = o.contiguous  ? caps.handler_bytes_max
                           : o.fetches() ? caps.handler_pieces_bytes_max
                                         : std::max(caps.handler_pieces_bytes_max, caps.message_bytes_max);
  const bool scheme_is_asked_for = !o.contiguous && w.scheme_of_layouts != layout_scheme::automatic;
  return !caps.one_sided && o.bytes <= most && !scheme_is_asked_for ? "the fabric's writes need the target" : nullptr;
}

}  // namespace

const char* only_by_handler(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  if (o.atomic()) return "the handlers own atomicity";
  if (o.far != nullptr) return only_by_far_handler(w, at, o);
  if (o.args->target == w.team->rank) return "this rank's own memory";
  if (is_behind_others(o)) return "behind others that wait for room";
  const fabric::capabilities& caps = w.ctx->network_of(o.peer).caps();
  const bool has_ways = caps.one_sided || caps.copies_by_cpu;  // if the kernel refuses, other protocols remain
  if (!has_ways) return "the fabric's writes need the target";
  return w.team->rt->ops->forced() == user_memory::handler ? "RMA_USER_MEMORY=handler" : nullptr;
}

const protocol handler_protocol{
    layout_scheme::automatic, "handler",       true, handler_row::refuses, handler_row::estimate_ns,
    handler_row::start,       handler_row::why};

}  // namespace rma::detail
