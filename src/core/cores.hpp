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

namespace rma::detail {

inline constexpr std::size_t no_quota = std::numeric_limits<std::size_t>::max();

/// A set of processors.
class core_set {
 public:
  core_set() = default;
  /// Those that this process may run on (taskset, cpusets, a launcher's binding). Empty if the kernel does not say.
  static core_set allowed();
  /// What `text` wrote; what it cannot read is left out.
  static core_set parse(std::string_view text);

  [[nodiscard]] std::string text() const;  ///< without blanks and line ends
  [[nodiscard]] std::size_t count() const noexcept;
  void add(const core_set& other);

 private:
  std::vector<unsigned long> words_;  ///< processor i is bit i
};

/// How many processors' time the control groups of this process grant it, rounded up; `no_quota` if they do not limit
/// it. cgroup version 1 and 2, every group up to the root that can be seen.
std::size_t granted_cores(const std::filesystem::path& membership = "/proc/self/cgroup",
                          const std::filesystem::path& groups = "/sys/fs/cgroup");

}  // namespace rma::detail
