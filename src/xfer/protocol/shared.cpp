// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "shared": both processes take part in a large copy between their private memory.
///
///   origin: "copy the second half" ----> target: copies it, acknowledges
///           copies the first half        (with the fabric's own read or write, like the origin)
///
/// The copy is a system call that spends most of its time on finding pages: two processors take half the time. The
/// target must be certain to handle the message, and the origin waits until it has: then the buffer may be reused.
#include <algorithm>
#include <cstring>

#include "core/assert.hpp"
#include "datatype/copy_experience.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/shared_copy.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

/// Limits the time that a target's handler is kept busy.
constexpr std::uint64_t piece_bytes_max = std::uint64_t{1} << 20;
constexpr std::uint64_t page_bytes = 4096;

}  // namespace

status run_shared(window_core& w, const fabric::region_key& region, const checked_operation& o) noexcept {
  if (o.bytes < shared_bytes_min) return status::not_supported;
  status s = status::done;
  for (std::uint64_t first = 0; s == status::done && first < o.bytes;) {
    const std::uint64_t bytes = std::min(o.bytes - first, piece_bytes_max);
    const std::uint64_t mine = bytes / 2 / page_bytes * page_bytes;
    const auto address = reinterpret_cast<std::uint64_t>(buffer_of(o) + first + mine);
    const share_kind kind = o.args->kind == call::put ? share_kind::put : share_kind::get;
    operation_record* const half = ask_for_copy(w, o, {w.id, o.offset + first + mine, address, bytes - mine, kind});
    if (half == nullptr) {
      return first == 0 ? status::not_supported : copy_here(w, region, o, first, o.bytes - first);
    }
    if (mine != 0) s = copy_here(w, region, o, first, mine);
    const status over = wait_for_copy(w, o, *half);
    if (!ok(over) && over != operation_record::refused) return over;
    if (s == status::done && over == operation_record::refused) s = copy_here(w, region, o, first + mine, bytes - mine);
    first += bytes;
  }
  return s;
}

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
