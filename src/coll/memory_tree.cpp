// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives in memory by a tree of two levels: members, leaders of groups, and the root. Groups are those of cores
/// with a common cache or socket, where ranks are bound to cores; else blocks of about the square root of the members.
#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

#include "coll/memory.hpp"
#include "coll/memory_operands.hpp"
#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {

// Groups are named by their lowest members, and sorted by them: they are the same on all members.
void memory_collectives::make_groups() {
  const auto members = static_cast<unsigned>(team_.size);
  const unsigned block = 1U << ((static_cast<unsigned>(std::bit_width(members - 1)) + 1) / 2);
  std::vector<std::uint32_t> names;
  for (int r = 0; r < team_.size; ++r)
    names.push_back(team_.rt->board->slot(static_cast<std::size_t>(team_.node_index(r))).core_group);
  const bool bound = std::find(names.begin(), names.end(), 0U) == names.end();
  by_cores_ = bound && std::adjacent_find(names.begin(), names.end(), std::not_equal_to<>()) != names.end();
  for (unsigned r = 0; r < members && !by_cores_; ++r) names[r] = r / block;
  std::vector<std::uint32_t> seen;
  for (int r = 0; r < team_.size; ++r) {
    const std::uint32_t name = names[static_cast<std::size_t>(r)];
    const auto at = static_cast<std::size_t>(std::find(seen.begin(), seen.end(), name) - seen.begin());
    if (at == seen.size()) {
      seen.push_back(name);
      groups_.emplace_back();
    }
    groups_[at].push_back(r);
    if (r == team_.rank) own_group_ = at;
  }
  RMA_ASSERT(shares_group(team_.rank) && groups_.size() <= members);
  // Blocks of 2^k members, but for the last one, are parts of the one tree over all of them.
  const std::size_t first = groups_.front().size();
  groups_in_tree_ = std::has_single_bit(first);
  int next = 0;
  for (const auto& group : groups_) {
    const bool whole = group.size() == first || (&group == &groups_.back() && group.size() < first);
    groups_in_tree_ =
        groups_in_tree_ && whole && group.front() == next && group.back() == next + static_cast<int>(group.size()) - 1;
    next += static_cast<int>(group.size());
  }
}

bool memory_collectives::tree_fits(const collective_call& c) const noexcept {
  const bool any_tree =
      c.what == collective::broadcast || (!c.user && commutes(c) && !inexact(c) && !depends_on_order(c));
  return team_.size > 2 && (groups_in_tree_ || any_tree);
}

// Operands move up: the slots of a group are combined into its leader's slot by the second turn.
status memory_collectives::combine_in_group(const collective_call& c, std::size_t bytes) noexcept {
  RMA_ASSERT(bytes <= slot_bytes_);
  const auto& group = groups_[own_group_];
  const std::uint64_t turn = turn_;
  ++turn_;
  if (team_.rank != group.front()) return status::done;
  for (const int r : group) {
    if (r == team_.rank) continue;
    if (const status s = wait_for(r, turn); s != status::done) return s;
  }
  if (group.size() > 1) {
    const auto operand = [&](int i) noexcept { return slot(group[static_cast<std::size_t>(i)]); };
    combine_operands(c, operand, 0, static_cast<int>(group.size()), bytes, spare_.data(), spare_.data() + slot_bytes_,
                     slot_bytes_);
    std::memcpy(slot(team_.rank), spare_.data(), bytes);
  }
  show();
  return status::done;
}

// Combines the slots of the leaders.
status memory_collectives::combine_groups(const collective_call& c, std::size_t bytes, std::byte* into) noexcept {
  RMA_ASSERT(bytes <= slot_bytes_);
  for (const auto& group : groups_) {
    if (group.front() == team_.rank) continue;
    if (const status s = wait_for(group.front(), turn_); s != status::done) return s;
  }
  const auto operand = [&](int i) noexcept { return slot(groups_[static_cast<std::size_t>(i)].front()); };
  combine_operands(c, operand, 0, static_cast<int>(groups_.size()), bytes, into, spare_.data() + slot_bytes_,
                   slot_bytes_);
  return status::done;
}

// The leader of another group than the root's copies: its members wait for the turn after that of the root.
status memory_collectives::pass_down(int root, std::size_t bytes) noexcept {
  RMA_ASSERT(bytes <= slot_bytes_ && root >= 0 && root < team_.size);
  const std::uint64_t given = turn_;
  const int giver = giver_of(root);
  ++turn_;
  if (team_.rank == root) return status::done;
  RMA_ASSERT(giver != team_.rank);
  if (const status s = wait_for(giver, giver == root ? given : turn_); s != status::done) return s;
  if (shares_group(root) || team_.rank != groups_[own_group_].front()) return status::done;
  std::memcpy(slot(team_.rank), slot(root), bytes);
  show();
  return status::done;
}

bool memory_collectives::shares_group(int member) const noexcept {
  const auto& group = groups_[own_group_];
  return std::find(group.begin(), group.end(), member) != group.end();
}

int memory_collectives::giver_of(int root) const noexcept {
  const int leader = groups_[own_group_].front();
  return shares_group(root) || team_.rank == leader ? root : leader;
}

status memory_collectives::broadcast_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  RMA_ASSERT(tree_fits(c));
  if (team_.rank == c.root || (team_.rank == groups_[own_group_].front() && !shares_group(c.root))) {
    if (const status s = next_slot(); s != status::done) return s;
  } else {
    slot_ ^= 1;
  }
  if (team_.rank == c.root) load_operand(slot(c.root), c, offset, bytes);
  ++turn_;
  show();
  if (const status s = pass_down(c.root, bytes); s != status::done) return s;
  if (team_.rank != c.root) store_result(c, slot(giver_of(c.root)), offset, bytes);
  note_use();
  return status::done;
}

status memory_collectives::reduce_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  if (const status s = next_slot(); s != status::done) return s;
  load_operand(slot(team_.rank), c, offset, bytes);
  publish();
  status s = combine_in_group(c, bytes);
  if (s == status::done && team_.rank == c.root) {
    s = combine_groups(c, bytes, spare_.data());
    if (s == status::done) store_result(c, spare_.data(), offset, bytes);
  }
  note_use();
  return s;
}

// A member that has the result knows that all have reached the first turn, and so have left earlier collectives.
status memory_collectives::allreduce_by_tree(const collective_call& c, std::size_t offset, std::size_t bytes) noexcept {
  if (const status s = next_slot(); s != status::done) return s;
  load_operand(slot(team_.rank), c, offset, bytes);
  publish();
  const std::uint64_t turn = turn_;
  constexpr int root = 0;
  if (const status s = combine_in_group(c, bytes); s != status::done) return s;
  if (team_.rank == root) {
    if (const status s = combine_groups(c, bytes, spare_.data()); s != status::done) return s;
    std::memcpy(slot(root), spare_.data(), bytes);
  }
  ++turn_;
  if (team_.rank == root) show();
  if (const status s = pass_down(root, bytes); s != status::done) return s;
  store_result(c, slot(giver_of(root)), offset, bytes);
  note_use();
  seen_ = turn;
  return status::done;
}

}  // namespace rma::detail::coll
