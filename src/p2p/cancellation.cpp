// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operations that end without their message, since their user cancels them, or their team is revoked. If the other
/// side may be writing or reading this rank's memory, they end when it has answered.
#include <utility>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"

namespace rma::detail {

messenger::cancel_result messenger::cancel(message_operation& op) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  if (op.state != message_state::queued && op.state != message_state::posted) return cancel_result::too_late;
  if (op.state == message_state::posted && op.id != 0) {  // its source may be writing
    auto& r = static_cast<receive_operation&>(op);
    r.source = any_source;
    r.message_bytes = 0;
    if (!std::exchange(r.is_canceled, true) && r.withdrawn == status::done) recall_request(r);
    return cancel_result::asked;
  }
  give_back_request(op);
  detach(op);
  (void)end_now(op, status::done);
  return cancel_result::canceled;
}

// A queued send would have told its receive that the request which that has sent is void.
void messenger::give_back_request(const message_operation& op) noexcept {
  if (op.state != message_state::queued || !static_cast<const send_operation&>(op).is_void) return;
  tell(op.with, op.peer_id, 0, rendezvous_step::declined);
}

bool messenger::withdraw(message_operation& op, status result) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!ok(result) && op.ended.load(std::memory_order_relaxed) == 0);
  const bool sends = op.state == message_state::announced || op.state == message_state::streaming;
  if (op.id != 0 && !sends && op.state != message_state::queued) {
    const bool asked = op.state == message_state::posted || (op.step == rendezvous_state::asked && op.is_exposed);
    if (asked || op.moving != nullptr || op.pieces != nullptr) {
      if (std::exchange(op.withdrawn, result) == status::done && asked)
        recall_request(static_cast<receive_operation&>(op));
      return false;
    }
  }
  if (op.id != 0 && (op.moving != nullptr || op.pieces != nullptr)) {
    op.withdrawn = result;
    return false;
  }
  if (op.state == message_state::streaming || op.state == message_state::receiving)
    tell(op.with, op.peer_id, op.id, rendezvous_step::gone);
  give_back_request(op);
  detach(op);
  (void)end_now(op, result);
  return true;
}

}  // namespace rma::detail
