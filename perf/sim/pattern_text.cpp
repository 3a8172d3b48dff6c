// SPDX-License-Identifier: Apache-2.0
#include "pattern_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace perf {
namespace {

namespace sim = rma::sim;

constexpr std::size_t busiest_shown = 5;

template <class Use>
std::vector<Use> busiest(std::vector<Use> all) {
  std::stable_sort(all.begin(), all.end(), [](const Use& a, const Use& b) { return a.busy > b.busy; });
  if (all.size() > busiest_shown) all.resize(busiest_shown);
  return all;
}

double percent(sim::picoseconds part, sim::picoseconds whole) {
  return whole.count() == 0 ? 0 : 100.0 * static_cast<double>(part.count()) / static_cast<double>(whole.count());
}

std::string line_of(std::string_view kind, const sim::TransferUse& use) {
  if (use.count == 0) return {};
  const auto each = [&](sim::picoseconds sum) { return microseconds(sum) / static_cast<double>(use.count); };
  return fmt::format(
      "{}: {} transfers, {} bytes; mean (most) in us: latency {:.3f} ({:.3f}), waiting for the DMA engine {:.3f} "
      "({:.3f}), interrupted by packets that came in {:.3f} ({:.3f})\n",
      kind, use.count, use.bytes, each(use.latency), microseconds(use.latency_max), each(use.queued),
      microseconds(use.queued_max), each(use.interrupted), microseconds(use.interrupted_max));
}

nlohmann::json json_of(const sim::TransferUse& use) {
  return {{"count", use.count},
          {"bytes", use.bytes},
          {"latency_ps", use.latency.count()},
          {"latency_max_ps", use.latency_max.count()},
          {"queued_ps", use.queued.count()},
          {"queued_max_ps", use.queued_max.count()},
          {"interrupted_ps", use.interrupted.count()},
          {"interrupted_max_ps", use.interrupted_max.count()}};
}

}  // namespace

double microseconds(sim::picoseconds time) { return static_cast<double>(time.count()) / 1e6; }

std::string text_of(const sim::PatternOutcome& of) {
  std::string text;
  for (const std::string& phase : of.phases) {
    text += fmt::format("phase {}: us of a rank, mean {:.3f} least {:.3f} most {:.3f}\n", phase,
                        microseconds(of.phase_sum(phase)) / static_cast<double>(of.ranks.size()),
                        microseconds(of.phase_min(phase)), microseconds(of.phase_max(phase)));
  }
  text += line_of("within nodes", of.intra_node);
  text += line_of("between nodes", of.network);
  for (const sim::EngineUse& e : busiest(of.engines)) {
    text += fmt::format(
        "engine {} of node {}: busy {:.1f} %, {} bytes out, {} in, waiting for it {:.3f} us, at most {} "
        "transfers at a time\n",
        e.number, e.node, percent(e.busy, of.quiet), e.bytes_out, e.bytes_in, microseconds(e.waiting), e.queue_most);
  }
  for (const sim::LinkUse& l : busiest(of.links)) {
    text += fmt::format("link {}: busy {:.1f} %, {} packets, waiting for it {:.3f} us, one at most {:.3f} us\n", l.name,
                        percent(l.busy, of.quiet), l.packets, microseconds(l.waiting), microseconds(l.waiting_max));
  }
  return text;
}

nlohmann::json json_of(const sim::PatternOutcome& of) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const sim::PatternRankOutcome& r : of.ranks) {
    nlohmann::json phases = nlohmann::json::object();
    for (std::size_t i = 0; i < of.phases.size(); ++i) phases[of.phases[i]] = r.phases[i].count();
    ranks.push_back({{"end_ps", r.end.count()},
                     {"phases_ps", phases},
                     {"computing_ps", r.computing.count()},
                     {"posting_ps", r.posting.count()},
                     {"waiting_ps", r.waiting.count()},
                     {"copying_ps", r.copying.count()},
                     {"polling_ps", r.polling.count()},
                     {"unpolled", r.unpolled}});
  }
  nlohmann::json engines = nlohmann::json::array();
  for (const sim::EngineUse& e : of.engines) {
    engines.push_back({{"node", e.node},
                       {"number", e.number},
                       {"bytes_out", e.bytes_out},
                       {"bytes_in", e.bytes_in},
                       {"transfers", e.transfers},
                       {"busy_ps", e.busy.count()},
                       {"waiting_ps", e.waiting.count()},
                       {"queue_most", e.queue_most}});
  }
  nlohmann::json links = nlohmann::json::array();
  for (const sim::LinkUse& l : of.links) {
    links.push_back({{"name", l.name},
                     {"bytes", l.bytes},
                     {"packets", l.packets},
                     {"busy_ps", l.busy.count()},
                     {"waiting_ps", l.waiting.count()},
                     {"waiting_max_ps", l.waiting_max.count()}});
  }
  return {{"time_ps", of.time.count()},
          {"quiet_ps", of.quiet.count()},
          {"topology", of.topology},
          {"events", of.events},
          {"hops", of.hops},
          {"intra_node", json_of(of.intra_node)},
          {"network", json_of(of.network)},
          {"ranks", ranks},
          {"engines", engines},
          {"links", links}};
}

void write_json(const std::string& path, const nlohmann::json& what) {
  std::ofstream file(path);
  file << what.dump(1) << '\n';
  if (!file.flush()) throw std::runtime_error(fmt::format("{} cannot be written", path));
}

}  // namespace perf
