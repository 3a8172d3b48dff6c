// SPDX-License-Identifier: Apache-2.0
/// \file
/// Teams: ordered sets of ranks that make windows, synchronize and communicate collectively.
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
#include "rma/reductions.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// An ordered set of ranks; this rank is one of them. A cheap handle: copies are the same team.
///
/// The collectives that move data are in rma/collectives.hpp and rma/reductions.hpp; this file adds teams made from
/// teams, the barrier, and short forms for single values.
/// Shape      every member calls the same collectives on a team in the same order
/// Errors     revoked after a member's `revoke()`; peer_failed naming a dead member, until `shrink()`. The call in
///            which a member dies may succeed on some of the others and fail on the rest
/// Threads    one thread at a time per team, at every thread level; different teams at once
class Team : public Reductions, public Messages<Team> {
  using source = std::source_location;

 public:
  /// Made by Runtime::world, split and the like.
  explicit Team(std::shared_ptr<detail::team_core> core) noexcept : Reductions(std::move(core)) {}
  using Reductions::core;

  /// The rank in the world of the member `rank`.
  [[nodiscard]] int world_rank(int rank, source where = source::current()) const;
  /// The member whose rank in the world is `world_rank`, as errors and failed_ranks() name it; -1 if it is no member.
  /// Cost       O(members)
  [[nodiscard]] int rank_of(int world_rank) const noexcept;
  /// True if this rank maps the memory of that member's library windows, so that a put is a store.
  [[nodiscard]] bool shares_memory(int rank, source where = source::current()) const;
  /// True if all members share memory.
  [[nodiscard]] bool one_node() const noexcept;

  /// Members with the same color form a team, ordered by key, then by rank. A member with a negative color gets a team
  /// of itself alone.
  /// Shape      collective
  /// Errors     peer_failed if a member of any color dies meanwhile
  [[nodiscard]] Team split(int color, int key = 0, source where = source::current()) const;
  /// Assigns the new team to `made` if the status is done, else leaves it as it is, as all such `try_` forms do.
  [[nodiscard]] status try_split(int color, int key, Team& made) const noexcept;
  /// The members on this rank's node.
  /// Shape      collective
  [[nodiscard]] Team node(source where = source::current()) const;
  [[nodiscard]] status try_node(Team& made) const noexcept;
  /// A team of the living members, in the same order. Needed after a death: collectives on the old team throw.
  /// Shape      collective over the survivors, in whatever state their last calls on the old team ended. A member that
  ///            dies during the call may be in the new team, whose collectives then report it: shrink() that team
  [[nodiscard]] Team shrink(source where = source::current()) const;
  [[nodiscard]] status try_shrink(Team& made) const noexcept;

  /// Revokes the team, as ULFM's MPI_Comm_revoke: on every living member all waits for other members on this team and
  /// its windows end with `revoked`, both pending and later ones. After a death peer_failed reaches only the ranks that
  /// wait for the dead one; a rank that waits for a living member which has called shrink() needs the revocation.
  /// The pattern for recovery: on peer_failed or revoked call revoke(), then shrink(), which works on a revoked team
  /// (examples/10_recovery.cpp). Teams made from this one are not affected.
  /// Shape      local; messages inform the other members
  void revoke(source where = source::current()) { require("revoke", try_revoke(), where); }
  [[nodiscard]] status try_revoke() noexcept;

  /// A hint for the calls of rma/reductions.hpp: the bits of their results depend on the number of members only,
  /// whatever the algorithm, the nodes, and the sizes of blocks. Without it that is so on every team if
  /// RMA_COLL_REPRODUCIBLE=1.
  /// Shape      local; all members give the same value, between the same two collectives. A team made from this one
  ///            has the default. Collectives that are pending, or persistent, stay as they were
  /// Errors     wrong_thread
  /// Cost       of a call: algorithms that combine in another order are passed over (docs/guide/collectives.md). The
  ///            call itself drops the schedules that the team has kept
  void set_reproducible(bool on = true, source where = source::current());
  [[nodiscard]] status try_set_reproducible(bool on = true) noexcept;
  [[nodiscard]] bool reproducible() const noexcept;

  /// Returns when every member has called it.
  /// Memory     stores that a member made before the call are visible after it (mapped memory; flush puts first)
  /// Cost       one transfer of a cache line for 2 ranks of a node, two for more; sleeps when others are late. With
  ///            RMA_COLL_BARRIER that of the algorithm set
  void barrier(source where = source::current());
  [[nodiscard]] status try_barrier() noexcept;

  using Reductions::allreduce;
  using Reductions::exscan;
  using Reductions::scan;
  using Reductions::try_exscan;
  /// Combines one value of each member.
  template <accumulable T>
  [[nodiscard]] T allreduce(T value, operation op, source where = source::current()) {
    allreduce(std::span(&value, 1), op, where);
    return value;
  }
  /// Combines one value of each of the ranks 0 to this one.
  template <accumulable T>
  [[nodiscard]] T scan(T value, operation op, source where = source::current()) {
    scan(std::span(&value, 1), op, where);
    return value;
  }
  /// Combines the data of the members before this one, in place. Member 0, which has no predecessor, gets `none`.
  template <accumulable T, std::size_t N>
  void exscan(std::span<T, N> data, operation op, const std::type_identity_t<T>& none = T{},
              source where = source::current()) {
    exscan(data, data, op, where);
    if (rank() == 0) std::fill(data.begin(), data.end(), none);
  }
  template <accumulable T, std::size_t N>
  [[nodiscard]] status try_exscan(std::span<T, N> data, operation op,
                                  const std::type_identity_t<T>& none = T{}) noexcept {
    const status s = try_exscan(data, data, op);
    if (ok(s) && rank() == 0) std::fill(data.begin(), data.end(), none);
    return s;
  }
  template <accumulable T>
  [[nodiscard]] T exscan(T value, operation op, const std::type_identity_t<T>& none = T{},
                         source where = source::current()) {
    exscan(std::span(&value, 1), op, none, where);
    return value;
  }

  using Collectives::allgather;
  using Collectives::allgatherv;
  using Collectives::alltoall;
  using Collectives::broadcast;
  using Collectives::gather;
  using Collectives::scatter;
  using Collectives::try_allgather;
  using Collectives::try_allgatherv;
  using Collectives::try_alltoall;
  using Reductions::reduce;
  /// One value of each member, in rank order.
  template <class T>
  [[nodiscard]] std::vector<T> allgather(const T& mine, source where = source::current()) {
    const auto all = std::make_unique<T[]>(members());
    allgather(std::span(&mine, 1), std::span(all.get(), members()), where);
    return std::vector<T>(all.get(), all.get() + size());
  }
  template <class T>
  [[nodiscard]] status try_allgather(const T& mine, std::span<T> all) noexcept {
    return try_allgather(std::span(&mine, 1), all);
  }

  /// As `allgather`, of one range of each member; the lengths may differ.
  /// Errors     as allgather; also bad_size where the element sizes differ
  /// Cost       an additional allgather of the lengths
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
    using value = std::remove_cv_t<T>;
    std::vector<std::size_t> lengths(members());
    if (const status s = allgather_lengths(mine.size(), sizeof(T), lengths.data()); !ok(s)) return s;
    std::size_t total = 0;
    for (const std::size_t length : lengths) total += length;
    const auto together = std::make_unique<value[]>(total);
    const status s = try_allgatherv(mine, std::span(together.get(), total), std::span<const std::size_t>(lengths), {});
    if (!ok(s)) return s;
    all.clear();
    const value* at = together.get();
    for (const std::size_t length : lengths) {
      all.emplace_back(at, at + length);
      at += length;
    }
    return status::done;
  }

  /// Exchanges one value between each pair of members: mine[r] goes to member r, and element r of the result comes from
  /// member r.
  template <class T, std::size_t N>
  [[nodiscard]] std::vector<std::remove_cv_t<T>> alltoall(std::span<T, N> mine, source where = source::current()) {
    const auto all = std::make_unique<std::remove_cv_t<T>[]>(members());
    alltoall(mine, std::span(all.get(), members()), where);
    return std::vector<std::remove_cv_t<T>>(all.get(), all.get() + size());
  }

  // ---- whole arrays and containers (std::array, std::vector, ...) -------------------------------------------------

  /// As `broadcast` of a span of the container.
  template <detail::container R>
  void broadcast(R& data, int root, source where = source::current()) {
    broadcast(std::span(data), root, where);
  }
  /// As `allreduce` of a span of the container.
  template <detail::container R, class Op>
  void allreduce(R& data, const Op& op, source where = source::current()) {
    allreduce(std::span(data), op, where);
  }
  /// As `allreduce` of spans of the containers.
  template <detail::container A, detail::container R, class Op>
  void allreduce(const A& mine, R& result, const Op& op, source where = source::current()) {
    allreduce(std::span(mine), std::span(result), op, where);
  }
  /// As `reduce` of spans of the containers.
  template <detail::container A, detail::container R, class Op>
  void reduce(const A& mine, R& result, const Op& op, int root, source where = source::current()) {
    reduce(std::span(mine), std::span(result), op, root, where);
  }
  /// As `gather` of spans of the containers.
  template <detail::container A, detail::container R>
  void gather(const A& mine, R& all, int root, source where = source::current()) {
    gather(std::span(mine), std::span(all), root, where);
  }
  /// As `scatter` of spans of the containers.
  template <detail::container A, detail::container R>
  void scatter(const A& all, R& mine, int root, source where = source::current()) {
    scatter(std::span(all), std::span(mine), root, where);
  }
  /// As `allgather` of spans of the containers.
  template <detail::container A, detail::container R>
  void allgather(const A& mine, R& all, source where = source::current()) {
    allgather(std::span(mine), std::span(all), where);
  }
  /// As `alltoall` of spans of the containers.
  template <detail::container A, detail::container R>
  void alltoall(const A& mine, R& all, source where = source::current()) {
    alltoall(std::span(mine), std::span(all), where);
  }

  /// Returns the value of member `root`.
  template <class T>
    requires std::is_trivially_copyable_v<T> && (!detail::container<T> && !detail::is_span<T>)
  [[nodiscard]] T broadcast(const T& value, int root, source where = source::current()) {
    T given = value;
    broadcast(std::span(&given, 1), root, where);
    return given;
  }
  /// Returns the combined values of all members at member `root`, and `value` at the others.
  template <accumulable T>
  [[nodiscard]] T reduce(T value, operation op, int root, source where = source::current()) {
    T combined = value;
    reduce(std::span(&value, 1), std::span(&combined, 1), op, root, where);
    return combined;
  }
  /// Returns one value of each member in rank order at member `root`, and an empty vector at the others.
  template <class T>
    requires std::is_trivially_copyable_v<T> && (!detail::container<T> && !detail::is_span<T>)
  [[nodiscard]] std::vector<T> gather(const T& mine, int root, source where = source::current()) {
    std::vector<T> all(rank() == root ? members() : 0);
    gather(std::span(&mine, 1), std::span(all), root, where);
    return all;
  }

 private:
  /// Throws unless `s` is a success.
  void require(const char* call, status s, const source& where) const {
    if (!ok(s)) [[unlikely]]
      raise(call, s, where);
  }
  [[noreturn]] void raise(const char* call, status s, const source& where) const;
  status allgather_lengths(std::size_t count, std::size_t element_bytes, std::size_t* lengths) noexcept;
};

}  // namespace rma

#pragma GCC visibility pop
