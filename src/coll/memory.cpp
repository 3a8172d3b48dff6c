// SPDX-License-Identifier: Apache-2.0
#include "coll/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

#include "coll/memory_operands.hpp"
#include "coll/signature.hpp"
#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {
namespace {

constexpr std::size_t window_bytes_min = 32768;  ///< from here on, the exchange of addresses costs little
constexpr std::size_t flat_bytes_max = 2048;     ///< combining all at every member costs less than another turn
constexpr int tree_members_min = 8;              ///< with several groups of cores

/// Members are never farther apart, and no wait is for an older turn: flags are compared by their difference.
constexpr std::uint64_t numbers_apart_max = std::uint64_t{1} << 18;
constexpr std::uint64_t digest_mask = (std::uint64_t{1} << digest_bits) - 1;
constexpr unsigned number_shift = turn_bits + digest_bits;

/// In the digest of a call by messages, in the place of its length.
constexpr std::size_t bytes_by_messages = ~std::size_t{0};

std::uint64_t digest_of(std::int32_t signature, std::size_t bytes) noexcept {
  const std::uint64_t x =
      (static_cast<std::uint64_t>(static_cast<std::uint32_t>(signature)) << 32 ^ bytes) * 0x9e3779b97f4a7c15ULL;
  return x >> (64 - digest_bits);
}

}  // namespace

memory_collectives::memory_collectives(team_core& team)
    : team_(team), slot_bytes_(memory_lines::slot_bytes(team.size)) {
  for (int r = 0; r < team.size; ++r) lines_.push_back(team.memory_lines_of(r));
  spare_.resize(slot_bytes_ * static_cast<std::size_t>(std::bit_width(static_cast<unsigned>(team.size)) + 1));
  make_groups();
  RMA_ASSERT(lines_.size() == static_cast<std::size_t>(team.size) && slot_bytes_ >= memory_lines::cell_bytes);
}

void memory_collectives::begin(const collective_call& c, std::uint64_t number) noexcept {
  const std::int32_t signature = signature_of(c);
  memory_lines& mine = *lines_[static_cast<std::size_t>(team_.rank)];
  RMA_ASSERT(number >= turn_ >> turn_bits);  // collectives are numbered in their order
  turn_ = number << turn_bits;
  slot_ = static_cast<unsigned>(number & 1) ^ 1;
  const bool blocks = moves_blocks(c.what);
  const std::size_t bytes = blocks ? block_bytes_of(c) : c.bytes;
  in_cell_ = bytes * static_cast<std::size_t>(blocks ? blocks_given(c) : 1) <= memory_lines::cell_bytes;
  call_ = digest_of(signature, bytes);
  memory_lines::call& current = mine.calls[number % std::size(mine.calls)];
  current.bytes.store(bytes, std::memory_order_relaxed);
  current.which.store(number << 32 | static_cast<std::uint32_t>(signature), std::memory_order_relaxed);
}

void memory_collectives::mark_failed(std::uint64_t number, status why) noexcept {
  RMA_ASSERT(why != status::done);
  memory_lines& mine = *lines_[static_cast<std::size_t>(team_.rank)];
  mine.failed[failures_++ % std::size(mine.failed)].store(number << 8 | static_cast<std::uint8_t>(why));
  mine.failures.store(failures_);
}

void memory_collectives::show() noexcept {
  RMA_ASSERT(turn_ >> turn_bits == number_ && call_ <= digest_mask);  // turns do not overflow into the next number
  lines_[static_cast<std::size_t>(team_.rank)]->turn.publish(turn_ << digest_bits | call_);
  team_.ring_waiters();
}

// The flag shows the last turn of that collective, which none in memory has.
void memory_collectives::pass(std::uint64_t number, std::int32_t signature) noexcept {
  RMA_ASSERT(number > turn_ >> turn_bits);
  number_ = number;
  turn_ = number << turn_bits | ((std::uint64_t{1} << turn_bits) - 1);
  call_ = digest_of(signature & 0x7fffffff, bytes_by_messages);
  lines_[static_cast<std::size_t>(team_.rank)]->turn.store(turn_ << digest_bits | call_);
}

void memory_collectives::wake_members() noexcept {
  full_fence();
  team_.ring_waiters();
}

void memory_collectives::publish() noexcept {
  ++turn_;
  note_use();
  show();
}

void memory_collectives::note_use() noexcept {
  slot_left_[slot_] = turn_;
  (in_cell_ ? cell_left_[number_ % memory_lines::cells] : whole_left_[slot_]) = turn_;
}

status memory_collectives::wait_for(int member, std::uint64_t turn) noexcept {
  RMA_ASSERT(member >= 0 && member < team_.size && member != team_.rank);
  const memory_lines& theirs = *lines_[static_cast<std::size_t>(member)];
  std::uint64_t seen = 0;
  const auto reached = [&]() noexcept {
    seen = theirs.turn.load();
    return static_cast<std::int64_t>((seen | digest_mask) - (turn << digest_bits)) >= 0;
  };
  if (!reached()) {
    const auto arrived = [&]() noexcept { return reached() || told_->load(std::memory_order_relaxed); };
    const status s = team_.rt->ctx->wait(
        {.until = arrived, .fails_if = [this]() noexcept { return team_.gone_member(); }, .woken_by = wakes::memory});
    if (s != status::done) return s;
    if (!reached()) return status::bad_argument;  // a member has reported a failure
  }
  const auto ahead = static_cast<std::int64_t>(seen - (turn << digest_bits)) >> digest_bits;
  seen_at_ = turn + static_cast<std::uint64_t>(ahead);
  if (seen >> number_shift == turn_ << digest_bits >> number_shift) {
    if ((seen & digest_mask) == call_) [[likely]]
      return status::done;
    return compare_calls(member, seen);
  }
  // The member is in another collective: it has left this one, or failed in it, or has not reached it yet.
  if (theirs.failures.load() == 0) return compare_calls(member, seen);
  for (const word64& each : theirs.failed) {
    const std::uint64_t failure = each.load();
    if (failure >> 8 != number_) continue;
    failed_at_ = member;
    return static_cast<status>(static_cast<std::int8_t>(failure & 0xff));
  }
  return compare_calls(member, seen);
}

const memory_lines::call& memory_collectives::call_of(int member) const noexcept {
  const memory_lines& lines = *lines_[static_cast<std::size_t>(member)];
  return lines.calls[number_ % std::size(lines.calls)];
}

status memory_collectives::compare_calls(int member, std::uint64_t seen) noexcept {
  const std::uint64_t mine = call_of(team_.rank).which.load();
  const std::uint64_t theirs = call_of(member).which.load();
  if (theirs >> 32 != mine >> 32) {
    // It has not reached this one, or is far ahead; else its call of this number goes by messages.
    const bool is_later = static_cast<std::int32_t>((theirs >> 32) - (mine >> 32)) > 0;
    if (is_later || seen_at_ >> turn_bits < number_) return status::done;
    other_ = member;
    const std::uint64_t alike = digest_of(static_cast<std::int32_t>(mine & 0x7fffffff), bytes_by_messages);
    return seen_at_ >> turn_bits == number_ && (seen & digest_mask) == alike ? status::bad_size : status::bad_argument;
  }
  if (theirs == mine && call_of(member).bytes.load() == call_of(team_.rank).bytes.load()) return status::done;
  other_ = member;
  return theirs == mine ? status::bad_size : status::bad_argument;
}

// A turn older than flags can express needs no wait: all members have left it when they reach this collective.
status memory_collectives::wait_for_all(std::uint64_t turn) noexcept {
  if (number_ - (turn >> turn_bits) >= numbers_apart_max) turn = number_ << turn_bits;
  std::uint64_t earliest = ~std::uint64_t{0};
  for (int r = 0; r < team_.size; ++r) {
    if (r == team_.rank) continue;
    if (const status s = wait_for(r, turn); s != status::done) return s;
    earliest = std::min(earliest, seen_at_);
  }
  RMA_ASSERT(team_.size == 1 || earliest >= turn);
  seen_ = earliest;
  return status::done;
}

// If a slot is used twice in a row, due to a collective by messages in between or to the lengths of the two, all
// members must have reached the second one.
status memory_collectives::next_slot() noexcept {
  slot_ ^= 1;
  std::uint64_t left = slot_left_[slot_];
  if (in_cell_) left = std::max(cell_left_[number_ % memory_lines::cells], whole_left_[slot_]);
  if (left == 0 || seen_ > left) return status::done;
  if (in_cell_) left = std::max(left, cell_left_[(number_ + memory_lines::cells / 2) % memory_lines::cells]);
  show();
  return wait_for_all(left + 1);
}

status memory_collectives::run(const collective_call& c, std::uint64_t number, way how,
                               const std::atomic<bool>& reported) noexcept {
  told_ = &reported;
  number_ = number;
  RMA_ASSERT(c.root >= 0 && c.root < team_.size);
  other_ = failed_at_ = -1;
  begin(c, number);
  if (moves_blocks(c.what)) return move_blocks(c);
  switch (c.what) {
    case collective::broadcast: return broadcast(c, how);
    case collective::reduce: return reduce(c, how);
    default: return allreduce(c, how);
  }
}

bool memory_collectives::by_tree(const collective_call& c, std::size_t bytes, way how) const noexcept {
  const bool wanted = how == way::tree ||
                      (how == way::automatic && by_cores_ && team_.size >= tree_members_min && bytes <= flat_bytes_max);
  return wanted && tree_fits(c);
}

// A broadcast of no bytes takes a turn as well, so that a member with a different call is detected.
status memory_collectives::broadcast(const collective_call& c, way how) noexcept {
  if (c.bytes >= window_bytes_min && how == way::automatic) {
    bool in_segment = false;
    form_ = form_kind::window;
    if (const status s = broadcast_from_window(c, in_segment); s != status::done || in_segment) return s;
  }
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(slot_bytes_, c.bytes - offset);
    const bool tree = by_tree(c, bytes, how);
    if (offset == 0) form_ = tree ? form_kind::tree : form_kind::release_gather;
    const status s = tree ? broadcast_by_tree(c, offset, bytes) : broadcast_flat(c, offset, bytes);
    if (s != status::done) return s;
    offset += bytes;
  } while (offset < c.bytes);
  return status::done;
}

status memory_collectives::broadcast_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  RMA_ASSERT(bytes <= slot_bytes_);
  if (team_.rank == c.root) {
    if (const status s = next_slot(); s != status::done) return s;
    load_operand(slot(c.root), c, offset, bytes);
    publish();
    return status::done;
  }
  slot_ ^= 1;
  ++turn_;
  show();
  if (const status s = wait_for(c.root, turn_); s != status::done) return s;
  store_result(c, slot(c.root), offset, bytes);
  return status::done;
}

status memory_collectives::reduce(const collective_call& c, way how) noexcept {
  if (c.bytes >= window_bytes_min && how == way::automatic) {
    bool all_in_segments = false;
    form_ = form_kind::window;
    if (const status s = share_operands(c, all_in_segments); s != status::done) return s;
    if (all_in_segments) return reduce_in_windows(c);
  }
  std::size_t offset = 0;
  const std::size_t unit = element_bytes_of(c);
  const std::size_t most = slot_bytes_ / unit * unit;
  RMA_ASSERT(most != 0 && c.bytes % unit == 0);
  do {
    const std::size_t bytes = std::min(most, c.bytes - offset);
    const bool tree = by_tree(c, bytes, how);
    if (offset == 0) form_ = tree ? form_kind::tree : form_kind::release_gather;
    const status s = tree ? reduce_by_tree(c, offset, bytes) : reduce_flat(c, offset, bytes);
    if (s != status::done) return s;
    offset += bytes;
  } while (offset < c.bytes);
  return status::done;
}

status memory_collectives::reduce_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  if (const status s = next_slot(); s != status::done) return s;
  load_operand(slot(team_.rank), c, offset, bytes);
  publish();
  if (team_.rank != c.root) return status::done;
  if (const status s = wait_for_all(turn_); s != status::done) return s;
  combine_slots(c, 0, bytes, spare_.data());
  store_result(c, spare_.data(), offset, bytes);
  return status::done;
}

status memory_collectives::allreduce(const collective_call& c, way how) noexcept {
  const std::size_t unit = element_bytes_of(c);
  const std::size_t most = slot_bytes_ / unit * unit;
  RMA_ASSERT(most != 0 && c.bytes % unit == 0);
  if (c.bytes >= window_bytes_min && (how == way::automatic || how == way::direct)) {
    bool all_in_segments = false;
    form_ = form_kind::window;
    if (const status s = share_operands(c, all_in_segments); s != status::done) return s;
    if (all_in_segments) return allreduce_in_windows(c);
  }
  std::size_t offset = 0;
  do {
    const std::size_t bytes = std::min(most, c.bytes - offset);
    const bool flat = how == way::flat || (how == way::automatic && bytes <= flat_bytes_max);
    const bool tree = by_tree(c, bytes, how);
    if (offset == 0) form_ = tree ? form_kind::tree : flat ? form_kind::flat : form_kind::direct;
    const status s = tree   ? allreduce_by_tree(c, offset, bytes)
                     : flat ? allreduce_flat(c, offset, bytes)
                            : allreduce_direct(c, offset, bytes);
    if (s != status::done) return s;
    offset += bytes;
  } while (offset < c.bytes);
  return status::done;
}

status memory_collectives::allreduce_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  if (const status s = next_slot(); s != status::done) return s;
  load_operand(slot(team_.rank), c, offset, bytes);
  publish();
  if (const status s = wait_for_all(turn_); s != status::done) return s;
  const bool plain = c.out_shape.one == nullptr;
  std::byte* const into = plain ? static_cast<std::byte*>(c.out) + offset : spare_.data();
  combine_slots(c, 0, bytes, into);
  if (!plain) store_result(c, into, offset, bytes);
  return status::done;
}

status memory_collectives::allreduce_direct(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  const std::size_t unit = element_bytes_of(c);
  const auto members = static_cast<std::size_t>(team_.size);
  RMA_ASSERT(bytes <= slot_bytes_ && bytes % unit == 0);
  const auto begin_of = [&](std::size_t r) { return bytes / unit * r / members * unit; };
  if (const status s = next_slot(); s != status::done) return s;
  load_operand(slot(team_.rank), c, offset, bytes);
  publish();
  if (const status s = wait_for_all(turn_); s != status::done) return s;
  const auto me = static_cast<std::size_t>(team_.rank);
  const std::size_t first = begin_of(me);
  combine_slots(c, first, begin_of(me + 1) - first, spare_.data());
  std::memcpy(slot(team_.rank) + first, spare_.data(), begin_of(me + 1) - first);
  publish();
  for (std::size_t i = 0; i < members; ++i) {  // the own part first: the others' may not be ready
    const std::size_t r = (me + i) % members;
    if (r != me) {
      if (const status s = wait_for(static_cast<int>(r), turn_); s != status::done) return s;
    }
    const std::size_t from = begin_of(r);
    if (c.out_shape.one == nullptr)
      store_result(c, slot(static_cast<int>(r)) + from, offset + from, begin_of(r + 1) - from);
    if (c.out_shape.one != nullptr)
      std::memcpy(spare_.data() + from, slot(static_cast<int>(r)) + from, begin_of(r + 1) - from);
  }
  seen_ = turn_;
  if (c.out_shape.one != nullptr) store_result(c, spare_.data(), offset, bytes);
  return status::done;
}

void memory_collectives::combine_slots(const collective_call& c, std::size_t offset, std::size_t bytes,
                                       std::byte* into) noexcept {
  RMA_ASSERT(offset + bytes <= slot_bytes_);
  if (bytes == 0) return;
  const auto operand = [&](int r) noexcept { return slot(r) + offset; };
  combine_operands(c, operand, 0, team_.size, bytes, into, spare_.data() + slot_bytes_, slot_bytes_);
}

std::string_view memory_collectives::form() const noexcept {
  switch (form_) {
    case form_kind::direct: return "direct";
    case form_kind::tree: return "tree";
    case form_kind::window: return "window";
    case form_kind::release_gather: return "release-gather";
    default: return "flat";
  }
}

// No model takes part in it: the limits are those of the file's head.
std::string memory_collectives::reason(const collective_call& c, std::string_view set) const {
  if (form_ == form_kind::window && set.empty())
    return fmt::format("all members share memory; {} B and more in segments", window_bytes_min);
  if (form_ == form_kind::window) return fmt::format("{} is set; the operands lie in segments", set);
  if (!set.empty() && set != form()) return fmt::format("the name set does not fit: {}", set);
  if (!set.empty()) return fmt::format("{} is set", set);
  std::string text("all members share memory; ");
  if (moves_blocks(c.what)) return text + fmt::format("blocks of up to {} B", piece_bytes_max(c));
  switch (form_) {
    case form_kind::flat: text += fmt::format("up to {} B", flat_bytes_max); break;
    case form_kind::direct: text += fmt::format("more than {} B", flat_bytes_max); break;
    case form_kind::tree:
      text +=
          fmt::format("up to {} B, {} members and more in several groups of cores", flat_bytes_max, tree_members_min);
      break;
    default: text += "one side waits"; break;
  }
  if (c.bytes >= window_bytes_min) text += "; an operand lies in no segment";
  return text;
}

std::string memory_collectives::mismatch() const {
  if (other_ < 0 && failed_at_ < 0) return {};
  std::string text = fmt::format(" with {} bytes", call_of(team_.rank).bytes.load());
  if (other_ < 0) return text + fmt::format("; it has failed at member {}", failed_at_);
  if (call_of(other_).which.load() >> 32 != (number_ & 0xffffffff))
    return text + fmt::format("; the call of member {} went by messages", other_);
  const std::int32_t signature = signature_at(other_, number_);
  return text + fmt::format("; member {} called {} with {} bytes", other_, text_of_signature(signature),
                            call_of(other_).bytes.load());
}

std::int32_t memory_collectives::signature_at(int member, std::uint64_t number) const noexcept {
  const memory_lines& lines = *lines_[static_cast<std::size_t>(member)];
  return static_cast<std::int32_t>(lines.calls[number % std::size(lines.calls)].which.load() & 0x7fffffff);
}

int memory_collectives::member_in(std::uint64_t number) noexcept {
  for (int r = 0; r < team_.size; ++r) {
    const memory_lines& theirs = *lines_[static_cast<std::size_t>(r)];
    if (r != team_.rank && theirs.calls[number % std::size(theirs.calls)].which.load() >> 32 == (number & 0xffffffff))
      return r;
  }
  return -1;
}

}  // namespace rma::detail::coll
