// SPDX-License-Identifier: Apache-2.0
#include "rmarun_hosts.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <climits>
#include <cstdlib>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string_view>

#include "rma/error.hpp"

namespace rma::launcher {
namespace {

[[noreturn]] void reject(const std::string& why) { throw Error(status::bad_argument, why); }

int slots_of(std::string_view text, const std::string& where) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1) {
    reject(fmt::format("{}: '{}' is no number of slots; write HOST:2 or HOST slots=2", where, text));
  }
  return slots;
}

/// NAME or NAME:SLOTS; an IPv6 address with slots is in brackets.
host host_of(std::string_view text, const std::string& where) {
  if (text.starts_with('-')) reject(fmt::format("{}: '{}' is no name of a host", where, text));
  const auto bracket = text.find(']');
  const auto colon = text.rfind(':');
  const bool v6 = std::ranges::count(text, ':') > 1 && bracket == std::string_view::npos;
  if (colon == std::string_view::npos || v6 || (bracket != std::string_view::npos && colon < bracket)) {
    return {.name = std::string(text)};
  }
  return {.name = std::string(text.substr(0, colon)), .slots = slots_of(text.substr(colon + 1), where)};
}

std::string quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string own_path() {
  std::string path(PATH_MAX, '\0');
  const ssize_t bytes = ::readlink("/proc/self/exe", path.data(), path.size());
  if (bytes <= 0) return "rmarun";
  path.resize(static_cast<std::size_t>(bytes));
  return path;
}

}  // namespace

std::vector<host> parse_hosts(const std::string& list) {
  std::vector<host> found;
  std::istringstream in(list);
  for (std::string each; std::getline(in, each, ',');) {
    if (each.empty()) reject(fmt::format("--hosts '{}': a name is missing between two commas", list));
    found.push_back(host_of(each, "--hosts"));
  }
  if (found.empty()) reject("--hosts '': which hosts?");
  return found;
}

std::vector<host> read_hostfile(const std::string& path) {
  std::ifstream in(path);
  if (!in) reject(fmt::format("--hostfile {}: it cannot be read", path));
  std::vector<host> found;
  std::string line;
  for (int number = 1; std::getline(in, line); ++number) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string name;
    if (!(words >> name)) continue;
    const std::string where = fmt::format("{}:{}", path, number);
    host each = host_of(name, where);
    for (std::string word; words >> word;) {
      constexpr std::string_view slots = "slots=";
      if (!word.starts_with(slots)) reject(fmt::format("{}: '{}' is unknown; write NAME slots=N", where, word));
      each.slots = slots_of(std::string_view(word).substr(slots.size()), where);
    }
    found.push_back(std::move(each));
  }
  if (found.empty()) reject(fmt::format("--hostfile {}: it names no host", path));
  return found;
}

std::vector<int> divide(const std::vector<host>& hosts, int ranks) {
  const auto count = static_cast<int>(hosts.size());
  std::vector<int> at(static_cast<std::size_t>(ranks));
  const bool given = std::ranges::any_of(hosts, [](const host& h) { return h.slots != 0; });
  if (!given) {
    if (count > ranks) reject(fmt::format("{} hosts are more than the {} ranks; every host needs one", count, ranks));
    for (int rank = 0; rank < ranks; ++rank) {
      at[static_cast<std::size_t>(rank)] = static_cast<int>(static_cast<long long>(rank) * count / ranks);
    }
    return at;
  }
  const auto slots_at = [](const host& h) { return std::max(1, h.slots); };
  const int slots =
      std::accumulate(hosts.begin(), hosts.end(), 0, [&](int before, const host& h) { return before + slots_at(h); });
  if (slots < ranks) reject(fmt::format("the hosts have {} slots, which is less than the {} ranks", slots, ranks));
  std::size_t rank = 0;
  for (int i = 0; i < count; ++i) {
    const int most = slots_at(hosts[static_cast<std::size_t>(i)]);
    for (int k = 0; k < most && rank < at.size(); ++k) at[rank++] = i;
  }
  return at;
}

std::vector<std::string> command_at(const std::string& ssh, const std::string& name) {
  std::vector<std::string> command;
  std::istringstream words(ssh);
  for (std::string word; words >> word;) command.push_back(word);
  command.push_back(name);
  command.push_back("exec " + quoted(own_path()) + " --remote-rank");
  return command;
}

std::string order_for_remote(const std::vector<std::string>& changes, const std::vector<std::string>& command) {
  std::string body = std::string(".") + '\0';
  if (char* const here = ::getcwd(nullptr, 0)) {
    body = std::string(here) + '\0';
    std::free(here);
  }
  const auto add = [&body](const std::vector<std::string>& list) {
    body += std::to_string(list.size()) + '\0';
    for (const std::string& each : list) body += each + '\0';
  };
  add(changes);
  add(command);
  return std::to_string(body.size()) + "\n" + body;
}

}  // namespace rma::launcher
