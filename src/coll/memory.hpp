// SPDX-License-Identifier: Apache-2.0
/// \file
/// Blocking collectives of a team whose members share memory, by single-writer flags: no message, no lock, no schedule.
///
///   flat             everyone: data into its slot, publish the turn | wait for all | combine what is in the slots
///   direct           the same, but each combines its part of the vector alone | publish | copy the parts together
///   in windows       large vectors whose operands all lie in segments: where mine are, publish | wait for all |
///                    combine my part from all memories, publish | copy each one's part as it comes, publish |
///                    wait for all members, which may still be reading: no slot, no second copy
///   release-gather   broadcast: the root's slot, published; reduce: everyone's slot, the root combines
///
/// A turn is a store into one's own line. The flag of a turn says, too, that its owner has left all turns before: a
/// slot is written again when everybody has been seen behind its last use, which mostly is known already. Turns begin
/// with the number of the collective: after one that has failed, wherever its members were, the next one works.
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

class memory_collectives {
 public:
  enum class way : std::uint8_t { automatic, flat, direct };

  explicit memory_collectives(team_core& team);

  /// Broadcast, reduce and allreduce. `number`: of this collective among the team's. `told`: becomes true when another
  /// member says that it has failed, whatever this one waits for.
  status run(const collective_call& call, std::uint64_t number, way how, const std::atomic<bool>& told) noexcept;

  /// It has failed here, or was refused: members that wait for this one must not take its next flag for that of this
  /// collective.
  void mark_failed(std::uint64_t number, status why) noexcept;
  /// After bad_argument or bad_size, behind what this member has called: its bytes, and what the other one has called.
  [[nodiscard]] std::string mismatch() const;
  /// The member that has called something else, or -1.
  [[nodiscard]] int other() const noexcept { return other_; }
  /// A member that is in a collective in memory of this number, or -1.
  [[nodiscard]] int member_in(std::uint64_t number) noexcept;

 private:
  status broadcast(const collective_call& c) noexcept;
  status reduce(const collective_call& c) noexcept;
  status allreduce(const collective_call& c, way how) noexcept;
  status allreduce_flat(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;
  status allreduce_direct(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept;

  status allreduce_in_windows(const collective_call& c) noexcept;
  /// Tells where the operands are, and learns whether all members' lie in segments.
  status share_operands(const collective_call& c, bool& all_in_segments) noexcept;
  [[nodiscard]] std::byte* segment_of(int member) const noexcept;

  void begin(const collective_call& c, std::uint64_t number) noexcept;
  /// Takes the slot of the next chunk, which everybody has left.
  status next_slot() noexcept;
  void publish() noexcept;
  void show() noexcept;
  status wait_for(int member, std::uint64_t turn) noexcept;
  /// What the member has called as this collective, if it still says so.
  [[nodiscard]] const memory_lines::call& call_of(int member) const noexcept;
  /// Bad_size or bad_argument if that differs from what this one has called.
  status compare_calls(int member) noexcept;
  status wait_for_all(std::uint64_t turn) noexcept;
  [[nodiscard]] std::byte* slot(int member) noexcept {
    return lines_[static_cast<std::size_t>(member)]->slot(slot_, slot_bytes_);
  }
  /// Bytes from `offset` on of everyone's slot, by the tree of `reproducible`.
  void combine_slots(const collective_call& c, std::size_t offset, std::size_t bytes, std::byte* into) noexcept;

  team_core& team_;
  std::vector<memory_lines*> lines_;
  std::size_t slot_bytes_;
  std::vector<std::byte> spare_;
  std::uint64_t number_ = 0;
  std::uint64_t turn_ = 0;           ///< as in the flag, without the digest
  std::uint64_t seen_ = 0;           ///< everybody has been seen at this turn
  std::uint64_t slot_left_[2] = {};  ///< the last turn of the last use of this member's slots
  unsigned slot_ = 0;
  std::uint64_t call_ = 0;  ///< digest
  std::size_t failures_ = 0;
  const std::atomic<bool>* told_ = nullptr;
  int other_ = -1;      ///< member that has called something else
  int failed_at_ = -1;  ///< member in which it has failed
};

}  // namespace rma::detail::coll
