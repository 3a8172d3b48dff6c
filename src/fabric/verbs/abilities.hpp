// SPDX-License-Identifier: Apache-2.0
/// \file
/// Abilities are agreed on by the ranks of a job before their devices meet: a rank that took an adapter's atomics where
/// another sends messages would wait for ever.
#pragma once

#include <string>
#include <string_view>

namespace rma::verbs {

/// Of one device, or of all that a job uses; as it is constructed, the most that there can be.
struct abilities {
  bool atomics = true;   ///< fetch_add and compare_swap
  bool placed = true;    ///< what it acknowledges lies in memory
  bool ethernet = true;  ///< RoCE, not InfiniBand

  /// One word for the job's store.
  [[nodiscard]] std::string text() const;
  /// Throws rma::Error(bad_boot): that is no such word.
  static abilities parse(std::string_view word);
  /// Nothing remains that `other` does not have.
  void meet(const abilities& other) noexcept;
  friend bool operator==(const abilities&, const abilities&) = default;
};

/// Why the devices of two ranks never reach each other, in a few words; empty if they may.
std::string obstacle_between(const abilities& one, const abilities& other);

}  // namespace rma::verbs
