// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the errors in a team's schedules.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "coll/interpreter.hpp"
#include "rma/schedule.hpp"

namespace rma {
namespace {

using Action = Schedule::Action;
using Buffer = Schedule::Buffer;

/// Bytes of one rank that a round sends, receives, reads or writes.
struct span_used {
  Buffer buffer;
  std::size_t begin, end;
  [[nodiscard]] bool meets(const span_used& other) const noexcept {
    return buffer == other.buffer && begin < other.end && other.begin < end;
  }
};
span_used used(Schedule::Place at, std::size_t bytes) noexcept { return {at.buffer, at.offset, at.offset + bytes}; }

bool moves_out(Action a) noexcept { return a == Action::send || a == Action::put || a == Action::put_signal; }
bool local(Action a) noexcept { return a == Action::copy || a == Action::combine || a == Action::combine_before; }

/// Finds steps of a round that access the same bytes while a message uses them.
void check_round(int rank, std::size_t round, std::span<const Schedule::Step> steps, std::vector<std::string>& found) {
  std::vector<span_used> sent, received;
  const auto meets_any = [](const std::vector<span_used>& all, const span_used& one) {
    return std::any_of(all.begin(), all.end(), [&](const span_used& each) { return each.meets(one); });
  };
  const auto tell = [&](const char* what, std::size_t bytes) {
    found.push_back(fmt::format("rank {}, round {}: {} ({} B)", rank, round, what, bytes));
  };
  for (const Schedule::Step& s : steps) {
    if (s.bytes == 0) continue;
    if (s.action == Action::recv) {
      const span_used into = used(s.into(), s.bytes);
      if (meets_any(received, into)) tell("two receives write the same bytes", s.bytes);
      if (meets_any(sent, into)) tell("a receive writes bytes that are being sent", s.bytes);
      received.push_back(into);
    } else if (moves_out(s.action)) {
      const span_used from = used(s.from(), s.bytes);
      if (meets_any(received, from)) tell("a send reads bytes that are being received", s.bytes);
      sent.push_back(from);
    } else if (local(s.action)) {
      const span_used into = used(s.into(), s.bytes);
      const span_used from = used(s.from(), s.bytes);
      if (from.meets(into) && from.begin != into.begin) tell("a local step reads bytes that it writes", s.bytes);
      if (meets_any(received, into) || meets_any(received, from))
        tell("a local step uses bytes that are being received", s.bytes);
      if (meets_any(sent, into)) tell("a local step writes bytes that are being sent", s.bytes);
    }
  }
}

/// Compares the sends and receives of each pair, in order.
void check_pairs(std::span<const Schedule> ranks, std::vector<std::string>& found) {
  std::map<std::pair<int, int>, std::array<std::vector<std::size_t>, 2>> pairs;  // sizes sent and received
  std::map<std::pair<int, int>, std::array<std::size_t, 2>> signals;
  const int size = static_cast<int>(ranks.size());
  for (int r = 0; r < size; ++r) {
    for (const Schedule::Step& s : ranks[static_cast<std::size_t>(r)].steps()) {
      if (local(s.action) || s.action == Action::round) continue;
      if (s.peer < 0 || s.peer >= size) {
        found.push_back(fmt::format("rank {} names rank {}; ranks are 0 to {}", r, s.peer, size - 1));
        continue;
      }
      if (s.action == Action::send) pairs[{r, s.peer}][0].push_back(s.bytes);
      if (s.action == Action::recv) pairs[{s.peer, r}][1].push_back(s.bytes);
      if (s.action == Action::put_signal) ++signals[{r, s.peer}][0];
      if (s.action == Action::wait_signal) ++signals[{s.peer, r}][1];
    }
  }
  for (const auto& [pair, sizes] : pairs) {
    const auto& [sent, received] = sizes;
    if (sent.size() != received.size()) {
      found.push_back(fmt::format("rank {} sends {} messages to rank {}, which receives {}", pair.first, sent.size(),
                                  pair.second, received.size()));
      continue;
    }
    const auto differ = std::mismatch(sent.begin(), sent.end(), received.begin());
    if (differ.first == sent.end()) continue;
    found.push_back(fmt::format("message {} of rank {} to rank {} has {} bytes, its receive {}",
                                differ.first - sent.begin(), pair.first, pair.second, *differ.first, *differ.second));
  }
  for (const auto& [pair, count] : signals) {
    if (count[0] != count[1]) {
      found.push_back(fmt::format("rank {} signals rank {} {} times, which waits for {}", pair.first, pair.second,
                                  count[0], count[1]));
    }
  }
}

/// Counts the writes to each byte of each rank's output, by a run.
void check_outputs(std::span<const Schedule> ranks, Written demand, std::span<const std::size_t> output_bytes,
                   detail::coll::interpreter& run, std::vector<std::string>& found) {
  std::vector<std::vector<unsigned>> written(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r)
    written[r].resize(output_bytes.empty() ? ranks[r].bytes_of(Buffer::output) : output_bytes[r]);
  for (std::size_t r = 0; r < ranks.size() && output_bytes.empty(); ++r) {
    for (const Schedule::Step& s : ranks[r].steps()) {
      if ((s.action != Action::put && s.action != Action::put_signal) || s.into_buffer != Buffer::output) continue;
      auto& theirs = written[static_cast<std::size_t>(s.peer)];
      theirs.resize(std::max(theirs.size(), s.into_offset + s.bytes));
    }
  }
  std::vector<bool> beyond(ranks.size());
  const bool ended = run.run([&](const Schedule::Step& s, int, Schedule::Place, int into_rank, Schedule::Place into) {
    if (into.buffer != Buffer::output || s.action == Action::combine || s.action == Action::combine_before) return;
    auto& bytes = written[static_cast<std::size_t>(into_rank)];
    if (into.offset + s.bytes > bytes.size()) {
      beyond[static_cast<std::size_t>(into_rank)] = true;
      return;
    }
    for (std::size_t i = 0; i < s.bytes; ++i) ++bytes[into.offset + i];
  });
  if (!ended) {
    for (const std::string& each : run.stuck()) found.push_back("never ends: " + each);
    return;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    if (beyond[r]) found.push_back(fmt::format("rank {}: something is written behind the output's end", r));
    if (demand == Written::anyhow) continue;
    const auto& bytes = written[r];
    const auto wrong = std::find_if(bytes.begin(), bytes.end(),
                                    [&](unsigned n) { return n == 0 || (demand == Written::once && n != 1); });
    if (wrong == bytes.end()) continue;
    found.push_back(
        fmt::format("rank {}: byte {} of the output is written {} times", r, wrong - bytes.begin(), *wrong));
  }
}

}  // namespace

std::vector<std::string> check(std::span<const Schedule> ranks, Written demand,
                               std::span<const std::size_t> output_bytes) {
  std::vector<std::string> found;
  check_pairs(ranks, found);
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const auto steps = ranks[r].steps();
    std::size_t first = 0;
    std::size_t round = 0;
    for (std::size_t i = 0; i <= steps.size(); ++i) {
      if (i != steps.size() && steps[i].action != Action::round) continue;
      check_round(static_cast<int>(r), round++, steps.subspan(first, i - first), found);
      first = i + 1;
    }
  }
  const bool ranks_exist = std::none_of(found.begin(), found.end(),
                                        [](const std::string& each) { return each.find("names rank") != each.npos; });
  if (!ranks_exist) return found;
  detail::coll::interpreter run(ranks, 1);
  check_outputs(ranks, demand, output_bytes, run, found);
  return found;
}

}  // namespace rma
