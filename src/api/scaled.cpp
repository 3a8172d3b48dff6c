// SPDX-License-Identifier: Apache-2.0
/// \file
/// Products for accumulates with a factor.
#include <complex>
#include <cstring>

#include "datatype/copy.hpp"
#include "rma/detail/window_ops.hpp"

namespace rma::detail {
namespace {

/// Whole numbers wrap around, as accumulate's sums do.
template <class T>
T product(T a, T b) noexcept {
  if constexpr (std::is_integral_v<T>) {
    return static_cast<T>(static_cast<std::uint64_t>(a) * static_cast<std::uint64_t>(b));
  } else {
    return a * b;
  }
}

/// By its formula: the operator looks for infinities, which takes a call for each element.
template <class T>
std::complex<T> product(std::complex<T> a, std::complex<T> b) noexcept {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

template <class T>
void scale_elements(const void* factor, std::byte* at, std::size_t bytes) noexcept {
  T by;
  std::memcpy(&by, factor, sizeof(T));
  for (std::size_t i = 0; i + sizeof(T) <= bytes; i += sizeof(T)) {
    T value;
    std::memcpy(&value, at + i, sizeof(T));
    value = product(value, by);
    std::memcpy(at + i, &value, sizeof(T));
  }
}

}  // namespace

status scale(element type, const void* factor, const void* from, const Layout& layout,
             std::span<std::byte> room) noexcept {
  const std::size_t bytes = layout.bytes();
  if (bytes_of(type) == 0 || bytes % bytes_of(type) != 0 || is_pair(type)) return status::bad_type;
  if (room.size() < bytes) return status::bad_size;
  pack(room.data(), from, layout, 0, bytes);
  std::byte* const at = room.data();
  switch (type) {
    case element::i8: scale_elements<std::int8_t>(factor, at, bytes); break;
    case element::i16: scale_elements<std::int16_t>(factor, at, bytes); break;
    case element::i32: scale_elements<std::int32_t>(factor, at, bytes); break;
    case element::i64: scale_elements<std::int64_t>(factor, at, bytes); break;
    case element::u8: scale_elements<std::uint8_t>(factor, at, bytes); break;
    case element::u16: scale_elements<std::uint16_t>(factor, at, bytes); break;
    case element::u32: scale_elements<std::uint32_t>(factor, at, bytes); break;
    case element::u64: scale_elements<std::uint64_t>(factor, at, bytes); break;
    case element::f32: scale_elements<float>(factor, at, bytes); break;
    case element::f64: scale_elements<double>(factor, at, bytes); break;
    case element::c32: scale_elements<std::complex<float>>(factor, at, bytes); break;
    case element::c64: scale_elements<std::complex<double>>(factor, at, bytes); break;
    case element::f128: scale_elements<long double>(factor, at, bytes); break;
    case element::c128: scale_elements<std::complex<long double>>(factor, at, bytes); break;
    default: break;
  }
  return status::done;
}

}  // namespace rma::detail
