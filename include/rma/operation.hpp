// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operators and element types of accumulate, get_accumulate and fetch_and_op.
///
/// `rma::sum`, `rma::bxor`, ... are constants of distinct types, so that `win.accumulate(v, t, d, rma::sum)`
/// is resolved at compile time; each converts to the run-time `rma::operation`.
///
///   rma::Window<rma::ValueIndex<double>> best = ...;                     // a value and its place
///   best.accumulate({residual, cell}, 0, 0, rma::maxloc);                // the largest, and where it is
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rma {

/// An operator, chosen at run time.
enum class operation : std::uint8_t {
  sum,      ///< x + value
  prod,     ///< x * value
  min,      ///< the smaller one
  max,      ///< the larger one
  land,     ///< logical and
  lor,      ///< logical or
  lxor,     ///< logical exclusive or
  band,     ///< bitwise and
  bor,      ///< bitwise or
  bxor,     ///< bitwise exclusive or
  replace,  ///< the value
  no_op,    ///< x as it is
  minloc,   ///< the pair with the smaller value
  maxloc,   ///< the pair with the larger value
};
inline constexpr std::size_t operation_count = 14;  ///< number of operators

/// An element type, chosen at run time: i signed, u unsigned, f floating point, c complex, each with its bits (of a
/// complex number, of one part). f128 is long double, which has that many bits in memory. Names of two types are pairs.
enum class element : std::uint8_t {
  i8,        ///< std::int8_t
  i16,       ///< std::int16_t
  i32,       ///< std::int32_t
  i64,       ///< std::int64_t
  u8,        ///< std::uint8_t
  u16,       ///< std::uint16_t
  u32,       ///< std::uint32_t
  u64,       ///< std::uint64_t
  f32,       ///< float
  f64,       ///< double
  c32,       ///< std::complex<float>
  c64,       ///< std::complex<double>
  f128,      ///< long double
  c128,      ///< std::complex<long double>
  i16_i32,   ///< ValueIndex<short>
  i32_i32,   ///< ValueIndex<int>
  i64_i32,   ///< ValueIndex<std::int64_t>
  f32_i32,   ///< ValueIndex<float>
  f64_i32,   ///< ValueIndex<double>
  f128_i32,  ///< ValueIndex<long double>
  i64_i64,   ///< ValueIndex<std::int64_t, std::int64_t>
  f64_i64,   ///< ValueIndex<double, std::int64_t>
  f32_f32,   ///< ValueIndex<float, float>
  f64_f64,   ///< ValueIndex<double, double>
};
inline constexpr std::size_t element_count = 24;  ///< number of element types

/// A value and the index of its place, for minloc and maxloc: MPI's pair types, with the same place of each part. The
/// parts are those of an element type: (short, int, long or int64_t, float, double or long double; int), (int64_t;
/// int64_t), (double; int64_t), (float; float), (double; double).
template <class T, class Index = int>
struct ValueIndex {
  T value;      ///< value that is compared
  Index index;  ///< smallest index of equal values remains
  /// True if both parts are equal.
  friend bool operator==(const ValueIndex&, const ValueIndex&) = default;
};

/// An operator, chosen at compile time.
template <operation Op>
struct operation_tag {
  static constexpr operation value = Op;  ///< the operator, at run time
  /// The operator, at run time.
  constexpr operator operation() const noexcept { return Op; }  // NOLINT: meant to be implicit
};

inline constexpr operation_tag<operation::sum> sum{};          ///< x + value
inline constexpr operation_tag<operation::prod> prod{};        ///< x * value
inline constexpr operation_tag<operation::min> min{};          ///< the smaller one
inline constexpr operation_tag<operation::max> max{};          ///< the larger one
inline constexpr operation_tag<operation::land> land{};        ///< both are not 0
inline constexpr operation_tag<operation::lor> lor{};          ///< one of them is not 0
inline constexpr operation_tag<operation::lxor> lxor{};        ///< exactly one of them is not 0
inline constexpr operation_tag<operation::band> band{};        ///< bitwise and
inline constexpr operation_tag<operation::bor> bor{};          ///< bitwise or
inline constexpr operation_tag<operation::bxor> bxor{};        ///< bitwise exclusive or
inline constexpr operation_tag<operation::replace> replace{};  ///< the value: an atomic store
inline constexpr operation_tag<operation::no_op> no_op{};      ///< x as it is: an atomic load
inline constexpr operation_tag<operation::minloc> minloc{};    ///< the pair with the smaller value, see ValueIndex
inline constexpr operation_tag<operation::maxloc> maxloc{};    ///< the pair with the larger value, see ValueIndex

namespace detail {
/// The number of an element type that is no pair; -1 for other types.
template <class T>
constexpr int scalar_code() noexcept {
  using U = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<U, bool>) {
    return -1;
  } else if constexpr (std::is_integral_v<U> && sizeof(U) <= 8) {
    constexpr int log2_bytes = sizeof(U) == 1 ? 0 : sizeof(U) == 2 ? 1 : sizeof(U) == 4 ? 2 : 3;
    return (std::is_signed_v<U> ? 0 : 4) + log2_bytes;
  } else if constexpr (std::is_same_v<U, float>) {
    return static_cast<int>(element::f32);
  } else if constexpr (std::is_same_v<U, double>) {
    return static_cast<int>(element::f64);
  } else if constexpr (std::is_same_v<U, long double> && sizeof(U) == 16) {
    return static_cast<int>(element::f128);
  } else if constexpr (std::is_same_v<U, std::complex<float>>) {
    return static_cast<int>(element::c32);
  } else if constexpr (std::is_same_v<U, std::complex<double>>) {
    return static_cast<int>(element::c64);
  } else if constexpr (std::is_same_v<U, std::complex<long double>> && sizeof(U) == 32) {
    return static_cast<int>(element::c128);
  } else {
    return -1;
  }
}

/// The number of the pair of these element types; -1 if there is none.
constexpr int pair_code(int value, int index) noexcept {
  constexpr struct {
    element value, index, pair;
  } table[] = {{element::i16, element::i32, element::i16_i32}, {element::i32, element::i32, element::i32_i32},
               {element::i64, element::i32, element::i64_i32}, {element::f32, element::i32, element::f32_i32},
               {element::f64, element::i32, element::f64_i32}, {element::f128, element::i32, element::f128_i32},
               {element::i64, element::i64, element::i64_i64}, {element::f64, element::i64, element::f64_i64},
               {element::f32, element::f32, element::f32_f32}, {element::f64, element::f64, element::f64_f64}};
  for (const auto& each : table) {
    if (static_cast<int>(each.value) == value && static_cast<int>(each.index) == index)
      return static_cast<int>(each.pair);
  }
  return -1;
}

template <class T>
struct element_code_of {
  static constexpr int value = scalar_code<T>();
};
template <class T, class Index>
struct element_code_of<ValueIndex<T, Index>> {
  static constexpr int value = pair_code(scalar_code<T>(), scalar_code<Index>());
};

template <class T>
constexpr int element_code() noexcept {
  return element_code_of<std::remove_cv_t<T>>::value;
}
}  // namespace detail

/// Element types of accumulate: integers of 8 to 64 bits, float, double, long double, std::complex of these three, and
/// the pairs of ValueIndex.
template <class T>
concept accumulable = detail::element_code<T>() >= 0;

/// The element type T as a run-time value.
template <accumulable T>
inline constexpr element element_of = static_cast<element>(detail::element_code<T>());

/// Bytes of one element; 0 for an invalid element type.
constexpr std::size_t bytes_of(element e) noexcept {
  constexpr std::uint8_t bytes[element_count] = {1,  2,  4, 8, 1,  2, 4,  8,  4,  8,  8, 16,
                                                 16, 32, 8, 8, 16, 8, 16, 32, 16, 16, 8, 16};
  const auto number = static_cast<std::size_t>(e);
  return number < element_count ? bytes[number] : 0;
}

/// True for pairs, see ValueIndex.
constexpr bool is_pair(element e) noexcept { return e >= element::i16_i32 && e <= element::f64_f64; }

/// True if `op` is defined for `e`: logical and bitwise operators need integers, min and max an ordered type, minloc
/// and maxloc pairs, for which only replace and no_op are defined beside them. False for an invalid operator or element
/// type.
constexpr bool defined_for(operation op, element e) noexcept {
  if (e > element::f64_f64) return false;
  switch (op) {
    case operation::replace:
    case operation::no_op: return true;
    case operation::minloc:
    case operation::maxloc: return is_pair(e);
    case operation::sum:
    case operation::prod: return !is_pair(e);
    case operation::min:
    case operation::max: return !is_pair(e) && e != element::c32 && e != element::c64 && e != element::c128;
    case operation::land:
    case operation::lor:
    case operation::lxor:
    case operation::band:
    case operation::bor:
    case operation::bxor: return e <= element::u64;
  }
  return false;
}

/// The operator's name in settings, traces and errors.
std::string_view name_of(operation op) noexcept;
/// The element type's name in settings, traces and errors.
std::string_view name_of(element e) noexcept;

}  // namespace rma

#pragma GCC visibility pop
