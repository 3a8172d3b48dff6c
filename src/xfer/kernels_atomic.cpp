// SPDX-License-Identifier: Apache-2.0
// Atomic kernels: one locked instruction or compare-exchange loop per element. Vector instructions would not help.
#include <cstring>

#include "xfer/kernels_tables.hpp"

namespace rma::detail {
namespace {

template <class T>
T operand_at(const void* src, std::size_t i) noexcept {
  T value;
  std::memcpy(&value, static_cast<const unsigned char*>(src) + i * sizeof(T), sizeof(T));
  return value;
}

template <operation Op, class T>
void atomic_loop(void* dst, const void* src, std::size_t n) noexcept {
  auto* const to = static_cast<T*>(dst);
  for (std::size_t i = 0; i < n; ++i) apply_atomic<Op>(to + i, operand_at<T>(src, i));
}

template <operation Op, class T>
void fetch_atomic_loop(void* dst, const void* src, void* old, std::size_t n) noexcept {
  auto* const to = static_cast<T*>(dst);
  for (std::size_t i = 0; i < n; ++i) {
    T operand{};
    if constexpr (Op != operation::no_op) operand = operand_at<T>(src, i);  // no_op has no source
    const T before = fetch_apply_atomic<Op>(to + i, operand);
    std::memcpy(static_cast<unsigned char*>(old) + i * sizeof(T), &before, sizeof(T));
  }
}

/// Maps back to the type of users: atomic_op.hpp takes std::complex.
template <class T>
struct public_type {
  using type = T;
};
template <class Real>
struct public_type<complex_parts<Real>> {
  using type = std::complex<Real>;
};

struct atomic_maker {
  template <operation Op, element E, class T>
  static consteval apply_kernel make() {
    if constexpr (has_atomics<T>) return &atomic_loop<Op, typename public_type<T>::type>;
    return nullptr;
  }
};
struct fetch_atomic_maker {
  template <operation Op, element E, class T>
  static consteval fetch_kernel make() {
    if constexpr (has_atomics<T>) return &fetch_atomic_loop<Op, typename public_type<T>::type>;
    return nullptr;
  }
};

}  // namespace

constinit const apply_matrix atomic_kernels = fill<atomic_maker, apply_matrix>();
constinit const fetch_matrix fetch_atomic_kernels = fill<fetch_atomic_maker, fetch_matrix>();

}  // namespace rma::detail
