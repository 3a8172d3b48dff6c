// SPDX-License-Identifier: Apache-2.0
#include "core/control_groups.hpp"

#include <fstream>
#include <string>

namespace rma::detail {
namespace {

/// Whether one of "cpu,cpuacct" is it.
bool has_word(std::string_view list, std::string_view word) noexcept {
  while (!list.empty()) {
    const std::string_view first = list.substr(0, list.find(','));
    if (first == word) return true;
    list.remove_prefix(first.size() == list.size() ? list.size() : first.size() + 1);
  }
  return false;
}

}  // namespace

void for_each_control_group(std::string_view controller, const std::filesystem::path& membership,
                            const std::filesystem::path& groups,
                            const std::function<void(const std::filesystem::path&)>& look) {
  std::ifstream lines(membership);
  for (std::string line; std::getline(lines, line);) {  // "0::/a/b", or "4:cpu,cpuacct:/a/b"
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers = std::string_view(line).substr(first + 1, second - first - 1);
    if (!controllers.empty() && !has_word(controllers, controller)) continue;
    for (std::filesystem::path inside = std::filesystem::path(line.substr(second + 1)).relative_path();;
         inside = inside.parent_path()) {
      look(groups / controllers / inside);
      if (inside.empty()) break;
    }
  }
}

}  // namespace rma::detail
