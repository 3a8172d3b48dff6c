// SPDX-License-Identifier: Apache-2.0
/// \file
/// Searches all states that a small model can reach, one step of one actor at a time, and says what is wrong: a broken
/// invariant, or a state from which the end cannot be reached any more (a deadlock, a lost wake-up).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace rma::test {

struct search_result {
  std::size_t states = 0;
  std::size_t steps = 0;
  std::string failure;  ///< empty: nothing is wrong
};

/// State: equality, `std::uint64_t hash() const`, `std::string wrong() const` (empty: the invariant holds), `bool
/// finished() const`, `template <class F> void successors(F&& emit) const`.
template <class State>
class state_search {
 public:
  search_result run(const State& first, std::size_t states_max = 4'000'000) {
    search_result r;
    (void)number_of(first);
    for (std::size_t at = 0; at < states_.size() && r.failure.empty(); ++at) {
      const State now = states_[at];
      if (std::string what = now.wrong(); !what.empty()) r.failure = std::move(what);
      now.successors([&](const State& next) {
        ++r.steps;
        const std::size_t to = number_of(next);
        before_[to].push_back(static_cast<std::uint32_t>(at));
      });
      if (states_.size() > states_max) r.failure = "too many states";
    }
    r.states = states_.size();
    if (r.failure.empty() && !all_can_finish()) r.failure = "a state from which the end cannot be reached";
    return r;
  }

 private:
  struct hasher {
    std::size_t operator()(const State& s) const { return static_cast<std::size_t>(s.hash()); }
  };
  std::size_t number_of(const State& s) {
    const auto [at, made] = numbers_.try_emplace(s, static_cast<std::uint32_t>(states_.size()));
    if (made) {
      states_.push_back(s);
      before_.emplace_back();
    }
    return at->second;
  }
  bool all_can_finish() const {
    std::vector<bool> can(states_.size(), false);
    std::vector<std::uint32_t> todo;
    for (std::size_t i = 0; i < states_.size(); ++i) {
      if (!states_[i].finished()) continue;
      can[i] = true;
      todo.push_back(static_cast<std::uint32_t>(i));
    }
    std::size_t count = todo.size();
    while (!todo.empty()) {
      const std::uint32_t at = todo.back();
      todo.pop_back();
      for (const std::uint32_t b : before_[at]) {
        if (can[b]) continue;
        can[b] = true;
        ++count;
        todo.push_back(b);
      }
    }
    return count == states_.size();
  }

  std::unordered_map<State, std::uint32_t, hasher> numbers_;
  std::vector<State> states_;
  std::vector<std::vector<std::uint32_t>> before_;
};

}  // namespace rma::test
