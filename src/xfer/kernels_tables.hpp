// SPDX-License-Identifier: Apache-2.0
/// \file
/// The tables that the kernel sources define, and their generation at compile time.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rma/detail/atomic_op.hpp"
#include "xfer/kernels.hpp"

namespace rma::detail {

struct apply_matrix {
  apply_row rows[operation_count];
};
struct fetch_matrix {
  fetch_row rows[operation_count];
};

namespace baseline {
extern const apply_matrix bulk;
extern const fetch_matrix fetch_bulk;
}  // namespace baseline
namespace avx2 {
extern const apply_matrix bulk;
extern const fetch_matrix fetch_bulk;
}  // namespace avx2
namespace avx512 {
extern const apply_matrix bulk;
extern const fetch_matrix fetch_bulk;
}  // namespace avx512
extern const apply_matrix atomic_kernels;
extern const fetch_matrix fetch_atomic_kernels;

/// The C++ type of an element; complex ones without the functions of std::complex.
template <element E>
struct type_of_element;
template <>
struct type_of_element<element::i8> {
  using type = std::int8_t;
};
template <>
struct type_of_element<element::i16> {
  using type = std::int16_t;
};
template <>
struct type_of_element<element::i32> {
  using type = std::int32_t;
};
template <>
struct type_of_element<element::i64> {
  using type = std::int64_t;
};
template <>
struct type_of_element<element::u8> {
  using type = std::uint8_t;
};
template <>
struct type_of_element<element::u16> {
  using type = std::uint16_t;
};
template <>
struct type_of_element<element::u32> {
  using type = std::uint32_t;
};
template <>
struct type_of_element<element::u64> {
  using type = std::uint64_t;
};
template <>
struct type_of_element<element::f32> {
  using type = float;
};
template <>
struct type_of_element<element::f64> {
  using type = double;
};
template <>
struct type_of_element<element::c32> {
  using type = complex_parts<float>;
};
template <>
struct type_of_element<element::c64> {
  using type = complex_parts<double>;
};
template <>
struct type_of_element<element::f128> {
  using type = long double;
};
template <>
struct type_of_element<element::c128> {
  using type = complex_parts<long double>;
};
template <>
struct type_of_element<element::i16_i32> {
  using type = ValueIndex<std::int16_t, std::int32_t>;
};
template <>
struct type_of_element<element::i32_i32> {
  using type = ValueIndex<std::int32_t, std::int32_t>;
};
template <>
struct type_of_element<element::i64_i32> {
  using type = ValueIndex<std::int64_t, std::int32_t>;
};
template <>
struct type_of_element<element::f32_i32> {
  using type = ValueIndex<float, std::int32_t>;
};
template <>
struct type_of_element<element::f64_i32> {
  using type = ValueIndex<double, std::int32_t>;
};
template <>
struct type_of_element<element::f128_i32> {
  using type = ValueIndex<long double, std::int32_t>;
};
template <>
struct type_of_element<element::i64_i64> {
  using type = ValueIndex<std::int64_t, std::int64_t>;
};
template <>
struct type_of_element<element::f64_i64> {
  using type = ValueIndex<double, std::int64_t>;
};
template <>
struct type_of_element<element::f32_f32> {
  using type = ValueIndex<float, float>;
};
template <>
struct type_of_element<element::f64_f64> {
  using type = ValueIndex<double, double>;
};

template <class Maker, class Matrix, operation Op, element E>
consteval void fill_from(Matrix& matrix) {
  if constexpr (defined_for(Op, E)) {
    using type = typename type_of_element<E>::type;
    static_assert(sizeof(type) == bytes_of(E));
    matrix.rows[index_of(Op)][index_of(E)] = Maker::template make<Op, E, type>();
  }
  if constexpr (index_of(E) + 1 < element_count) {
    fill_from<Maker, Matrix, Op, static_cast<element>(index_of(E) + 1)>(matrix);
  } else if constexpr (index_of(Op) + 1 < operation_count) {
    fill_from<Maker, Matrix, static_cast<operation>(index_of(Op) + 1), element::i8>(matrix);
  }
}

/// Every defined pair is Maker::make<Op, E, T>(), which gives a function.
template <class Maker, class Matrix>
consteval Matrix fill() {
  Matrix matrix{};
  fill_from<Maker, Matrix, operation::sum, element::i8>(matrix);
  return matrix;
}

}  // namespace rma::detail
