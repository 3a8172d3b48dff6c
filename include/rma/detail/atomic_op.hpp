// SPDX-License-Identifier: Apache-2.0
/// \file
/// The operators on one element, plain (`apply`) and atomic (`apply_atomic`, `fetch_apply_atomic`).
///
/// Integers wrap, logical operators give 0 or 1, min and max keep the old value unless the operand is strictly
/// smaller or greater (so an existing NaN stays); minloc and maxloc also take an equal one with a smaller index. Atomic
/// forms are sequentially consistent; where min or max change
/// nothing they only load.
///
/// `apply` is always inlined and calls no function of the standard library that the linker could merge, because the
/// library compiles it for several instruction sets.
#pragma once

#include <atomic>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma::detail {

/// The bytes of std::complex, without its member functions.
template <class Real>
struct complex_parts {
  Real re;
  Real im;
};

template <class T>
struct parts_of {
  using type = void;
};
template <class Real>
struct parts_of<std::complex<Real>> {
  using type = complex_parts<Real>;
};

template <class T>
inline constexpr bool is_parts = false;
template <class Real>
inline constexpr bool is_parts<complex_parts<Real>> = true;

template <class T>
inline constexpr bool is_value_index = false;
template <class T, class Index>
inline constexpr bool is_value_index<ValueIndex<T, Index>> = true;

/// True if one atomic instruction, or a loop of them, updates an element. The parts of a pair of 8 bytes need not be
/// aligned for one.
template <class T>
inline constexpr bool has_atomics = sizeof(T) <= 8 && !is_value_index<T>;

/// The unsigned type of at least 32 bits for arithmetic that wraps: it is never promoted to a signed type.
template <class T>
using wrapping = std::conditional_t<(sizeof(T) <= 4), std::uint32_t, std::uint64_t>;

template <operation Op, class T>
[[gnu::always_inline]] inline T apply_integer(T old, T operand) noexcept {
  using U = wrapping<T>;
  if constexpr (Op == operation::sum) return static_cast<T>(static_cast<U>(old) + static_cast<U>(operand));
  if constexpr (Op == operation::prod) return static_cast<T>(static_cast<U>(old) * static_cast<U>(operand));
  if constexpr (Op == operation::land) return static_cast<T>((old != 0) & (operand != 0));
  if constexpr (Op == operation::lor) return static_cast<T>((old != 0) | (operand != 0));
  if constexpr (Op == operation::lxor) return static_cast<T>((old != 0) ^ (operand != 0));
  if constexpr (Op == operation::band) return static_cast<T>(old & operand);
  if constexpr (Op == operation::bor) return static_cast<T>(old | operand);
  if constexpr (Op == operation::bxor) return static_cast<T>(old ^ operand);
}

template <operation Op, class P>
[[gnu::always_inline]] inline P apply_parts(P old, P operand) noexcept {
  if constexpr (Op == operation::sum) return P{old.re + operand.re, old.im + operand.im};
  if constexpr (Op == operation::prod) {
    return P{old.re * operand.re - old.im * operand.im, old.re * operand.im + old.im * operand.re};
  }
}

template <operation Op, class P>
[[gnu::always_inline]] inline P apply_pair(P old, P operand) noexcept {
  const bool better = Op == operation::minloc ? operand.value < old.value : old.value < operand.value;
  const bool first = operand.value == old.value && operand.index < old.index;
  return better || first ? operand : old;
}

/// The new value of an element. T is an accumulable type or complex_parts.
template <operation Op, class T>
[[gnu::always_inline]] inline T apply(T old, T operand) noexcept {
  if constexpr (Op == operation::replace) {
    return operand;
  } else if constexpr (Op == operation::no_op) {
    return old;
  } else if constexpr (Op == operation::min) {
    return operand < old ? operand : old;
  } else if constexpr (Op == operation::max) {
    return old < operand ? operand : old;
  } else if constexpr (std::is_integral_v<T>) {
    return apply_integer<Op>(old, operand);
  } else if constexpr (is_value_index<T>) {
    return apply_pair<Op>(old, operand);
  } else if constexpr (is_parts<T>) {
    return apply_parts<Op>(old, operand);
  } else if constexpr (!std::is_void_v<typename parts_of<T>::type>) {
    using P = typename parts_of<T>::type;
    return __builtin_bit_cast(T, apply_parts<Op>(__builtin_bit_cast(P, old), __builtin_bit_cast(P, operand)));
  } else if constexpr (Op == operation::sum) {
    return old + operand;
  } else {
    static_assert(Op == operation::prod, "this operator needs integers");
    return old * operand;
  }
}

/// True if `apply` would return `old`.
template <operation Op, class T>
[[gnu::always_inline]] inline bool changes_nothing(T old, T operand) noexcept {
  if constexpr (Op == operation::min) {
    return !(operand < old);
  } else if constexpr (Op == operation::max) {
    return !(old < operand);
  } else {
    return false;
  }
}

/// std::complex<float> is 8 bytes at an alignment of 4, for which some compilers make calls of libatomic. Its atomic
/// forms work on the bits instead.
template <class T>
inline constexpr bool atomic_by_bits = alignof(T) < sizeof(T);
using atomic_bits __attribute__((may_alias)) = std::uint64_t;

/// Stores `desired` in *at if *at equals `expected` bit by bit, else loads *at into `expected`.
template <class T>
inline bool compare_exchange_bits(T* at, std::uint64_t& expected, std::uint64_t desired) noexcept {
  static_assert(sizeof(T) == sizeof(std::uint64_t));
  return __atomic_compare_exchange_n(reinterpret_cast<atomic_bits*>(at), &expected, desired, false, __ATOMIC_SEQ_CST,
                                     __ATOMIC_SEQ_CST);
}

template <operation Op, class T>
inline T fetch_apply_bits(T* at, T operand) noexcept {
  auto* const element = reinterpret_cast<atomic_bits*>(at);
  if constexpr (Op == operation::replace) {
    const std::uint64_t desired = __builtin_bit_cast(std::uint64_t, operand);
    return __builtin_bit_cast(T, static_cast<std::uint64_t>(__atomic_exchange_n(element, desired, __ATOMIC_SEQ_CST)));
  } else {
    std::uint64_t old = __atomic_load_n(element, __ATOMIC_SEQ_CST);
    if constexpr (Op == operation::no_op) return __builtin_bit_cast(T, old);
    std::uint64_t wanted = 0;
    do {
      wanted = __builtin_bit_cast(std::uint64_t, apply<Op>(__builtin_bit_cast(T, old), operand));
    } while (!compare_exchange_bits(at, old, wanted));
    return __builtin_bit_cast(T, old);
  }
}

/// The compare-exchange loop, for operators without a single instruction.
template <operation Op, class T>
inline T fetch_apply_loop(T* at, T operand) noexcept {
  const std::atomic_ref<T> element(*at);
  T old = element.load();
  while (!changes_nothing<Op>(old, operand) && !element.compare_exchange_weak(old, apply<Op>(old, operand))) {}
  return old;
}

/// Replaces *at by apply<Op>(*at, operand) atomically and returns the old value. *at is aligned to its size, which
/// is at most 8 bytes (complex<float> needs 8).
template <operation Op, accumulable T>
inline T fetch_apply_atomic(T* at, T operand) noexcept {
  static_assert(has_atomics<T>, "wide elements and pairs have no lock-free atomics");
  if constexpr (atomic_by_bits<T>) {
    return fetch_apply_bits<Op>(at, operand);
  } else if constexpr (Op == operation::replace) {
    return std::atomic_ref<T>(*at).exchange(operand);
  } else if constexpr (Op == operation::no_op) {
    return std::atomic_ref<T>(*at).load();
  } else if constexpr (std::is_integral_v<T> && Op == operation::sum) {
    return std::atomic_ref<T>(*at).fetch_add(operand);
  } else if constexpr (Op == operation::band) {
    return std::atomic_ref<T>(*at).fetch_and(operand);
  } else if constexpr (Op == operation::bor) {
    return std::atomic_ref<T>(*at).fetch_or(operand);
  } else if constexpr (Op == operation::bxor) {
    return std::atomic_ref<T>(*at).fetch_xor(operand);
  } else {
    return fetch_apply_loop<Op>(at, operand);
  }
}

/// As fetch_apply_atomic without the old value: `lock add` instead of `lock xadd`, `lock xor` instead of a loop.
template <operation Op, accumulable T>
inline void apply_atomic(T* at, T operand) noexcept {
  if constexpr (Op != operation::no_op) static_cast<void>(fetch_apply_atomic<Op>(at, operand));
}

/// Replaces *at by `desired` if it equals `expected` bit by bit, and returns the old value. Alignment as above.
template <accumulable T>
inline T compare_swap_atomic(T* at, T expected, T desired) noexcept {
  static_assert(has_atomics<T>, "wide elements and pairs have no lock-free atomics");
  if constexpr (atomic_by_bits<T>) {
    std::uint64_t found = __builtin_bit_cast(std::uint64_t, expected);
    compare_exchange_bits(at, found, __builtin_bit_cast(std::uint64_t, desired));
    return __builtin_bit_cast(T, found);
  } else {
    std::atomic_ref<T>(*at).compare_exchange_strong(expected, desired);
    return expected;
  }
}

}  // namespace rma::detail

#pragma GCC visibility pop
