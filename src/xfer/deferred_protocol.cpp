// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "deferred": operations of an epoch of lock "two-sided", or of a small one of lock "auto", wait at the
/// origin for its end, as the messages that the target's handler would get. lock_two_sided.cpp sends them. Source:
/// dissertation ch. 4 (the baseline that direct passive is compared with).
#include <cstring>

#include "xfer/message_maker.hpp"

namespace rma::detail {
namespace {

constexpr std::size_t waiting_bytes_max = std::size_t{1} << 20;  ///< beyond, the epoch is sent before its end
constexpr std::size_t framing_bytes = sizeof(lock_header) + sizeof(std::uint32_t);

void append(std::vector<std::byte>& to, std::span<const std::byte> bytes) {
  to.insert(to.end(), bytes.begin(), bytes.end());
}

}  // namespace

status run_deferred(window_core& w, const checked_operation& o, bool requested) noexcept {
  deferred_epoch& epoch = *o.state->epoch;
  if (o.args->signal >= 0) return status::not_supported;  // somebody waits for it, perhaps before the epoch ends
  if (requested || (o.args->by_value && o.fetches())) return status::not_supported;    // somebody waits for it
  if (o.atomic() && w.mode != accumulate_mode::handler) return status::not_supported;  // not the handler's to do
  if (o.bytes > waiting_bytes_max - std::min(epoch.messages.size(), waiting_bytes_max)) return status::not_supported;
  if (w.defers_far && epoch.bytes + o.bytes > deferral_bytes_max) return status::not_supported;
  epoch.bytes += o.bytes;
  if (o.args->kind != call::put) epoch.fetches = true;
  message_maker made(w, o, operation_message_max - framing_bytes);
  const std::lock_guard guard(w.ctx->lock());
  const std::uint64_t ticket = ticket_for(w, o);
  for (bool last = false; !last;) {
    last = made.make();
    const auto head = made.head(ticket);
    const auto bytes = static_cast<std::uint32_t>(head.size() + made.data().size());
    append(epoch.messages, std::as_bytes(std::span(&bytes, 1)));
    append(epoch.messages, head);
    append(epoch.messages, made.data());
    ++epoch.count;
  }
  w.ctx->count(counter::operations_handler);
  return status::posted;
}

}  // namespace rma::detail
