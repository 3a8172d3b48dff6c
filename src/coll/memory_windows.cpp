// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives in memory whose operands lie in segments: they are loaded in place, without slots.
#include <algorithm>
#include <cstring>

#include "coll/memory.hpp"
#include "coll/memory_operands.hpp"
#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {

std::byte* memory_collectives::segment_of(int member) const noexcept {
  return team_.rt->board->segment(static_cast<std::size_t>(team_.node_index(member)));
}

const std::byte* memory_collectives::input_of(int member) const noexcept {
  RMA_ASSERT(lines_[static_cast<std::size_t>(member)]->input_at.load(std::memory_order_relaxed) != 0);
  return segment_of(member) + lines_[static_cast<std::size_t>(member)]->input_at.load(std::memory_order_relaxed) - 1;
}

std::byte* memory_collectives::output_of(int member) const noexcept {
  RMA_ASSERT(lines_[static_cast<std::size_t>(member)]->output_at.load(std::memory_order_relaxed) != 0);
  return segment_of(member) + lines_[static_cast<std::size_t>(member)]->output_at.load(std::memory_order_relaxed) - 1;
}

std::size_t memory_collectives::begin_of_part(const collective_call& c, int member) const noexcept {
  const std::size_t unit = element_bytes_of(c);
  RMA_ASSERT(member >= 0 && member <= team_.size);  // `size` gives the end of the last part
  return c.bytes / unit * static_cast<std::size_t>(member) / static_cast<std::size_t>(team_.size) * unit;
}

// A member whose operand has a layout takes part as well: only it knows that. Addresses that were published before have
// been read by the members that are past their turn.
status memory_collectives::tell_operands(const collective_call& c) noexcept {
  RMA_ASSERT(operands_told_ <= turn_);
  if (operands_told_ != 0 && seen_ <= operands_told_) {
    show();
    if (const status s = wait_for_all(operands_told_ + 1); s != status::done) return s;
  }
  const auto place_of = [&](const void* at, const collective_shape& shape) noexcept {
    if (shape.given()) return std::uint64_t{0};
    const auto offset = team_.rt->board->own_offset(static_cast<const std::byte*>(at), c.bytes);
    return offset ? std::uint64_t{*offset} + 1 : 0;
  };
  memory_lines& mine = *lines_[static_cast<std::size_t>(team_.rank)];
  mine.input_at.store(place_of(c.in, c.in_shape), std::memory_order_relaxed);
  mine.output_at.store(place_of(c.out, c.out_shape), std::memory_order_relaxed);
  ++turn_;
  operands_told_ = turn_;
  show();
  return status::done;
}

status memory_collectives::share_operands(const collective_call& c, bool& all_in_segments) noexcept {
  if (const status s = tell_operands(c); s != status::done) return s;
  if (const status s = wait_for_all(turn_); s != status::done) return s;
  all_in_segments = true;
  for (int r = 0; r < team_.size; ++r) {
    const memory_lines& theirs = *lines_[static_cast<std::size_t>(r)];
    const bool has_result = c.what != collective::reduce || r == c.root;
    all_in_segments = all_in_segments && theirs.input_at.load(std::memory_order_relaxed) != 0 &&
                      (!has_result || theirs.output_at.load(std::memory_order_relaxed) != 0);
  }
  return status::done;
}

// In place, the part is an operand until it has been combined.
void memory_collectives::combine_own_part(const collective_call& c, std::byte* result,
                                          const std::byte* operand_there) noexcept {
  const std::size_t unit = element_bytes_of(c);
  const std::size_t most = slot_bytes_ / unit * unit;
  const bool in_place = result == operand_there;
  const std::size_t end = begin_of_part(c, team_.rank + 1);
  RMA_ASSERT(most != 0 && end <= c.bytes);
  for (std::size_t at = begin_of_part(c, team_.rank); at < end; at += most) {
    const std::size_t bytes = std::min(most, end - at);
    const auto operand = [&](int r) noexcept { return input_of(r) + at; };
    std::byte* const into = in_place ? spare_.data() : result + at;
    combine_operands(c, operand, 0, team_.size, bytes, into, spare_.data() + slot_bytes_, slot_bytes_);
    if (in_place) std::memcpy(result + at, into, bytes);
  }
}

status memory_collectives::allreduce_in_windows(const collective_call& c) noexcept {
  auto* const out = static_cast<std::byte*>(c.out);
  combine_own_part(c, out, static_cast<const std::byte*>(c.in));
  ++turn_;
  show();
  for (int i = 1; i < team_.size; ++i) {
    const int r = (team_.rank + i) % team_.size;
    if (const status s = wait_for(r, turn_); s != status::done) return s;
    const std::size_t first = begin_of_part(c, r);
    std::memcpy(out + first, output_of(r) + first, begin_of_part(c, r + 1) - first);
  }
  ++turn_;
  show();
  return wait_for_all(turn_);
}

// Each member combines its part in the root's output. All wait for all: operands may be overwritten after the call.
status memory_collectives::reduce_in_windows(const collective_call& c) noexcept {
  combine_own_part(c, output_of(c.root), input_of(c.root));
  ++turn_;
  show();
  return wait_for_all(turn_);
}

status memory_collectives::broadcast_from_window(const collective_call& c, bool& in_segment) noexcept {
  if (const status s = tell_operands(c); s != status::done) return s;
  if (team_.rank != c.root) {
    if (const status s = wait_for(c.root, turn_); s != status::done) return s;
  }
  const memory_lines& root = *lines_[static_cast<std::size_t>(c.root)];
  in_segment = root.input_at.load(std::memory_order_relaxed) != 0;
  if (!in_segment) return status::done;
  if (team_.rank != c.root) store_result(c, input_of(c.root), 0, c.bytes);
  ++turn_;
  show();
  return team_.rank == c.root ? wait_for_all(turn_) : status::done;
}

}  // namespace rma::detail::coll
