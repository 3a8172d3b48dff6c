// SPDX-License-Identifier: Apache-2.0
/// \file
/// Teams: ordered sets of ranks that create windows and synchronise together.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <source_location>
#include <span>
#include <type_traits>
#include <vector>

#include "rma/error.hpp"
#include "rma/operation.hpp"

namespace rma {

namespace detail {
struct team_core;
}

/// An ordered set of ranks; this rank is one of them. A cheap handle: copies are the same team.
///
/// All collectives here are for set-up: correct everywhere, simple, not tuned.
/// Shape      every member calls the same collectives on a team in the same order
/// Errors     peer_failed naming a dead member, until `shrink()`. The call in which a member dies may succeed on some
///            of the others and fail on the rest
/// Threads    one thread at a time per team, at every thread level; different teams at once
class Team {
 public:
  explicit Team(std::shared_ptr<detail::team_core> core) noexcept : core_(std::move(core)) {}

  /// This rank's number in the team, and how many there are.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// Number in the world of the member `rank`.
  [[nodiscard]] int world_rank(int rank) const;
  /// The other way: the member with that number in the world, which errors and failed_ranks() give; -1 if it is none.
  /// Cost       O(members)
  [[nodiscard]] int rank_of(int world_rank) const noexcept;
  /// True if the memory of that member's library windows is mapped here: a put is a store.
  [[nodiscard]] bool shares_memory(int rank) const;
  /// True if all members share memory.
  [[nodiscard]] bool one_node() const noexcept;

  /// Members with the same colour form a team, ordered by key, then by rank. A negative colour gets a team of
  /// itself alone.
  /// Shape      collective
  /// Errors     peer_failed if a member dies meanwhile, of whatever colour
  [[nodiscard]] Team split(int colour, int key = 0) const;
  /// The members on this rank's node.
  /// Shape      collective
  [[nodiscard]] Team node() const;
  /// The members that are still alive, in the same order. Needed after a death: collectives on the old team raise.
  /// Shape      collective over the survivors, however their last calls on the old team have ended. Who dies during it
  ///            may be a member of the new team, whose collectives say so: shrink() that one
  [[nodiscard]] Team shrink() const;

  /// Nobody returns before everybody has called.
  /// Memory     what members wrote before the call is seen after it (mapped memory; for puts flush first)
  /// Cost       one line transfer at 2 ranks of a node; two for more; sleeps when others are late
  void barrier(std::source_location where = std::source_location::current());
  [[nodiscard]] status try_barrier() noexcept;

  /// `data` of member `root` is copied to everyone's `data`.
  /// Errors     bad_size where it is not as long as the root's, or a member that hands it on says so
  template <class T, std::size_t N>
  void broadcast(std::span<T, N> data, int root, std::source_location where = std::source_location::current()) {
    static_assert(std::is_trivially_copyable_v<T>);
    broadcast_bytes(data.data(), data.size_bytes(), root, where);
  }

  /// Element by element, `data` of all members combined; everyone gets the result. The order of combination is
  /// the same on every member: all get the same bits.
  /// Errors     bad_size, at all members, if they do not give equally many elements; bad_type where the operator is
  /// none,
  ///            or not defined for T, and bad_size at the others then
  template <accumulable T, std::size_t N>
  void allreduce(std::span<T, N> data, operation op, std::source_location where = std::source_location::current()) {
    allreduce_elements(data.data(), data.size(), element_of<T>, op, where);
  }
  template <accumulable T>
  [[nodiscard]] T allreduce(T value, operation op, std::source_location where = std::source_location::current()) {
    allreduce_elements(&value, 1, element_of<T>, op, where);
    return value;
  }

  /// One value of each member, in rank order.
  /// Errors     bad_size, at all members, if their types are not of one size
  template <class T>
  [[nodiscard]] std::vector<T> allgather(const T& mine, std::source_location where = std::source_location::current()) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<T> all(static_cast<std::size_t>(size()));
    allgather_bytes(&mine, sizeof(T), all.data(), where);
    return all;
  }

  /// The same for ranges, each member's as long as it likes.
  /// Errors     as allgather
  /// Cost       an allgather of the lengths, then a broadcast of each member's that is not empty
  template <class T, std::size_t N>
  [[nodiscard]] std::vector<std::vector<std::remove_cv_t<T>>> allgatherv(
      std::span<T, N> mine, std::source_location where = std::source_location::current()) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::vector<std::remove_cv_t<T>>> all;
    for (const std::size_t length : allgather_lengths(mine.size(), sizeof(T), where)) all.emplace_back(length);
    std::copy(mine.begin(), mine.end(), all[static_cast<std::size_t>(rank())].begin());
    for (int r = 0; r < size(); ++r) {
      auto& part = all[static_cast<std::size_t>(r)];
      if (!part.empty()) broadcast_part(part.data(), part.size() * sizeof(T), r, where);
    }
    return all;
  }

  /// One value from each member to each: `mine` has one for every member, in rank order; so has the result, of what
  /// they gave for this one.
  /// Errors     bad_size, at all members, if a list has not one value for each, or their types are not of one size
  /// Cost       a message to every other member
  template <class T, std::size_t N>
  [[nodiscard]] std::vector<std::remove_cv_t<T>> alltoall(
      std::span<T, N> mine, std::source_location where = std::source_location::current()) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::remove_cv_t<T>> all(static_cast<std::size_t>(size()));
    alltoall_bytes(mine.data(), mine.size_bytes(), sizeof(T), all.data(), where);
    return all;
  }

  /// Element by element, `data` of the members up to this one combined, one after the other in rank order.
  /// Errors     bad_size, at all members, if they do not give equally many elements; bad_type where the operator is
  /// none,
  ///            or not defined for T, and bad_size at the others then
  /// Cost       an allgather, with all members' data here for a moment
  template <accumulable T, std::size_t N>
  void scan(std::span<T, N> data, operation op, std::source_location where = std::source_location::current()) {
    scan_elements(data.data(), data.size(), element_of<T>, op, true, where);
  }
  template <accumulable T>
  [[nodiscard]] T scan(T value, operation op, std::source_location where = std::source_location::current()) {
    scan_elements(&value, 1, element_of<T>, op, true, where);
    return value;
  }
  /// The same of the members before this one. Member 0, before which there is none, gets `none`.
  template <accumulable T, std::size_t N>
  void exscan(std::span<T, N> data, operation op, const std::type_identity_t<T>& none = T{},
              std::source_location where = std::source_location::current()) {
    scan_elements(data.data(), data.size(), element_of<T>, op, false, where);
    if (rank() == 0) std::fill(data.begin(), data.end(), none);
  }
  template <accumulable T>
  [[nodiscard]] T exscan(T value, operation op, const std::type_identity_t<T>& none = T{},
                         std::source_location where = std::source_location::current()) {
    scan_elements(&value, 1, element_of<T>, op, false, where);
    return rank() == 0 ? none : value;
  }

  [[nodiscard]] detail::team_core& core() const noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<detail::team_core>& shared_core() const noexcept { return core_; }

 private:
  void broadcast_bytes(void* data, std::size_t bytes, int root, const std::source_location& where);
  void allreduce_elements(void* data, std::size_t count, element type, operation op, const std::source_location& where);
  void allgather_bytes(const void* mine, std::size_t bytes, void* all, const std::source_location& where);
  std::vector<std::size_t> allgather_lengths(std::size_t count, std::size_t element_bytes,
                                             const std::source_location& where);
  void broadcast_part(void* data, std::size_t bytes, int root, const std::source_location& where);
  void alltoall_bytes(const void* mine, std::size_t given, std::size_t bytes, void* all,
                      const std::source_location& where);
  void scan_elements(void* data, std::size_t count, element type, operation op, bool with_own,
                     const std::source_location& where);

  std::shared_ptr<detail::team_core> core_;
};

}  // namespace rma
