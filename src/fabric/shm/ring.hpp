// SPDX-License-Identifier: Apache-2.0
/// \file
/// One sender's messages to one receiver: a ring of cache lines in shared memory.
///
/// A message is a header and its payload on consecutive lines. The sender fills them and stores the header's
/// stamp last; the receiver sees the stamp, handles the message in place, clears the first word of each of its
/// lines (so that old payload is never taken for a stamp) and now and then publishes how far it is. No line is
/// written by both sides but in turn, and a small message crosses as one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "rma/detail/word.hpp"

namespace rma::shm {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint32_t ring_lines = 248;
inline constexpr std::size_t payload_max = 4096;  ///< of one message

struct message_header {
  detail::word32 stamp;  ///< bytes of payload + 1, 0 while there is no message
  std::uint16_t lines;   ///< including this one
  std::uint16_t kind;    ///< handler number; 0: padding up to the ring's end
};
static_assert(sizeof(message_header) == 8);

struct ring_memory {
  alignas(64) detail::word64 consumed;  ///< lines that the receiver has given back, ever
  alignas(64) std::byte lines[ring_lines][line_bytes];
  std::byte unused[7 * line_bytes];
};
static_assert(sizeof(ring_memory) == 16384);

/// The sender's end. Private to the sending process, guarded by its progress lock.
class ring_writer {
 public:
  explicit ring_writer(ring_memory& memory) noexcept : memory_(&memory), position_(memory.consumed.load()) {
    credit_ = position_;
  }

  /// Room for a message, or null: try again after the receiver has made progress. Fill it, then `commit`.
  std::byte* reserve(std::size_t payload_bytes) noexcept {
    const auto lines =
        static_cast<std::uint32_t>((sizeof(message_header) + payload_bytes + line_bytes - 1) / line_bytes);
    const auto at = static_cast<std::uint32_t>(position_ % ring_lines);
    const std::uint32_t padding = at + lines > ring_lines ? ring_lines - at : 0;
    if (!room_for(padding + lines)) return nullptr;
    if (padding != 0) publish(padding, 0, 0);
    return header() + sizeof(message_header);
  }
  void commit(std::size_t payload_bytes, std::uint16_t kind) noexcept {
    const auto lines =
        static_cast<std::uint32_t>((sizeof(message_header) + payload_bytes + line_bytes - 1) / line_bytes);
    publish(lines, kind, payload_bytes);
  }

 private:
  std::byte* header() const noexcept { return memory_->lines[position_ % ring_lines]; }
  bool room_for(std::uint32_t lines) noexcept {
    if (position_ + lines - credit_ <= ring_lines) return true;
    credit_ = memory_->consumed.load();
    return position_ + lines - credit_ <= ring_lines;
  }
  void publish(std::uint32_t lines, std::uint16_t kind, std::size_t payload_bytes) noexcept {
    auto& h = *reinterpret_cast<message_header*>(header());
    h.lines = static_cast<std::uint16_t>(lines);
    h.kind = kind;
    h.stamp.store(static_cast<std::uint32_t>(payload_bytes + 1));
    position_ += lines;
  }

  ring_memory* memory_;
  std::uint64_t position_;  ///< lines written, ever
  std::uint64_t credit_;    ///< what `consumed` was when last read
};

/// The receiver's end. Guarded by its progress lock.
class ring_reader {
 public:
  explicit ring_reader(ring_memory& memory) noexcept : memory_(&memory), position_(memory.consumed.load()) {}

  /// True if a message is waiting.
  [[nodiscard]] bool pending() const noexcept { return header()->stamp.load() != 0; }

  /// True once after room was given back: a sender may be asleep for it.
  bool take_gave_room() noexcept { return std::exchange(gave_room_, false); }

  /// Hands the next message to `handle(kind, payload, bytes)`; false if there is none.
  template <class Handle>
  bool poll(Handle&& handle) noexcept {
    auto* h = header();
    std::uint32_t stamp = h->stamp.load();
    if (stamp == 0) return false;
    if (h->kind == 0) {
      consume(h->lines);
      h = header();
      stamp = h->stamp.load();
      if (stamp == 0) return false;
    }
    const std::uint16_t lines = h->lines;
    handle(h->kind, reinterpret_cast<std::byte*>(h) + sizeof(message_header), std::size_t{stamp} - 1);
    consume(lines);
    return true;
  }

 private:
  message_header* header() const noexcept {
    return reinterpret_cast<message_header*>(memory_->lines[position_ % ring_lines]);
  }
  void consume(std::uint32_t lines) noexcept {
    RMA_ASSERT(lines >= 1 && lines <= ring_lines);
    for (std::uint32_t i = 0; i < lines; ++i) {
      reinterpret_cast<message_header*>(memory_->lines[(position_ + i) % ring_lines])
          ->stamp.store(0, std::memory_order_relaxed);
    }
    position_ += lines;
    unpublished_ += lines;
    if (unpublished_ >= ring_lines / 4) {
      memory_->consumed.store(position_);
      unpublished_ = 0;
      gave_room_ = true;
    }
  }

  ring_memory* memory_;
  std::uint64_t position_;
  std::uint32_t unpublished_ = 0;
  bool gave_room_ = false;
};

}  // namespace rma::shm
