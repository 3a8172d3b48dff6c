// SPDX-License-Identifier: Apache-2.0
/// \file
/// Collectives that combine elements: reduce, allreduce, reduce_scatter, scan, exscan. Forms and headings are those of
/// rma/collectives.hpp. Operators:
///
///   team.allreduce(std::span(data), rma::sum)                                  operators of rma/operation.hpp
///   auto gcd = [](int a, int b) { return std::gcd(a, b); };
///   team.allreduce(std::span(data), rma::UserOperation::of<int>(gcd, true))    user operator
///
/// Operands are combined in rank order if the operator does not commute. All members get the same bits. Rounding
/// depends on the algorithm, on a team with set_reproducible() only on the number of members. In place: `mine` and
/// `result` are the same memory (for reduce_scatter: they begin at the same address).
#pragma once

#include <cstddef>
#include <span>

#include "rma/collectives.hpp"
#include "rma/operation.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The collective calls that combine elements, as members of every team. See the top of this file.
class Reductions : public Collectives {
 public:
  /// Combines `mine` of all members element by element in `result` of `root`; `result` of other members is ignored.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void reduce(std::span<A, N> mine, std::span<T, M> result, const Op& op, int root, source where = source::current()) {
    run(of_reduce(mine, result, op, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_reduce(std::span<A, N> mine, std::span<T, M> result, const Op& op, int root) noexcept {
    return try_run(of_reduce(mine, result, op, root));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request ireduce(std::span<A, N> mine, std::span<T, M> result, const Op& op, int root,
                                source where = source::current()) {
    return start(of_reduce(mine, result, op, root), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_ireduce(std::span<A, N> mine, std::span<T, M> result, const Op& op, int root,
                                   Request& made) noexcept {
    return try_start(of_reduce(mine, result, op, root), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective reduce_init(std::span<A, N> mine, std::span<T, M> result, const Op& op, int root,
                                       source where = source::current()) {
    return keep(of_reduce(mine, result, op, root), where);
  }

  /// Combines `data` of all members element by element, in place. Every member gets the same result, down to the last
  /// bit.
  /// Errors     bad_size, at all members, if the numbers of elements differ; bad_type, at all members, if the operator
  ///            of one is invalid or not defined for T
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  void allreduce(std::span<T, N> data, const Op& op, source where = source::current()) {
    run(of_allreduce(data, data, op), where);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_allreduce(std::span<T, N> data, const Op& op) noexcept {
    return try_run(of_allreduce(data, data, op));
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request iallreduce(std::span<T, N> data, const Op& op, source where = source::current()) {
    return start(of_allreduce(data, data, op), where);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_iallreduce(std::span<T, N> data, const Op& op, Request& made) noexcept {
    return try_start(of_allreduce(data, data, op), made);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective allreduce_init(std::span<T, N> data, const Op& op, source where = source::current()) {
    return keep(of_allreduce(data, data, op), where);
  }

  /// As the other `allreduce`, with the result in another buffer.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void allreduce(std::span<A, N> mine, std::span<T, M> result, const Op& op, source where = source::current()) {
    run(of_allreduce(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_allreduce(std::span<A, N> mine, std::span<T, M> result, const Op& op) noexcept {
    return try_run(of_allreduce(mine, result, op));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request iallreduce(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                   source where = source::current()) {
    return start(of_allreduce(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_iallreduce(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                      Request& made) noexcept {
    return try_start(of_allreduce(mine, result, op), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective allreduce_init(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                          source where = source::current()) {
    return keep(of_allreduce(mine, result, op), where);
  }

  /// As the other `allreduce`, of elements selected by a layout.
  void allreduce(void* data, const Layout& layout, element type, operation op, source where = source::current()) {
    run(of_allreduce(data, layout, type, op), where);
  }
  [[nodiscard]] status try_allreduce(void* data, const Layout& layout, element type, operation op) noexcept {
    return try_run(of_allreduce(data, layout, type, op));
  }
  [[nodiscard]] Request iallreduce(void* data, const Layout& layout, element type, operation op,
                                   source where = source::current()) {
    return start(of_allreduce(data, layout, type, op), where);
  }
  [[nodiscard]] status try_iallreduce(void* data, const Layout& layout, element type, operation op,
                                      Request& made) noexcept {
    return try_start(of_allreduce(data, layout, type, op), made);
  }
  [[nodiscard]] Collective allreduce_init(void* data, const Layout& layout, element type, operation op,
                                          source where = source::current()) {
    return keep(of_allreduce(data, layout, type, op), where);
  }

  /// Combines `mine` of all members, and gives each member the part for it, as long as `result`: parts are in rank
  /// order.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void reduce_scatter_block(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                            source where = source::current()) {
    run(of_reduce_scatter_block(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_reduce_scatter_block(std::span<A, N> mine, std::span<T, M> result, const Op& op) noexcept {
    return try_run(of_reduce_scatter_block(mine, result, op));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request ireduce_scatter_block(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                              source where = source::current()) {
    return start(of_reduce_scatter_block(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_ireduce_scatter_block(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                                 Request& made) noexcept {
    return try_start(of_reduce_scatter_block(mine, result, op), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective reduce_scatter_block_init(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                                     source where = source::current()) {
    return keep(of_reduce_scatter_block(mine, result, op), where);
  }

  /// As `reduce_scatter_block`, with counts[r] elements for member r; all members give the same counts.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void reduce_scatter(std::span<A, N> mine, std::span<T, M> result, std::span<const std::size_t> counts, const Op& op,
                      source where = source::current()) {
    run(of_reduce_scatter(mine, result, counts, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_reduce_scatter(std::span<A, N> mine, std::span<T, M> result,
                                          std::span<const std::size_t> counts, const Op& op) noexcept {
    return try_run(of_reduce_scatter(mine, result, counts, op));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request ireduce_scatter(std::span<A, N> mine, std::span<T, M> result,
                                        std::span<const std::size_t> counts, const Op& op,
                                        source where = source::current()) {
    return start(of_reduce_scatter(mine, result, counts, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_ireduce_scatter(std::span<A, N> mine, std::span<T, M> result,
                                           std::span<const std::size_t> counts, const Op& op, Request& made) noexcept {
    return try_start(of_reduce_scatter(mine, result, counts, op), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective reduce_scatter_init(std::span<A, N> mine, std::span<T, M> result,
                                               std::span<const std::size_t> counts, const Op& op,
                                               source where = source::current()) {
    return keep(of_reduce_scatter(mine, result, counts, op), where);
  }

  /// Combines `data` of the members from 0 to this one, element by element and in rank order.
  /// Errors     as allreduce
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  void scan(std::span<T, N> data, const Op& op, source where = source::current()) {
    run(of_scan(data, data, op), where);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_scan(std::span<T, N> data, const Op& op) noexcept {
    return try_run(of_scan(data, data, op));
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request iscan(std::span<T, N> data, const Op& op, source where = source::current()) {
    return start(of_scan(data, data, op), where);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_iscan(std::span<T, N> data, const Op& op, Request& made) noexcept {
    return try_start(of_scan(data, data, op), made);
  }
  template <class T, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective scan_init(std::span<T, N> data, const Op& op, source where = source::current()) {
    return keep(of_scan(data, data, op), where);
  }

  /// As the other `scan`, with the result in another buffer.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void scan(std::span<A, N> mine, std::span<T, M> result, const Op& op, source where = source::current()) {
    run(of_scan(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_scan(std::span<A, N> mine, std::span<T, M> result, const Op& op) noexcept {
    return try_run(of_scan(mine, result, op));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request iscan(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                              source where = source::current()) {
    return start(of_scan(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_iscan(std::span<A, N> mine, std::span<T, M> result, const Op& op, Request& made) noexcept {
    return try_start(of_scan(mine, result, op), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective scan_init(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                     source where = source::current()) {
    return keep(of_scan(mine, result, op), where);
  }

  /// As `scan`, of the members before this one. The result of member 0 is not written.
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  void exscan(std::span<A, N> mine, std::span<T, M> result, const Op& op, source where = source::current()) {
    run(of_exscan(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_exscan(std::span<A, N> mine, std::span<T, M> result, const Op& op) noexcept {
    return try_run(of_exscan(mine, result, op));
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Request iexscan(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                source where = source::current()) {
    return start(of_exscan(mine, result, op), where);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] status try_iexscan(std::span<A, N> mine, std::span<T, M> result, const Op& op, Request& made) noexcept {
    return try_start(of_exscan(mine, result, op), made);
  }
  template <class T, std::size_t M, detail::same_elements<T> A, std::size_t N, detail::combiner_of<T> Op>
  [[nodiscard]] Collective exscan_init(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                       source where = source::current()) {
    return keep(of_exscan(mine, result, op), where);
  }

 protected:
  using Collectives::Collectives;

  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] static described combining(kind what, const char* name, std::span<A, N> mine, std::span<T, M> result,
                                           const Op& op) noexcept {
    static_assert(std::is_trivially_copyable_v<T> && !std::is_const_v<T>);
    described c = describe(what, name, mine.data(), result.data());
    c.bytes = mine.size_bytes();
    c.combines = true;
    if constexpr (accumulable<T>) c.type = element_of<T>;
    if constexpr (std::same_as<Op, UserOperation>) {
      c.user = op;
      demand(c, op && op.element_bytes() == sizeof(T), status::bad_type);
    } else {
      c.op = op;
      demand(c, defined_for(op, c.type), status::bad_type);
    }
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_allreduce(std::span<A, N> mine, std::span<T, M> result, const Op& op) const noexcept {
    described c = combining(kind::allreduce, "allreduce", mine, result, op);
    demand(c, mine.size() == result.size(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_scan(std::span<A, N> mine, std::span<T, M> result, const Op& op) const noexcept {
    described c = combining(kind::scan, "scan", mine, result, op);
    demand(c, mine.size() == result.size(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_exscan(std::span<A, N> mine, std::span<T, M> result, const Op& op) const noexcept {
    described c = combining(kind::exscan, "exscan", mine, result, op);
    demand(c, mine.size() == result.size(), status::bad_size);
    return c;
  }

 private:
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_reduce(std::span<A, N> mine, std::span<T, M> result, const Op& op,
                                    int root) const noexcept {
    described c = combining(kind::reduce, "reduce", mine, result, op);
    c.root = root;
    demand(c, rank() != root || mine.size() == result.size(), status::bad_size);
    demand(c, valid_root(root), status::bad_rank);
    return c;
  }
  [[nodiscard]] static described of_allreduce(void* data, const Layout& layout, element type, operation op) noexcept {
    described c = describe(kind::allreduce, "allreduce", data, data);
    c.bytes = layout.bytes();
    c.combines = true;
    c.type = type;
    c.op = op;
    c.in_shape.one = c.out_shape.one = &layout;
    demand(c, defined_for(op, type), status::bad_type);
    demand(c, bytes_of(type) != 0 && layout.bytes() % bytes_of(type) == 0, status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_reduce_scatter_block(std::span<A, N> mine, std::span<T, M> result,
                                                  const Op& op) const noexcept {
    described c = combining(kind::reduce_scatter, "reduce_scatter_block", mine, result, op);
    c.received.each_bytes = result.size_bytes();
    c.in_place = mine.data() == result.data() && !mine.empty();
    demand(c, mine.size() == result.size() * members(), status::bad_size);
    return c;
  }
  template <class A, std::size_t N, class T, std::size_t M, class Op>
  [[nodiscard]] described of_reduce_scatter(std::span<A, N> mine, std::span<T, M> result,
                                            std::span<const std::size_t> counts, const Op& op) const noexcept {
    described c = combining(kind::reduce_scatter, "reduce_scatter", mine, result, op);
    c.varied = true;
    c.received = {0, counts, {}, sizeof(T)};
    c.in_place = mine.data() == result.data() && !mine.empty();
    demand_lists(c, counts, {}, members(), mine.size());
    demand(c, c.wrong != status::done || counts[static_cast<std::size_t>(rank())] <= result.size(), status::bad_size);
    return c;
  }
};

}  // namespace rma

#pragma GCC visibility pop
