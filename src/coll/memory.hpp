// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blocking collectives of a team whose members share memory, by single-writer flags: no message, no lock, no schedule.
///
///   flat             everyone: data into its slot, publish the turn | wait for all | combine what is in the slots
///   direct           the same, but each combines its part of the vector alone | publish | copy the parts together
///   in windows       large vectors whose operands all lie in segments: where mine are, publish | wait for all |
///                    combine my part from all memories, publish | copy each one's part as it comes, publish |
///                    wait for all members, which may still be reading: no slot, no second copy
///   in windows       broadcast: copies from where the root's vector is; reduce: each combines its part where the root
///                    wants it
///   release-gather   broadcast: the root's slot, published; reduce: everyone's slot, the root combines
///   tree             members | leaders of groups | root: each group's operands into its leader's slot, those of the
///                    leaders at the root; the result from the root's slot to the leaders', and from there to members
///
/// A turn is a store into one's own line. The flag of a turn says, too, that its owner has left all turns before: a
/// slot is written again when everybody has been seen behind its last use, which mostly is known already. Small data
/// lie in one of 32 cells of the slots: so far may a member be ahead of the others where it waits for none of them, and
/// when it is, it waits until half of the cells are free, so that ranks that share a core do not switch for each call.
/// Turns begin with the number of the collective: after one that has failed, wherever its members were, the next one
/// works.
/// Operands are combined by the tree of `reproducible`, so that all members, all sizes and all ways give the same bits.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "rma/detail/collective_call.hpp"
#include "rma/error.hpp"
#include "runtime/memory_lines.hpp"

namespace rma::detail {
struct team_core;
}

namespace rma::detail::coll {

/// Turns are counted here as number << turn_bits | turn in that collective, which never wraps. A flag has as much of it
/// as fits above the digest of the call.
inline constexpr unsigned turn_bits = 22;
inline constexpr unsigned digest_bits = 22;

class memory_collectives {
 public:
  /// `flat` is release-gather of broadcast and reduce, too.
  enum class way : std::uint8_t { automatic, flat, direct, tree };

  explicit memory_collectives(team_core& team);

  /// Broadcast, reduce and allreduce. `number`: of this collective among the team's. `told`: becomes true when another
  /// member says that it has failed, whatever this one waits for.
  status run(const collective_call& call, std::uint64_t number, way how, const std::atomic<bool>& told) noexcept;

  /// A collective of this number begins by messages. Flags have no room for the whole number: this member's would look
  /// ahead of others' turns after half a million such collectives, were it not moved now and then.
  void follow(std::uint64_t number) noexcept {
    if (number % follow_every == 0) [[unlikely]]
      show_number(number);
  }
  /// It has failed here, or was refused: members that wait for this one must not take its next flag for that of this
  /// collective.
  void mark_failed(std::uint64_t number, status why) noexcept;
  /// After bad_argument or bad_size, behind what this member has called: its bytes, and what the other one has called.
  [[nodiscard]] std::string mismatch() const;
  /// The member that has called something else, or -1.
  [[nodiscard]] int other() const noexcept { return other_; }
  /// The member in whose line this one has seen that it has failed, or -1.
  [[nodiscard]] int failed_at() const noexcept { return failed_at_; }
  /// A member that is in a collective in memory of this number, or -1.
  [[nodiscard]] int member_in(std::uint64_t number) noexcept;

 private:
  static constexpr std::uint64_t follow_every = std::uint64_t{1} << 16;
  void show_number(std::uint64_t number) noexcept;
  status broadcast(const collective_call& c, way how) noexcept;
  status reduce(const collective_call& c, way how) noexcept;
  status allreduce(const collective_call& c, way how) noexcept;
  // A chunk of at most a slot.
  status broadcast_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status reduce_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status allreduce_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status allreduce_direct(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status broadcast_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status reduce_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status allreduce_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;

  // In windows.
  status allreduce_in_windows(const collective_call& c) noexcept;
  status reduce_in_windows(const collective_call& c) noexcept;
  /// It is over if the root's vector lies in a segment.
  status broadcast_from_window(const collective_call& c, bool& in_segment) noexcept;
  /// Tells where the operands are, in a turn.
  status tell_operands(const collective_call& c) noexcept;
  /// The same, and learns whether all members' lie in segments.
  status share_operands(const collective_call& c, bool& all_in_segments) noexcept;
  void combine_own_part(const collective_call& c, std::byte* result, const std::byte* operand_there) noexcept;
  [[nodiscard]] std::size_t begin_of_part(const collective_call& c, int member) const noexcept;
  [[nodiscard]] std::byte* segment_of(int member) const noexcept;
  [[nodiscard]] const std::byte* input_of(int member) const noexcept;
  [[nodiscard]] std::byte* output_of(int member) const noexcept;

  // By a tree of two levels.
  void make_groups();
  [[nodiscard]] bool by_tree(const collective_call& c, std::size_t bytes, way how) const noexcept;
  /// Its bits are those of the one tree, or any tree gives them.
  [[nodiscard]] bool tree_fits(const collective_call& c) const noexcept;
  status combine_in_group(const collective_call& c, std::size_t bytes) noexcept;
  status combine_groups(const collective_call& c, std::size_t bytes, std::byte* into) noexcept;
  status pass_down(int root, std::size_t bytes) noexcept;
  [[nodiscard]] bool shares_group(int member) const noexcept;
  /// The member whose slot this one takes the root's data from.
  [[nodiscard]] int giver_of(int root) const noexcept;

  void begin(const collective_call& c, std::uint64_t number) noexcept;
  /// Takes the slot of the next chunk, which all members have left.
  status next_slot() noexcept;
  void publish() noexcept;
  void show() noexcept;
  status wait_for(int member, std::uint64_t turn) noexcept;
  /// The member has called this as the collective, if it still says so.
  [[nodiscard]] const memory_lines::call& call_of(int member) const noexcept;
  /// Bad_size or bad_argument if that differs from what this one has called.
  status compare_calls(int member) noexcept;
  status wait_for_all(std::uint64_t turn) noexcept;
  [[nodiscard]] std::byte* slot(int member) noexcept {
    memory_lines& lines = *lines_[static_cast<std::size_t>(member)];
    return in_cell_ ? lines.cell(number_, slot_bytes_) : lines.slot(slot_, slot_bytes_);
  }
  /// This member's data of turn_ are the last that its slot has had.
  void note_use() noexcept;
  /// Bytes from `offset` on of everyone's slot, by the tree of `reproducible`.
  void combine_slots(const collective_call& c, std::size_t offset, std::size_t bytes, std::byte* into) noexcept;

  team_core& team_;
  std::vector<memory_lines*> lines_;
  std::size_t slot_bytes_;
  std::vector<std::byte> spare_;
  std::vector<std::vector<int>> groups_;  ///< of the tree, by their lowest members
  std::size_t own_group_ = 0;
  bool groups_in_tree_ = false;  ///< groups are parts of the one tree over all members
  bool by_cores_ = false;        ///< groups are those of cores to which ranks are bound
  std::uint64_t number_ = 0;
  std::uint64_t turn_ = 0;
  std::uint64_t seen_ = 0;           ///< all members have been seen at this turn
  std::uint64_t seen_at_ = 0;        ///< the turn at which wait_for has seen the member
  bool in_cell_ = false;             ///< the data fit a cell
  std::uint64_t slot_left_[2] = {};  ///< the last turn of the last use of this member's slots, in whole or by cells
  std::uint64_t whole_left_[2] = {};
  std::uint64_t cell_left_[memory_lines::cells] = {};
  std::uint64_t operands_told_ = 0;  ///< the last turn that told where operands are
  unsigned slot_ = 0;
  std::uint64_t call_ = 0;  ///< digest
  std::size_t failures_ = 0;
  const std::atomic<bool>* told_ = nullptr;
  int other_ = -1;      ///< member that has called something else
  int failed_at_ = -1;  ///< member in which it has failed
};

}  // namespace rma::detail::coll
