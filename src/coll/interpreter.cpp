// SPDX-License-Identifier: Apache-2.0
#include "coll/interpreter.hpp"
#include "core/assert.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace rma::detail::coll {

using Action = Schedule::Action;

bool interpreter::run(const effect& apply) {
  states_.assign(ranks_.size(), {});
  for (state& s : states_) s.signals.assign(ranks_.size(), 0);
  std::vector<std::size_t> order(ranks_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  for (bool moved = true; moved;) {
    moved = false;
    std::shuffle(order.begin(), order.end(), random_);
    for (const std::size_t rank : order) moved = move(rank, apply) || moved;
  }
  stuck_.clear();
  for (std::size_t r = 0; r < ranks_.size(); ++r) {
    if (!states_[r].over(ranks_[r])) stuck_.push_back(where(r));
  }
  return stuck_.empty();
}

std::string interpreter::where(std::size_t rank) const {
  const auto steps = ranks_[rank].steps();
  const state& s = states_[rank];
  std::string what = "nothing";
  for (const message& m : s.open) {
    if (m.met) continue;
    const Schedule::Step& step = steps[m.step];
    const char* const how = step.action == Action::send ? "to send to" : "for what comes from";
    what = fmt::format("{} {} ({} B, step {})", how, step.peer, step.bytes, m.step);
    break;
  }
  return fmt::format("rank {} waits {}", rank, what);
}

/// Begins the steps of a round, up to its end.
void interpreter::begin(std::size_t rank, const effect& apply) {
  const auto steps = ranks_[rank].steps();
  state& s = states_[rank];
  RMA_ASSERT(s.open.empty() && s.next == s.first);
  const int me = static_cast<int>(rank);
  for (; s.next < steps.size() && steps[s.next].action != Action::round; ++s.next) {
    const Schedule::Step& step = steps[s.next];
    switch (step.action) {
      case Action::send:
      case Action::recv:
      case Action::wait_signal: s.open.push_back({s.next}); break;
      case Action::put:
      case Action::put_signal:
        apply(step, me, step.from(), step.peer, step.into());
        if (step.action == Action::put_signal) ++states_[static_cast<std::size_t>(step.peer)].signals[rank];
        break;
      default: apply(step, me, step.from(), me, step.into()); break;
    }
  }
}

/// Matches a receive with the first send of its peer that has no receive yet; sends wait for that.
bool interpreter::meet(std::size_t rank, message& mine, const effect& apply) {
  const Schedule::Step& step = ranks_[rank].steps()[mine.step];
  const auto peer = static_cast<std::size_t>(step.peer);
  if (step.action == Action::wait_signal) {
    int& signals = states_[rank].signals[peer];
    if (signals == 0) return false;
    RMA_ASSERT(signals > 0);
    --signals;
    return mine.met = true;
  }
  if (step.action != Action::recv) return false;
  for (message& theirs : states_[peer].open) {
    const Schedule::Step& sent = ranks_[peer].steps()[theirs.step];
    if (theirs.met || sent.action != Action::send || sent.peer != static_cast<int>(rank)) continue;
    apply(step, step.peer, sent.from(), static_cast<int>(rank), step.into());
    theirs.met = true;
    return mine.met = true;
  }
  return false;
}

bool interpreter::move(std::size_t rank, const effect& apply) {
  const auto steps = ranks_[rank].steps();
  state& s = states_[rank];
  bool moved = false;
  if (s.open.empty() && s.next == s.first && s.next < steps.size()) {
    begin(rank, apply);
    moved = true;
  }
  bool in_order =
      true;  // receives from one rank match in their order: the first unmatched one stops those that are behind it
  std::vector<int> blocked;
  for (message& m : s.open) {
    if (m.met) continue;
    const int peer = steps[m.step].peer;
    in_order = std::find(blocked.begin(), blocked.end(), peer) == blocked.end();
    if (in_order && meet(rank, m, apply)) {
      moved = true;
    } else if (steps[m.step].action == Action::recv) {
      blocked.push_back(peer);
    }
  }
  if (s.next == s.first && s.next == steps.size()) return moved;
  if (std::all_of(s.open.begin(), s.open.end(), [](const message& m) { return m.met; })) {
    s.open.clear();
    if (s.next < steps.size()) ++s.next;  // the round's end
    moved = moved || s.first != s.next;
    s.first = s.next;
  }
  return moved;
}

}  // namespace rma::detail::coll
