// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "direct": the target's memory is mapped here.
///
/// Atomic updates, by the window's mode (DESIGN: one owner of atomicity per window):
///   element   every element by one locked instruction or a compare-exchange loop
///   striped   the stripe's lock around a SIMD kernel; an exclusive epoch needs no stripes. Biased towards single
///             elements (docs/decisions/0022-biased-stripes.md), for each target:
///
///               biased --bulk update: ending, fence on every core--> ending --nobody is updating--> needed
///
///             biased   inlined calls update an element by one locked instruction and take no stripe
///             ending   they come here; whoever holds a stripe still updates by locked instructions
///             needed   all take the stripe, and own what it guards
#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
#include "core/membarrier.hpp"
#include "datatype/copy.hpp"
#include "rma/detail/window_ops.hpp"
#include "xfer/kernels.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {
namespace {

/// Of a dynamic window the base is null, and the offset an address.
std::byte* place_of(std::byte* base, std::uint64_t offset) noexcept {
  return reinterpret_cast<std::byte*>(reinterpret_cast<std::uintptr_t>(base) + offset);
}

std::size_t slot(operation op) noexcept { return static_cast<std::size_t>(op); }
std::size_t slot(element e) noexcept { return static_cast<std::size_t>(e); }

/// It is given back by a store, so that nobody is woken: who waits for it looks again, if its holder lost the
/// processor.
constexpr std::int64_t stripe_pause_ns = 20'000;
constexpr std::int64_t stripe_pause_max_ns = 1'000'000;

/// Waits for a stripe. A holder that died inside is replaced: its update may be half done, nothing more is lost.
status lock_stripe(window_core& w, stripe_lock& stripe) noexcept {
  if (try_lock_stripe(w, stripe)) return status::done;
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::stripe_waits);
  }
  bool mine = false;
  const auto ready = [&]() noexcept { return mine = stripe.owner.load() == 0 && try_lock_stripe(w, stripe); };
  const auto take_from_dead = [&]() noexcept {
    std::uint32_t owner = stripe.owner.load();
    if (owner != 0 && w.ctx->dead(static_cast<int>(owner - 1))) stripe.owner.compare_exchange(owner, 0);
    return status::done;
  };
  status s = status::done;
  long_wait whole(*w.ctx);
  for (std::int64_t pause_ns = stripe_pause_ns; s == status::done && !mine;
       pause_ns = std::min(2 * pause_ns, stripe_pause_max_ns)) {
    s = w.ctx->wait_at_most(pause_ns, ready, take_from_dead, &whole);
  }
  return s;
}

constexpr std::uint64_t bulk_elements = 8;  ///< more at once end the bias

bool anyone_updates(window_core& w) noexcept {
  const auto& places = w.team->places;
  for (std::size_t i = 0; i < places.size(); ++i) {
    const bool updates = w.block_at(places[i])->updating.load() != 0;
    if (updates && !w.ctx->dead(w.world_rank(static_cast<int>(w.first + i)))) return true;
  }
  return false;
}

/// Single elements go by their stripes from now on, and leave no mark.
void forget_bias(target_view& t) noexcept {
  if (t.elements != element_path::biased) return;
  t.elements = element_path::stripe;
  t.stored = t.stored_at_rest = 1;
}

/// True once nobody updates single elements of this target without their stripe. Never waits: who meets somebody in the
/// middle of an update does without, this time.
bool end_bias(window_core& w, target_view& t) noexcept {
  t.stripe_bias->store(stripes_ending);
  fence_for_others();
  if (anyone_updates(w)) return false;
  t.stripe_bias->store(stripes_needed);
  return true;
}

/// True if the holder of a stripe owns what it guards, so that plain instructions may update it.
bool owns_stripe(window_core& w, target_view& t, std::uint64_t elements) noexcept {
  const std::uint32_t bias = t.stripe_bias->load();
  const bool ends = elements > bulk_elements || bias == stripes_ending;
  if (bias != stripes_needed && !(ends && end_bias(w, t))) return false;
  forget_bias(t);
  return true;
}

void run_bulk(std::byte* at, const void* from, void* old, std::uint64_t count, operation op, element type) noexcept {
  const kernel_table& k = kernels_for_this_cpu();
#if defined(RMA_EXPLORE)
  // Others may run between its loads and its stores.
  const std::uint64_t bytes = count * rma::bytes_of(type);
  std::vector<std::byte> updated(at, at + bytes);
  k.bulk[slot(op)][slot(type)](updated.data(), from == at ? updated.data() : from, count);
  explore_point();
  if (old != nullptr) std::memcpy(old, at, bytes);
  std::memcpy(at, updated.data(), bytes);
  explore_point();
#else
  if (old != nullptr) {
    k.fetch_bulk[slot(op)][slot(type)](at, from, old, count);
  } else {
    k.bulk[slot(op)][slot(type)](at, from, count);
  }
#endif
}

/// By one locked instruction for each element. False if there are none for their type.
bool run_locked(std::byte* at, const void* from, void* old, std::uint64_t count, operation op, element type) noexcept {
  const kernel_table& k = kernels_for_this_cpu();
  const auto plain = k.atomic[slot(op)][slot(type)];
  const auto fetch = k.fetch_atomic[slot(op)][slot(type)];
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

/// So many stripes are held at once. All that can be had without waiting are taken one behind the other: each costs a
/// locked instruction, which otherwise waits for all that was stored under the one before it.
constexpr std::uint64_t stripes_at_once = 8;

stripe_lock& stripe_at(window_core& w, target_view& t, std::uint64_t index) noexcept {
  return t.stripes[index & w.stripe_mask];
}

status apply_striped(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                     std::uint64_t bytes, operation op, element type) noexcept {
  const std::uint64_t e = rma::bytes_of(type);
  while (bytes > 0) {
    const std::uint64_t first = offset >> stripe_shift;
    const std::uint64_t wanted = std::min(((offset + bytes - 1) >> stripe_shift) + 1, first + stripes_at_once);
    if (const status s = lock_stripe(w, stripe_at(w, t, first)); s != status::done) return s;
    std::uint64_t behind = first + 1;  // the last one held
    while (behind < wanted && try_lock_stripe(w, stripe_at(w, t, behind))) ++behind;
    // whole elements whose first byte lies in these stripes
    const std::uint64_t room = (behind << stripe_shift) - offset;
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
  stripe_lock& stripe = t.stripes[(o.offset >> stripe_shift) & w.stripe_mask];
  if (const status s = lock_stripe(w, stripe); s != status::done) return s;
  if (o.bytes > 8 || owns_stripe(w, t, 1)) {
    swap_owned(at, o.args->compare, o.args->origin, o.args->result, o.bytes);
  } else {
    swap_locked(at, *o.args, o.bytes);
  }
  stripe.owner.store(0);
  return status::done;
}

/// get_accumulate with up to three shapes: through contiguous copies, since it is rare.
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

status accumulate_shapes(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  status result = status::done;
  const auto* const from = static_cast<const std::byte*>(o.args->origin);
  for_each_pair(*o.target, *o.origin, [&](std::ptrdiff_t at, std::ptrdiff_t source, std::size_t bytes) {
    const status s = apply_range(w, t, base, o.offset + static_cast<std::uint64_t>(at), from + source, nullptr, bytes,
                                 o.args->op, o.args->type);
    if (s != status::done) result = s;
  });
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
  if (bytes % rma::bytes_of(type) != 0) return status::bad_type;  // a layout that cuts elements
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
  if (w.objections.load(std::memory_order_relaxed) != 0) return false;
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
    return "mapped; in an exclusive epoch nobody else updates";
  if (w.mode != accumulate_mode::element) return "mapped; striped: under the lock of a stripe";
  const kernel_table& k = kernels_for_this_cpu();
  const bool has_locked = a.kind == call::accumulate ? k.atomic[slot(a.op)][slot(a.type)] != nullptr
                                                     : k.fetch_atomic[slot(a.op)][slot(a.type)] != nullptr;
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
                          : accumulate_shapes(w, t, base, o);
    case call::compare_and_swap: return swap_direct(w, t, base, o);
    default:
      return o.contiguous ? apply_range(w, t, base, o.offset, a.origin, a.result, o.bytes, a.op, a.type)
                          : fetch_shapes(w, t, base, o);
  }
}

}  // namespace rma::detail
