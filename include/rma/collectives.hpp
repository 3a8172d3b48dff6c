// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives that move data. Each call has five forms:
///
///   team.gather(mine, all, root)                          blocks; throws
///   team.try_gather(mine, all, root)                      blocks; a status
///   rma::Request r = team.igather(mine, all, root)        non-blocking: r.wait() or r.test()
///   team.try_igather(mine, all, root, r)                  non-blocking; a status
///   rma::Collective c = team.gather_init(mine, all, root) persistent: c.start(), any number of times
///
/// These headings hold for every call:
///
/// Shape      every member makes the same calls, in the same form and order; members do not match blocking with
///            non-blocking forms. Any number may be pending on a team, and complete in any order
/// Completes  when this member's buffers may be reused and its results are available; other members may complete later
/// Memory     the call sends the contents of a buffer at the time of the call
/// Units      counts and offsets in elements; layouts as in rma/layout.hpp: their v forms are those of alltoallw
/// Errors     bad_size where members give different sizes, bad_argument where they make different calls or name
///            different roots: a member that detects it reports both calls, and informs the others. bad_rank: a
///            root that is no member. peer_failed, revoked: as for all calls on a team. The output of a failed call is
///            undefined, and is not written later
/// Threads    as the team. Progress of any thread advances them
/// Cost       by the algorithm (RMA_COLL_*; docs/messages-and-collectives.md). The second call of the same shape finds
///            its schedule in a cache, and allocates nothing
/// Source     MPI-4.1 chapter 6; Hoefler and Lumsdaine, Optimizing non-blocking collective operations for InfiniBand,
///            2008
/// See        src/coll · tests/coll · tests/conformance/collective_cases.cpp
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "rma/detail/collective_descriptions.hpp"
#include "rma/schedule.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The collective calls that do not combine elements, as members of every team. See the top of this file.
class Collectives : public CollectiveDescriptions {
 public:
  /// A barrier: completes after every member has started it. The blocking form is Team::barrier.
  [[nodiscard]] Request ibarrier(source where = source::current()) { return start(of_barrier(), where); }
  [[nodiscard]] status try_ibarrier(Request& made) noexcept { return try_start(of_barrier(), made); }
  [[nodiscard]] Collective barrier_init(source where = source::current()) { return keep(of_barrier(), where); }

  /// Copies `data` of member `root` to `data` of every member.
  /// Errors     bad_size, at all members that have not completed yet, if a member's length differs from the root's
  template <class T, std::size_t N>
  void broadcast(std::span<T, N> data, int root, source where = source::current()) {
    run(of_broadcast(data, root), where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_broadcast(std::span<T, N> data, int root) noexcept {
    return try_run(of_broadcast(data, root));
  }
  template <class T, std::size_t N>
  [[nodiscard]] Request ibroadcast(std::span<T, N> data, int root, source where = source::current()) {
    return start(of_broadcast(data, root), where);
  }
  template <class T, std::size_t N>
  [[nodiscard]] status try_ibroadcast(std::span<T, N> data, int root, Request& made) noexcept {
    return try_start(of_broadcast(data, root), made);
  }
  template <class T, std::size_t N>
  [[nodiscard]] Collective broadcast_init(std::span<T, N> data, int root, source where = source::current()) {
    return keep(of_broadcast(data, root), where);
  }

  /// As the other `broadcast`, of data with a layout; the members' layouts must have the same number of bytes.
  void broadcast(void* data, const Layout& layout, int root, source where = source::current()) {
    run(of_broadcast(data, layout, root), where);
  }
  [[nodiscard]] status try_broadcast(void* data, const Layout& layout, int root) noexcept {
    return try_run(of_broadcast(data, layout, root));
  }
  [[nodiscard]] Request ibroadcast(void* data, const Layout& layout, int root, source where = source::current()) {
    return start(of_broadcast(data, layout, root), where);
  }
  [[nodiscard]] status try_ibroadcast(void* data, const Layout& layout, int root, Request& made) noexcept {
    return try_start(of_broadcast(data, layout, root), made);
  }
  [[nodiscard]] Collective broadcast_init(void* data, const Layout& layout, int root,
                                          source where = source::current()) {
    return keep(of_broadcast(data, layout, root), where);
  }

  /// Collects `mine` of each member, in rank order, in `all` of `root`; `all` of other members is ignored.
  /// In place at the root: `mine` is its own part of `all`.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void gather(std::span<A, N> mine, std::span<T, M> all, int root, source where = source::current()) {
    run(of_gather(mine, all, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_gather(std::span<A, N> mine, std::span<T, M> all, int root) noexcept {
    return try_run(of_gather(mine, all, root));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request igather(std::span<A, N> mine, std::span<T, M> all, int root, source where = source::current()) {
    return start(of_gather(mine, all, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_igather(std::span<A, N> mine, std::span<T, M> all, int root, Request& made) noexcept {
    return try_start(of_gather(mine, all, root), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective gather_init(std::span<A, N> mine, std::span<T, M> all, int root,
                                       source where = source::current()) {
    return keep(of_gather(mine, all, root), where);
  }

  /// As the other `gather`, with layouts: the data of member r have layout `each`, r extents after the start of `all`.
  void gather(const void* mine, const Layout& own, void* all, const Layout& each, int root,
              source where = source::current()) {
    run(of_gather(mine, own, all, each, root), where);
  }
  [[nodiscard]] status try_gather(const void* mine, const Layout& own, void* all, const Layout& each,
                                  int root) noexcept {
    return try_run(of_gather(mine, own, all, each, root));
  }
  [[nodiscard]] Request igather(const void* mine, const Layout& own, void* all, const Layout& each, int root,
                                source where = source::current()) {
    return start(of_gather(mine, own, all, each, root), where);
  }
  [[nodiscard]] status try_igather(const void* mine, const Layout& own, void* all, const Layout& each, int root,
                                   Request& made) noexcept {
    return try_start(of_gather(mine, own, all, each, root), made);
  }
  [[nodiscard]] Collective gather_init(const void* mine, const Layout& own, void* all, const Layout& each, int root,
                                       source where = source::current()) {
    return keep(of_gather(mine, own, all, each, root), where);
  }

  /// As `gather`, with different counts: the root receives counts[r] elements from member r at `offsets[r]` of `all`
  /// (no offsets: one after the other).
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void gatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
               std::span<const std::size_t> offsets, int root, source where = source::current()) {
    run(of_gatherv(mine, all, counts, offsets, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_gatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                   std::span<const std::size_t> offsets, int root) noexcept {
    return try_run(of_gatherv(mine, all, counts, offsets, root));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request igatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                 std::span<const std::size_t> offsets, int root, source where = source::current()) {
    return start(of_gatherv(mine, all, counts, offsets, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_igatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                    std::span<const std::size_t> offsets, int root, Request& made) noexcept {
    return try_start(of_gatherv(mine, all, counts, offsets, root), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective gatherv_init(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                        std::span<const std::size_t> offsets, int root,
                                        source where = source::current()) {
    return keep(of_gatherv(mine, all, counts, offsets, root), where);
  }

  /// Distributes the parts of `all` of `root`, in rank order, to `mine` of each member.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void scatter(std::span<A, N> all, std::span<T, M> mine, int root, source where = source::current()) {
    run(of_scatter(all, mine, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_scatter(std::span<A, N> all, std::span<T, M> mine, int root) noexcept {
    return try_run(of_scatter(all, mine, root));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request iscatter(std::span<A, N> all, std::span<T, M> mine, int root,
                                 source where = source::current()) {
    return start(of_scatter(all, mine, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_iscatter(std::span<A, N> all, std::span<T, M> mine, int root, Request& made) noexcept {
    return try_start(of_scatter(all, mine, root), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective scatter_init(std::span<A, N> all, std::span<T, M> mine, int root,
                                        source where = source::current()) {
    return keep(of_scatter(all, mine, root), where);
  }

  /// As the other `scatter`, with layouts as in gather.
  void scatter(const void* all, const Layout& each, void* mine, const Layout& own, int root,
               source where = source::current()) {
    run(of_scatter(all, each, mine, own, root), where);
  }
  [[nodiscard]] status try_scatter(const void* all, const Layout& each, void* mine, const Layout& own,
                                   int root) noexcept {
    return try_run(of_scatter(all, each, mine, own, root));
  }
  [[nodiscard]] Request iscatter(const void* all, const Layout& each, void* mine, const Layout& own, int root,
                                 source where = source::current()) {
    return start(of_scatter(all, each, mine, own, root), where);
  }
  [[nodiscard]] status try_iscatter(const void* all, const Layout& each, void* mine, const Layout& own, int root,
                                    Request& made) noexcept {
    return try_start(of_scatter(all, each, mine, own, root), made);
  }
  [[nodiscard]] Collective scatter_init(const void* all, const Layout& each, void* mine, const Layout& own, int root,
                                        source where = source::current()) {
    return keep(of_scatter(all, each, mine, own, root), where);
  }

  /// As `scatter`, with different counts: the inverse of gatherv.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void scatterv(std::span<A, N> all, std::span<const std::size_t> counts, std::span<const std::size_t> offsets,
                std::span<T, M> mine, int root, source where = source::current()) {
    run(of_scatterv(all, counts, offsets, mine, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_scatterv(std::span<A, N> all, std::span<const std::size_t> counts,
                                    std::span<const std::size_t> offsets, std::span<T, M> mine, int root) noexcept {
    return try_run(of_scatterv(all, counts, offsets, mine, root));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request iscatterv(std::span<A, N> all, std::span<const std::size_t> counts,
                                  std::span<const std::size_t> offsets, std::span<T, M> mine, int root,
                                  source where = source::current()) {
    return start(of_scatterv(all, counts, offsets, mine, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_iscatterv(std::span<A, N> all, std::span<const std::size_t> counts,
                                     std::span<const std::size_t> offsets, std::span<T, M> mine, int root,
                                     Request& made) noexcept {
    return try_start(of_scatterv(all, counts, offsets, mine, root), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective scatterv_init(std::span<A, N> all, std::span<const std::size_t> counts,
                                         std::span<const std::size_t> offsets, std::span<T, M> mine, int root,
                                         source where = source::current()) {
    return keep(of_scatterv(all, counts, offsets, mine, root), where);
  }

  /// Collects `mine` of each member in rank order in `all` of every member. In place: `mine` is its own part of `all`.
  /// Errors     bad_size, at all members, if the lengths differ
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void allgather(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    run(of_allgather(mine, all), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_allgather(std::span<A, N> mine, std::span<T, M> all) noexcept {
    return try_run(of_allgather(mine, all));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request iallgather(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    return start(of_allgather(mine, all), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_iallgather(std::span<A, N> mine, std::span<T, M> all, Request& made) noexcept {
    return try_start(of_allgather(mine, all), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective allgather_init(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    return keep(of_allgather(mine, all), where);
  }

  /// As the other `allgather`, with layouts as in gather.
  void allgather(const void* mine, const Layout& own, void* all, const Layout& each, source where = source::current()) {
    run(of_allgather(mine, own, all, each), where);
  }
  [[nodiscard]] status try_allgather(const void* mine, const Layout& own, void* all, const Layout& each) noexcept {
    return try_run(of_allgather(mine, own, all, each));
  }
  [[nodiscard]] Request iallgather(const void* mine, const Layout& own, void* all, const Layout& each,
                                   source where = source::current()) {
    return start(of_allgather(mine, own, all, each), where);
  }
  [[nodiscard]] status try_iallgather(const void* mine, const Layout& own, void* all, const Layout& each,
                                      Request& made) noexcept {
    return try_start(of_allgather(mine, own, all, each), made);
  }
  [[nodiscard]] Collective allgather_init(const void* mine, const Layout& own, void* all, const Layout& each,
                                          source where = source::current()) {
    return keep(of_allgather(mine, own, all, each), where);
  }

  /// As `allgather`, with counts[r] elements from member r, at `offsets[r]` of `all`; all members give the same counts.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void allgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                  std::span<const std::size_t> offsets, source where = source::current()) {
    run(of_allgatherv(mine, all, counts, offsets), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_allgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                      std::span<const std::size_t> offsets) noexcept {
    return try_run(of_allgatherv(mine, all, counts, offsets));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request iallgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                    std::span<const std::size_t> offsets, source where = source::current()) {
    return start(of_allgatherv(mine, all, counts, offsets), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_iallgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                       std::span<const std::size_t> offsets, Request& made) noexcept {
    return try_start(of_allgatherv(mine, all, counts, offsets), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective allgatherv_init(std::span<A, N> mine, std::span<T, M> all,
                                           std::span<const std::size_t> counts, std::span<const std::size_t> offsets,
                                           source where = source::current()) {
    return keep(of_allgatherv(mine, all, counts, offsets), where);
  }

  /// Sends the r-th part of `mine` to member r, into the part of its `all` for this member. In place: both are the same
  /// memory.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void alltoall(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    run(of_alltoall(mine, all), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_alltoall(std::span<A, N> mine, std::span<T, M> all) noexcept {
    return try_run(of_alltoall(mine, all));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ialltoall(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    return start(of_alltoall(mine, all), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ialltoall(std::span<A, N> mine, std::span<T, M> all, Request& made) noexcept {
    return try_start(of_alltoall(mine, all), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective alltoall_init(std::span<A, N> mine, std::span<T, M> all, source where = source::current()) {
    return keep(of_alltoall(mine, all), where);
  }

  /// As the other `alltoall`, with layouts: `out` and `in` describe one member's part, as in gather.
  void alltoall(const void* mine, const Layout& out, void* all, const Layout& in, source where = source::current()) {
    run(of_alltoall(mine, out, all, in), where);
  }
  [[nodiscard]] status try_alltoall(const void* mine, const Layout& out, void* all, const Layout& in) noexcept {
    return try_run(of_alltoall(mine, out, all, in));
  }
  [[nodiscard]] Request ialltoall(const void* mine, const Layout& out, void* all, const Layout& in,
                                  source where = source::current()) {
    return start(of_alltoall(mine, out, all, in), where);
  }
  [[nodiscard]] status try_ialltoall(const void* mine, const Layout& out, void* all, const Layout& in,
                                     Request& made) noexcept {
    return try_start(of_alltoall(mine, out, all, in), made);
  }
  [[nodiscard]] Collective alltoall_init(const void* mine, const Layout& out, void* all, const Layout& in,
                                         source where = source::current()) {
    return keep(of_alltoall(mine, out, all, in), where);
  }

  /// Sends sent[r] elements at `sent_at[r]` of `mine` to member r; received[r] from it go to `received_at[r]` of `all`.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent, std::span<const std::size_t> sent_at,
                 std::span<T, M> all, std::span<const std::size_t> received, std::span<const std::size_t> received_at,
                 source where = source::current()) {
    run(of_alltoallv(mine, sent, sent_at, all, received, received_at), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                     std::span<const std::size_t> sent_at, std::span<T, M> all,
                                     std::span<const std::size_t> received,
                                     std::span<const std::size_t> received_at) noexcept {
    return try_run(of_alltoallv(mine, sent, sent_at, all, received, received_at));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ialltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                   std::span<const std::size_t> sent_at, std::span<T, M> all,
                                   std::span<const std::size_t> received, std::span<const std::size_t> received_at,
                                   source where = source::current()) {
    return start(of_alltoallv(mine, sent, sent_at, all, received, received_at), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ialltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                      std::span<const std::size_t> sent_at, std::span<T, M> all,
                                      std::span<const std::size_t> received, std::span<const std::size_t> received_at,
                                      Request& made) noexcept {
    return try_start(of_alltoallv(mine, sent, sent_at, all, received, received_at), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective alltoallv_init(std::span<A, N> mine, std::span<const std::size_t> sent,
                                          std::span<const std::size_t> sent_at, std::span<T, M> all,
                                          std::span<const std::size_t> received,
                                          std::span<const std::size_t> received_at, source where = source::current()) {
    return keep(of_alltoallv(mine, sent, sent_at, all, received, received_at), where);
  }

  /// As `alltoallv`, with a layout for each member, and offsets in bytes.
  void alltoallw(const void* mine, std::span<const Layout> sent, std::span<const std::ptrdiff_t> sent_at, void* all,
                 std::span<const Layout> received, std::span<const std::ptrdiff_t> received_at,
                 source where = source::current()) {
    run(of_alltoallw(mine, sent, sent_at, all, received, received_at), where);
  }
  [[nodiscard]] status try_alltoallw(const void* mine, std::span<const Layout> sent,
                                     std::span<const std::ptrdiff_t> sent_at, void* all,
                                     std::span<const Layout> received,
                                     std::span<const std::ptrdiff_t> received_at) noexcept {
    return try_run(of_alltoallw(mine, sent, sent_at, all, received, received_at));
  }
  [[nodiscard]] Request ialltoallw(const void* mine, std::span<const Layout> sent,
                                   std::span<const std::ptrdiff_t> sent_at, void* all, std::span<const Layout> received,
                                   std::span<const std::ptrdiff_t> received_at, source where = source::current()) {
    return start(of_alltoallw(mine, sent, sent_at, all, received, received_at), where);
  }
  [[nodiscard]] status try_ialltoallw(const void* mine, std::span<const Layout> sent,
                                      std::span<const std::ptrdiff_t> sent_at, void* all,
                                      std::span<const Layout> received, std::span<const std::ptrdiff_t> received_at,
                                      Request& made) noexcept {
    return try_start(of_alltoallw(mine, sent, sent_at, all, received, received_at), made);
  }
  [[nodiscard]] Collective alltoallw_init(const void* mine, std::span<const Layout> sent,
                                          std::span<const std::ptrdiff_t> sent_at, void* all,
                                          std::span<const Layout> received, std::span<const std::ptrdiff_t> received_at,
                                          source where = source::current()) {
    return keep(of_alltoallw(mine, sent, sent_at, all, received, received_at), where);
  }

  /// Sends `mine` to each target, into the part of its `all` for this member among its sources.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void neighbor_allgather(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                          source where = source::current()) {
    run(of_neighbor_allgather(mine, all, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_neighbor_allgather(std::span<A, N> mine, std::span<T, M> all, Neighbors graph) noexcept {
    return try_run(of_neighbor_allgather(mine, all, graph));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ineighbor_allgather(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                            source where = source::current()) {
    return start(of_neighbor_allgather(mine, all, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ineighbor_allgather(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                               Request& made) noexcept {
    return try_start(of_neighbor_allgather(mine, all, graph), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective neighbor_allgather_init(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                                   source where = source::current()) {
    return keep(of_neighbor_allgather(mine, all, graph), where);
  }

  /// As `neighbor_allgather`, with counts[i] elements from source i.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void neighbor_allgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                           std::span<const std::size_t> offsets, Neighbors graph, source where = source::current()) {
    run(of_neighbor_allgatherv(mine, all, counts, offsets, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_neighbor_allgatherv(std::span<A, N> mine, std::span<T, M> all,
                                               std::span<const std::size_t> counts,
                                               std::span<const std::size_t> offsets, Neighbors graph) noexcept {
    return try_run(of_neighbor_allgatherv(mine, all, counts, offsets, graph));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ineighbor_allgatherv(std::span<A, N> mine, std::span<T, M> all,
                                             std::span<const std::size_t> counts, std::span<const std::size_t> offsets,
                                             Neighbors graph, source where = source::current()) {
    return start(of_neighbor_allgatherv(mine, all, counts, offsets, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ineighbor_allgatherv(std::span<A, N> mine, std::span<T, M> all,
                                                std::span<const std::size_t> counts,
                                                std::span<const std::size_t> offsets, Neighbors graph,
                                                Request& made) noexcept {
    return try_start(of_neighbor_allgatherv(mine, all, counts, offsets, graph), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective neighbor_allgatherv_init(std::span<A, N> mine, std::span<T, M> all,
                                                    std::span<const std::size_t> counts,
                                                    std::span<const std::size_t> offsets, Neighbors graph,
                                                    source where = source::current()) {
    return keep(of_neighbor_allgatherv(mine, all, counts, offsets, graph), where);
  }

  /// Sends the i-th part of `mine` to target i.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void neighbor_alltoall(std::span<A, N> mine, std::span<T, M> all, Neighbors graph, source where = source::current()) {
    run(of_neighbor_alltoall(mine, all, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_neighbor_alltoall(std::span<A, N> mine, std::span<T, M> all, Neighbors graph) noexcept {
    return try_run(of_neighbor_alltoall(mine, all, graph));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ineighbor_alltoall(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                           source where = source::current()) {
    return start(of_neighbor_alltoall(mine, all, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ineighbor_alltoall(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                              Request& made) noexcept {
    return try_start(of_neighbor_alltoall(mine, all, graph), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective neighbor_alltoall_init(std::span<A, N> mine, std::span<T, M> all, Neighbors graph,
                                                  source where = source::current()) {
    return keep(of_neighbor_alltoall(mine, all, graph), where);
  }

  /// As `neighbor_alltoall`, with sent[i] elements for target i, and received[i] from source i.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  void neighbor_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent, std::span<const std::size_t> sent_at,
                          std::span<T, M> all, std::span<const std::size_t> received,
                          std::span<const std::size_t> received_at, Neighbors graph, source where = source::current()) {
    run(of_neighbor_alltoallv(mine, sent, sent_at, all, received, received_at, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_neighbor_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                              std::span<const std::size_t> sent_at, std::span<T, M> all,
                                              std::span<const std::size_t> received,
                                              std::span<const std::size_t> received_at, Neighbors graph) noexcept {
    return try_run(of_neighbor_alltoallv(mine, sent, sent_at, all, received, received_at, graph));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Request ineighbor_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                            std::span<const std::size_t> sent_at, std::span<T, M> all,
                                            std::span<const std::size_t> received,
                                            std::span<const std::size_t> received_at, Neighbors graph,
                                            source where = source::current()) {
    return start(of_neighbor_alltoallv(mine, sent, sent_at, all, received, received_at, graph), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] status try_ineighbor_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                               std::span<const std::size_t> sent_at, std::span<T, M> all,
                                               std::span<const std::size_t> received,
                                               std::span<const std::size_t> received_at, Neighbors graph,
                                               Request& made) noexcept {
    return try_start(of_neighbor_alltoallv(mine, sent, sent_at, all, received, received_at, graph), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N>
  [[nodiscard]] Collective neighbor_alltoallv_init(std::span<A, N> mine, std::span<const std::size_t> sent,
                                                   std::span<const std::size_t> sent_at, std::span<T, M> all,
                                                   std::span<const std::size_t> received,
                                                   std::span<const std::size_t> received_at, Neighbors graph,
                                                   source where = source::current()) {
    return keep(of_neighbor_alltoallv(mine, sent, sent_at, all, received, received_at, graph), where);
  }

  /// As `neighbor_alltoallv`, with a layout for each neighbor, and offsets in bytes.
  void neighbor_alltoallw(const void* mine, std::span<const Layout> sent, std::span<const std::ptrdiff_t> sent_at,
                          void* all, std::span<const Layout> received, std::span<const std::ptrdiff_t> received_at,
                          Neighbors graph, source where = source::current()) {
    run(of_neighbor_alltoallw(mine, sent, sent_at, all, received, received_at, graph), where);
  }
  [[nodiscard]] status try_neighbor_alltoallw(const void* mine, std::span<const Layout> sent,
                                              std::span<const std::ptrdiff_t> sent_at, void* all,
                                              std::span<const Layout> received,
                                              std::span<const std::ptrdiff_t> received_at, Neighbors graph) noexcept {
    return try_run(of_neighbor_alltoallw(mine, sent, sent_at, all, received, received_at, graph));
  }
  [[nodiscard]] Request ineighbor_alltoallw(const void* mine, std::span<const Layout> sent,
                                            std::span<const std::ptrdiff_t> sent_at, void* all,
                                            std::span<const Layout> received,
                                            std::span<const std::ptrdiff_t> received_at, Neighbors graph,
                                            source where = source::current()) {
    return start(of_neighbor_alltoallw(mine, sent, sent_at, all, received, received_at, graph), where);
  }
  [[nodiscard]] status try_ineighbor_alltoallw(const void* mine, std::span<const Layout> sent,
                                               std::span<const std::ptrdiff_t> sent_at, void* all,
                                               std::span<const Layout> received,
                                               std::span<const std::ptrdiff_t> received_at, Neighbors graph,
                                               Request& made) noexcept {
    return try_start(of_neighbor_alltoallw(mine, sent, sent_at, all, received, received_at, graph), made);
  }
  [[nodiscard]] Collective neighbor_alltoallw_init(const void* mine, std::span<const Layout> sent,
                                                   std::span<const std::ptrdiff_t> sent_at, void* all,
                                                   std::span<const Layout> received,
                                                   std::span<const std::ptrdiff_t> received_at, Neighbors graph,
                                                   source where = source::current()) {
    return keep(of_neighbor_alltoallw(mine, sent, sent_at, all, received, received_at, graph), where);
  }

  /// Runs a schedule of the program, of which every member gives its own part: see rma/schedule.hpp.
  /// Errors     bad_size if a buffer is shorter than the bytes that the schedule uses, bad_rank if it names a rank
  ///            that is no member
  template <class T, std::size_t N, class U, std::size_t M>
  [[nodiscard]] Request start(const Schedule& schedule, std::span<T, N> in, std::span<U, M> out, operation op = no_op,
                              element type = element::u8, source where = source::current()) {
    return TeamBase::start(of_schedule(schedule, std::as_bytes(in), std::as_writable_bytes(out), op, type), where);
  }
  template <class T, std::size_t N, class U, std::size_t M>
  [[nodiscard]] Collective init(const Schedule& schedule, std::span<T, N> in, std::span<U, M> out, operation op = no_op,
                                element type = element::u8, source where = source::current()) {
    return keep(of_schedule(schedule, std::as_bytes(in), std::as_writable_bytes(out), op, type), where);
  }

 protected:
  using CollectiveDescriptions::CollectiveDescriptions;
  using TeamBase::start;
};

}  // namespace rma

#pragma GCC visibility pop
