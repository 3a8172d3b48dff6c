// SPDX-License-Identifier: Apache-2.0
/// \file
/// Which processors a process may use, and how much of them: a wait that spins where the ranks outnumber them keeps the
/// rank that it waits for from running.
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
  /// Those that this process may run on (taskset, cpusets, a launcher's binding). Empty if the kernel does not say.
  static core_set allowed();
  /// Reads what `text` wrote; what it cannot read is left out.
  static core_set parse(std::string_view text);

  [[nodiscard]] std::string text() const;  ///< without blanks and line ends
  [[nodiscard]] std::size_t count() const noexcept;
  [[nodiscard]] bool has(std::size_t processor) const noexcept;
  void add(const core_set& other);
  /// The one with so many of the set before it; the set must have more than that.
  [[nodiscard]] core_set nth(std::size_t before) const;
  /// The calling thread runs on these from now on. False if the kernel does not have that.
  bool bind() const noexcept;

 private:
  std::vector<unsigned long> words_;  ///< processor i is bit i
};

/// Moves the calling thread to the processor whose turn it is, round robin among those that it may use; it may still
/// use all of them. A scheduler puts a process where there is room when it starts, and leaves it there: of four that
/// wait for each other on two processors three may stay on one.
void take_turn(std::size_t turn);

/// How many processors' time the control groups of this process grant it, rounded up; `no_quota` if they do not limit
/// it. cgroup version 1 and 2, every group up to the root that can be seen.
std::size_t granted_cores(const std::filesystem::path& membership = own_control_groups,
                          const std::filesystem::path& groups = all_control_groups);

}  // namespace rma::detail
