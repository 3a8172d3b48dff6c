// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies of contiguous bytes whose number is known only at run time. docs/decisions/0007-copies.md says why not
/// memcpy.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#pragma GCC visibility push(default)

namespace rma::detail {

/// 16 bytes of any type at any address, in a register. Not for `auto`: it would deduce a type that must be aligned.
using lane __attribute__((vector_size(16), aligned(1), may_alias)) = unsigned char;

/// Longer copies are worth a call.
inline constexpr std::size_t short_copy_max = 128;

/// Which way the next long copy of a window goes: back and forth, since what the last one used last is still in the
/// caches if the same memory comes again.
class copy_turn {
 public:
  /// True if it goes backwards this time. The answer is of use only, so that threads need not agree on it.
  bool take() noexcept {
    const std::atomic_ref<std::uint8_t> backwards(backwards_);
    const std::uint8_t now = backwards.load(std::memory_order_relaxed);
    backwards.store(now ^ 1, std::memory_order_relaxed);
    return now != 0;
  }

 private:
  std::uint8_t backwards_ = 0;
};

/// Like std::memmove. Whose turn it is, if that matters to the caller.
void copy_long(void* to, const void* from, std::size_t bytes, copy_turn* turn) noexcept;

/// The first and the last sizeof(Piece) bytes, which overlap as far as needed.
template <class Piece>
[[gnu::always_inline]] inline void copy_two(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  Piece head;
  Piece tail;
  std::memcpy(&head, from, sizeof head);
  std::memcpy(&tail, from + bytes - sizeof tail, sizeof tail);
  std::memcpy(to, &head, sizeof head);
  std::memcpy(to + bytes - sizeof tail, &tail, sizeof tail);
}

/// The same with as many lanes at each end as there are numbers. All is read before anything is written.
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

/// Up to `short_copy_max` bytes.
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

/// Like std::memmove. An element of up to 8 bytes at a multiple of its size is never seen in parts.
inline void copy_bytes(void* to, const void* from, std::size_t bytes, copy_turn* turn = nullptr) noexcept {
  if (bytes > short_copy_max) return copy_long(to, from, bytes, turn);
  copy_short(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
}

}  // namespace rma::detail

#pragma GCC visibility pop
