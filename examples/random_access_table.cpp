// SPDX-License-Identifier: Apache-2.0
#include "random_access_table.hpp"

#include <algorithm>
#include <bit>
#include <fstream>
#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace random_access {

namespace {

rma::Window<word> allocate(const rma::Team& team, std::size_t words, Variant variant, rma::accumulate_mode mode) {
  const rma::Hints hints{.name = "table", .accumulate = mode, .lock = "auto:deferred"};  // an epoch is one message
  return variant == Variant::shared ? rma::Window<word>::allocate_shared(team, words, hints)
                                    : rma::Window<word>::allocate(team, words, hints);
}

/// The first of the modes that the window can have: which ones it can is the fabric's affair, not the program's.
rma::Window<word> allocate_best(const rma::Team& team, std::size_t words, Variant variant) {
  using rma::accumulate_mode;
  std::vector<accumulate_mode> modes{accumulate_mode::element};
  if (variant == Variant::direct) modes.insert(modes.begin(), accumulate_mode::direct);
  for (const accumulate_mode mode : modes) {
    try {
      return allocate(team, words, variant, mode);
    } catch (const rma::Error& refusal) {
      if (refusal.code() != rma::status::not_supported) throw;
    }
  }
  return allocate(team, words, variant, accumulate_mode::automatic);
}

std::string first_line(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

word number_in(const std::string& text) {
  const auto digits = text.find_first_of("0123456789");
  return digits == std::string::npos ? std::numeric_limits<word>::max() : std::stoull(text.substr(digits));
}

/// Bytes that this machine can still give, within what this process's control group may use.
word free_bytes() {
  word bytes = std::numeric_limits<word>::max();
  std::ifstream memory("/proc/meminfo");
  for (std::string line; std::getline(memory, line);) {
    if (line.starts_with("MemAvailable:")) bytes = number_in(line) * 1024;
  }
  const word limit = number_in(first_line("/sys/fs/cgroup/memory.max"));
  if (limit == std::numeric_limits<word>::max()) return bytes;
  const word used = number_in(first_line("/sys/fs/cgroup/memory.current"));
  return std::min(bytes, limit > used ? limit - used : 0);
}

}  // namespace

Table::Table(const rma::Team& team, unsigned log2_words, Variant variant, rma::accumulate_mode mode)
    : rank_(team.rank()),
      mask_((word{1} << log2_words) - 1),
      parts_(word{1} << log2_words, team.size()),
      window_(mode == rma::accumulate_mode::automatic ? allocate_best(team, parts_.count(rank_), variant)
                                                      : allocate(team, parts_.count(rank_), variant, mode)) {}

void Table::fill(rma::Team& team) {
  word index = parts_.first(rank_);
  for (word& value : window_.local()) value = index++;
  window_.sync();
  team.barrier();
}

word Table::wrong_words() const {
  word index = parts_.first(rank_);
  word wrong = 0;
  for (const word value : window_.local()) wrong += value != index++ ? 1 : 0;
  return wrong;
}

unsigned log2_of_half_the_memory(rma::Team& team) {
  // Ranks share what their machine has. The kernel's boot id tells machines apart, whatever they are called.
  struct Share {
    std::size_t machine;
    word bytes;
  };
  const std::string boot_id = first_line("/proc/sys/kernel/random/boot_id");
  const std::vector<Share> shares = team.allgather(Share{std::hash<std::string>{}(boot_id), free_bytes()});
  word least = std::numeric_limits<word>::max();
  for (const Share& share : shares) {
    const auto neighbors =
        std::count_if(shares.begin(), shares.end(), [&](const Share& other) { return other.machine == share.machine; });
    least = std::min(least, share.bytes / static_cast<word>(neighbors));
  }
  const word words = least / 2 / sizeof(word) * static_cast<word>(team.size());
  return static_cast<unsigned>(std::bit_width(std::max<word>(words, 1)) - 1);
}

}  // namespace random_access
