// SPDX-License-Identifier: Apache-2.0
#include "rma/detail/copy.hpp"

namespace rma::detail {

#if defined(__x86_64__)
namespace {

using wide __attribute__((vector_size(32), aligned(1), may_alias)) = unsigned char;

/// Longer copies leave the caches; libc knows how large those are.
constexpr std::size_t cached_bytes_max = std::size_t{8} << 20;

/// Whole aligned pieces of the destination, ascending. Stores that cross lines or pages cost the most of all; and a
/// load just behind a store to the same offset of another page waits for it, so that some loads go ahead of the stores.
[[gnu::target("avx2")]] void copy_wide(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  const std::size_t head = -reinterpret_cast<std::uintptr_t>(to) % sizeof(wide);
  copy_short(to, from, head);
  to += head;
  from += head;
  bytes -= head;
  for (; bytes >= 4 * sizeof(wide); bytes -= 4 * sizeof(wide)) {
    const wide* const source = reinterpret_cast<const wide*>(from);
    const wide a = source[0], b = source[1], c = source[2], d = source[3];
    wide* const place = reinterpret_cast<wide*>(to);
    place[0] = a;
    place[1] = b;
    place[2] = c;
    place[3] = d;
    to += 4 * sizeof(wide);
    from += 4 * sizeof(wide);
  }
  for (; bytes >= sizeof(wide); bytes -= sizeof(wide)) {
    *reinterpret_cast<wide*>(to) = *reinterpret_cast<const wide*>(from);
    to += sizeof(wide);
    from += sizeof(wide);
  }
  copy_short(to, from, bytes);
}

}  // namespace
#endif

void copy_long(void* to, const void* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  // Ascending would overwrite what is still to be read if the destination begins inside the source.
  const bool runs_over = reinterpret_cast<std::uintptr_t>(to) - reinterpret_cast<std::uintptr_t>(from) < bytes;
  if (!runs_over && bytes <= cached_bytes_max && __builtin_cpu_supports("avx2") != 0) {
    return copy_wide(static_cast<std::byte*>(to), static_cast<const std::byte*>(from), bytes);
  }
#endif
  std::memmove(to, from, bytes);
}

}  // namespace rma::detail
