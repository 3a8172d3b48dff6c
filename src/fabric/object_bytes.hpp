// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

namespace rma::fabric {

/// The bytes of an object as they are sent. Padding would leave the process uninitialized: name it, and set it to 0.
template <class T>
std::span<const std::byte> bytes_of(const T& what) noexcept {
  static_assert(std::has_unique_object_representations_v<T>, "a type with padding must not be sent");
  return std::as_bytes(std::span(&what, 1));
}

}  // namespace rma::fabric
