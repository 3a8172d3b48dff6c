// SPDX-License-Identifier: Apache-2.0
/// \file
/// Copies by the processor's own string instruction. docs/decisions/0007-copies.md shows where they are faster than
/// loops.
#pragma once

#include <cstddef>

#include "rma/detail/copy.hpp"

namespace rma::detail {

/// This many bytes fit the L1 cache of 32 or 48 KiB at both ends of a copy, more or less.
inline constexpr std::size_t first_cache_bytes = std::size_t{24} << 10;

/// Zen 5 copies in microcode faster than any loop if the data do not fit the L1 cache, or if rows evict each other from
/// it. Compilers of today do not know it by name; of AMD's processors, it and its successors have this feature set.
inline bool has_fast_string_copy() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_is("amd") != 0 && __builtin_cpu_supports("avx512vp2intersect") != 0;
#else
  return false;
#endif
}

/// True if the processor has AVX-512 and gains by it. Zen 4 moves 64 bytes as two halves, and loses where they cross a
/// line.
inline bool moves_64_at_once() noexcept {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") != 0 && (__builtin_cpu_is("amd") == 0 || has_fast_string_copy());
#else
  return false;
#endif
}

/// From this size on both sides together do not fit the L2 cache (1 MiB, or 2 MiB of Intel's servers), and it pays to
/// begin where the last copy ended.
inline std::size_t turning_bytes_min() noexcept {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel") != 0) return std::size_t{1} << 20;
#endif
  return std::size_t{512} << 10;
}

/// Like std::memcpy. Aligned words of 8 bytes are not seen in parts: copy_test checks this.
inline void copy_as_string(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
#if defined(__x86_64__)
  asm volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(bytes) : : "memory");
#else
  for (; bytes > 0; --bytes) *to++ = *from++;
#endif
}

/// For a destination whose lines are in another processor's cache: strings do not fetch them first.
inline void copy_to_reader(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  constexpr std::size_t string_bytes_min = 4096;
  if (bytes >= string_bytes_min && has_fast_string_copy()) return copy_as_string(to, from, bytes);
  copy_bytes(to, from, bytes);
}

}  // namespace rma::detail
