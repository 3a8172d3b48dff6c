// SPDX-License-Identifier: Apache-2.0
/// \file
/// The messages of an operation that the target's handler carries out: see wire.hpp for their format.
#pragma once

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <span>

#include "datatype/copy.hpp"
#include "xfer/layout_exchange.hpp"
#include "xfer/protocols.hpp"
#include "xfer/target_pieces.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

inline constexpr std::size_t operation_pieces_max = 64;

/// How the messages of an operation say where its target's pieces are: by rows, or by the layout's number where that
/// takes less. Only messages of kinds `operation` and `batch` may name layouts: their handlers ask for unknown ones.
enum class pieces_as : std::uint8_t { rows, layout };

/// True on the way to another node: within one, a target is found by the processor faster than a number is looked up.
inline pieces_as pieces_of(const checked_operation& o) noexcept {
  return o.far != nullptr ? pieces_as::layout : pieces_as::rows;
}

/// Makes the messages of an operation, one after the other. Scattered data are packed into `scratch`, which has room
/// for a message.
class message_maker {
 public:
  /// Starts from byte `first` of the operation.
  [[gnu::always_inline]] message_maker(const window_core& w, const checked_operation& o, std::size_t bytes_max,
                                       std::span<std::byte> scratch, pieces_as pieces = pieces_as::rows,
                                       std::uint64_t first = 0) noexcept
      : o_(o),
        bytes_max_(bytes_max),
        scratch_(scratch),
        carries_data_(o.args->kind == call::put || (o.atomic() && o.args->origin != nullptr)),
        unit_(o.atomic() ? rma::bytes_of(o.args->type) : 1),
        made_(first) {
    if (!o.contiguous) {
      target_.emplace(*o.target, first);
      source_.emplace(*o.origin, carries_data_ ? first : 0);
      names_layout_ = pieces == pieces_as::layout && !fits_one_row();
    }
    head_.window = w.id;
    head_.kind = o.args->kind;
    head_.op = o.args->op;
    head_.type = o.args->type;
  }

  /// Makes the next message; true if it is the last one.
  bool make() noexcept {
    RMA_ASSERT(!names_layout_ || part_.layout != 0);
    head_.pieces = 0;
    const std::uint64_t first = made_;
    if (o_.contiguous) {
      make_contiguous();
    } else if (names_layout_) {
      make_part();
    } else {
      while (made_ < o_.bytes && head_.pieces < operation_pieces_max && add_rows(room(made_ - first))) continue;
    }
    const bool last = made_ == o_.bytes;
    head_.signal = last ? o_.args->signal : -1;
    if (carries_data_ && o_.args->kind != call::compare_and_swap) take_data(first);
    return last;
  }
  /// True if the messages name the target's layout. Then `name` is called before the first one is made. The caller
  /// holds the progress lock until all that are made by this object are sent.
  [[nodiscard]] bool names_layout() const noexcept { return names_layout_; }
  void name(layout_exchange& layouts) {
    if (names_layout_) part_.layout = layouts.name(o_.peer, *o_.target);
  }
  /// Header and pieces of the current message; `data` are the data after them.
  std::span<const std::byte> head(std::uint64_t ticket) noexcept {
    head_.ticket = ticket;
    std::memcpy(front_.data(), &head_, sizeof head_);
    if (o_.contiguous) [[likely]] {  // a copy of known length
      std::memcpy(front_.data() + sizeof head_, pieces_.data(), sizeof(target_rows));
      return {front_.data(), sizeof head_ + sizeof(target_rows)};
    }
    const void* const pieces = names_layout_ ? static_cast<const void*>(&part_) : pieces_.data();
    std::memcpy(front_.data() + sizeof head_, pieces, pieces_bytes());
    return {front_.data(), sizeof head_ + pieces_bytes()};
  }
  /// The bytes of the current message that describe the target's layout, its place not included.
  [[nodiscard]] std::size_t layout_bytes() const noexcept {
    return o_.contiguous ? 0
                         : pieces_bytes() / sizeof(target_rows) * (sizeof(target_rows) - sizeof(target_rows::offset));
  }
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return data_; }
  /// The number of the operation's bytes in the messages made so far.
  [[nodiscard]] std::uint64_t made_bytes() const noexcept { return made_; }
  [[nodiscard]] std::size_t bytes() const noexcept { return sizeof head_ + pieces_bytes() + data_.size(); }

 private:
  [[nodiscard]] std::size_t pieces_bytes() const noexcept {
    return names_layout_ ? sizeof part_ : head_.pieces * sizeof(target_rows);
  }
  /// True if one row of one message says all: blocks at equal distances.
  [[nodiscard]] bool fits_one_row() const noexcept {
    const block_run& run = target_->run();
    return o_.target->blocks() == 1 || (run.count == o_.target->blocks() && o_.bytes <= room(0) && made_ == 0);
  }
  /// The room for data, in the message and in its reply, with one more piece and `used` bytes.
  [[nodiscard]] std::uint64_t room(std::uint64_t used) const noexcept {
    const std::size_t fixed = sizeof head_ + (head_.pieces + std::size_t{1}) * sizeof(target_rows);
    return fixed + used >= bytes_max_ ? 0 : (bytes_max_ - fixed - used) & ~(unit_ - 1);  // a power of two
  }
  void make_contiguous() noexcept {
    const std::uint64_t part = std::min(o_.bytes - made_, room(0));
    pieces_[head_.pieces++] = {o_.offset + made_, 0, static_cast<std::uint32_t>(part), 1};
    made_ += part;
    if (o_.args->kind != call::compare_and_swap) return;
    std::memcpy(scratch_.data(), o_.args->compare, part);
    std::memcpy(scratch_.data() + part, o_.args->origin, part);
    data_ = {scratch_.data(), 2 * part};
  }
  void make_part() noexcept {
    part_.offset = o_.offset;
    part_.first = made_;
    part_.bytes = static_cast<std::uint32_t>(std::min(o_.bytes - made_, room(0)));
    head_.pieces = by_layout;
    made_ += part_.bytes;
  }
  /// Adds the target's next rows, or the part of one for which there is room; false if there is none.
  bool add_rows(std::uint64_t room) noexcept {
    const target_rows piece = next_rows(*target_, o_.offset, room);
    if (piece.bytes == 0) return false;
    pieces_[head_.pieces++] = piece;
    made_ += std::uint64_t{piece.bytes} * piece.rows;
    return true;
  }
  /// Takes the origin's data from byte `first` on.
  void take_data(std::uint64_t first) noexcept {
    const auto* const from = static_cast<const std::byte*>(o_.args->origin);
    const std::size_t bytes = made_ - first;
    if (o_.contiguous || o_.origin->is_contiguous()) {
      data_ = {from + (o_.contiguous ? 0 : o_.origin->lower()) + first, bytes};
    } else {
      pack(scratch_.data(), from, *source_, bytes);
      data_ = {scratch_.data(), bytes};
    }
  }

  const checked_operation& o_;
  std::size_t bytes_max_;  ///< limit of a message
  std::span<std::byte> scratch_;
  bool carries_data_;
  std::uint64_t unit_;
  std::uint64_t made_;  ///< bytes of the operation in messages
  operation_header head_{};
  bool names_layout_ = false;
  target_part part_;  ///< set where names_layout_
  std::optional<cursor> target_;
  std::optional<cursor> source_;
  std::span<const std::byte> data_;
  std::array<target_rows, operation_pieces_max> pieces_;
  std::array<std::byte, sizeof(operation_header) + operation_pieces_max * sizeof(target_rows)> front_;
};

/// The limit of a message to this rank whose reply, or whose pieces, must fit as well.
inline std::size_t operation_message_max_to(const window_core& w, int world_rank) noexcept {
  return operation_message_max_of(w.ctx->network_of(world_rank).caps().message_bytes_max);
}

/// The limit of an operation's messages on a network with this limit: they may be longer if nothing is fetched.
inline std::size_t message_bytes_of(const checked_operation& o, std::size_t network_max) noexcept {
  return o.fetches() ? operation_message_max_of(network_max) : network_max;
}

/// The record of an operation by messages: `held`, which becomes null, or a fresh one. The caller holds the progress
/// lock.
inline operation_record& record_by_message(window_core& w, const checked_operation& o, operation_record*& held,
                                           const context::peer& peer) {
  engine& e = *w.team->rt->ops;
  const Layout* const shape = o.contiguous ? nullptr : o.args->kind == call::get ? o.origin : o.result;
  operation_record& op = e.message_record_of(held, peer);
  e.trace_operation(op, w, o);
  if (o.fetches()) e.expect_result(op, o.args->result, o.bytes, shape);
  return op;
}
/// The operation's ticket in its messages; 0 if there is no reply.
inline std::uint64_t ticket_of(const checked_operation& o, const operation_record& op) noexcept {
  return o.fetches() ? id_of(op) : 0;
}

}  // namespace rma::detail
