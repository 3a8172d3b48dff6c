// SPDX-License-Identifier: Apache-2.0
/// \file
/// Rings of short messages: the sender writes them into the receiver's memory, which the receiver polls.
///
///   slot   | head flag | credits | bytes | message ... | tail flag |
///
/// Each slot of the sender's ring corresponds to one slot of the receiver's: one write carries a message, and the
/// sender knows every byte of the slot. The receiver polls the head flag of the next slot, then the byte after the
/// message, which has the same value when the whole message has arrived: of two values the sender takes the one that
/// this byte does not have. After the message has been handled, the receiver clears the head flag. The header is
/// written atomically: it is an aligned word. Source: Liu et al., ICS 2003, sections 4.1 to 4.4, figures 6 and 8.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "core/assert.hpp"

namespace rma::detail {

struct ring_slot_header {
  std::uint8_t head;     ///< 0, or the value of the tail flag
  std::uint8_t credits;  ///< slots of the ring in the other direction that are free again
  std::uint16_t unused;
  std::uint32_t bytes;  ///< length of the message
};
static_assert(sizeof(ring_slot_header) == 8);

inline constexpr std::size_t ring_slot_bytes = 2048;
inline constexpr std::size_t ring_message_max = ring_slot_bytes - sizeof(ring_slot_header) - 1;
inline constexpr std::uint8_t ring_flag_primary = 1, ring_flag_secondary = 2;

/// The sender's copy of the ring: equal to the receiver's memory except for cleared head flags.
class ring_source {
 public:
  explicit ring_source(std::uint32_t slots)
      : memory_(std::make_unique<std::byte[]>(slots * ring_slot_bytes)), slots_(slots) {}

  [[nodiscard]] bool full() const noexcept { return filled_ - freed_ == slots_; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint32_t next_slot() const noexcept { return static_cast<std::uint32_t>(filled_ % slots_); }
  [[nodiscard]] std::uint64_t filled() const noexcept { return filled_; }
  /// Puts the message into the next slot, which must be free; returns the bytes to be written from `slot(index)` on.
  std::size_t fill(std::span<const std::byte> header, std::span<const std::byte> data, std::uint8_t credits) noexcept {
    RMA_ASSERT(!full() && header.size() + data.size() <= ring_message_max);
    std::byte* const at = slot(next_slot());
    ring_slot_header h{0, credits, 0, static_cast<std::uint32_t>(header.size() + data.size())};
    std::byte* const tail = at + sizeof h + h.bytes;
    h.head = *tail == std::byte{ring_flag_primary} ? ring_flag_secondary : ring_flag_primary;
    *tail = std::byte{h.head};
    std::memcpy(at, &h, sizeof h);
    if (!header.empty()) std::memcpy(at + sizeof h, header.data(), header.size());
    if (!data.empty()) std::memcpy(at + sizeof h + header.size(), data.data(), data.size());
    ++filled_;
    return sizeof h + h.bytes + 1;
  }
  [[nodiscard]] std::byte* slot(std::uint32_t index) noexcept {
    RMA_ASSERT(index < slots_);
    return memory_.get() + index * ring_slot_bytes;
  }
  /// The bytes that `fill` returned for the slot.
  [[nodiscard]] std::size_t bytes_of(std::uint32_t index) noexcept {
    ring_slot_header h;
    std::memcpy(&h, slot(index), sizeof h);
    return sizeof h + h.bytes + 1;
  }
  void give_back(std::uint32_t slots) noexcept { freed_ = std::min(filled_, freed_ + slots); }

 private:
  std::unique_ptr<std::byte[]> memory_;
  std::uint32_t slots_;
  std::uint64_t filled_ = 0;  ///< in total
  std::uint64_t freed_ = 0;
};

/// The receiver's side of the ring.
class ring_sink {
 public:
  explicit ring_sink(std::uint32_t slots)
      : memory_(std::make_unique<std::byte[]>(slots * ring_slot_bytes)), slots_(slots) {}

  [[nodiscard]] std::byte* memory() noexcept { return memory_.get(); }
  [[nodiscard]] std::size_t bytes() const noexcept { return slots_ * ring_slot_bytes; }
  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  [[nodiscard]] std::uint64_t taken() const noexcept { return taken_; }

  /// True if the next message has arrived as a whole.
  [[nodiscard]] bool ready() noexcept {
    std::byte* const at = next();
    const std::byte head = std::atomic_ref(*at).load(std::memory_order_acquire);
    if (head == std::byte{0}) [[likely]]
      return false;
    const std::size_t bytes = header().bytes;
    if (bytes > ring_message_max) return false;
    return std::atomic_ref(at[sizeof(ring_slot_header) + bytes]).load(std::memory_order_acquire) == head;
  }
  [[nodiscard]] std::span<const std::byte> message() noexcept {
    RMA_ASSERT(header().head != 0 && header().bytes <= ring_message_max);
    return {next() + sizeof(ring_slot_header), header().bytes};
  }
  [[nodiscard]] std::uint8_t credits() noexcept { return header().credits; }
  /// Ends the handling of the message: the next one is polled.
  void release() noexcept {
    clear();
    ++taken_;
  }
  /// Drops a message that was handled before: its write was repeated.
  void clear() noexcept { std::atomic_ref(*next()).store(std::byte{0}, std::memory_order_relaxed); }

 private:
  [[nodiscard]] std::byte* next() noexcept { return memory_.get() + taken_ % slots_ * ring_slot_bytes; }
  [[nodiscard]] ring_slot_header header() noexcept {
    ring_slot_header h;
    std::memcpy(&h, next(), sizeof h);
    return h;
  }

  std::unique_ptr<std::byte[]> memory_;
  std::uint32_t slots_;
  std::uint64_t taken_ = 0;
};

}  // namespace rma::detail
