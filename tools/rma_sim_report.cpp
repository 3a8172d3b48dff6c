// SPDX-License-Identifier: Apache-2.0
#include "rma_sim_report.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <vector>

#include "command_line.hpp"
#include "fabric/sim/report.hpp"
#include "rma_sim_options.hpp"

namespace rma::simulator {
namespace {

using nlohmann::json;

constexpr int format_version = 1;
constexpr std::uint64_t nodes_max = 1 << 20;
constexpr unsigned engines_max = 64;
constexpr unsigned buckets_max = 4096;
constexpr std::size_t cells_max = std::size_t{1} << 26;

[[noreturn]] void wrong(const std::string& what) { throw std::runtime_error(what); }

/// A whole number from `least` to `most`.
std::uint64_t number(const json& in, const char* name, std::uint64_t most, std::uint64_t least = 0) {
  const json& value = in.at(name);
  if (!value.is_number_unsigned()) wrong(fmt::format("'{}' is not a whole number", name));
  const auto found = value.get<std::uint64_t>();
  if (found < least || found > most) wrong(fmt::format("'{}' is {}, not {} to {}", name, found, least, most));
  return found;
}

std::uint64_t count(const json& in, const char* name) { return number(in, name, ~std::uint64_t{0}); }

/// The picoseconds of a time in nanoseconds with a fraction.
sim::time_ps picoseconds(const json& in, const char* name) {
  const double ns = in.at(name).get<double>();
  if (!(ns >= 0) || ns > 9e15) wrong(fmt::format("'{}' is no time", name));
  return static_cast<sim::time_ps>(std::llround(ns * 1000));
}

std::chrono::nanoseconds nanoseconds(const json& in, const char* name) {
  return std::chrono::nanoseconds(static_cast<std::int64_t>(number(in, name, std::uint64_t{1} << 62)));
}

void read_links(const json& from, sim::network_record& into) {
  if (into.links.size() * into.buckets > cells_max) wrong("it has too many links and buckets");
  into.busy_ps.resize(into.links.size() * into.buckets);
  for (const json& one : from) {
    const auto link = number(one, "link", into.links.size() - 1);
    sim::link_use& use = into.links[link];
    use.bytes = count(one, "bytes");
    use.packets = number(one, "packets", ~std::uint64_t{0}, 1);
    use.busy_ps = picoseconds(one, "busy_ns");
    use.waiting_ps = picoseconds(one, "waiting_ns");
    use.waiting_max_ps = picoseconds(one, "waiting_max_ns");
    const auto busy = one.at("busy_ps_by_bucket").get<std::vector<std::uint64_t>>();
    if (busy.size() > into.buckets) wrong(fmt::format("link {} has more buckets than 'buckets' says", link));
    for (std::size_t i = 0; i < busy.size(); ++i) {
      if (busy[i] > static_cast<std::uint64_t>(into.width_ps)) wrong(fmt::format("link {} is too busy", link));
      into.busy_ps[link * into.buckets + i] = static_cast<sim::time_ps>(busy[i]);
    }
  }
}

void read_engines(const json& from, sim::network_record& into) {
  into.engines.resize(static_cast<std::size_t>(into.over.nodes()) * into.engines_per_node);
  for (const json& one : from) {
    sim::engine_use& use = into.engines[number(one, "engine", into.engines.size() - 1)];
    use.bytes_out = count(one, "bytes_out");
    use.bytes_in = count(one, "bytes_in");
    use.packets_out = count(one, "packets_out");
    use.packets_in = count(one, "packets_in");
    use.transfers = count(one, "transfers");
    use.busy_ps = picoseconds(one, "busy_ns");
    use.waiting_ps = picoseconds(one, "waiting_ns");
    use.queue_max = static_cast<std::uint32_t>(number(one, "queue_max", 0xFFFFFFFF));
  }
}

sim::network_record read_network(const json& from) {
  const int nodes = static_cast<int>(number(from, "nodes", nodes_max, 1));
  sim::network_record into(from.at("topology").get<std::string>(), nodes);
  into.now_ps = picoseconds(from, "virtual_ns");
  into.engines_per_node = static_cast<unsigned>(number(from, "engines_per_node", engines_max, 1));
  into.dma_engines = static_cast<unsigned>(number(from, "dma_engines", into.engines_per_node, 1));
  into.width_ps = picoseconds(from, "bucket_ns");
  into.buckets = static_cast<unsigned>(number(from, "buckets", buckets_max));
  read_links(from.at("links"), into);
  read_engines(from.at("engines"), into);
  return into;
}

sim::Outcome read_ranks(const json& from) {
  sim::Outcome out;
  out.time = nanoseconds(from, "virtual_ns");
  out.events = count(from, "events");
  for (const json& one : from.at("ranks")) {
    sim::RankOutcome& r = out.ranks.emplace_back();
    r.end = nanoseconds(one, "end_ns");
    r.computing = nanoseconds(one, "computing_ns");
    r.posting = nanoseconds(one, "posting_ns");
    r.waiting = nanoseconds(one, "waiting_ns");
    r.copying = nanoseconds(one, "copying_ns");
    r.handling = nanoseconds(one, "handling_ns");
    r.polling = nanoseconds(one, "polling_ns");
  }
  if (out.ranks.empty()) wrong("it has no ranks");
  return out;
}

sim::Outcome read_run(const std::string& path) {
  std::ifstream file(path);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file || text.empty()) wrong("cannot be read, or is empty");
  try {
    const json all = json::parse(text);
    if (!all.is_object() || !all.contains("rma_sim_report")) wrong("it is some other JSON");
    (void)number(all, "rma_sim_report", format_version, format_version);
    sim::Outcome out = read_ranks(all);
    if (all.at("network").is_null()) return out;
    const sim::network_record network = read_network(all.at("network"));
    out.network.text = text_report(network);
    if (network.buckets != 0) out.network.heat_map = heat_map_svg(network);
    return out;
  } catch (const std::exception& error) {
    wrong(fmt::format("is no file written by rma-sim --json: {}", error.what()));
  }
}

}  // namespace

std::string report_text(const sim::Outcome& of) {
  sim::RankOutcome sum;
  for (const sim::RankOutcome& r : of.ranks) {
    sum.computing += r.computing;
    sum.posting += r.posting;
    sum.waiting += r.waiting;
    sum.copying += r.copying;
    sum.handling += r.handling;
    sum.polling += r.polling;
  }
  const auto each = [&](std::chrono::nanoseconds t) {
    return static_cast<double>(t.count()) * 1e-9 / static_cast<double>(of.ranks.size());
  };
  return fmt::format("{:.9f} s of virtual time, {} events\n", static_cast<double>(of.time.count()) * 1e-9, of.events) +
         fmt::format(
             "per rank: compute {:.9f} s, post {:.9f} s, wait {:.9f} s, copy {:.9f} s, handle {:.9f} s, poll "
             "{:.9f} s\n",
             each(sum.computing), each(sum.posting), each(sum.waiting), each(sum.copying), each(sum.handling),
             each(sum.polling)) +
         of.network.text;
}

int report_main(int argc, char** argv) {
  CLI::App app("Statistics and pictures of a run, from the file that rma-sim --json wrote.", "rma-sim report");
  std::string path, heat_map;
  bool text = false;
  app.add_option("FILE", path, "what a run wrote")->required();
  app.add_option("--heat-map", heat_map, "FILE.svg for a picture of the links' use over time");
  app.add_flag("--text", text, "What --report of the run prints; so it is without --heat-map");
  if (const auto exit_status = tools::parse(app, argc, argv, say, exit_usage)) return *exit_status;
  try {
    const sim::Outcome out = read_run(path);
    if (text || heat_map.empty()) fmt::print("{}", report_text(out));
    return write_file(heat_map, out.network.heat_map) ? 0 : exit_usage;
  } catch (const std::exception& error) {
    say(fmt::format("{}: {}", path, error.what()));
    return exit_usage;
  }
}

}  // namespace rma::simulator
