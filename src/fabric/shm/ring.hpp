// SPDX-License-Identifier: Apache-2.0
/// \file
/// The messages of one sender to one receiver: a ring of cache lines in shared memory.
///
/// A message is a header and its payload on consecutive lines. The sender fills them, clears the stamp at the place of
/// the next header (so that old payload is never mistaken for one) and stores this header's stamp last; the receiver
/// sees the stamp, handles the message in place, and publishes its position at intervals. The receiver writes no line
/// of a message, and a small message is transferred as one line.
///
/// A promise is the number of messages that the sender guarantees to send: the receiver stays in the library until it
/// has handled that many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <utility>

#include "core/assert.hpp"
#include "rma/detail/word.hpp"

namespace rma::shm {

inline constexpr std::size_t line_bytes = 64;
inline constexpr std::uint32_t ring_lines = 248;
inline constexpr std::size_t payload_max = 4096;  ///< largest payload of a message

struct message_header {
  detail::word32 stamp;  ///< bytes of payload + 1; 0 means no message
  std::uint16_t lines;   ///< with this one
  std::uint16_t kind;    ///< handler number; 0: padding up to the ring's end
};
static_assert(sizeof(message_header) == 8);
inline constexpr std::size_t line_payload_max = line_bytes - sizeof(message_header);

struct ring_memory {
  alignas(64) detail::word64 consumed;  ///< total number of lines that the receiver has released
  alignas(64) detail::word64 reserved;  ///< total number of messages that the sender has promised
  alignas(64) std::byte lines[ring_lines][line_bytes];
  std::byte unused[6 * line_bytes];
};
static_assert(sizeof(ring_memory) == 16384);

/// The sender's side, private to the sending process and guarded by its progress lock.
class ring_writer {
 public:
  explicit ring_writer(ring_memory& memory) noexcept : memory_(&memory), position_(memory.consumed.load()) {
    credit_ = position_;
    at_ = static_cast<std::uint32_t>(position_ % ring_lines);
  }

  /// True if there is room for a message of this size.
  [[nodiscard]] bool has_room(std::size_t payload_bytes) noexcept {
    const std::uint32_t lines = lines_of(payload_bytes);
    return room_for(padding_before(lines) + lines);
  }
  /// Returns room for a message, or null until the receiver has made progress. The caller fills it, then calls `commit`
  /// with the length.
  std::byte* reserve(std::size_t payload_bytes) noexcept {
    const std::uint32_t lines = lines_of(payload_bytes);
    const std::uint32_t padding = padding_before(lines);
    if (!room_for(padding + lines)) return nullptr;
    if (padding != 0) publish(padding, 0, 0);
    return memory_->lines[at_] + sizeof(message_header);
  }
  /// As `reserve_line`, or null where the next line is to be cleared first: without a call.
  [[nodiscard]] std::byte* cleared_line() noexcept {
    return position_ + 1 < cleared_ ? memory_->lines[at_] + sizeof(message_header) : nullptr;
  }
  /// As `reserve`, for a message of one line.
  [[nodiscard]] std::byte* reserve_line() noexcept {
    // If the line after this one has been cleared, there is room: see clear_stamp.
    if (position_ + 1 >= cleared_ && !clear_next()) [[unlikely]]
      return nullptr;
    return memory_->lines[at_] + sizeof(message_header);
  }
  void commit_line(std::size_t payload_bytes, std::uint16_t kind) noexcept {
    store_header(1, kind, payload_bytes);
    ++sent_;
  }
  void commit(std::size_t payload_bytes, std::uint16_t kind) noexcept {
    publish(lines_of(payload_bytes), kind, payload_bytes);
    ++sent_;
  }

  /// Promises one more message. A full fence must follow, then the message or `take_back`.
  void reserve_delivery() noexcept { memory_->reserved.store(reserved_ = sent_ + 1, std::memory_order_relaxed); }
  void take_back() noexcept { memory_->reserved.store(reserved_ = sent_, std::memory_order_relaxed); }
  /// True if the last message was promised.
  [[nodiscard]] bool was_promised() const noexcept { return reserved_ == sent_; }

 private:
  static std::uint32_t lines_of(std::size_t payload_bytes) noexcept {
    return static_cast<std::uint32_t>((sizeof(message_header) + payload_bytes + line_bytes - 1) / line_bytes);
  }
  std::uint32_t padding_before(std::uint32_t lines) const noexcept {
    return at_ + lines > ring_lines ? ring_lines - at_ : 0;
  }
  message_header& header_of(std::uint32_t index) const noexcept {
    return *reinterpret_cast<message_header*>(memory_->lines[index]);
  }
  bool room_for(std::uint32_t lines) noexcept {
    if (position_ + lines - credit_ < ring_lines) return true;  // one more line, for the next header
    credit_ = memory_->consumed.load();
    return position_ + lines - credit_ < ring_lines;
  }
  /// Clears several stamps at a time, as far as there is room: the receiver has read these lines in the last round, so
  /// that each must be fetched, and later stores become visible only after that.
  void clear_stamp(std::uint64_t next) noexcept {
    if (next < cleared_) return;
    constexpr std::uint64_t at_once = 16;
    cleared_ = next + std::min(at_once, ring_lines - (next - credit_));
    auto index = at_ + static_cast<std::uint32_t>(next - position_);  // without a division for each line
    if (index >= ring_lines) index -= ring_lines;
    for (; next < cleared_; ++next) {
      header_of(index).stamp.store(0, std::memory_order_relaxed);
      if (++index == ring_lines) index = 0;
    }
  }
  void publish(std::uint32_t lines, std::uint16_t kind, std::size_t payload_bytes) noexcept {
    clear_stamp(position_ + lines);
    store_header(lines, kind, payload_bytes);
  }
  [[gnu::noinline]] bool clear_next() noexcept {
    if (!room_for(1)) return false;
    clear_stamp(position_ + 1);
    return true;
  }
  void store_header(std::uint32_t lines, std::uint16_t kind, std::size_t payload_bytes) noexcept {
    message_header& h = header_of(at_);
    h.lines = static_cast<std::uint16_t>(lines);
    h.kind = kind;
    h.stamp.store(static_cast<std::uint32_t>(payload_bytes + 1));
    position_ += lines;
    at_ += lines;
    if (at_ >= ring_lines) at_ -= ring_lines;
  }

  ring_memory* memory_;
  std::uint64_t position_;     ///< lines written so far
  std::uint32_t at_ = 0;       ///< index of the next line
  std::uint64_t credit_;       ///< the value of `consumed` when last read
  std::uint64_t cleared_ = 0;  ///< no line from `position_` up to this one has a stamp
  std::uint64_t sent_ = 0;     ///< messages sent
  std::uint64_t reserved_ = ~std::uint64_t{0};
};

/// The receiver's side, guarded by its progress lock.
class ring_reader {
 public:
  explicit ring_reader(ring_memory& memory) noexcept : memory_(&memory), position_(memory.consumed.load()) {
    at_ = static_cast<std::uint32_t>(position_ % ring_lines);
  }

  /// True if a message is waiting.
  [[nodiscard]] bool pending() const noexcept { return header()->stamp.load() != 0; }

  /// True while a promised message has not been handled.
  [[nodiscard]] bool reserved() const noexcept { return memory_->reserved.load() > handled_; }

  /// True once after room was released: a sender may sleep until then.
  bool take_gave_room() noexcept { return std::exchange(gave_room_, false); }

  /// The next message, or null; padding has kind 0. A message of one line is released by `take_line`.
  [[nodiscard]] const message_header* front() const noexcept {
    const message_header* const h = header();
    return h->stamp.load() != 0 ? h : nullptr;
  }
  /// Releases a message of one line. True if room was published: its sender may sleep until then.
  [[nodiscard]] bool take_line() noexcept {
    ++handled_;
    ++position_;
    if (++at_ == ring_lines) at_ = 0;
    if (++unpublished_ < ring_lines / 4) [[likely]]
      return false;
    memory_->consumed.store(position_);
    unpublished_ = 0;
    return true;
  }

  /// Passes the next message to `handle(kind, payload, bytes)`; false if there is none.
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
    ++handled_;
    consume(lines);
    return true;
  }

 private:
  message_header* header() const noexcept { return reinterpret_cast<message_header*>(memory_->lines[at_]); }
  void consume(std::uint32_t lines) noexcept {
    RMA_ASSERT(lines >= 1 && lines <= ring_lines);
    position_ += lines;
    at_ += lines;
    if (at_ >= ring_lines) at_ -= ring_lines;
    unpublished_ += lines;
    if (unpublished_ >= ring_lines / 4) {
      memory_->consumed.store(position_);
      unpublished_ = 0;
      gave_room_ = true;
    }
  }

  ring_memory* memory_;
  std::uint64_t position_;
  std::uint32_t at_ = 0;
  std::uint64_t handled_ = 0;  ///< messages handled
  std::uint32_t unpublished_ = 0;
  bool gave_room_ = false;
};

/// The rings between this rank and another one of its node, for callers that poll them directly: the next message that
/// the fabric's poll would handle is at the front of `in`. The progress lock guards them, as it does the fabric.
struct line_pair {
  std::optional<ring_writer> out;        ///< made with the first message, or at the first request for the pair
  std::optional<ring_reader> in;         ///< made when the peer has asked for the pair
  const detail::word32* bell = nullptr;  ///< the peer's doorbell: not 0 if it sleeps, or has slept
  void* user = nullptr;                  ///< the poller's record of the peer
  std::uint32_t index = 0;               ///< index of the peer on the node
  bool fence = true;  ///< needed between a message and the load of the bell: the peer executes none before it sleeps
  bool forgotten = false;
};

}  // namespace rma::shm
