// SPDX-License-Identifier: Apache-2.0
#include "core/memory.hpp"

#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

namespace rma::detail {
namespace {

/// Sum of the numbers behind these words.
std::uint64_t sum_in(const std::filesystem::path& file, std::string_view prefix,
                     std::initializer_list<std::string_view> names) {
  std::uint64_t sum = 0;
  std::ifstream in(file);
  std::string word;
  for (std::uint64_t number = 0; in >> word >> number;) {
    if (!word.starts_with(prefix)) continue;
    const std::string_view name = std::string_view(word).substr(prefix.size());
    if (std::find(names.begin(), names.end(), name) != names.end()) sum += number;
  }
  return sum;
}

struct group_files {
  const char* limit;
  const char* use;
  const char* prefix;  ///< in memory.stat, of what counts the groups inside, too
};

std::uint64_t left_in(const std::filesystem::path& group) {
  constexpr group_files of_versions[] = {{"memory.max", "memory.current", ""},
                                         {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_"}};
  for (const group_files& files : of_versions) {
    std::uint64_t limit = 0;
    std::uint64_t used = 0;
    if (!(std::ifstream(group / files.limit) >> limit)) continue;  // not there, or "max"
    if (!(std::ifstream(group / files.use) >> used)) continue;
    used -= std::min(used, sum_in(group / "memory.stat", files.prefix, {"active_file", "inactive_file"}));
    return limit - std::min(limit, used);
  }
  return no_memory_limit;
}

}  // namespace

std::uint64_t machine_bytes_left(const std::filesystem::path& meminfo) {
  std::ifstream in(meminfo);
  for (std::string word; in >> word;) {
    std::uint64_t kib = 0;
    if (word == "MemAvailable:" && in >> kib) return kib * 1024;
  }
  return no_memory_limit;
}

std::uint64_t granted_bytes_left(const std::filesystem::path& membership, const std::filesystem::path& groups) {
  std::uint64_t least = no_memory_limit;
  for_each_control_group("memory", membership, groups,
                         [&least](const std::filesystem::path& group) { least = std::min(least, left_in(group)); });
  return least;
}

std::uint64_t control_groups_id() {
  std::ifstream in(own_control_groups);
  std::error_code none;
  const std::string name_space = std::filesystem::read_symlink("/proc/self/ns/cgroup", none).string();
  return std::hash<std::string>()(name_space + std::string(std::istreambuf_iterator<char>(in), {}));
}

}  // namespace rma::detail
