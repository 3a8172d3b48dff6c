// SPDX-License-Identifier: Apache-2.0
#include "boot/process_sets.hpp"

#include <algorithm>
#include <charconv>
#include <numeric>

#include "rma/error.hpp"

namespace rma::boot {
namespace {

[[noreturn]] void reject(std::string_view what, std::string_view why) {
  throw Error(status::bad_setting, "process set '" + std::string(what) + "': " + std::string(why));
}

/// The text up to the next `end`, which is taken from it with what ends it.
std::string_view take(std::string_view& text, char end) {
  const auto cut = text.find(end);
  const std::string_view part = text.substr(0, cut);
  text.remove_prefix(cut == std::string_view::npos ? text.size() : cut + 1);
  return part;
}

int rank_of(std::string_view set, std::string_view text, int size) {
  int rank = -1;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, rank);
  if (error == std::errc::invalid_argument || end != last)
    reject(set, "'" + std::string(text) + "' is no rank; ranks are written as in 0-3,5");
  if (error != std::errc{} || rank < 0 || rank >= size)
    reject(set, "rank " + std::string(text) + ", but ranks count from 0 to " + std::to_string(size - 1));
  return rank;
}

std::vector<int> ranks_of(std::string_view set, std::string_view text, int size) {
  std::vector<int> ranks;
  for (bool more = true; more;) {
    more = text.find(',') != std::string_view::npos;
    std::string_view upper = take(text, ',');
    const bool range = upper.find('-') != std::string_view::npos;
    const int first = rank_of(set, take(upper, '-'), size);
    const int last = range ? rank_of(set, upper, size) : first;
    if (last < first) reject(set, "range " + std::to_string(first) + "-" + std::to_string(last) + " is empty");
    const auto old = static_cast<std::ptrdiff_t>(ranks.size());
    ranks.resize(ranks.size() + static_cast<std::size_t>(last - first + 1));
    std::iota(ranks.begin() + old, ranks.end(), first);
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace

std::vector<process_set> parse_process_sets(std::string_view text, int size) {
  std::vector<process_set> sets;
  while (!text.empty()) {
    std::string_view ranks = take(text, ';');
    const std::string_view all = ranks;
    const std::string_view name = take(ranks, '=');
    if (name.empty() || name.size() == all.size()) reject(all, "a set is written NAME=RANKS, as in io=0-3,5");
    if (name.starts_with(own_sets)) reject(name, "names that begin with rma:// are the library's own");
    for (const process_set& other : sets) {
      if (other.name == name) reject(name, "is defined twice");
    }
    sets.push_back({std::string(name), ranks_of(name, ranks, size)});
  }
  return sets;
}

}  // namespace rma::boot
