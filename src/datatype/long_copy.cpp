// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "core/assert.hpp"
#include "datatype/string_copy.hpp"
#include "rma/detail/copy.hpp"

namespace rma::detail {

#if defined(__x86_64__)
namespace {

struct by_32 {
  using piece __attribute__((vector_size(32), aligned(1), may_alias)) = unsigned char;
};
struct by_64 {
  using piece __attribute__((vector_size(64), aligned(1), may_alias)) = unsigned char;
};

/// Longer copies are left to libc, which knows the sizes of the caches.
constexpr std::size_t cached_bytes_max = std::size_t{8} << 20;
/// Copies that do not fit the L1 cache prefetch this far ahead of their loads. For smaller ones that would only cost.
constexpr std::size_t asked_ahead_bytes = 512;
enum class asked { nothing, source, both };

/// Copies four to eight pieces: those at both ends, which overlap as far as needed. All are read before any is written.
template <class By>
[[gnu::always_inline]] inline void copy_few_pieces(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  using piece = typename By::piece;
  RMA_ASSERT(bytes >= 4 * sizeof(piece) && bytes <= 8 * sizeof(piece));
  const std::size_t rest = bytes - 4 * sizeof(piece);
  const piece* const head = reinterpret_cast<const piece*>(from);
  const piece* const tail = reinterpret_cast<const piece*>(from + rest);
  const piece a = head[0], b = head[1], c = head[2], d = head[3];
  const piece w = tail[0], x = tail[1], y = tail[2], z = tail[3];
  piece* const begin = reinterpret_cast<piece*>(to);
  piece* const end = reinterpret_cast<piece*>(to + rest);
  begin[0] = a;
  begin[1] = b;
  begin[2] = c;
  begin[3] = d;
  end[0] = w;
  end[1] = x;
  end[2] = y;
  end[3] = z;
}

/// Copies more than eight pieces. All but the first and the last four lie at multiples of their size in the destination
/// and are stored once, in ascending order: stores that cross lines or pages cost the most. A load just after a store
/// to the same offset of another page waits for it, so that some loads precede the stores. The ends overlap what lies
/// between them, and are loaded first: the destination may begin before the source and end in it.
template <class By, asked Asked>
[[gnu::always_inline]] inline void copy_pieces(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  using piece = typename By::piece;
  constexpr std::size_t at_once = 4 * sizeof(piece);
  RMA_ASSERT(bytes > 2 * at_once);
  const piece first = *reinterpret_cast<const piece*>(from);
  const piece* const last = reinterpret_cast<const piece*>(from + bytes - at_once);
  const piece w = last[0], x = last[1], y = last[2], z = last[3];
  std::byte* const end = to + bytes - at_once;
  std::byte* const begin = to;
  const std::size_t ahead = sizeof(piece) - reinterpret_cast<std::uintptr_t>(to) % sizeof(piece);
  from += ahead;
  for (to += ahead; to < end; to += at_once, from += at_once) {
    for (std::size_t line = 0; line < at_once; line += 64) {
      if constexpr (Asked != asked::nothing) __builtin_prefetch(from + asked_ahead_bytes + line);
      if constexpr (Asked == asked::both) __builtin_prefetch(to + asked_ahead_bytes + line, 1);
    }
    const piece* const source = reinterpret_cast<const piece*>(from);
    const piece a = source[0], b = source[1], c = source[2], d = source[3];
    piece* const line = reinterpret_cast<piece*>(to);
    line[0] = a;
    line[1] = b;
    line[2] = c;
    line[3] = d;
  }
  *reinterpret_cast<piece*>(begin) = first;
  piece* const rest = reinterpret_cast<piece*>(end);
  rest[0] = w;
  rest[1] = x;
  rest[2] = y;
  rest[3] = z;
}

template <class By, asked Asked>
[[gnu::always_inline]] inline void copy_by(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes <= 8 * sizeof(typename By::piece)) return copy_few_pieces<By>(to, from, bytes);
  if (bytes > first_cache_bytes) return copy_pieces<By, Asked>(to, from, bytes);
  copy_pieces<By, asked::nothing>(to, from, bytes);
}

[[gnu::target("avx2")]] void copy_by_32(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  copy_by<by_32, asked::source>(to, from, bytes);
}

[[gnu::target("avx512f")]] void copy_by_64(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  copy_by<by_64, asked::both>(to, from, bytes);
}

/// The destination must not begin inside the source: data that are still to be read would be overwritten.
void copy_ascending(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes > first_cache_bytes && has_fast_string_copy()) return copy_as_string(to, from, bytes);
  if (bytes >= 4 * sizeof(by_64::piece) && moves_64_at_once()) return copy_by_64(to, from, bytes);
  if (__builtin_cpu_supports("avx2") != 0) return copy_by_32(to, from, bytes);
  std::memmove(to, from, bytes);
}

constexpr std::size_t part_bytes = std::size_t{64} << 10;  ///< shorter strings would be slower

/// Copies the last part first, each in ascending order. Parts begin at multiples of their size in the destination, so
/// that elements are copied whole.
void copy_descending(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  while (bytes > 0) {
    const std::size_t behind = reinterpret_cast<std::uintptr_t>(to + bytes) % part_bytes;
    const std::size_t part = std::min(bytes, behind == 0 ? part_bytes : behind);
    bytes -= part;
    copy_bytes(to + bytes, from + bytes, part);  // the first and the last part may be short
  }
}

}  // namespace
#endif

void copy_long(void* to, const void* from, std::size_t bytes, copy_turn* turn) noexcept {
#if defined(__x86_64__)
  const auto apart = [bytes](const void* a, const void* b) noexcept {
    return reinterpret_cast<std::uintptr_t>(a) - reinterpret_cast<std::uintptr_t>(b) >= bytes;
  };
  if (bytes <= cached_bytes_max && apart(to, from)) {
    auto* const there = static_cast<std::byte*>(to);
    const auto* const here = static_cast<const std::byte*>(from);
    const bool turns = bytes >= turning_bytes_min() && turn != nullptr && apart(from, to);
    return turns && turn->take() ? copy_descending(there, here, bytes) : copy_ascending(there, here, bytes);
  }
#endif
  std::memmove(to, from, bytes);
}

}  // namespace rma::detail
