// SPDX-License-Identifier: Apache-2.0
/// \file
/// The control groups (cgroup version 1 and 2) that limit this process.
#pragma once

#include <filesystem>
#include <functional>
#include <string_view>

namespace rma::detail {

inline constexpr const char* own_control_groups = "/proc/self/cgroup";
inline constexpr const char* all_control_groups = "/sys/fs/cgroup";

/// Calls `look` with the folder of each group that this process is in, of the hierarchies that may have `controller`,
/// up to the root that can be seen. Some may not exist: in a name space of its own a path may lead nowhere, and what
/// limits the process is then at the root.
void for_each_control_group(std::string_view controller, const std::filesystem::path& membership,
                            const std::filesystem::path& groups,
                            const std::function<void(const std::filesystem::path&)>& look);

}  // namespace rma::detail
