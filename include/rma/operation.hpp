// SPDX-License-Identifier: Apache-2.0
/// \file
/// Operators and element types of accumulate, get_accumulate and fetch_and_op.
///
/// `rma::sum`, `rma::bxor`, ... are constants of distinct types, so that `win.accumulate(v, t, d, rma::sum)`
/// is resolved at compile time; each converts to the run-time `rma::operation`.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#pragma GCC visibility push(default)

namespace rma {

/// An operator, chosen at run time.
enum class operation : std::uint8_t { sum, prod, min, max, land, lor, lxor, band, bor, bxor, replace, no_op };
inline constexpr std::size_t operation_count = 12;  ///< number of operators

/// An element type, chosen at run time.
enum class element : std::uint8_t { i8, i16, i32, i64, u8, u16, u32, u64, f32, f64, c32, c64 };
inline constexpr std::size_t element_count = 12;  ///< number of element types

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

namespace detail {
template <class T>
constexpr int element_code() noexcept {
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
  } else if constexpr (std::is_same_v<U, std::complex<float>>) {
    return static_cast<int>(element::c32);
  } else if constexpr (std::is_same_v<U, std::complex<double>>) {
    return static_cast<int>(element::c64);
  } else {
    return -1;
  }
}
}  // namespace detail

/// Element types of accumulate: integers of 8 to 64 bits, float, double, and std::complex of both.
template <class T>
concept accumulable = detail::element_code<T>() >= 0;

/// The element type T as a run-time value.
template <accumulable T>
inline constexpr element element_of = static_cast<element>(detail::element_code<T>());

/// Bytes of one element; 0 for an invalid element type.
constexpr std::size_t bytes_of(element e) noexcept {
  constexpr std::uint8_t bytes[element_count] = {1, 2, 4, 8, 1, 2, 4, 8, 4, 8, 8, 16};
  const auto number = static_cast<std::size_t>(e);
  return number < element_count ? bytes[number] : 0;
}

/// True if `op` is defined for `e`: logical and bitwise operators need integers, min and max an ordered type. False for
/// an invalid operator or element type.
constexpr bool defined_for(operation op, element e) noexcept {
  if (e > element::c64) return false;
  switch (op) {
    case operation::sum:
    case operation::prod:
    case operation::replace:
    case operation::no_op: return true;
    case operation::min:
    case operation::max: return e != element::c32 && e != element::c64;
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
