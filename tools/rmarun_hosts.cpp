// SPDX-License-Identifier: Apache-2.0
#include "rmarun_hosts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <stdexcept>

namespace rma::launcher {

namespace {

constexpr int slots_max = 1 << 20;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  return first == std::string_view::npos ? std::string_view{}
                                         : text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

int parse_slots(std::string_view text, std::string_view of) {
  int slots = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), slots);
  if (error != std::errc{} || end != text.data() + text.size() || slots < 1 || slots > slots_max)
    throw std::invalid_argument(fmt::format("'{}': '{}' is no number of ranks", of, text));
  return slots;
}

/// `a`, `a:2`. A name that begins with a dash would be an option of ssh.
host parse_host(std::string_view text) {
  const auto colon = text.rfind(':');
  host h{std::string(text.substr(0, colon)), 0};
  if (colon != std::string_view::npos) h.slots = parse_slots(text.substr(colon + 1), text);
  if (h.name.empty() || h.name.front() == '-' || h.name.find_first_of(" \t'\"") != std::string::npos)
    throw std::invalid_argument(fmt::format("'{}' is no host", text));
  return h;
}

}  // namespace

std::vector<host> parse_hosts(std::string_view list) {
  std::vector<host> hosts;
  for (std::size_t at = 0; at <= list.size();) {
    const auto end = std::min(list.find(',', at), list.size());
    hosts.push_back(parse_host(trimmed(list.substr(at, end - at))));
    at = end + 1;
  }
  return hosts;
}

std::vector<host> parse_hostfile(std::string_view text) {
  constexpr std::string_view slots = "slots=";
  std::vector<host> hosts;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const auto blank = line.find_first_of(" \t");
    hosts.push_back(parse_host(line.substr(0, blank)));
    if (blank == std::string_view::npos) continue;
    const std::string_view rest = trimmed(line.substr(blank));
    if (!rest.starts_with(slots))
      throw std::invalid_argument(fmt::format("'{}': only slots=N may follow a host", line));
    hosts.back().slots = parse_slots(rest.substr(slots.size()), line);
  }
  if (hosts.empty()) throw std::invalid_argument("it names no host");
  return hosts;
}

int slots_of(const std::vector<host>& hosts) {
  int all = 0;
  for (const host& each : hosts) {
    if (each.slots == 0) return 0;
    all += each.slots;
  }
  return all;
}

std::vector<int> spread(int ranks, const std::vector<host>& hosts) {
  std::vector<int> places;
  const auto count = static_cast<int>(hosts.size());
  if (std::ranges::any_of(hosts, [](const host& each) { return each.slots != 0; })) {
    for (int h = 0; h < count; ++h) {
      const auto slots = static_cast<std::size_t>(std::max(hosts[static_cast<std::size_t>(h)].slots, 1));
      places.insert(places.end(), slots, h);
    }
    if (static_cast<std::size_t>(ranks) > places.size())
      throw std::invalid_argument(fmt::format("-n {}: the hosts take {} ranks", ranks, places.size()));
    places.resize(static_cast<std::size_t>(ranks));
    return places;
  }
  for (int rank = 0; rank < ranks; ++rank)
    places.push_back(static_cast<int>(static_cast<long long>(rank) * count / std::max(ranks, count)));
  return places;
}

std::string shell_word(std::string_view text) {
  std::string made = "'";
  for (const char c : text) {
    if (c == '\'') {
      made += "'\\''";
    } else {
      made += c;
    }
  }
  return made + "'";
}

// The program's input is empty. A program that ends takes its watcher with it, which else waits for the end of the
// script's input; what the watcher has started ends when ssh closes that.
std::string remote_script(const std::string& folder, const std::vector<std::string>& environment,
                          const std::vector<std::string>& command) {
  std::string script = "IFS= read -r RMA_KEY || exit 1; export RMA_KEY";
  for (const std::string& each : environment) {
    const auto cut = each.find('=');
    script += fmt::format("; export {}={}", each.substr(0, cut), shell_word(each.substr(cut + 1)));
  }
  script += fmt::format("; cd {} || exit 126; exec 3<&0;", shell_word(folder));
  for (const std::string& word : command) script += " " + shell_word(word);
  return script +
         " </dev/null 3<&- & p=$!; { cat <&3; kill -TERM $p; sleep 2; kill -KILL $p; } >/dev/null 2>&1 & w=$!; "
         "wait $p; s=$?; kill $w 2>/dev/null; exit $s";
}

}  // namespace rma::launcher
