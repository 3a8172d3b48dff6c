// SPDX-License-Identifier: Apache-2.0
/// \file
/// The messages of a fabric whose puts, gets and atomics are messages.
///
///     origin                              target
///     put, put, ...  ------------------>  copied, or received, into the region
///     ask_placed     ------------------>
///                    <------------------  result: the worst of the puts since the last one
///     ask_get        ------------------>
///                    <------------------  give_get, with the data
///     ask_atomic     ------------------>  by the processor
///                    <------------------  result: what it has found
///
/// Messages to one peer stay in order. Replies arrive in the order of the requests, so that they need no number; and
/// a read or an atomic takes effect after the writes before it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "fabric/fabric.hpp"
#include "fabric/object_bytes.hpp"
#include "rma/detail/copy.hpp"
#include "rma/detail/word.hpp"

namespace rma::messaged {

enum class own_kind : std::uint16_t {
  goodbye,
  understood,
  immediate,
  put,
  ask_placed,  ///< asks for the result of all puts before it
  ask_get,
  give_get,
  ask_atomic,
  result,  ///< the reply to an atomic, and to `ask_placed`
  count_
};

/// Kinds from here to fabric::first_kind are internal to a line.
inline constexpr auto first_line_kind = static_cast<std::uint16_t>(own_kind::count_);

/// The destination of a put, whose data follow.
struct placement {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
};

/// A get or an atomic.
struct question {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t operand = 0;  ///< added, or compared with
  std::uint64_t desired = 0;
  std::uint64_t swap = 0;  ///< 0: add
};

struct answer {
  std::uint64_t found = 0;
  std::int64_t result = 0;  ///< a status; a get's data follow if it is `done`
};

inline std::size_t bytes_in(std::span<const fabric::local_slice> slices) noexcept {
  std::size_t bytes = 0;
  for (const fabric::local_slice& each : slices) bytes += each.bytes;
  return bytes;
}

/// Copies into the target's memory, where a word by itself may be read meanwhile.
inline void copy_in(void* to, const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t word = 0;
  if (bytes == sizeof word && reinterpret_cast<std::uintptr_t>(to) % sizeof word == 0) {
    std::memcpy(&word, from, sizeof word);
    std::atomic_ref<std::uint64_t>(*static_cast<std::uint64_t*>(to)).store(word, std::memory_order_relaxed);
  } else {
    detail::copy_bytes(to, from, bytes);
  }
}

/// Copies from the target's memory, whose words may change meanwhile, as the table of a dynamic window does. Its reader
/// asks again if they did; the thread sanitizer has to see that each of them is read whole.
inline void fetch(std::byte* to, const void* memory, std::size_t bytes) noexcept {
  const auto* from = static_cast<const std::byte*>(memory);
#if defined(RMA_THREAD_SANITIZER)
  constexpr std::size_t word_bytes = sizeof(std::uint64_t);
  if (reinterpret_cast<std::uintptr_t>(from) % word_bytes == 0) {
    for (; bytes >= word_bytes; to += word_bytes, from += word_bytes, bytes -= word_bytes) {
      const std::uint64_t word = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(from), __ATOMIC_RELAXED);
      std::memcpy(to, &word, word_bytes);
    }
  }
#endif
  std::memcpy(to, from, bytes);
}

/// Carries out an atomic, and returns the old value.
inline std::uint64_t apply(const question& asked, std::byte* at) noexcept {
  const std::atomic_ref<std::uint64_t> word(*reinterpret_cast<std::uint64_t*>(at));
  if (asked.swap == 0) return word.fetch_add(asked.operand);
  std::uint64_t found = asked.operand;
  (void)word.compare_exchange_strong(found, asked.desired);
  return found;
}

}  // namespace rma::messaged
