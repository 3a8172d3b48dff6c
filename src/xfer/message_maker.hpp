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
#include "xfer/protocols.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {

inline constexpr std::size_t operation_pieces_max = 64;

/// Makes the messages of an operation, one after the other. Scattered data are packed into `scratch`, which has room
/// for a message.
class message_maker {
 public:
  /// Starts from byte `first` of the operation.
  message_maker(const window_core& w, const checked_operation& o, std::size_t bytes_max, std::span<std::byte> scratch,
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
    }
    head_.window = w.id;
    head_.kind = o.args->kind;
    head_.op = o.args->op;
    head_.type = o.args->type;
  }

  /// Makes the next message; true if it is the last one.
  bool make() noexcept {
    head_.pieces = 0;
    const std::uint64_t first = made_;
    if (o_.contiguous) {
      make_contiguous();
    } else {
      while (made_ < o_.bytes && head_.pieces < operation_pieces_max && add_rows(room(made_ - first))) continue;
    }
    const bool last = made_ == o_.bytes;
    head_.signal = last ? o_.args->signal : -1;
    if (carries_data_ && o_.args->kind != call::compare_and_swap) take_data(first);
    return last;
  }
  /// Header and pieces of the current message; `data` are the data after them.
  std::span<const std::byte> head(std::uint64_t ticket) noexcept {
    head_.ticket = ticket;
    std::memcpy(front_.data(), &head_, sizeof head_);
    std::memcpy(front_.data() + sizeof head_, pieces_.data(), head_.pieces * sizeof(target_rows));
    return {front_.data(), sizeof head_ + head_.pieces * sizeof(target_rows)};
  }
  [[nodiscard]] std::span<const std::byte> data() const noexcept { return data_; }
  /// The number of the operation's bytes in the messages made so far.
  [[nodiscard]] std::uint64_t made_bytes() const noexcept { return made_; }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return sizeof head_ + head_.pieces * sizeof(target_rows) + data_.size();
  }

 private:
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
  /// Adds the target's next rows, or the part of one for which there is room; false if there is none.
  bool add_rows(std::uint64_t room) noexcept {
    const block_run run = target_->run();
    const block front = target_->front();
    target_rows& piece = pieces_[head_.pieces];
    if (target_->skipped() == 0 && run.bytes <= room) {
      const std::size_t rows = rows_within(room, run.bytes, run.count);
      piece = {o_.offset + static_cast<std::uint64_t>(run.offset), run.stride, static_cast<std::uint32_t>(run.bytes),
               static_cast<std::uint32_t>(rows)};
      target_->advance_blocks(rows);
    } else {
      const std::uint64_t part = std::min<std::uint64_t>(front.bytes, room);
      if (part == 0) return false;
      piece = {o_.offset + static_cast<std::uint64_t>(front.offset), 0, static_cast<std::uint32_t>(part), 1};
      target_->advance_in_block(part);
    }
    ++head_.pieces;
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
