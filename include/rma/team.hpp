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
#include "rma/messages.hpp"
#include "rma/operation.hpp"

namespace rma {

namespace detail {
struct team_core;
}

/// An ordered set of ranks; this rank is one of them. A cheap handle: copies are the same team.
///
/// All collectives here are for set-up: correct everywhere, simple, not tuned.
/// Shape      every member calls the same collectives on a team in the same order
/// Errors     revoked after a member's `revoke()`; peer_failed naming a dead member, until `shrink()`. The call in
/// which a member dies may succeed on some
///            of the others and fail on the rest
/// Threads    one thread at a time per team, at every thread level; different teams at once
class Team : public Messages<Team> {
  using source = std::source_location;

 public:
  explicit Team(std::shared_ptr<detail::team_core> core) noexcept : core_(std::move(core)) {}

  /// This rank's number in the team, and how many there are.
  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  /// Number in the world of the member `rank`.
  [[nodiscard]] int world_rank(int rank, source where = source::current()) const;
  /// The other way: the member with that number in the world, which errors and failed_ranks() give; -1 if it is none.
  /// Cost       O(members)
  [[nodiscard]] int rank_of(int world_rank) const noexcept;
  /// True if the memory of that member's library windows is mapped here: a put is a store.
  [[nodiscard]] bool shares_memory(int rank, source where = source::current()) const;
  /// True if all members share memory.
  [[nodiscard]] bool one_node() const noexcept;

  /// Members with the same colour form a team, ordered by key, then by rank. A negative colour gets a team of
  /// itself alone.
  /// Shape      collective
  /// Errors     peer_failed if a member dies meanwhile, of whatever colour
  [[nodiscard]] Team split(int colour, int key = 0, source where = source::current()) const;
  /// `made` becomes the new team if the status is done, and stays what it is if not: of all `try_` forms that have it.
  [[nodiscard]] status try_split(int colour, int key, Team& made) const noexcept;
  /// The members on this rank's node.
  /// Shape      collective
  [[nodiscard]] Team node(source where = source::current()) const;
  [[nodiscard]] status try_node(Team& made) const noexcept;
  /// The members that are still alive, in the same order. Needed after a death: collectives on the old team raise.
  /// Shape      collective over the survivors, however their last calls on the old team have ended. Who dies during it
  ///            may be a member of the new team, whose collectives say so: shrink() that one
  [[nodiscard]] Team shrink(source where = source::current()) const;
  [[nodiscard]] status try_shrink(Team& made) const noexcept;

  /// Revokes the team, as ULFM's MPI_Comm_revoke: on every living member all waits for other members on this team and
  /// its windows end with `revoked`, those under way and all later ones. After a death peer_failed reaches only ranks
  /// that wait for the dead one; a rank that waits for a living member which has called shrink() needs the revocation.
  /// The pattern for recovery: on peer_failed or revoked call revoke(), then shrink(), which works on a revoked team
  /// (examples/10_recovery.cpp). Teams made from this one are not affected.
  /// Shape      local; the others are told by messages
  void revoke(source where = source::current()) { require("revoke", try_revoke(), where); }
  [[nodiscard]] status try_revoke() noexcept;

  /// Nobody returns before everybody has called.
  /// Memory     what members wrote before the call is seen after it (mapped memory; for puts flush first)
  /// Cost       one line transfer at 2 ranks of a node; two for more; sleeps when others are late
  void barrier(source where = source::current()) { require("barrier", try_barrier(), where); }
  [[nodiscard]] status try_barrier() noexcept;

  /// `data` of member `root` is copied to everyone's `data`.
  /// Errors     bad_size where it is not as long as the root's, or a member that hands it on says so
  template <class T, std::size_t N>
  void broadcast(std::span<T, N> data, int root, source where = source::current()) {
    require("broadcast", try_broadcast(data, root), where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_broadcast(std::span<T, N> data, int root) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    return broadcast_bytes(data.data(), data.size_bytes(), root, "broadcast");
  }

  /// Element by element, `data` of all members combined; everyone gets the result. The order of combination is
  /// the same on every member: all get the same bits.
  /// Errors     bad_size, at all members, if they do not give equally many elements; bad_type where the operator is
  /// none,
  ///            or not defined for T, and bad_size at the others then
  template <accumulable T, std::size_t N>
  void allreduce(std::span<T, N> data, operation op, source where = source::current()) {
    require("allreduce", try_allreduce(data, op), where);
  }
  template <accumulable T, std::size_t N>
  [[nodiscard]] status try_allreduce(std::span<T, N> data, operation op) noexcept {
    return allreduce_elements(data.data(), data.size(), element_of<T>, op);
  }
  template <accumulable T>
  [[nodiscard]] T allreduce(T value, operation op, source where = source::current()) {
    require("allreduce", try_allreduce(std::span(&value, 1), op), where);
    return value;
  }

  /// One value of each member, in rank order.
  /// Errors     bad_size, at all members, if their types are not of one size
  template <class T>
  [[nodiscard]] std::vector<T> allgather(const T& mine, source where = source::current()) {
    std::vector<T> all(static_cast<std::size_t>(size()));
    require("allgather", try_allgather(mine, std::span(all)), where);
    return all;
  }
  /// Errors     bad_size, at all members, too, if `all` of one has not one element for each
  template <class T>
  [[nodiscard]] status try_allgather(const T& mine, std::span<T> all) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    const bool fits = all.size() == static_cast<std::size_t>(size());
    const status s = allgather_bytes(&mine, fits ? sizeof(T) : 0, all.data());
    return fits || !ok(s) ? s : status::bad_size;
  }

  /// The same for ranges, each member's as long as it likes.
  /// Errors     as allgather
  /// Cost       an allgather of the lengths, then a broadcast of each member's that is not empty
  template <class T, std::size_t N>
  [[nodiscard]] std::vector<std::vector<std::remove_cv_t<T>>> allgatherv(std::span<T, N> mine,
                                                                         source where = source::current()) {
    std::vector<std::vector<std::remove_cv_t<T>>> all;
    require("allgatherv", try_allgatherv(mine, all), where);
    return all;
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_allgatherv(std::span<T, N> mine,
                                      std::vector<std::vector<std::remove_cv_t<T>>>& all) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    std::vector<std::size_t> lengths(static_cast<std::size_t>(size()));
    if (const status s = allgather_lengths(mine.size(), sizeof(T), lengths.data()); !ok(s)) return s;
    all.clear();
    for (const std::size_t length : lengths) all.emplace_back(length);
    std::copy(mine.begin(), mine.end(), all[static_cast<std::size_t>(rank())].begin());
    for (int r = 0; r < size(); ++r) {
      auto& part = all[static_cast<std::size_t>(r)];
      if (part.empty()) continue;
      if (const status s = broadcast_bytes(part.data(), part.size() * sizeof(T), r, "allgatherv"); !ok(s)) return s;
    }
    return status::done;
  }

  /// One value from each member to each: `mine` has one for every member, in rank order; so has the result, of what
  /// they gave for this one.
  /// Errors     bad_size, at all members, if a list has not one value for each, or their types are not of one size
  /// Cost       a message to every other member
  template <class T, std::size_t N>
  [[nodiscard]] std::vector<std::remove_cv_t<T>> alltoall(std::span<T, N> mine, source where = source::current()) {
    std::vector<std::remove_cv_t<T>> all(static_cast<std::size_t>(size()));
    require("alltoall", try_alltoall(mine, std::span(all)), where);
    return all;
  }
  /// Errors     as try_allgather
  template <class T, std::size_t N>
  [[nodiscard]] status try_alltoall(std::span<T, N> mine, std::span<std::remove_cv_t<T>> all) noexcept {
    static_assert(std::is_trivially_copyable_v<T>);
    const bool fits = all.size() == mine.size() && all.size() == static_cast<std::size_t>(size());
    return alltoall_bytes(mine.data(), fits ? mine.size_bytes() : 1, fits ? sizeof(T) : 0, all.data());
  }

  /// Element by element, `data` of the members up to this one combined, one after the other in rank order.
  /// Errors     as allreduce
  /// Cost       an allgather, with all members' data here for a moment
  template <accumulable T, std::size_t N>
  void scan(std::span<T, N> data, operation op, source where = source::current()) {
    require("scan", try_scan(data, op), where);
  }
  template <accumulable T, std::size_t N>
  [[nodiscard]] status try_scan(std::span<T, N> data, operation op) noexcept {
    return scan_elements(data.data(), data.size(), element_of<T>, op, true);
  }
  template <accumulable T>
  [[nodiscard]] T scan(T value, operation op, source where = source::current()) {
    require("scan", try_scan(std::span(&value, 1), op), where);
    return value;
  }
  /// The same of the members before this one. Member 0, before which there is none, gets `none`.
  template <accumulable T, std::size_t N>
  void exscan(std::span<T, N> data, operation op, const std::type_identity_t<T>& none = T{},
              source where = source::current()) {
    require("exscan", try_exscan(data, op, none), where);
  }
  template <accumulable T, std::size_t N>
  [[nodiscard]] status try_exscan(std::span<T, N> data, operation op,
                                  const std::type_identity_t<T>& none = T{}) noexcept {
    const status s = scan_elements(data.data(), data.size(), element_of<T>, op, false);
    if (ok(s) && rank() == 0) std::fill(data.begin(), data.end(), none);
    return s;
  }
  template <accumulable T>
  [[nodiscard]] T exscan(T value, operation op, const std::type_identity_t<T>& none = T{},
                         source where = source::current()) {
    require("exscan", try_exscan(std::span(&value, 1), op, none), where);
    return value;
  }

  [[nodiscard]] detail::team_core& core() const noexcept { return *core_; }
  [[nodiscard]] const std::shared_ptr<detail::team_core>& shared_core() const noexcept { return core_; }

 private:
  /// Throws unless it is done.
  void require(const char* call, status s, const source& where) const {
    if (!ok(s)) [[unlikely]]
      raise(call, s, where);
  }
  [[noreturn]] void raise(const char* call, status s, const source& where) const;
  status broadcast_bytes(void* data, std::size_t bytes, int root, const char* call) noexcept;
  status allreduce_elements(void* data, std::size_t count, element type, operation op) noexcept;
  status allgather_bytes(const void* mine, std::size_t bytes, void* all) noexcept;
  status allgather_lengths(std::size_t count, std::size_t element_bytes, std::size_t* lengths) noexcept;
  status alltoall_bytes(const void* mine, std::size_t given, std::size_t bytes, void* all) noexcept;
  status scan_elements(void* data, std::size_t count, element type, operation op, bool with_own) noexcept;

  std::shared_ptr<detail::team_core> core_;
};

}  // namespace rma
