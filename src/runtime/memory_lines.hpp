// SPDX-License-Identifier: Apache-2.0
/// \file
/// A member's part of the collectives in memory, in its own segment: a single-writer flag, and two slots for data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "rma/detail/word.hpp"

namespace rma::detail {

/// Zero at first. Only its owner writes to it. The slots follow it.
struct memory_lines {
  /// Number of the collective among the team's (20 bits), turn in it (22), and a digest of the call (22): the owner has
  /// reached this turn, with its data in a slot, and has left all earlier turns.
  alignas(64) word64 turn;
  word64 failures;  ///< number of entries in `failed`
  /// The owner's last calls, by number: it may be `cells` ahead of a member that has to detect that its own call
  /// differs.
  struct call {
    word64 which;  ///< number << 32 | signature
    word64 bytes;
  };
  call calls[64];
  word64 failed[32];  ///< the last collectives that failed at the owner: number << 8 | status
  // The offset of the owner's operands of a large vector in its segment, + 1; 0: they lie elsewhere.
  word64 input_at;
  word64 output_at;

  /// Both slots begin with cells for data that fit one, so that a root or a member that need not wait can be so many
  /// collectives ahead: where members take turns on a core, a switch then serves many of them.
  static constexpr std::size_t cell_bytes = 512;
  static constexpr std::uint64_t cells = 32;
  static_assert(cells < std::size(decltype(calls){}));

  static constexpr int members_max = 32;
  /// The same at all members. The slot of two members stays in their nearest caches; more members often take turns on
  /// a core, and a turn of all costs them more than the cache does.
  [[nodiscard]] static constexpr std::size_t slot_bytes(int members) noexcept {
    return members <= 2 ? std::size_t{16} << 10 : members <= 8 ? std::size_t{64} << 10 : std::size_t{16} << 10;
  }
  [[nodiscard]] static constexpr std::size_t all_bytes(int members) noexcept {
    return members > members_max ? 0 : sizeof(memory_lines) + 2 * slot_bytes(members);
  }
  [[nodiscard]] std::byte* slot(unsigned which, std::size_t slot_bytes) noexcept {
    return reinterpret_cast<std::byte*>(this + 1) + which * slot_bytes;
  }
  /// The memory of cell `number` % `cells`, which is in the slot `number` % 2.
  [[nodiscard]] std::byte* cell(std::uint64_t number, std::size_t slot_bytes) noexcept {
    return slot(static_cast<unsigned>(number % 2), slot_bytes) + number % cells / 2 * cell_bytes;
  }
};

}  // namespace rma::detail
