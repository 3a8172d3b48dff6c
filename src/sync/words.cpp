// SPDX-License-Identifier: Apache-2.0
/// \file
/// Waits for an element of this rank's own part, which other ranks write by any means.
///
///   polls all the time (RMA_SPIN_US) ---> sleeps for an eighth of the time waited so far, 4 ms at most ---> polls ...
///
/// A store rings no doorbell, and a doorbell for each would cost more than the store. So the wait sleeps for fractions
/// of its own length: a change is seen at the latest after a further eighth of the time that it took. Writes that
/// arrive as messages (user memory, other nodes without adapters) wake the sleeper as usual.
#include <cstdint>

#include "rma/detail/word_ops.hpp"
#include "sync/group.hpp"
#include "window/window_core.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

/// Finds the element, or returns the reason why there is none.
status find_element(const window_core& w, std::uint64_t at, std::size_t bytes, const std::byte*& element) noexcept {
  std::uint64_t offset = 0;
  if (__builtin_mul_overflow(at, w.unit, &offset)) return status::out_of_window;
  element = local_range(w, offset, bytes);
  if (element == nullptr) return status::out_of_window;
  return reinterpret_cast<std::uintptr_t>(element) % bytes == 0 ? status::done : status::misaligned;
}

/// Returns peer_failed if no rank is left that could write it, or revoked.
status is_hopeless(const window_core& w, int from) noexcept {
  if (const status s = w.revocation(); s != status::done) return s;
  if (from < 0) return w.team->nobody_left();
  if (!w.ctx->gone(w.world_rank(from))) return status::done;
  w.ctx->set_last_failed(w.world_rank(from));
  return status::peer_failed;
}

}  // namespace

status wait_until(window_view& view, std::uint64_t at, std::size_t bytes, int from,
                  const element_test& ready) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::wait_until, from);
  if (!is_rank_or_any(w, from)) return status::bad_rank;
  const std::byte* element = nullptr;
  if (const status s = find_element(w, at, bytes, element); s != status::done) return s;
  const window_unlock_guard out(w);
  return w.ctx->wait({.until = [&]() noexcept { return ready(element); },
                      .fails_if = [&]() noexcept { return is_hopeless(w, from); },
                      .woken_by = wakes::nobody});
}

status test_until(window_view& view, std::uint64_t at, std::size_t bytes, const element_test& ready) noexcept {
  if (const status s = usable(view); s != status::done) return s;
  window_core& w = core_of(view);
  const entry_scope in(w, call::test_until);
  const std::byte* element = nullptr;
  if (const status s = find_element(w, at, bytes, element); s != status::done) return s;
  if (ready(element)) return status::done;
  w.ctx->progress();
  if (ready(element)) return status::done;
  const status s = w.revocation();
  return s == status::done ? status::not_yet : s;
}

}  // namespace rma::detail
