// SPDX-License-Identifier: Apache-2.0
/// \file
/// The processors that a process may use, and its share of their time: if there are more ranks than processors, a wait
/// that spins keeps the rank that it waits for from running.
#pragma once

#include <cstddef>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/control_groups.hpp"

namespace rma::detail {

inline constexpr std::size_t no_quota = std::numeric_limits<std::size_t>::max();

/// A set of processors.
class core_set {
 public:
  core_set() = default;
  /// The processors that this process may use (taskset, cpusets, a launcher's binding). Empty if they are unknown.
  static core_set allowed();
  /// Parses the output of `text`; skips invalid parts.
  static core_set parse(std::string_view text);

  [[nodiscard]] std::string text() const;  ///< without blanks and line ends
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] bool has(std::size_t processor) const noexcept;
  void add(const core_set& other);
  /// The processor with that index in the set, which must be larger.
  [[nodiscard]] core_set nth(std::size_t before) const;
  /// Binds the calling thread to these processors. False if the kernel does not support it.
  bool bind() const noexcept;

 private:
  std::vector<unsigned long> words_;  ///< processor i is bit i
};

/// Moves the calling thread to the next processor, round robin among those that it may use; it may still use all of
/// them. A scheduler chooses the processor of a process at its start, and keeps it there: of four processes that wait
/// for each other on two processors three may stay on one.
void take_turn(std::size_t turn);

/// The number of processors whose time the control groups grant to this process, rounded up; `no_quota` without a
/// limit. cgroup version 1 and 2, every group up to the root that can be seen.
std::size_t granted_cores(const std::filesystem::path& membership = own_control_groups,
                          const std::filesystem::path& groups = all_control_groups);

}  // namespace rma::detail
