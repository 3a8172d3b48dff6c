// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "direct": the target's memory is mapped here.
///
/// Atomic updates, by the window's mode (DESIGN: one owner of atomicity per window):
///   element   every element by one locked instruction or a compare-exchange loop
///   striped   the stripe's lock around a SIMD kernel; an exclusive epoch needs no stripes
#include <algorithm>
#include <cstring>

#include "core/bytes.hpp"
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

constexpr std::uint64_t stripe_bytes = std::uint64_t{1} << stripe_shift;

std::size_t slot(operation op) noexcept { return static_cast<std::size_t>(op); }
std::size_t slot(element e) noexcept { return static_cast<std::size_t>(e); }

/// Waits for a stripe. A holder that died inside is replaced: its update may be half done, nothing more is lost.
status lock_stripe(window_core& w, stripe_lock& stripe) noexcept {
  if (try_lock_stripe(w, stripe)) return status::done;
  {
    const std::lock_guard guard(w.ctx->lock());
    w.ctx->count(counter::stripe_waits);
  }
  return w.ctx->wait_until([&]() noexcept { return stripe.owner.load() == 0 && try_lock_stripe(w, stripe); },
                           [&]() noexcept {
                             std::uint32_t owner = stripe.owner.load();
                             if (owner != 0 && w.ctx->dead(static_cast<int>(owner - 1)))
                               stripe.owner.compare_exchange(owner, 0);
                             return status::done;
                           });
}

void run_bulk(std::byte* at, const void* from, void* old, std::uint64_t count, operation op, element type) noexcept {
  const kernel_table& k = kernels_for_this_cpu();
  if (old != nullptr) {
    k.fetch_bulk[slot(op)][slot(type)](at, from, old, count);
  } else {
    k.bulk[slot(op)][slot(type)](at, from, count);
  }
}

const void* advance(const void* p, std::uint64_t bytes) noexcept {
  return p == nullptr ? nullptr : static_cast<const std::byte*>(p) + bytes;
}
void* advance(void* p, std::uint64_t bytes) noexcept {
  return p == nullptr ? nullptr : static_cast<std::byte*>(p) + bytes;
}

status apply_striped(window_core& w, target_view& t, std::byte* base, std::uint64_t offset, const void* from, void* old,
                     std::uint64_t bytes, operation op, element type) noexcept {
  const std::uint64_t e = rma::bytes_of(type);
  while (bytes > 0) {
    // whole elements whose first byte lies in this stripe
    const std::uint64_t room = stripe_bytes - (offset & (stripe_bytes - 1));
    const std::uint64_t part = std::min(bytes, (room + e - 1) / e * e);
    stripe_lock& stripe = t.stripes[(offset >> stripe_shift) & w.stripe_mask];
    if (const status s = lock_stripe(w, stripe); s != status::done) return s;
    run_bulk(place_of(base, offset), from == nullptr ? place_of(base, offset) : from, old, part / e, op, type);
    stripe.owner.store(0);
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

status swap_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  std::byte* const at = place_of(base, o.offset);
  if (w.mode == accumulate_mode::element) {
    switch (o.bytes) {
      case 1: swap_element<std::uint8_t>(at, o.args->compare, o.args->origin, o.args->result); break;
      case 2: swap_element<std::uint16_t>(at, o.args->compare, o.args->origin, o.args->result); break;
      case 4: swap_element<std::uint32_t>(at, o.args->compare, o.args->origin, o.args->result); break;
      default: swap_element<std::uint64_t>(at, o.args->compare, o.args->origin, o.args->result); break;
    }
    return status::done;
  }
  stripe_lock& stripe = t.stripes[(o.offset >> stripe_shift) & w.stripe_mask];
  if (const status s = lock_stripe(w, stripe); s != status::done) return s;
  swap_owned(at, o.args->compare, o.args->origin, o.args->result, o.bytes);
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
  if (t.held == static_cast<std::uint8_t>(lock_kind::exclusive)) {
    run_bulk(place_of(base, offset), from == nullptr ? place_of(base, offset) : from, old, bytes / rma::bytes_of(type),
             op, type);
    return status::done;
  }
  if (w.mode == accumulate_mode::element) {
    const kernel_table& k = kernels_for_this_cpu();
    const auto plain = k.atomic[slot(op)][slot(type)];
    const auto fetch = k.fetch_atomic[slot(op)][slot(type)];
    const std::uint64_t count = bytes / rma::bytes_of(type);
    const void* const source = from == nullptr ? place_of(base, offset) : from;
    if (old == nullptr && plain != nullptr) return plain(place_of(base, offset), source, count), status::done;
    if (old != nullptr && fetch != nullptr) return fetch(place_of(base, offset), source, old, count), status::done;
  }
  return apply_striped(w, t, base, offset, from, old, bytes, op, type);
}

status run_direct(window_core& w, target_view& t, std::byte* base, const checked_operation& o) noexcept {
  const operation_args& a = *o.args;
  std::byte* const at = place_of(base, o.offset);
  switch (a.kind) {
    case call::put:
      if (o.contiguous) {
        store_bytes(at, a.origin, o.bytes);
      } else {
        copy(at, *o.target, a.origin, *o.origin);
      }
      return status::done;
    case call::get:
      if (o.contiguous) {
        load_bytes(a.result, at, o.bytes);
      } else {
        copy(a.result, *o.origin, at, *o.target);
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
