// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ranks of a job agree on abilities before their devices connect: a rank that used an adapter's atomics where
/// another one sends messages would wait for ever.
#pragma once

#include <string>
#include <string_view>

namespace rma::verbs {

/// The abilities of one device, or those that all devices of a job have. The default is all abilities.
struct abilities {
  bool atomics = true;   ///< fetch_add and compare_swap
  bool placed = true;    ///< acknowledged data are in memory
  bool ethernet = true;  ///< RoCE, not InfiniBand

  /// One word for the job's store.
  [[nodiscard]] std::string text() const;
  /// Throws rma::Error(bad_boot) if the word is malformed.
  static abilities parse(std::string_view word);
  /// Removes the abilities that `other` lacks.
  void meet(const abilities& other) noexcept;
  friend bool operator==(const abilities&, const abilities&) = default;
};

/// A short reason why the devices of two ranks cannot connect; empty if they can.
std::string obstacle_between(const abilities& one, const abilities& other);

}  // namespace rma::verbs
