// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blocking collectives of a team whose members share memory, by single-writer flags: no message, no lock, no schedule.
///
///   flat             every member: data into its slot, publish the turn | wait for all | combine the slots
///   direct           as flat, but each member combines its part of the vector only | publish | copy the parts together
///   in windows       large vectors whose operands all lie in segments: publish their addresses | wait for all |
///                    combine own part from all memories, publish | copy each member's part when it is ready, publish |
///                    wait for all members, which may still be reading: no slot, no second copy
///   in windows       broadcast: copies from the root's vector; reduce: each member combines its part in the root's
///                    output
///   release-gather   broadcast: the root's slot, published; reduce: everyone's slot, the root combines
///   blocks           flat: allgather and alltoall; release-gather: gather and scatter (memory_blocks.cpp)
///   tree             members | leaders of groups | root: each group's operands into its leader's slot, those of the
///                    leaders at the root; the result from the root's slot to the leaders', and from there to members
///
/// A turn is a store into the member's own line. The flag of a turn also shows that its owner has left all earlier
/// turns: a slot is reused when all members have been seen after its last use, which mostly is known already. Small
/// data lie in one of 32 cells of the slots: a member may be that far ahead of the others if it waits for none of them,
/// and when it is, it waits until half of the cells are free, so that ranks that share a core do not switch for each
/// call. Turns begin with the number of the collective: after one that has failed, at whatever turn its members were,
/// the next one works. Operands are combined by the tree of `reproducible`, so that all members, all sizes and all
/// variants give the same bits.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
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

/// True for calls that move blocks between members, and combine nothing.
[[nodiscard]] constexpr bool moves_blocks(collective what) noexcept {
  return what == collective::allgather || what == collective::alltoall || what == collective::gather ||
         what == collective::scatter;
}
/// The length of each block of such a call, which all members know.
[[nodiscard]] inline std::size_t block_bytes_of(const collective_call& c) noexcept {
  return std::max(c.sent.each_bytes, c.received.each_bytes);
}

class memory_collectives {
 public:
  /// `flat` also stands for release-gather.
  enum class way : std::uint8_t { automatic, flat, direct, tree };

  explicit memory_collectives(team_core& team);

  /// Runs a broadcast, reduce or allreduce, or a call that moves equal blocks. `number` is that of this collective
  /// among the team's. `reported` becomes true when another member has reported a failure of it, whatever this member
  /// waits for.
  status run(const collective_call& call, std::uint64_t number, way how, const std::atomic<bool>& reported) noexcept;

  /// True if the blocks that a member gives fit a slot: they move in one turn.
  [[nodiscard]] bool fits_slot(const collective_call& c) const noexcept;

  /// The form that the last call has had, that of its first chunk.
  [[nodiscard]] std::string_view form() const noexcept;
  /// Why it was that one. `set`: the name that the setting gives, empty for auto.
  [[nodiscard]] std::string reason(const collective_call& call, std::string_view set) const;

  /// Called when a collective begins by messages: a member that is in one of this number in memory, or still in an
  /// earlier one, sees that its own call differs. It is not woken: that costs a fence.
  void pass(std::uint64_t number, std::int32_t signature) noexcept;
  /// Wakes the members that wait for this one. Called while its collective by messages does not end.
  void wake_members() noexcept;
  /// Records that this collective has failed here, or was rejected: members that wait for this one must not take its
  /// next flag for that of this collective.
  void mark_failed(std::uint64_t number, status why) noexcept;
  /// The text after this member's call, for bad_argument or bad_size: its bytes, and the call of the other member.
  [[nodiscard]] std::string mismatch() const;
  /// The member that has made a different call, or -1.
  [[nodiscard]] int other() const noexcept { return other_; }
  /// The member whose line has reported the failure to this one, or -1.
  [[nodiscard]] int failed_at() const noexcept { return failed_at_; }
  /// A member that is in a collective in memory of this number, or -1.
  [[nodiscard]] int member_in(std::uint64_t number) noexcept;
  /// The signature of its call.
  [[nodiscard]] std::int32_t signature_at(int member, std::uint64_t number) const noexcept;

 private:
  /// Forms of a call, or of a chunk of it; see the top of this file.
  enum class form_kind : std::uint8_t { flat, direct, tree, window, release_gather };
  status broadcast(const collective_call& c, way how) noexcept;
  status reduce(const collective_call& c, way how) noexcept;
  status allreduce(const collective_call& c, way how) noexcept;
  // These functions handle a chunk of at most a slot.
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
  /// The broadcast is complete if the root's vector lies in a segment; otherwise nothing has been copied.
  status broadcast_from_window(const collective_call& c, bool& in_segment) noexcept;
  /// Publishes the addresses of the operands, in a turn.
  status tell_operands(const collective_call& c) noexcept;
  /// Publishes them, and reports whether all members' operands lie in segments.
  status share_operands(const collective_call& c, bool& all_in_segments) noexcept;
  void combine_own_part(const collective_call& c, std::byte* result, const std::byte* operand_there) noexcept;
  [[nodiscard]] std::size_t begin_of_part(const collective_call& c, int member) const noexcept;
  [[nodiscard]] std::byte* segment_of(int member) const noexcept;
  [[nodiscard]] const std::byte* input_of(int member) const noexcept;
  [[nodiscard]] std::byte* output_of(int member) const noexcept;

  // Blocks.
  status move_blocks(const collective_call& c) noexcept;
  /// Moves bytes [offset, offset + bytes) of each block, in a turn.
  status move_pieces(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  void give_pieces(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  void take_piece(const collective_call& c, int from, std::size_t offset, std::size_t bytes) noexcept;
  /// The number of blocks that a member gives.
  [[nodiscard]] int blocks_given(const collective_call& c) const noexcept;
  [[nodiscard]] std::size_t piece_bytes_max(const collective_call& c) const noexcept;

  // By a tree of two levels.
  void make_groups();
  [[nodiscard]] bool by_tree(const collective_call& c, std::size_t bytes, way how) const noexcept;
  /// True if the groups give the bits of the one tree over all members, or the bits do not depend on the tree.
  [[nodiscard]] bool tree_fits(const collective_call& c) const noexcept;
  status combine_in_group(const collective_call& c, std::size_t bytes) noexcept;
  status combine_groups(const collective_call& c, std::size_t bytes, std::byte* into) noexcept;
  status pass_down(int root, std::size_t bytes) noexcept;
  [[nodiscard]] bool shares_group(int member) const noexcept;
  /// The member from whose slot this one copies the root's data.
  [[nodiscard]] int giver_of(int root) const noexcept;

  void begin(const collective_call& c, std::uint64_t number) noexcept;
  /// Switches to the slot of the next chunk, which all members have left.
  status next_slot() noexcept;
  void publish() noexcept;
  void show() noexcept;
  status wait_for(int member, std::uint64_t turn) noexcept;
  /// The member's record of its call for this collective, if it has not been overwritten.
  [[nodiscard]] const memory_lines::call& call_of(int member) const noexcept;
  /// Returns bad_size or bad_argument if the member's call differs from this one's.
  /// `seen`: the member's flag.
  status compare_calls(int member, std::uint64_t seen) noexcept;
  status wait_for_all(std::uint64_t turn) noexcept;
  [[nodiscard]] std::byte* slot(int member) noexcept {
    memory_lines& lines = *lines_[static_cast<std::size_t>(member)];
    return in_cell_ ? lines.cell(number_, slot_bytes_) : lines.slot(slot_, slot_bytes_);
  }
  /// Notes that this member's data of turn_ are the last in its slot.
  void note_use() noexcept;
  /// Combines bytes from `offset` on of all members' slots, by the tree of `reproducible`.
  void combine_slots(const collective_call& c, std::size_t offset, std::size_t bytes, std::byte* into) noexcept;

  team_core& team_;
  std::vector<memory_lines*> lines_;
  std::size_t slot_bytes_;
  std::vector<std::byte> spare_;
  std::vector<std::vector<int>> groups_;  ///< groups of the tree, by their lowest members
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
  std::uint64_t operands_told_ = 0;  ///< the last turn that published addresses of operands
  unsigned slot_ = 0;
  std::uint64_t call_ = 0;  ///< digest of the call
  std::size_t failures_ = 0;
  const std::atomic<bool>* told_ = nullptr;
  form_kind form_ = form_kind::flat;
  int other_ = -1;      ///< member that has made a different call
  int failed_at_ = -1;  ///< member at which it has failed
};

}  // namespace rma::detail::coll
