// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies bytes to and from memory that other ranks may access meanwhile. A single aligned word takes one access, as in
/// the inlined calls; other lengths use copy_bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "rma/detail/copy.hpp"
#include "rma/detail/word.hpp"

namespace rma::detail {

template <class T>
bool is_word(const std::byte* at, std::size_t bytes) noexcept {
  return bytes == sizeof(T) && reinterpret_cast<std::uintptr_t>(at) % sizeof(T) == 0;
}

inline void store_bytes(std::byte* at, const void* from, std::size_t bytes, copy_turn* turn = nullptr) noexcept {
  const auto word = [&]<class T>(T value) noexcept {
    std::memcpy(&value, from, sizeof value);
    store_value(at, value);
  };
  if (is_word<std::uint64_t>(at, bytes)) return word(std::uint64_t{});
  if (is_word<std::uint32_t>(at, bytes)) return word(std::uint32_t{});
  copy_bytes(at, from, bytes, turn);
}

inline void load_bytes(void* to, const std::byte* at, std::size_t bytes, copy_turn* turn = nullptr) noexcept {
  const auto word = [&]<class T>(T value) noexcept {
    value = load_value<T>(at);
    std::memcpy(to, &value, sizeof value);
  };
  if (is_word<std::uint64_t>(at, bytes)) return word(std::uint64_t{});
  if (is_word<std::uint32_t>(at, bytes)) return word(std::uint32_t{});
  copy_bytes(to, at, bytes, turn);
}

}  // namespace rma::detail
