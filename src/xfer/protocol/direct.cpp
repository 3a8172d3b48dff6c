// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "direct", for a target whose memory is mapped here.
///
/// Atomic updates, by the window's mode (DESIGN: one owner of atomicity per window):
///   element   every element by one locked instruction or a compare-exchange loop
///   striped   the stripe's lock around a SIMD kernel; an exclusive epoch needs no stripes (stripes.hpp)
#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "datatype/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/kernels.hpp"
#include "xfer/protocol/protocol.hpp"
#include "xfer/protocols.hpp"
#include "xfer/stripes.hpp"

namespace rma::detail {
namespace {

void run_bulk(std::byte* at, const void* from, void* old, std::uint64_t count, operation op, element type) noexcept {
  const kernel_table& k = kernels_for_this_cpu();
#if defined(RMA_EXPLORE)
  // Other ranks may run between its loads and its stores.
  const std::uint64_t bytes = count * rma::bytes_of(type);
  std::vector<std::byte> updated(at, at + bytes);
  k.bulk[index_of(op)][index_of(type)](updated.data(), from == at ? updated.data() : from, count);
  explore_point();
  if (old != nullptr) std::memcpy(old, at, bytes);
  std::memcpy(at, updated.data(), bytes);
  explore_point();
#else
  if (old != nullptr) {
    k.fetch_bulk[index_of(op)][index_of(type)](at, from, old, count);
  } else {
    k.bulk[index_of(op)][index_of(type)](at, from, count);
  }
#endif
}

/// Updates each element by one locked instruction. False if there is none for the type.
bool run_locked(std::byte* at, const void* from, void* old, std::uint64_t count, operation op, element type) noexcept {
  const kernel_table& k = kernels_for_this_cpu();
  const auto plain = k.atomic[index_of(op)][index_of(type)];
  const auto fetch = k.fetch_atomic[index_of(op)][index_of(type)];
  if (old == nullptr ? plain == nullptr : fetch == nullptr) return false;
  if (old == nullptr) {
    plain(at, from, count);
  } else {
    fetch(at, from, old, count);
  }
  return true;
}

const void* advance(const void* p, std::uint64_t bytes) noexcept {
  return p == nullptr ? nullptr : static_cast<const std::byte*>(p) + bytes;
}
void* advance(void* p, std::uint64_t bytes) noexcept {
  return p == nullptr ? nullptr : static_cast<std::byte*>(p) + bytes;
}

/// The limit of stripes held at once. Stripes that are free are locked in succession before any update: each lock is a
/// locked instruction, which would otherwise wait for all stores under the previous stripe.
constexpr std::uint64_t stripes_at_once = 8;

status apply_striped(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                     std::uint64_t bytes, operation op, element type) noexcept {
  const std::uint64_t e = rma::bytes_of(type);
  while (bytes > 0) {
    const std::uint64_t first = offset >> w.stripe_shift;
    const std::uint64_t wanted = std::min(((offset + bytes - 1) >> w.stripe_shift) + 1, first + stripes_at_once);
    if (const status s = lock_stripe(w, stripe_at(w, t, first)); s != status::done) return s;
    std::uint64_t behind = first + 1;  // one past the last one held
    while (behind < wanted && try_lock_stripe(w, stripe_at(w, t, behind))) ++behind;
    // The part consists of the whole elements whose first byte lies in these stripes.
    const std::uint64_t room = (behind << w.stripe_shift) - offset;
    const std::uint64_t part = std::min(bytes, (room + e - 1) / e * e);
    std::byte* const at = place_of(base, offset);
    const void* const source = from == nullptr ? at : from;
    if (owns_stripe(w, t, bytes / e) || !run_locked(at, source, old, part / e, op, type))
      run_bulk(at, source, old, part / e, op, type);
    for (std::uint64_t i = first; i < behind; ++i) stripe_at(w, t, i).owner.store(0);
    offset += part;
    from = advance(from, part);
    old = advance(old, part);
    bytes -= part;
  }
  return status::done;
}

template <class Integer>
void swap_element(std::byte* at, const void* compare, const void* desired, void* old) noexcept {
  Integer expected;
  Integer wanted;
  std::memcpy(&expected, compare, sizeof expected);
  std::memcpy(&wanted, desired, sizeof wanted);
  std::atomic_ref<Integer>(*reinterpret_cast<Integer*>(at)).compare_exchange_strong(expected, wanted);
  std::memcpy(old, &expected, sizeof expected);
}

void swap_locked(std::byte* at, const operation_args& a, std::uint64_t bytes) noexcept {
  switch (bytes) {
    case 1: return swap_element<std::uint8_t>(at, a.compare, a.origin, a.result);
    case 2: return swap_element<std::uint16_t>(at, a.compare, a.origin, a.result);
    case 4: return swap_element<std::uint32_t>(at, a.compare, a.origin, a.result);
    default: return swap_element<std::uint64_t>(at, a.compare, a.origin, a.result);
  }
}

status swap_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  std::byte* const at = place_of(base, o.offset);
  if (w.mode == accumulate_mode::element) {
    swap_locked(at, *o.args, o.bytes);
    return status::done;
  }
  stripe_lock& stripe = t.stripes[(o.offset >> w.stripe_shift) & w.stripe_mask];
  if (const status s = lock_stripe(w, stripe); s != status::done) return s;
  if (o.bytes > 8 || owns_stripe(w, t, 1)) {
    swap_owned(at, o.args->compare, o.args->origin, o.args->result, o.bytes);
  } else {
    swap_locked(at, *o.args, o.bytes);
  }
  stripe.owner.store(0);
  return status::done;
}

/// get_accumulate with up to three layouts: by contiguous copies, since it is rare.
status fetch_shapes(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  std::vector<std::byte> from(o.bytes);
  std::vector<std::byte> old(o.bytes);
  if (a.origin != nullptr) pack(from.data(), a.origin, *o.origin, 0, o.bytes);
  std::uint64_t done = 0;
  status result = status::done;
  for_each_block(*o.target, [&](std::ptrdiff_t at, std::size_t bytes) {
    const status s = apply_range(w, t, base, o.offset + static_cast<std::uint64_t>(at), from.data() + done,
                                 old.data() + done, bytes, a.op, a.type);
    if (s != status::done) result = s;
    done += bytes;
  });
  unpack(a.result, old.data(), *o.result, 0, o.bytes);
  return result;
}

}  // namespace

status apply_owned(std::byte* at, const void* from, void* old, std::uint64_t bytes, operation op,
                   element type) noexcept {
  run_bulk(at, from == nullptr ? at : from, old, bytes / rma::bytes_of(type), op, type);
  return status::done;
}

void swap_owned(std::byte* at, const void* compare, const void* desired, void* old, std::size_t bytes) noexcept {
  const bool equal = std::memcmp(at, compare, bytes) == 0;
  std::memcpy(old, at, bytes);
  if (equal) std::memcpy(at, desired, bytes);
}

status apply_range(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                   std::uint64_t bytes, operation op, element type) noexcept {
  if (bytes % rma::bytes_of(type) != 0) return status::bad_type;  // a layout that splits elements
  std::byte* const at = place_of(base, offset);
  const void* const source = from == nullptr ? at : from;
  const std::uint64_t count = bytes / rma::bytes_of(type);
  if (t.held == static_cast<std::uint8_t>(lock_kind::exclusive)) {
    run_bulk(at, source, old, count, op, type);
    return status::done;
  }
  if (w.mode == accumulate_mode::element && run_locked(at, source, old, count, op, type)) return status::done;
  return apply_striped(w, t, base, offset, from, old, bytes, op, type);
}

bool run_plain_layouts(window_core& w, const operation_args& a) noexcept {
  target_view* const t = view_of(w, a.target);
  if (t == nullptr || a.displacement >= t->limit || a.signal >= 0) return false;
  if (w.blocked_by.load(std::memory_order_relaxed) != 0) return false;
  const Layout& there = *a.target_layout;
  const Layout& here = *a.origin_layout;
  const std::size_t bytes = there.bytes();
  if (bytes == 0 || here.bytes() != bytes || there.lower() < 0) return false;
  const std::uint64_t room = (t->limit - a.displacement) * w.unit;
  if (static_cast<std::uint64_t>(there.upper()) > room) return false;
  std::byte* const at = t->base + a.displacement * w.unit;
  switch (a.kind) {
    case call::put: copy(at, there, a.origin, here, &w.turn); break;
    case call::get: copy(a.result, here, at, there, &w.turn); break;
    default: return false;
  }
  mark_stored(*t);
  return true;
}

const char* why_direct(const window_core& w, const target_view& t, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  if (!o.atomic()) return "the target's memory is mapped";
  const bool swap = a.kind == call::compare_and_swap;
  if (!swap && t.held == static_cast<std::uint8_t>(lock_kind::exclusive))
    return "mapped; in an exclusive epoch no other rank updates";
  if (w.mode != accumulate_mode::element) return "mapped; striped: under the lock of a stripe";
  const kernel_table& k = kernels_for_this_cpu();
  const bool has_locked = a.kind == call::accumulate ? k.atomic[index_of(a.op)][index_of(a.type)] != nullptr
                                                     : k.fetch_atomic[index_of(a.op)][index_of(a.type)] != nullptr;
  return swap || has_locked ? "mapped; element: each by a locked instruction"
                            : "mapped; no locked instruction does this: under the lock of a stripe";
}

status run_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  std::byte* const at = place_of(base, o.offset);
  switch (a.kind) {
    case call::put:
      if (o.contiguous) {
        store_bytes(at, a.origin, o.bytes, &w.turn);
      } else {
        copy(at, *o.target, a.origin, *o.origin, &w.turn);
      }
      return status::done;
    case call::get:
      if (o.contiguous) {
        load_bytes(a.result, at, o.bytes, &w.turn);
      } else {
        copy(a.result, *o.origin, at, *o.target, &w.turn);
      }
      return status::done;
    case call::accumulate:
      return o.contiguous ? apply_range(w, t, base, o.offset, a.origin, nullptr, o.bytes, a.op, a.type)
                          : accumulate_layouts(w, t, base, o);
    case call::compare_and_swap: return swap_direct(w, t, base, o);
    default:
      return o.contiguous ? apply_range(w, t, base, o.offset, a.origin, a.result, o.bytes, a.op, a.type)
                          : fetch_shapes(w, t, base, o);
  }
}

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
