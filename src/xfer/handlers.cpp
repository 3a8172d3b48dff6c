// SPDX-License-Identifier: Apache-2.0
/// \file
/// Protocol "handler", target's side. It runs under the progress lock. All messages of other ranks are checked: a
/// malformed one is acknowledged and reported to its sender, without any other effect.
#include <algorithm>
#include <array>
#include <cstring>

#include "core/assert.hpp"
#include "core/memory_access.hpp"
#include "datatype/rows.hpp"
#include "window/attached_ranges.hpp"
#include "xfer/layout_exchange.hpp"
#include "xfer/protocols.hpp"
#include "xfer/target_pieces.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

struct incoming {
  operation_header head;
  std::span<const std::byte> pieces;
  std::span<const std::byte> data;
  const Layout* layout = nullptr;  ///< layout that the message names; null: its pieces are rows
  target_part part{};              ///< part of this layout
};

/// Calls `take(piece)` for each piece of an operation at the target, until one returns false: the rows of its message,
/// or
/// (`named`) of the part of a layout that it names. True if none has.
template <bool named, class Take>
[[gnu::always_inline]] inline bool for_each_piece(const incoming& in, const Take& take) noexcept {
  target_rows piece{};
  if constexpr (named) {
    cursor at(*in.layout, in.part.first);
    for (std::uint64_t left = in.part.bytes; left != 0; left -= std::uint64_t{piece.bytes} * piece.rows) {
      piece = next_rows(at, in.part.offset, left);
      if (!take(piece)) return false;
    }
  } else {
    for (std::size_t i = 0; i < in.head.pieces; ++i) {
      std::memcpy(&piece, in.pieces.data() + i * sizeof piece, sizeof piece);
      if (!take(piece)) return false;
    }
  }
  return true;
}

/// A piece in this rank's memory.
struct local_rows {
  std::byte* first;
  std::ptrdiff_t stride;
  std::size_t bytes;
  std::size_t rows;
};

bool parse(std::span<const std::byte> payload, incoming& in) noexcept {
  if (payload.size() < sizeof in.head) return false;
  std::memcpy(&in.head, payload.data(), sizeof in.head);
  const std::size_t list = in.head.pieces == by_layout ? sizeof in.part : in.head.pieces * sizeof(target_rows);
  if (list > payload.size() - sizeof in.head) return false;
  in.pieces = payload.subspan(sizeof in.head, list);
  in.data = payload.subspan(sizeof in.head + list);
  return static_cast<std::size_t>(in.head.op) < operation_count &&
         static_cast<std::size_t>(in.head.type) < element_count;
}

/// Finds the layout that an operation names; false if it is unknown, or shorter than the operation.
bool find_named(engine& e, int source, incoming& in) noexcept {
  std::memcpy(&in.part, in.pieces.data(), sizeof in.part);
  in.layout = e.layouts().find(source, in.part.layout);
  return in.layout != nullptr && in.part.first <= in.layout->bytes() &&
         in.part.bytes <= in.layout->bytes() - in.part.first;
}

/// Finds a piece; false if it exceeds this rank's part.
bool find_rows(const window_core& w, const target_rows& piece, local_rows& at) noexcept {
  std::int64_t last = 0;
  if (piece.rows == 0 || __builtin_mul_overflow(piece.stride, std::int64_t{piece.rows} - 1, &last)) return false;
  const std::uint64_t below = last < 0 ? std::uint64_t{0} - static_cast<std::uint64_t>(last) : 0;
  const std::uint64_t span = (last < 0 ? below : static_cast<std::uint64_t>(last)) + piece.bytes;
  if (below > piece.offset) return false;
  std::byte* const lowest = local_range(w, piece.offset - below, span);
  if (lowest == nullptr) return false;
  at = {lowest + below, piece.stride, piece.bytes, piece.rows};
  return true;
}

/// True for an aligned word, the most frequent piece. It is accessed as a whole: others that share the lock may read or
/// write it now.
bool is_word(const local_rows& at) noexcept {
  return at.rows == 1 && at.bytes == word_bytes && reinterpret_cast<std::uintptr_t>(at.first) % word_bytes == 0;
}

/// Carries out one piece; appends fetched data. False if the message is malformed.
[[gnu::always_inline]] inline bool serve_rows(const incoming& in, const local_rows& at, std::uint64_t done,
                                              std::byte* fetched) noexcept {
  RMA_ASSERT(at.first != nullptr && at.rows != 0);
  const std::size_t bytes = at.bytes * at.rows;
  const auto row = static_cast<std::ptrdiff_t>(at.bytes);
  const bool carries = !in.data.empty();
  const std::byte* const from = carries ? in.data.data() + done : nullptr;
  if (in.head.kind == call::compare_and_swap) {
    if (at.rows != 1 || in.data.size() != 2 * bytes) return false;
    swap_owned(at.first, in.data.data(), in.data.data() + bytes, fetched, bytes);
    return true;
  }
  if (carries && done + bytes > in.data.size()) return false;
  if (in.head.kind == call::put) {
    if (!carries) return false;
    std::uint64_t word = 0;
    if (is_word(at)) {
      std::memcpy(&word, from, word_bytes);
      store_value(at.first, word);
    } else {
      copy_rows(at.first, at.stride, from, row, at.bytes, at.rows);
    }
    return true;
  }
  if (in.head.kind == call::get) {
    if (is_word(at)) {
      const auto word = load_value<std::uint64_t>(at.first);
      std::memcpy(fetched + done, &word, word_bytes);
    } else {
      copy_rows(fetched + done, row, at.first, at.stride, at.bytes, at.rows);
    }
    return true;
  }
  if (!carries && in.head.op != operation::no_op) return false;
  if (!defined_for(in.head.op, in.head.type) || at.bytes % bytes_of(in.head.type) != 0) return false;
  std::byte* const old = in.head.ticket != 0 ? fetched + done : nullptr;
  if (in.head.op == operation::no_op) {  // it only reads: the memory may be read-only
    if (old != nullptr) copy_rows(old, row, at.first, at.stride, at.bytes, at.rows);
    return true;
  }
  for (std::size_t i = 0; i < at.rows; ++i) {
    const std::size_t behind = i * at.bytes;
    (void)apply_owned(at.first + static_cast<std::ptrdiff_t>(i) * at.stride, carries ? from + behind : nullptr,
                      old != nullptr ? old + behind : nullptr, at.bytes, in.head.op, in.head.type);
  }
  return true;
}

/// True if the memory of each piece is readable, or writable, now. Pieces outside of the window are left to
/// `serve_pieces`.
template <bool named>
bool can_access(const window_core& w, const incoming& in) noexcept {
  const call kind = in.head.kind;
  const bool writes =
      kind == call::put || kind == call::compare_and_swap || (kind != call::get && in.head.op != operation::no_op);
  bool may = true;
  (void)for_each_piece<named>(in, [&](const target_rows& piece) noexcept {
    local_rows at{};
    if (!find_rows(w, piece, at)) return false;
    for (std::uint32_t row = 0; row < piece.rows && may; ++row) {
      std::byte* const element = at.first + static_cast<std::ptrdiff_t>(row) * at.stride;
      may = writes ? can_write(element, at.bytes) : can_read(element, at.bytes);
    }
    return may;
  });
  return may;
}

/// The row that a get of one row requests, which is sent from its place in memory; empty for other gets.
std::span<const std::byte> row_asked_for(const window_core& w, const incoming& in) noexcept {
  if (in.head.kind != call::get || in.head.pieces != 1 || in.head.ticket == 0) return {};
  target_rows piece{};
  std::memcpy(&piece, in.pieces.data(), sizeof piece);
  local_rows at{};
  if (piece.bytes > operation_message_max || piece.rows != 1 || !find_rows(w, piece, at) || is_word(at)) return {};
  return {at.first, at.bytes};
}

/// Carries out all pieces; `fetched` becomes the fetched data. False if the message is malformed.
template <bool named>
bool serve_pieces(const window_core& w, const incoming& in, std::span<std::byte>& fetched) noexcept {
  const bool brings = in.head.kind == call::put || in.head.kind == call::accumulate;
  const bool only_brings = brings && in.head.ticket == 0 && !in.data.empty();
  const std::uint64_t most = only_brings ? in.data.size() : fetched.size();
  std::uint64_t done = 0;
  const bool served = for_each_piece<named>(in, [&](const target_rows& piece) noexcept {
    const std::uint64_t bytes = std::uint64_t{piece.bytes} * piece.rows;
    local_rows at{};
    if (bytes > most - done || !find_rows(w, piece, at)) return false;
    if (!serve_rows(in, at, done, fetched.data())) return false;
    done += bytes;
    RMA_ASSERT(done <= most);
    return true;
  });
  if (!served) return false;
  fetched = fetched.first(only_brings ? 0 : done);
  return true;
}

template <bool named>
bool serve(engine& e, window_core& w, int source, const incoming& in) noexcept {
  std::span<const std::byte> answer = named ? std::span<const std::byte>() : row_asked_for(w, in);
  if (answer.empty()) {
    std::span<std::byte> fetched = e.reply_room();
    if (!serve_pieces<named>(w, in, fetched)) return false;
    answer = fetched;
  }
  if (in.head.ticket != 0)
    e.ctx().send_record(source, message::reply, reply_header{in.head.ticket, e.ctx().take_pending_acks(source)},
                        answer);
  // The signal comes after the reply, which is read from the window's memory: another thread that sees the signal may
  // overwrite that at once.
  if (in.head.signal >= 0 && static_cast<unsigned>(in.head.signal) < w.hints.signals) {
    w.array<word64>(w.my_block(), w.layout.signals_at)[in.head.signal].fetch_add(1);
  }
  return true;
}

template <bool named>
[[gnu::always_inline]] inline void carry_out(engine& e, window_core& w, int source, std::span<const std::byte> payload,
                                             const incoming& in) noexcept {
  if (!w.writable && !can_access<named>(w, in)) {
    e.reject_malformed(source, message::operation, payload, malformed_reason::protected_memory);
  } else if (!serve<named>(e, w, source, in)) {
    e.reject_malformed(source, message::operation, payload, malformed_reason::wrong_contents);
  }
}

[[gnu::noinline]] void carry_out_named(engine& e, window_core& w, int source, std::span<const std::byte> payload,
                                       incoming& in) noexcept {
  if (!find_named(e, source, in))
    return e.reject_malformed(source, message::operation, payload, malformed_reason::wrong_contents);
  carry_out<true>(e, w, source, payload, in);
}

/// Refuses an operation on a window that was dropped here, which its origin may not know.
void turn_down(engine& e, int source, const operation_header& head) noexcept {
  e.ctx().send_record(source, message::refusal,
                      dropped_header{head.window, head.ticket, e.ctx().take_pending_acks(source)});
}

}  // namespace

bool knows_layout(engine& e, int source, std::span<const std::byte> payload) {
  target_part part{};
  constexpr std::size_t pieces_at = offsetof(operation_header, pieces);
  if (payload.size() < sizeof(operation_header) + sizeof part || payload[pieces_at] != std::byte{by_layout})
    return true;
  std::memcpy(&part, payload.data() + sizeof(operation_header), sizeof part);
  return e.layouts().knows(source, part.layout);
}

void serve_operation(engine& e, int source, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(e.ctx().is_guarded());
  if (!knows_layout(e, source, payload)) return e.ctx().hold_message(source, message::operation, payload);
  e.ctx().defer_ack(source);
  run_operation(e, source, payload);
}

void run_operation(engine& e, int source, std::span<const std::byte> payload) noexcept {
  incoming in{};
  if (!parse(payload, in)) {
    e.reject_malformed(source, message::operation, payload, malformed_reason::wrong_length);
    return;
  }
  window_core* const w = e.find(in.head.window);
  if (w == nullptr) return turn_down(e, source, in.head);
  if (in.head.pieces == by_layout) [[unlikely]] {
    carry_out_named(e, *w, source, payload, in);
  } else {
    carry_out<false>(e, *w, source, payload, in);
  }
  if (in.head.signal <= last_of_epoch)  // even after a failure: the end of the epoch waits for this
    w->epochs->last_came(*w, source, static_cast<std::uint32_t>(last_of_epoch - in.head.signal));
}

std::byte* local_range(const window_core& w, std::uint64_t offset, std::uint64_t bytes) noexcept {
  if (w.kind != call::create_dynamic) {
    return offset <= w.local_bytes && bytes <= w.local_bytes - offset ? w.local_base + offset : nullptr;
  }
  const auto range_at = [&w](std::uint64_t i) noexcept -> const attachment& { return w.attachments[i]; };
  const bool attached = find_range(w.attachments.size(), range_at, offset, bytes).bytes != 0;
  return attached ? reinterpret_cast<std::byte*>(offset) : nullptr;
}

}  // namespace rma::detail
