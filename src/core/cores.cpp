// SPDX-License-Identifier: Apache-2.0
#include "core/cores.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>

namespace rma::detail {
namespace {

constexpr std::size_t words_most = 1024;  // 65536 processors

std::size_t up(double cores) noexcept {
  const auto whole = static_cast<std::size_t>(cores);
  return std::max<std::size_t>(1, whole + (static_cast<double>(whole) < cores ? 1 : 0));
}

/// "max 100000" or "150000 100000"; of version 1 two files, -1 for no limit.
std::size_t quota_of(const std::filesystem::path& group) {
  double quota_us = -1;
  double period_us = 0;
  if (std::ifstream both(group / "cpu.max"); both) {
    both >> quota_us >> period_us;
    if (!both) return no_quota;
  } else {
    std::ifstream(group / "cpu.cfs_quota_us") >> quota_us;
    std::ifstream(group / "cpu.cfs_period_us") >> period_us;
  }
  return quota_us > 0 && period_us > 0 ? up(quota_us / period_us) : no_quota;
}

}  // namespace

core_set core_set::allowed() {
  core_set mine;
  for (std::size_t words = 16; words <= words_most; words *= 2) {
    mine.words_.assign(words, 0);
    if (::sched_getaffinity(0, words * sizeof(unsigned long), reinterpret_cast<cpu_set_t*>(mine.words_.data())) == 0)
      break;
    mine.words_.clear();
  }
  while (!mine.words_.empty() && mine.words_.back() == 0) mine.words_.pop_back();
  return mine;
}

core_set core_set::parse(std::string_view text) {
  core_set read;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    unsigned long word = 0;
    (void)std::from_chars(text.data(), text.data() + end, word, 16);
    read.words_.push_back(word);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return read;
}

std::string core_set::text() const { return fmt::format("{:x}", fmt::join(words_, ",")); }

std::size_t core_set::count() const noexcept {
  std::size_t n = 0;
  for (const unsigned long word : words_) n += static_cast<std::size_t>(std::popcount(word));
  return n;
}

bool core_set::has(std::size_t processor) const noexcept {
  constexpr std::size_t bits = 8 * sizeof(unsigned long);
  return processor / bits < words_.size() && (words_[processor / bits] >> processor % bits & 1) != 0;
}

void core_set::add(const core_set& other) {
  words_.resize(std::max(words_.size(), other.words_.size()), 0);
  for (std::size_t i = 0; i < other.words_.size(); ++i) words_[i] |= other.words_[i];
}

core_set core_set::nth(std::size_t before) const {
  core_set one;
  for (std::size_t i = 0; i < words_.size(); ++i) {
    for (unsigned long word = words_[i]; word != 0; word &= word - 1) {
      if (before-- != 0) continue;
      one.words_.assign(i + 1, 0);
      one.words_[i] = word & -word;
      return one;
    }
  }
  return one;
}

bool core_set::bind() const noexcept {
  return ::sched_setaffinity(0, words_.size() * sizeof(unsigned long),
                             reinterpret_cast<const cpu_set_t*>(words_.data())) == 0;
}

void take_turn(std::size_t turn) {
  const core_set all = core_set::allowed();
  if (all.count() > 1 && all.nth(turn % all.count()).bind()) (void)all.bind();
}

std::size_t granted_cores(const std::filesystem::path& membership, const std::filesystem::path& groups) {
  std::size_t least = no_quota;
  for_each_control_group("cpu", membership, groups,
                         [&least](const std::filesystem::path& group) { least = std::min(least, quota_of(group)); });
  return least;
}

}  // namespace rma::detail
