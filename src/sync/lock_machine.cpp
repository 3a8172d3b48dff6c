// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_machine.hpp"

#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"

namespace rma::detail {
namespace {

/// Waits until a step may make progress. Returns `done`, or the reason why none can.
status rest(window_core& w, lock_machine& m, long_wait& whole) noexcept {
  const window_unlock_guard out(w);
  const std::int64_t at_ns = m.resumes_at_ns();
  const auto ready = [&]() noexcept { return m.may_advance() || m.resumes_at_ns() != at_ns; };
  const auto failed = [&m]() noexcept { return m.failed(); };
  return w.ctx->wait({.until = ready,
                      .fails_if = failed,
                      .woken_by = at_ns == lock_machine::by_message ? wakes::message : wakes::memory,
                      .deadline_ns = at_ns >= 0 ? at_ns : no_deadline,
                      .peer = m.answers_from(),
                      .for_lock = true,
                      .whole = at_ns >= 0 ? &whole : nullptr});
}

}  // namespace

lock_step wait_for(window_core& w, lock_machine& m) noexcept {
  m.keep_request();
  long_wait whole(*w.ctx);
  while (m.advance() == lock_step::not_yet) {
    const status s = rest(w, m, whole);
    if (s == status::done) continue;
    m.give_up(s);
    break;
  }
  RMA_ASSERT(m.reached() != lock_step::not_yet);
  return m.reached();
}

}  // namespace rma::detail
