// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of RandomAccess: 2^L words shared out over all ranks, word i holding i at the start.
#pragma once

#include <rma/rma.hpp>
#include <string_view>

#include "random_access_stream.hpp"

namespace random_access {

/// How an update is made. The names are those of the dissertation's chapter 7.
enum class Variant {
  gmp,       ///< get, modify, put: two shared epochs; loses updates that collide
  gmp_excl,  ///< get, modify, put inside one exclusive epoch
  acc,       ///< one accumulate(bxor) for each update
  acc_agg,   ///< one accumulate(bxor) with an indexed layout for all stored updates to a target
  acc_mod,   ///< as acc, with sum instead of bxor
  direct,    ///< single 8-byte sums by whoever owns the atomics, the network device where there is one
  shared,    ///< processor atomics on mapped memory
  routed,    ///< bxor by rma::Aggregator, which stores more updates than HPCC allows
};

inline constexpr std::string_view variant_names[] = {"gmp",     "gmp-excl", "acc",    "acc_agg",
                                                     "acc_mod", "direct",   "shared", "routed"};

/// True if updates are sums, which must be taken back; an update by bxor undoes itself when it is made a second time.
constexpr bool adds(Variant v) noexcept { return v == Variant::acc_mod || v == Variant::direct; }

class Table {
 public:
  /// Collective. `mode` automatic means: the best mode for scattered updates that the window can have.
  /// Throws Error(out_of_memory) on every rank alike.
  Table(const rma::Team& team, unsigned log2_words, Variant variant, rma::accumulate_mode mode);

  /// Sets every word to its index. Collective.
  void fill(rma::Team& team);

  [[nodiscard]] rma::Window<word>& window() noexcept { return window_; }
  [[nodiscard]] const Partition& parts() const noexcept { return parts_; }
  [[nodiscard]] Partition::Place place_of(word random) const noexcept { return parts_.locate(random & mask_); }
  /// Words of this rank that do not hold their index.
  [[nodiscard]] word wrong_words() const;

 private:
  int rank_;
  word mask_;
  Partition parts_;
  rma::Window<word> window_;
};

/// log2 of the largest table that fits into half of the memory that is free on the machines of this job.
/// Collective.
unsigned log2_of_half_the_memory(rma::Team& team);

}  // namespace random_access
