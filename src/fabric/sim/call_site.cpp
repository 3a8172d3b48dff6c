// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/call_site.hpp"

#include <cxxabi.h>
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <link.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string_view>
#include <system_error>
#include <utility>

namespace rma::sim {
namespace {

constexpr std::size_t frames_max = 64;

/// A function that contains an address. An address has several where calls were inlined, the innermost first.
struct code_line {
  std::string function;  ///< as the linker knows it; "" if unknown
  std::string line;      ///< "file:line"; "" if unknown
};

/// The module of an address, and the address's location in it.
struct location {
  std::string module;
  std::uint64_t offset = 0;  ///< as in its symbol table
  std::string symbol;        ///< "" if it is not in the dynamic symbol table
  std::uint64_t in_symbol = 0;
};

location find(void* return_address) {
  // The return address may belong to the next line: look up the call itself.
  void* const call = static_cast<char*>(return_address) - 1;
  Dl_info info{};
  void* extra = nullptr;
  if (::dladdr1(call, &info, &extra, RTLD_DL_LINKMAP) == 0 || extra == nullptr) return {};
  const auto* const map = static_cast<const link_map*>(extra);
  location found;
  std::error_code ignored;
  const bool program = map->l_name == nullptr || *map->l_name == '\0';
  found.module = program ? std::filesystem::read_symlink("/proc/self/exe", ignored).string() : map->l_name;
  found.offset = reinterpret_cast<std::uint64_t>(call) - map->l_addr;
  if (info.dli_sname != nullptr) {
    found.symbol = info.dli_sname;
    found.in_symbol = reinterpret_cast<std::uint64_t>(return_address) - reinterpret_cast<std::uint64_t>(info.dli_saddr);
  }
  return found;
}

/// Returns the output of a command; "" if it cannot be run.
std::string output_of(std::vector<std::string> words) {
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  ::posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  pid_t child = 0;
  const bool runs = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments.data(), environ) == 0;
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  std::string text;
  std::array<char, 4096> part{};
  for (ssize_t n = 0; runs && (n = ::read(ends[0], part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(n));
  }
  ::close(ends[0]);
  if (runs) ::waitpid(child, nullptr, 0);
  return text;
}

using places = std::map<std::pair<std::string, std::uint64_t>, std::vector<code_line>>;

/// Asks addr2line for all addresses of a module at once.
void look_up(const std::string& module, const std::set<std::uint64_t>& offsets, places& into) {
  std::vector<std::string> words{"addr2line", "-f", "-i", "-a", "-e", module};
  for (const std::uint64_t offset : offsets) words.push_back(fmt::format("{:#x}", offset));
  std::istringstream lines(output_of(std::move(words)));
  std::vector<code_line>* at = nullptr;
  for (std::string first; std::getline(lines, first);) {
    if (first.starts_with("0x")) {
      at = &into[{module, std::strtoull(first.c_str(), nullptr, 16)}];
      continue;
    }
    std::string second;
    if (at == nullptr || !std::getline(lines, second)) return;
    if (const auto note = second.find(" (discriminator"); note != std::string::npos) second.resize(note);
    const bool known = second.find("??") == std::string::npos && !second.ends_with(":?") && !second.ends_with(":0");
    at->push_back({first == "??" ? std::string() : std::move(first), known ? std::move(second) : std::string()});
  }
}

bool starts_with_one_of(std::string_view text, std::initializer_list<std::string_view> starts) {
  return std::any_of(starts.begin(), starts.end(), [&](std::string_view s) { return text.starts_with(s); });
}

bool is_standard(const std::string& function) {
  return starts_with_one_of(function, {"_ZNSt", "_ZNKSt", "_ZSt", "_ZZNSt", "_ZN9__gnu_cxx"});
}
bool of_library(const code_line& at) {
  return starts_with_one_of(at.function, {"_ZN3rma", "_ZNK3rma", "_ZZN3rma", "_ZZNK3rma"}) ||
         at.line.find("/include/rma/") != std::string::npos;
}
// A function of the program may be listed under the name of the function that it was inlined into: the file is right.
bool of_standard_library(const code_line& at) {
  return at.line.empty() ? is_standard(at.function) : at.line.find("/include/c++/") != std::string::npos;
}

std::string readable(const std::string& function) {
  int result = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(function.c_str(), nullptr, nullptr, &result), &std::free);
  return result == 0 ? std::string(text.get()) : function;
}

std::string text_of(const location& at, const code_line& found) {
  const std::string file = std::filesystem::path(at.module).filename().string();
  if (!found.line.empty() && is_standard(found.function)) return found.line;
  if (!found.line.empty()) return fmt::format("{} ({})", found.line, readable(found.function));
  if (found.function.empty()) return fmt::format("{}+{:#x}", file, at.offset + 1);
  if (found.function != at.symbol) return fmt::format("{} in {}+{:#x}", readable(found.function), file, at.offset + 1);
  return fmt::format("{}+{:#x} in {}", readable(at.symbol), at.in_symbol, file);
}

std::string call_site(const std::vector<location>& frames, const places& known) {
  bool inside = false;  // a frame of the library has been seen
  std::string nameless, standard;
  for (const location& at : frames) {
    if (at.module.empty()) continue;
    std::vector<code_line> here{{at.symbol, {}}};
    const auto found = known.find({at.module, at.offset});
    if (found != known.end() && !found->second.empty() && !found->second.front().function.empty()) here = found->second;
    for (const code_line& each : here) {
      if (of_library(each)) {
        inside = true;
      } else if (!inside) {
        continue;
      } else if (each.function.empty()) {
        if (nameless.empty()) nameless = text_of(at, each);
      } else if (of_standard_library(each)) {
        if (standard.empty()) standard = text_of(at, each);
      } else {
        return text_of(at, each);
      }
    }
  }
  return standard.empty() ? nameless : standard;
}

}  // namespace

call_stack stack_here() {
  std::array<void*, frames_max> frames{};
  const int count = ::backtrace(frames.data(), static_cast<int>(frames.size()));
  return call_stack(frames.begin(), frames.begin() + std::max(count, 0));  // braces would make a list of two pointers
}

std::vector<std::string> call_sites(const std::vector<call_stack>& of) {
  std::vector<std::vector<location>> stacks;
  std::map<std::string, std::set<std::uint64_t>> by_module;
  for (const call_stack& stack : of) {
    std::vector<location>& frames = stacks.emplace_back();
    for (void* const address : stack) {
      frames.push_back(find(address));
      if (!frames.back().module.empty()) by_module[frames.back().module].insert(frames.back().offset);
    }
  }
  places known;
  for (const auto& [module, offsets] : by_module) look_up(module, offsets, known);
  std::vector<std::string> sites;
  for (const auto& frames : stacks) sites.push_back(call_site(frames, known));
  return sites;
}

}  // namespace rma::sim
