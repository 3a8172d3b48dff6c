// SPDX-License-Identifier: Apache-2.0
/// \file
/// Updates of a single element whose type and operator are known only at run time, in a window of bytes: the functions
/// that typed windows inline (rma/detail/window_ops.hpp), chosen from a table.
#include <array>
#include <complex>
#include <cstdint>
#include <cstring>
#include <utility>

#include "rma/detail/window_ops.hpp"

namespace rma::detail {
namespace {

/// True if the target has an aligned element of T there that may be updated now.
template <class T>
[[gnu::always_inline]] inline bool may_update(const window_view& window, int target, std::uint64_t at) noexcept {
  const target_view* const t = view_of(window, target);
  return t != nullptr && t->atomic_limit >= sizeof(T) && at <= t->atomic_limit - sizeof(T) && at % sizeof(T) == 0 &&
         reinterpret_cast<std::uintptr_t>(t->base) % sizeof(T) == 0;
}

using fetch_function = bool(const window_view& window, const void* value, void* old, int target,
                            std::uint64_t at) noexcept;

template <class T, operation Op>
bool fetch(const window_view& window, const void* value, void* old, int target, std::uint64_t at) noexcept {
  if constexpr (defined_for(Op, element_of<T>)) {
    if (!may_update<T>(window, target, at)) return false;
    T operand{};
    T found{};
    if constexpr (Op != operation::no_op) std::memcpy(&operand, value, sizeof operand);
    if (!fast_fetch<Op>(window, operand, found, target, at / sizeof(T))) return false;
    if (old != nullptr) std::memcpy(old, &found, sizeof found);
    return true;
  } else {
    return false;  // the general path reports bad_type
  }
}

template <class T, std::size_t... Op>
constexpr std::array<fetch_function*, sizeof...(Op)> row(std::index_sequence<Op...>) noexcept {
  return {&fetch<T, static_cast<operation>(Op)>...};
}

template <class... T>
constexpr auto table() noexcept {
  return std::array{row<T>(std::make_index_sequence<operation_count>())...};
}

/// In the order of `element`.
constexpr auto fetches =
    table<std::int8_t, std::int16_t, std::int32_t, std::int64_t, std::uint8_t, std::uint16_t, std::uint32_t,
          std::uint64_t, float, double, std::complex<float>, std::complex<double>, long double,
          std::complex<long double>, ValueIndex<std::int16_t>, ValueIndex<std::int32_t>, ValueIndex<std::int64_t>,
          ValueIndex<float>, ValueIndex<double>, ValueIndex<long double>, ValueIndex<std::int64_t, std::int64_t>,
          ValueIndex<double, std::int64_t>, ValueIndex<float, float>, ValueIndex<double, double>>();
static_assert(fetches.size() == element_count);

/// Signed and unsigned integers of one length compare alike.
template <class T>
bool swap(const window_view& window, const void* expected, const void* desired, void* old, int target,
          std::uint64_t at) noexcept {
  if (!may_update<T>(window, target, at)) return false;
  T wanted{};
  T stored{};
  T found{};
  std::memcpy(&wanted, expected, sizeof wanted);
  std::memcpy(&stored, desired, sizeof stored);
  if (!fast_swap(window, wanted, stored, found, target, at / sizeof(T))) return false;
  std::memcpy(old, &found, sizeof found);
  return true;
}

}  // namespace

bool fetch_one(const window_view& window, element type, operation op, const void* value, void* old, int target,
               std::uint64_t at) noexcept {
  const auto t = static_cast<std::size_t>(type);
  const auto o = static_cast<std::size_t>(op);
  return t < element_count && o < operation_count && fetches[t][o](window, value, old, target, at);
}

bool swap_one(const window_view& window, element type, const void* expected, const void* desired, void* old, int target,
              std::uint64_t at) noexcept {
  if (type > element::u64) return false;
  switch (bytes_of(type)) {
    case 1: return swap<std::uint8_t>(window, expected, desired, old, target, at);
    case 2: return swap<std::uint16_t>(window, expected, desired, old, target, at);
    case 4: return swap<std::uint32_t>(window, expected, desired, old, target, at);
    default: return swap<std::uint64_t>(window, expected, desired, old, target, at);
  }
}

}  // namespace rma::detail
