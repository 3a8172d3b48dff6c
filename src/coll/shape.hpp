// SPDX-License-Identifier: Apache-2.0
/// \file
/// The shape of a collective: everything that its schedule depends on, and nothing else.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "rma/detail/collective_call.hpp"

namespace rma::detail::coll {

/// Calls that have algorithms. The v and w forms are the same calls with blocks of different sizes.
using call = collective;
inline constexpr std::size_t call_count = static_cast<std::size_t>(call::count_);
[[nodiscard]] std::string_view name_of(call c) noexcept;

/// Blocks of a buffer, one for each member: equal ones in a row, or given ones.
struct blocks {
  std::size_t each = 0;                    ///< bytes
  std::span<const std::size_t> sizes{};    ///< in units; empty: all `each`
  std::span<const std::size_t> offsets{};  ///< in units; empty: one after the other
  std::size_t unit = 1;                    ///< bytes
  [[nodiscard]] bool regular() const noexcept { return sizes.empty() && offsets.empty(); }
  [[nodiscard]] std::size_t size(int r) const noexcept {
    return sizes.empty() ? each : sizes[static_cast<std::size_t>(r)] * unit;
  }
  [[nodiscard]] std::size_t offset(int r) const noexcept {
    if (!offsets.empty()) return offsets[static_cast<std::size_t>(r)] * unit;
    if (sizes.empty()) return static_cast<std::size_t>(r) * each;
    std::size_t before = 0;
    for (int i = 0; i < r; ++i) before += sizes[static_cast<std::size_t>(i)];
    return before * unit;
  }
};

struct shape {
  call what = call::barrier;
  int rank = 0;
  int size = 1;
  int root = 0;
  std::size_t bytes = 0;           ///< size of the vector: broadcast, and all calls that combine
  std::size_t element_bytes = 1;   ///< a vector is split between elements
  bool commutative = true;         ///< the operator; if not, members are combined in rank order
  bool inexact = false;            ///< sums and products of floating-point numbers: their bits depend on the tree
  bool reproducible = false;       ///< combined by the one tree over the ranks, see `fixed_tree`
  bool varied = false;             ///< a v form: only the linear algorithm may need data that some members do not know
  bool in_place = false;           ///< alltoall, reduce_scatter: the input is the output's memory
  bool puts = false;               ///< the fabric puts with a signal, without the target's processor
  blocks sent{};                   ///< scatter (at the root), alltoall; reduce_scatter's are `received`
  blocks received{};               ///< gather (at the root), allgather, alltoall, reduce_scatter
  std::span<const int> sources{};  ///< neighborhood forms: the members that send to this one
  std::span<const int> targets{};
  std::span<const int> nodes{};  ///< node of each member, named by its lowest member; empty: all on one, or unknown
  [[nodiscard]] bool power_of_two() const noexcept { return std::has_single_bit(static_cast<unsigned>(size)); }
  /// True if operands may be combined in any order, and in any tree.
  [[nodiscard]] bool any_order() const noexcept { return commutative && !reproducible; }
};

}  // namespace rma::detail::coll
