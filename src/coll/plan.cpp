// SPDX-License-Identifier: Apache-2.0
#include "coll/plan.hpp"
#include "core/assert.hpp"

#include <algorithm>

#include "coll/running.hpp"

namespace rma::detail::coll {
namespace {

using Action = Schedule::Action;

bool same(const std::vector<std::size_t>& mine, std::span<const std::size_t> theirs) noexcept {
  return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
}

blocks blocks_of(const collective_blocks& b, const std::vector<std::size_t>& sizes, std::vector<std::size_t>& offsets) {
  blocks made{b.each_bytes, sizes, {}, b.unit_bytes};
  if (!sizes.empty() && offsets.empty()) {
    std::size_t end = 0;
    for (const std::size_t size : sizes) {
      offsets.push_back(end);
      end += size;
    }
  }
  made.offsets = offsets;
  return made;
}

}  // namespace

plan::plan(const collective_call& c, std::int32_t c_signature, int rank, int size, bool reproducible,
           std::span<const int> nodes)
    : what(c.what),
      signature(c_signature),
      bytes(c.bytes),
      root(c.root),
      sent_bytes(c.sent.each_bytes),
      received_bytes(c.received.each_bytes),
      element_bytes(element_bytes_of(c)),
      commutative(commutes(c)),
      varied(c.varied),
      in_place(c.in_place) {
  lists[0].assign(c.sent.sizes.begin(), c.sent.sizes.end());
  lists[1].assign(c.sent.offsets.begin(), c.sent.offsets.end());
  lists[2].assign(c.received.sizes.begin(), c.received.sizes.end());
  for (const Layout& each : c.in_shape.several) lists[0].push_back(each.bytes());
  for (const Layout& each : c.out_shape.several) lists[2].push_back(each.bytes());
  lists[3].assign(c.received.offsets.begin(), c.received.offsets.end());
  neighbors[0].assign(c.sources.begin(), c.sources.end());
  neighbors[1].assign(c.targets.begin(), c.targets.end());
  of.what = c.what;
  of.rank = rank;
  of.size = size;
  of.root = c.root;
  of.bytes = c.bytes;
  of.element_bytes = element_bytes;
  of.commutative = commutative;
  of.inexact = inexact(c);
  of.reproducible = reproducible;
  of.varied = varied;
  of.in_place = in_place;
  of.nodes = nodes;
  of.sources = neighbors[0];
  of.targets = neighbors[1];
}

plan::~plan() = default;

bool plan::lists_differ(const collective_call& c) const noexcept {
  const auto same_ranks = [](const std::vector<int>& mine, std::span<const int> theirs) {
    return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end());
  };
  const auto same_layouts = [](const std::vector<std::size_t>& mine, std::span<const Layout> theirs) {
    return std::equal(mine.begin(), mine.end(), theirs.begin(), theirs.end(),
                      [](std::size_t each, const Layout& layout) { return each == layout.bytes(); });
  };
  if (!same_ranks(neighbors[0], c.sources) || !same_ranks(neighbors[1], c.targets)) return true;
  if (!c.in_shape.several.empty() || !c.out_shape.several.empty())
    return !same_layouts(lists[0], c.in_shape.several) || !same_layouts(lists[2], c.out_shape.several);
  return c.sent.unit_bytes != of.sent.unit || c.received.unit_bytes != of.received.unit ||
         !same(lists[0], c.sent.sizes) || !same(lists[1], c.sent.offsets) || !same(lists[2], c.received.sizes) ||
         !same(lists[3], c.received.offsets);
}

void plan::build(const collective_call& c, const machine_costs& costs, const algorithm* forced, std::string_view set) {
  std::vector<std::size_t> begins[2] = {lists[1], lists[3]};
  RMA_ASSERT(c.what == what && schedule.steps().empty());
  of.sent = blocks_of(c.sent, lists[0], begins[0]);
  of.received = blocks_of(c.received, lists[2], begins[1]);
  const choice by = choose(of, costs, forced);
  chosen = by.chosen;
  by_puts = chosen->by_puts;
  reason = reason_of(by, set);
  Schedule made;
  chosen->build(of, made);
  of.sent.sizes = of.sent.offsets = of.received.sizes = of.received.offsets = {};
  use(made);
}

void plan::use(const Schedule& made, bool notified) {
  schedule = made;
  if (notified) return;
  std::size_t sends = 0;
  std::size_t receives = 0;
  for (const Schedule::Step& s : schedule.steps()) {
    switch (s.action) {
      case Action::send: ++sends; break;
      case Action::put:
      case Action::put_signal: sends += 2; break;
      case Action::recv: ++receives; break;
      case Action::wait_signal: ++receives; break;
      case Action::round: sends = receives = 0; break;
      default: break;
    }
    sends_max = std::max(sends_max, sends);
    receives_max = std::max(receives_max, receives);
  }
}

}  // namespace rma::detail::coll
