// SPDX-License-Identifier: Apache-2.0
#include "core/process_state.hpp"

#include <cstddef>
#include <fstream>
#include <iterator>

namespace rma::detail {

std::string names_of_ranks(const std::vector<int>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (i == 0 ? "" : ", ") + std::to_string(ranks[i]) + (last == i ? "" : "-" + std::to_string(ranks[last]));
    i = last + 1;
  }
  return text;
}

// "PID (NAME) STATE ...", and the name may contain anything.
std::string why_stopped(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  const std::size_t end = text.rfind(')');
  if (end == std::string::npos || end + 2 >= text.size()) return {};
  switch (text[end + 2]) {
    case 'T': return "stopped by a signal";
    case 't': return "stopped by a debugger";
    default: return {};
  }
}

}  // namespace rma::detail
