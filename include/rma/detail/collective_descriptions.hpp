// SPDX-License-Identifier: Apache-2.0
/// \file
/// Builds the description of each call of rma/collectives.hpp: its buffers, its sizes, and errors in its arguments.
#pragma once

#include <cstddef>
#include <span>
#include <type_traits>

#include "rma/detail/team_base.hpp"
#include "rma/schedule.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// A member's neighborhood: the members that send to it, and those to which it sends, in the order of their blocks.
/// Both ends name each edge; a member may occur several times, and be its own neighbor.
struct Neighbors {
  std::span<const int> sources;
  std::span<const int> targets;
};

class CollectiveDescriptions : public TeamBase {
 protected:
  using TeamBase::TeamBase;
  using kind = detail::collective;

  [[nodiscard]] described of_schedule(const Schedule& schedule, std::span<const std::byte> in, std::span<std::byte> out,
                                      operation op, element type) const noexcept;
  [[nodiscard]] static described of_barrier() noexcept { return describe(kind::barrier, "barrier", nullptr, nullptr); }

  template <class T, std::size_t N>
  [[nodiscard]] described of_broadcast(std::span<T, N> data, int root) const noexcept {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
    described c = describe(kind::broadcast, "broadcast", data.data(), data.data());
    c.bytes = data.size_bytes();
    c.root = root;
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  [[nodiscard]] described of_broadcast(void* data, const Layout& layout, int root) const noexcept {
    described c = describe(kind::broadcast, "broadcast", data, data);
    c.bytes = layout.bytes();
    c.root = root;
    (rank() == root ? c.in_shape : c.out_shape).one = &layout;
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }

  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_gather(std::span<A, N> mine, std::span<T, M> all, int root) const noexcept {
    described c = describe(kind::gather, "gather", mine.data(), all.data());
    c.root = root;
    c.sent.each_bytes = mine.size_bytes();
    if (rank() == root) {
      c.received.each_bytes = mine.size_bytes();
      demand(c, all.size() == mine.size() * members(), status::bad_size);
    }
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  [[nodiscard]] described of_gather(const void* mine, const Layout& own, void* all, const Layout& each,
                                    int root) const noexcept {
    described c = describe(kind::gather, "gather", mine, all);
    c.root = root;
    c.sent.each_bytes = own.bytes();
    c.in_shape.one = &own;
    if (rank() == root) {
      c.received.each_bytes = each.bytes();
      c.out_shape = {&each, members(), {}, {}};
      demand(c, own.bytes() == each.bytes(), status::bad_size);
    }
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_gatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                     std::span<const std::size_t> offsets, int root) const noexcept {
    described c = describe(kind::gather, "gatherv", mine.data(), all.data());
    c.root = root;
    c.varied = true;
    c.sent.each_bytes = mine.size_bytes();
    demand(c, valid_root(root), status::bad_rank);
    if (rank() == root) {
      c.received = {0, counts, offsets, sizeof(T)};
      demand_lists(c, counts, offsets, members(), all.size());
      demand(c, c.wrong != status::done || counts[static_cast<std::size_t>(root)] == mine.size(), status::bad_size);
    }
    return c;
  }

  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_scatter(std::span<A, N> all, std::span<T, M> mine, int root) const noexcept {
    described c = describe(kind::scatter, "scatter", all.data(), mine.data());
    c.root = root;
    c.received.each_bytes = mine.size_bytes();
    if (rank() == root) {
      c.sent.each_bytes = mine.size_bytes();
      demand(c, all.size() == mine.size() * members(), status::bad_size);
    }
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  [[nodiscard]] described of_scatter(const void* all, const Layout& each, void* mine, const Layout& own,
                                     int root) const noexcept {
    described c = describe(kind::scatter, "scatter", all, mine);
    c.root = root;
    c.received.each_bytes = own.bytes();
    c.out_shape.one = &own;
    if (rank() == root) {
      c.sent.each_bytes = each.bytes();
      c.in_shape = {&each, members(), {}, {}};
      demand(c, own.bytes() == each.bytes(), status::bad_size);
    }
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_scatterv(std::span<A, N> all, std::span<const std::size_t> counts,
                                      std::span<const std::size_t> offsets, std::span<T, M> mine,
                                      int root) const noexcept {
    described c = describe(kind::scatter, "scatterv", all.data(), mine.data());
    c.root = root;
    c.varied = true;
    c.received.each_bytes = mine.size_bytes();
    demand(c, valid_root(root), status::bad_rank);
    if (rank() == root) {
      c.sent = {0, counts, offsets, sizeof(T)};
      demand_lists(c, counts, offsets, members(), all.size());
      demand(c, c.wrong != status::done || counts[static_cast<std::size_t>(root)] == mine.size(), status::bad_size);
    }
    return c;
  }

  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_allgather(std::span<A, N> mine, std::span<T, M> all) const noexcept {
    described c = describe(kind::allgather, "allgather", mine.data(), all.data());
    c.received.each_bytes = mine.size_bytes();
    demand(c, all.size() == mine.size() * members(), status::bad_size);
    return c;
  }
  [[nodiscard]] described of_allgather(const void* mine, const Layout& own, void* all,
                                       const Layout& each) const noexcept {
    described c = describe(kind::allgather, "allgather", mine, all);
    c.received.each_bytes = each.bytes();
    c.in_shape.one = &own;
    c.out_shape = {&each, members(), {}, {}};
    demand(c, own.bytes() == each.bytes(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_allgatherv(std::span<A, N> mine, std::span<T, M> all, std::span<const std::size_t> counts,
                                        std::span<const std::size_t> offsets) const noexcept {
    described c = describe(kind::allgather, "allgatherv", mine.data(), all.data());
    c.varied = true;
    c.received = {0, counts, offsets, sizeof(T)};
    demand_lists(c, counts, offsets, members(), all.size());
    demand(c, c.wrong != status::done || counts[static_cast<std::size_t>(rank())] == mine.size(), status::bad_size);
    return c;
  }

  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_alltoall(std::span<A, N> mine, std::span<T, M> all) const noexcept {
    described c = describe(kind::alltoall, "alltoall", mine.data(), all.data());
    c.sent.each_bytes = c.received.each_bytes = mine.size_bytes() / members();
    c.in_place = mine.data() == all.data() && !mine.empty();
    demand(c, mine.size() == all.size() && mine.size() % members() == 0, status::bad_size);
    return c;
  }
  [[nodiscard]] described of_alltoall(const void* mine, const Layout& out, void* all, const Layout& in) const noexcept {
    described c = describe(kind::alltoall, "alltoall", mine, all);
    c.sent.each_bytes = out.bytes();
    c.received.each_bytes = in.bytes();
    c.in_shape = {&out, members(), {}, {}};
    c.out_shape = {&in, members(), {}, {}};
    demand(c, out.bytes() == in.bytes(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                       std::span<const std::size_t> sent_at, std::span<T, M> all,
                                       std::span<const std::size_t> received,
                                       std::span<const std::size_t> received_at) const noexcept {
    described c = describe(kind::alltoall, "alltoallv", mine.data(), all.data());
    c.varied = true;
    c.in_place = mine.data() == all.data() && !mine.empty();
    c.sent = {0, sent, sent_at, sizeof(T)};
    c.received = {0, received, received_at, sizeof(T)};
    demand_lists(c, sent, sent_at, members(), mine.size());
    demand_lists(c, received, received_at, members(), all.size());
    return c;
  }
  [[nodiscard]] described of_alltoallw(const void* mine, std::span<const Layout> sent,
                                       std::span<const std::ptrdiff_t> sent_at, void* all,
                                       std::span<const Layout> received,
                                       std::span<const std::ptrdiff_t> received_at) const noexcept {
    described c = describe(kind::alltoall, "alltoallw", mine, all);
    c.varied = true;
    c.in_shape = {nullptr, 1, sent, sent_at};
    c.out_shape = {nullptr, 1, received, received_at};
    demand(c,
           sent.size() == members() && received.size() == members() && sent_at.size() == members() &&
               received_at.size() == members(),
           status::bad_size);
    return c;
  }

  void demand_neighbors(described& c, const Neighbors& graph) const noexcept {
    c.sources = graph.sources;
    c.targets = graph.targets;
    for (const int r : graph.sources) demand(c, valid_root(r), status::bad_rank);
    for (const int r : graph.targets) demand(c, valid_root(r), status::bad_rank);
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_neighbor_allgather(std::span<A, N> mine, std::span<T, M> all,
                                                const Neighbors& graph) const noexcept {
    described c = describe(kind::neighbor_allgather, "neighbor_allgather", mine.data(), all.data());
    c.bytes = mine.size_bytes();
    c.received.each_bytes = mine.size_bytes();
    demand_neighbors(c, graph);
    demand(c, all.size() == mine.size() * graph.sources.size(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_neighbor_allgatherv(std::span<A, N> mine, std::span<T, M> all,
                                                 std::span<const std::size_t> counts,
                                                 std::span<const std::size_t> offsets,
                                                 const Neighbors& graph) const noexcept {
    described c = describe(kind::neighbor_allgather, "neighbor_allgatherv", mine.data(), all.data());
    c.bytes = mine.size_bytes();
    c.varied = true;
    c.received = {0, counts, offsets, sizeof(T)};
    demand_neighbors(c, graph);
    demand_lists(c, counts, offsets, graph.sources.size(), all.size());
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_neighbor_alltoall(std::span<A, N> mine, std::span<T, M> all,
                                               const Neighbors& graph) const noexcept {
    described c = describe(kind::neighbor_alltoall, "neighbor_alltoall", mine.data(), all.data());
    const std::size_t out = graph.targets.size();
    const std::size_t in = graph.sources.size();
    c.sent.each_bytes = out == 0 ? 0 : mine.size_bytes() / out;
    c.received.each_bytes = in == 0 ? 0 : all.size_bytes() / in;
    demand_neighbors(c, graph);
    demand(c, mine.size() * sizeof(T) == c.sent.each_bytes * out && all.size_bytes() == c.received.each_bytes * in,
           status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M>
  [[nodiscard]] described of_neighbor_alltoallv(std::span<A, N> mine, std::span<const std::size_t> sent,
                                                std::span<const std::size_t> sent_at, std::span<T, M> all,
                                                std::span<const std::size_t> received,
                                                std::span<const std::size_t> received_at,
                                                const Neighbors& graph) const noexcept {
    described c = describe(kind::neighbor_alltoall, "neighbor_alltoallv", mine.data(), all.data());
    c.varied = true;
    c.sent = {0, sent, sent_at, sizeof(T)};
    c.received = {0, received, received_at, sizeof(T)};
    demand_neighbors(c, graph);
    demand_lists(c, sent, sent_at, graph.targets.size(), mine.size());
    demand_lists(c, received, received_at, graph.sources.size(), all.size());
    return c;
  }
  [[nodiscard]] described of_neighbor_alltoallw(const void* mine, std::span<const Layout> sent,
                                                std::span<const std::ptrdiff_t> sent_at, void* all,
                                                std::span<const Layout> received,
                                                std::span<const std::ptrdiff_t> received_at,
                                                const Neighbors& graph) const noexcept {
    described c = describe(kind::neighbor_alltoall, "neighbor_alltoallw", mine, all);
    c.varied = true;
    c.in_shape = {nullptr, 1, sent, sent_at};
    c.out_shape = {nullptr, 1, received, received_at};
    demand_neighbors(c, graph);
    demand(c,
           sent.size() == graph.targets.size() && received.size() == graph.sources.size() &&
               sent_at.size() == sent.size() && received_at.size() == received.size(),
           status::bad_size);
    return c;
  }
};

}  // namespace rma

#pragma GCC visibility pop
