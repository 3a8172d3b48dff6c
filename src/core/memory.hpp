// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory that is still available: a process that takes more is killed without an error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>

#include "core/control_groups.hpp"

namespace rma::detail {

inline constexpr std::uint64_t no_memory_limit = std::numeric_limits<std::uint64_t>::max();

/// The available memory of the machine. `no_memory_limit` if it is unknown.
std::uint64_t machine_bytes_left(const std::filesystem::path& meminfo = "/proc/meminfo");

/// The control groups of this process grant so much to all that are in them, beyond what these have. Pages of files
/// count as left, as they do for a machine. `no_memory_limit` if the groups do not limit it.
std::uint64_t granted_bytes_left(const std::filesystem::path& membership = own_control_groups,
                                 const std::filesystem::path& groups = all_control_groups);

/// As the other, for processes in the same control groups.
std::uint64_t control_groups_id();

}  // namespace rma::detail
