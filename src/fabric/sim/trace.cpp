// SPDX-License-Identifier: Apache-2.0
// Reads and writes recorded patterns: text with one put per line.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <system_error>

#include "rma/error.hpp"
#include "rma/sim_pattern.hpp"

namespace rma::sim {
namespace {

constexpr std::array<std::string_view, 4> columns{"rank", "dest", "bytes", "tag"};

struct code_line {
  std::string_view origin;
  std::size_t line;
  [[noreturn]] void reject(const std::string& what) const {
    throw Error(status::bad_argument, fmt::format("{}:{}: {}", origin, line, what));
  }
};

std::string_view next_word(std::string_view& text) {
  constexpr std::string_view blanks = " \t\r";
  const auto first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return text = {};
  text.remove_prefix(first);
  const auto word = text.substr(0, text.find_first_of(blanks));
  text.remove_prefix(word.size());
  return word;
}

std::int64_t number(const code_line& at, std::string_view what, std::string_view word, std::int64_t most) {
  std::int64_t value = 0;
  const auto [rest, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error == std::errc::result_out_of_range) at.reject(fmt::format("{} '{}' is too large", what, word));
  if (error != std::errc{} || rest != word.data() + word.size())
    at.reject(fmt::format("{} '{}' is not a whole number", what, word));
  if (value < 0) at.reject(fmt::format("{} {} is below zero", what, value));
  if (value > most) at.reject(fmt::format("{} {} is more than {}", what, value, most));
  return value;
}

TracePut parse_line(const code_line& at, std::string_view line, int ranks) {
  std::array<std::string_view, columns.size()> words;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    words[i] = next_word(line);
    if (words[i].empty()) at.reject(fmt::format("{} is missing; a line is `rank dest bytes tag`", columns[i]));
  }
  if (const auto more = next_word(line); !more.empty())
    at.reject(fmt::format("'{}' is one column too many; a line is `rank dest bytes tag`", more));
  const auto rank_at = [&](std::size_t i) {
    const auto value = number(at, columns[i], words[i], std::numeric_limits<std::int64_t>::max());
    if (value >= ranks) at.reject(fmt::format("{} {}: there are only {} ranks", columns[i], value, ranks));
    return static_cast<int>(value);
  };
  constexpr std::int64_t bytes_most = std::int64_t{1} << 36;
  constexpr std::int64_t tag_most = std::numeric_limits<int>::max();
  return {rank_at(0), rank_at(1), number(at, columns[2], words[2], bytes_most),
          static_cast<int>(number(at, columns[3], words[3], tag_most))};
}

}  // namespace

std::vector<TracePut> parse_trace(std::string_view text, std::string_view origin, int ranks) {
  std::vector<TracePut> puts;
  for (code_line at{origin, 1}; !text.empty(); ++at.line) {
    const auto end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    line = line.substr(0, line.find('#'));
    if (line.find_first_not_of(" \t\r") != std::string_view::npos) puts.push_back(parse_line(at, line, ranks));
  }
  return puts;
}

std::vector<TracePut> read_trace(const std::string& path, int ranks) {
  std::error_code ignored;
  std::ifstream file;
  if (!std::filesystem::is_directory(path, ignored)) file.open(path, std::ios::binary);  // reading a directory throws
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file.is_open() || file.bad())
    throw Error(status::bad_argument, fmt::format("{}: cannot be read (a recorded pattern)", path));
  return parse_trace(text, path, ranks);
}

PatternOutcome run_trace(const Config& job, const std::vector<TracePut>& puts, IntraNode intra_node) {
  std::vector<std::vector<TracePut>> of(static_cast<std::size_t>(job.ranks < 0 ? 0 : job.ranks));
  std::vector<std::vector<int>> tags_to(of.size());
  for (const TracePut& one : puts) {
    if (one.rank < 0 || one.rank >= job.ranks || one.dest < 0 || one.dest >= job.ranks) {
      throw Error(status::bad_rank, fmt::format("a recorded put from rank {} to rank {}, there are only {} ranks",
                                                one.rank, one.dest, job.ranks));
    }
    of[static_cast<std::size_t>(one.rank)].push_back(one);
    tags_to[static_cast<std::size_t>(one.dest)].push_back(one.tag);
  }
  return run_pattern(
      job,
      [&](PatternRank& me) {
        const auto self = static_cast<std::size_t>(me.rank());
        for (const TracePut& one : of[self]) me.put(one.dest, one.bytes, one.tag);
        me.complete_all();
        for (const int tag : tags_to[self]) me.poll(tag);
      },
      intra_node);
}

}  // namespace rma::sim
