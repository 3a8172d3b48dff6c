// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "fabric/sim/pattern.hpp"

namespace rma::sim {
namespace {

constexpr std::size_t ranks_shown = 64;  ///< in a report

}  // namespace

// ---- waiting ranks ------------------------------------------------------------------------------------------------

std::string pattern_job::describe(int rank) const {
  const rank_state& s = of(rank);
  switch (s.what) {
    case wait::none: return fmt::format("rank {} computes", rank);
    case wait::completion: {
      const operation& o = operations_[s.which];
      if (o.is_get) return fmt::format("rank {} waits for its get of {} bytes from rank {}", rank, o.bytes, o.other);
      return fmt::format("rank {} waits for its put of {} bytes to rank {} with tag {}", rank, o.bytes, o.other, o.tag);
    }
    case wait::token: {
      const auto distance = std::int64_t{1} << s.which;
      const auto from = ((rank - distance) % world_.size() + world_.size()) % world_.size();
      return fmt::format("rank {} waits in its barrier {} for rank {}", rank, s.barriers, from);
    }
    case wait::data: break;
  }
  const auto found = s.arrived.find(static_cast<int>(s.which));
  return fmt::format("rank {} waits for {} with tag {}, {} came", rank,
                     s.wanted == 1 ? std::string("a put") : fmt::format("{} puts", s.wanted), s.which,
                     found == s.arrived.end() ? 0 : found->second);
}

std::string pattern_job::report() const {
  const std::string& why = world_.deadlock();
  if (why.empty()) return {};
  std::string text = why.substr(0, why.find('\n'));
  std::size_t lines = 0;
  for (int rank = 0; rank < world_.size(); ++rank) {
    if (world_.active(rank) && ++lines <= ranks_shown) text += fmt::format("\n  {}", describe(rank));
  }
  if (lines > ranks_shown) text += fmt::format("\n  and {} more ranks", lines - ranks_shown);
  return text;
}

// ---- results ------------------------------------------------------------------------------------------------------

PatternOutcome pattern_job::outcome(time_ps stopped_ps) {
  PatternOutcome out;
  out.stuck = report();
  time_ps end_ps = out.stuck.empty() ? 0 : stopped_ps;
  for (int rank = 0; rank < world_.size(); ++rank) {
    const rank_record& record = world_.record(rank);
    const auto spent = [&](activity a) { return picoseconds(record.spent_ps[static_cast<std::size_t>(a)]); };
    PatternRankOutcome& r = out.ranks.emplace_back();
    r.fate = fate_of(record.what);
    r.end = picoseconds(record.ended_ps);
    r.phases.resize(labels_.size());
    for (std::size_t i = 0; i < of(rank).phases_ps.size(); ++i) r.phases[i] = picoseconds(of(rank).phases_ps[i]);
    r.computing = spent(activity::compute);
    r.posting = spent(activity::post);
    r.waiting = spent(activity::wait);
    r.copying = spent(activity::copy);
    r.polling = spent(activity::poll);
    for (const auto& [tag, count] : of(rank).arrived) r.unpolled += count;
    end_ps = std::max(end_ps, record.ended_ps);
  }
  out.phases = labels_;
  out.time = picoseconds(end_ps);
  out.quiet = picoseconds(world_.events().now_ps());
  out.network = use_[0];
  out.intra_node = use_[1];
  add_network(out);
  return out;
}

void pattern_job::add_network(PatternOutcome& out) const {
  const topology& over = network_.over();
  for (link_id link = 0; link < over.links(); ++link) {
    const link_use& use = network_.use_of(link);
    if (use.packets == 0) continue;
    out.links.push_back({over.name_of(link), use.bytes, use.packets, picoseconds(use.busy_ps),
                         picoseconds(use.waiting_ps), picoseconds(use.waiting_max_ps)});
  }
  for (int node = 0; node < over.nodes(); ++node) {
    for (unsigned i = 0; i < network_.engines_per_node(); ++i) {
      const engine_use& use = network_.use_of(node, i);
      if (use.packets_in + use.packets_out == 0) continue;
      out.engines.push_back({node, static_cast<int>(i), use.bytes_out, use.bytes_in, use.transfers,
                             picoseconds(use.busy_ps), picoseconds(use.waiting_ps), use.queue_max});
    }
  }
  out.topology = over.text();
  out.events = events_;
  out.hops = network_.hops();
}

namespace {

template <class Better>
picoseconds pick(const PatternOutcome& of, std::string_view label, Better better) {
  const auto found = std::find(of.phases.begin(), of.phases.end(), label);
  if (found == of.phases.end() || of.ranks.empty()) return {};
  const auto number = static_cast<std::size_t>(found - of.phases.begin());
  picoseconds result = of.ranks.front().phases[number];
  for (std::size_t r = 1; r < of.ranks.size(); ++r) result = better(result, of.ranks[r].phases[number]);
  return result;
}

template <class Use>
const Use* busiest(const std::vector<Use>& all) noexcept {
  const auto found =
      std::max_element(all.begin(), all.end(), [](const Use& a, const Use& b) { return a.busy < b.busy; });
  return found == all.end() ? nullptr : &*found;
}

}  // namespace

picoseconds PatternOutcome::phase_sum(std::string_view label) const {
  return pick(*this, label, [](picoseconds a, picoseconds b) { return a + b; });
}
picoseconds PatternOutcome::phase_min(std::string_view label) const {
  return pick(*this, label, [](picoseconds a, picoseconds b) { return std::min(a, b); });
}
picoseconds PatternOutcome::phase_max(std::string_view label) const {
  return pick(*this, label, [](picoseconds a, picoseconds b) { return std::max(a, b); });
}
const EngineUse* PatternOutcome::busiest_engine() const noexcept { return busiest(engines); }
const LinkUse* PatternOutcome::busiest_link() const noexcept { return busiest(links); }

}  // namespace rma::sim
