// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of contiguous bytes whose number is known only at run time. docs/decisions/0007-copies.md explains why they
/// do not use memcpy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#pragma GCC visibility push(default)

namespace rma::detail {

/// A register of 16 bytes of any type at any address. Do not use `auto` with it: that deduces an aligned type.
using lane __attribute__((vector_size(16), aligned(1), may_alias)) = unsigned char;

/// Longer copies use a function call.
inline constexpr std::size_t short_copy_max = 128;

/// The direction of a window's next long copy. Directions alternate: if the same memory is copied again, the bytes that
/// the last copy touched last are still in the caches.
class copy_turn {
 public:
  /// True if the next copy goes backwards. This only affects speed, so threads need not agree on it.
  bool take() noexcept {
    const std::atomic_ref<std::uint8_t> backwards(backwards_);
    const std::uint8_t now = backwards.load(std::memory_order_relaxed);
    backwards.store(now ^ 1, std::memory_order_relaxed);
    return now != 0;
  }

 private:
  std::uint8_t backwards_ = 0;
};

/// As std::memmove. `turn` chooses the direction; it may be null.
void copy_long(void* to, const void* from, std::size_t bytes, copy_turn* turn) noexcept;

/// Copies the first and the last sizeof(Piece) bytes, which may overlap.
template <class Piece>
[[gnu::always_inline]] inline void copy_two(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  Piece head;
  Piece tail;
  std::memcpy(&head, from, sizeof head);
  std::memcpy(&tail, from + bytes - sizeof tail, sizeof tail);
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + bytes - sizeof tail, &tail, sizeof tail);
}

/// As copy_ends with sizeof...(I) lanes at each end. It reads all bytes before it writes any.
template <std::size_t... I>
[[gnu::always_inline]] inline void copy_ends(std::byte* to, const std::byte* from, std::size_t bytes,
                                             std::index_sequence<I...>) noexcept {
  constexpr std::size_t end_bytes = sizeof...(I) * sizeof(lane);
  const lane* const head_from = reinterpret_cast<const lane*>(from);
  const lane* const tail_from = reinterpret_cast<const lane*>(from + bytes - end_bytes);
  const lane head[] = {head_from[I]...};
  const lane tail[] = {tail_from[I]...};
  lane* const head_to = reinterpret_cast<lane*>(to);
  lane* const tail_to = reinterpret_cast<lane*>(to + bytes - end_bytes);
  ((head_to[I] = head[I]), ...);
  ((tail_to[I] = tail[I]), ...);
}

/// Copies up to `short_copy_max` bytes.
[[gnu::always_inline]] inline void copy_short(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes > 64) {
    copy_ends(to, from, bytes, std::make_index_sequence<4>());
  } else if (bytes > 32) {
    copy_ends(to, from, bytes, std::make_index_sequence<2>());
  } else if (bytes >= 16) {
    copy_ends(to, from, bytes, std::make_index_sequence<1>());
  } else if (bytes >= 8) {
    copy_two<std::uint64_t>(to, from, bytes);
  } else if (bytes >= 4) {
    copy_two<std::uint32_t>(to, from, bytes);
  } else if (bytes >= 2) {
    copy_two<std::uint16_t>(to, from, bytes);
  } else if (bytes == 1) {
    *to = *from;
  }
}

/// As std::memmove. An aligned element of up to 8 bytes is written by one store, so that no reader sees it in part.
inline void copy_bytes(void* to, const void* from, std::size_t bytes, copy_turn* turn = nullptr) noexcept {
  if (bytes > short_copy_max) return copy_long(to, from, bytes, turn);
  copy_short(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

}  // namespace rma::detail

#pragma GCC visibility pop
