// SPDX-License-Identifier: Apache-2.0
/// \file
/// The numbers of the measured quantities: the same for us and for the peers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace perf {

inline constexpr std::size_t kibibyte = 1024;

/// Sizes of the bandwidth points.
inline constexpr std::size_t sizes_bytes[] = {8, 64, 512, 4 * kibibyte, 64 * kibibyte, 1024 * kibibyte};
inline constexpr std::size_t user_memory_bytes[] = {2 * kibibyte, 64 * kibibyte};
/// Contiguous operations from user memory, so many of that size between two flushes.
inline constexpr std::size_t stream_bytes = 2 * kibibyte;
inline constexpr std::size_t stream_operations = 32;
inline constexpr std::size_t size_bytes_max = 1024 * kibibyte;

/// Operations between two flushes: small ones travel together, from 4 KiB on each is flushed.
constexpr std::size_t operations_per_flush(std::size_t bytes) {
  return bytes >= 4 * kibibyte ? 1 : bytes > 8 ? 64 : 1000;
}

/// The matrix of the strided points: rows of it are put, so many ints of each.
inline constexpr std::size_t matrix_rows = 64;
inline constexpr std::size_t matrix_columns = 4096;
inline constexpr std::size_t row_lengths[] = {8, 64, 512, 2048};
constexpr std::size_t rows_bytes(std::size_t length) { return matrix_rows * length * sizeof(int); }

/// The part of `room` that begins so far into a page; `room` is one page longer. The kernel's copies take up to a tenth
/// longer from or to some places, and a heap puts buffers anywhere.
inline constexpr std::size_t page_bytes = 4 * kibibyte;
template <class T>
std::span<T> part_at(std::size_t offset, std::vector<T>& room) {
  const auto at = reinterpret_cast<std::uintptr_t>(room.data());
  return std::span(room).subspan((offset + page_bytes - at % page_bytes) % page_bytes / sizeof(T),
                                 room.size() - page_bytes / sizeof(T));
}

/// RandomAccess: table words of each rank, small enough for the caches, and updates between two flushes.
inline constexpr std::size_t table_words = std::size_t{1} << 16;
inline constexpr std::uint64_t updates_per_flush = 64;

/// The stream of RandomAccess: x -> 2x in GF(2^64), as HPC Challenge has it. Each rank starts elsewhere.
class update_stream {
 public:
  explicit update_stream(int rank) noexcept : value_((static_cast<std::uint64_t>(rank) + 1) * 0x9e37'79b9'7f4a'7c15u) {
    // Spread over the word (splitmix64), or the ranks would follow each other through the same places.
    value_ = (value_ ^ (value_ >> 30)) * 0xbf58'476d'1ce4'e5b9u;
    value_ = (value_ ^ (value_ >> 27)) * 0x94d0'49bb'1331'11ebu;
  }
  std::uint64_t next() noexcept {
    value_ = (value_ << 1) ^ (static_cast<std::int64_t>(value_) < 0 ? 7u : 0u);
    return value_;
  }

 private:
  std::uint64_t value_;
};

/// Where an update goes. `ranks` need not be a power of two; the upper bits of the value choose the rank.
struct update_place {
  int target;
  std::size_t at;
};
constexpr update_place place_of(std::uint64_t update, int ranks) noexcept {
  constexpr int word_bits = std::countr_zero(table_words);
  return {static_cast<int>((update >> word_bits) % static_cast<std::uint64_t>(ranks)),
          static_cast<std::size_t>(update & (table_words - 1))};
}

}  // namespace perf
