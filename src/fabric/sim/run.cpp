// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/run.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/process_state.hpp"
#include "fabric/sim/report.hpp"
#include "fabric/sim/sim_boot.hpp"
#include "fabric/sim/topology.hpp"
#include "fabric/sim/wire.hpp"
#include "rma/sim.hpp"

namespace rma::sim {
namespace {

constexpr int stuck_code = 2;

std::chrono::nanoseconds to_ns(time_ps t) noexcept { return std::chrono::nanoseconds(t / 1000); }

world_options options_of(const Config& job) {
  world_options o;
  o.ranks = job.ranks;
  o.ranks_per_node = job.ranks_per_node;
  o.seed = job.seed;
  o.stack_bytes = job.stack_bytes;
  o.settings = job.settings;
  o.topology = job.topology.empty() ? default_topology : std::string_view(job.topology);
  if (job.faults) o.today = storm(job.seed);
  if (job.send_queue != 0) o.today.send_queue = job.send_queue;
  for (const Outage& each : job.outages) {
    if (each.from.count() < 0 || each.until < each.from)
      throw Error(status::bad_argument, "an outage of the links begins before 0, or ends before it begins");
    o.today.all_down.push_back({each.from.count() * 1000, each.until.count() * 1000});
  }
  if (job.errors) o.today.failed_one_in = error_rate(job.seed);
  if (!job.breach.empty()) o.today.broken = breach_named(job.breach);
  o.watch_network = job.watch_network;
  o.machine = load_parameters(job.parameters.empty() ? default_machine : std::string_view(job.parameters));
  if (job.watchdog.count() < 0) throw Error(status::bad_argument, "a watchdog's time below zero");
  o.watchdog = job.watchdog;
  o.on_stall = job.on_stall ? job.on_stall : [](const std::string& line) {
    (void)std::fprintf(stderr, "rma-sim: %s\n", line.c_str());
  };
  if (job.limit.count() < 0) throw Error(status::bad_argument, "a limit of virtual time below zero");
  if (job.limit.count() > 0) o.limit_ps = job.limit.count() * 1000;
  return o;
}

RankOutcome outcome_of(const rank_record& r) {
  const auto spent = [&](activity a) { return to_ns(r.spent_ps[static_cast<std::size_t>(a)]); };
  RankOutcome o;
  o.fate = fate_of(r.what);
  o.exit_code = r.exit_code;
  o.error = r.error;
  o.end = to_ns(r.ended_ps);
  o.computing = spent(activity::compute);
  o.posting = spent(activity::post);
  o.waiting = spent(activity::wait);
  o.copying = spent(activity::copy);
  o.handling = spent(activity::handler);
  o.polling = spent(activity::poll);
  return o;
}

Outcome outcome_of(world& w) {
  Outcome out;
  for (int r = 0; r < w.size(); ++r) out.ranks.push_back(outcome_of(w.record(r)));
  out.time = to_ns(w.events().now_ps());
  out.events = w.steps();
  out.stuck = w.deadlock();
  out.aborted = w.aborted();
  out.abort_code = w.abort_code();
  out.abort_message = w.abort_message();
  if (!w.options().watch_network || (w.nodes() == 1 && !w.boot_of(0).has_network())) return out;
  const wire& network = w.boot_of(0).network();
  const network_record record = record_of(network.model(), network.log());
  out.network.text = text_report(record);
  out.network.json = json_report(record);
  out.network.heat_map = heat_map_svg(record);
  out.network.trace = trace_json(network.model(), *network.log());
  return out;
}

Outcome run_world(const Config& job, const std::function<int(world&, int rank)>& rank_main) {
  world w(options_of(job));
  (void)topology(w.options().topology, w.nodes());  // throws if the text is invalid
  for (const Kill& k : job.kills) {
    if (k.rank < 0 || k.rank >= job.ranks || k.at.count() < 0)
      throw Error(status::bad_argument, fmt::format("no rank {} at {} ns to kill", k.rank, k.at.count()));
    w.kill_at(k.rank, k.at.count() * 1000);
  }
  w.run([&](int rank) { return rank_main(w, rank); });
  return outcome_of(w);
}

/// A command line that a program may change.
struct command_line {
  command_line(const std::vector<std::string>& arguments, std::string last) : words(arguments) {
    words.push_back(std::move(last));
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
  }
  std::vector<std::string> words;
  std::vector<char*> pointers;
};

}  // namespace

Fate fate_of(fate what) noexcept {
  switch (what) {
    case fate::running: break;
    case fate::finished: return Fate::finished;
    case fate::threw: return Fate::threw;
    case fate::killed: return Fate::killed;
  }
  return Fate::stuck;
}

rma::Config config_of(std::string_view text) {
  const handle me = parse_handle(text);
  rma::Config start;
  start.boot = text;
  start.rank = me.rank;
  start.size = me.job->size();
  start.settings = me.job->options().settings;
  return start;
}

Outcome run_ranks(const Config& job, const std::function<int(const rma::Config& start)>& rank_main) {
  return run_world(job, [&](world& w, int rank) { return rank_main(config_of(make_handle(w, rank))); });
}

Outcome run_program(const Config& job, const std::vector<std::string>& arguments,
                    const std::function<int(int argc, char** argv)>& program) {
  std::vector<std::unique_ptr<command_line>> lines(static_cast<std::size_t>(std::max(0, job.ranks)));
  return run_world(job, [&](world& w, int rank) {
    auto& line = lines[static_cast<std::size_t>(rank)];
    line = std::make_unique<command_line>(arguments, std::string(handle_argument) + make_handle(w, rank));
    return program(static_cast<int>(line->words.size()), line->pointers.data());
  });
}

bool Outcome::ok() const noexcept { return exit_code() == 0; }

int Outcome::exit_code() const noexcept {
  if (aborted) return abort_code;
  if (!stuck.empty()) return stuck_code;
  for (const RankOutcome& r : ranks) {
    if (r.fate != Fate::killed && r.exit_code != 0) return r.exit_code;
  }
  return 0;
}

std::string Outcome::text() const {
  std::string all = aborted ? abort_message + "\n" : std::string();
  std::map<std::string, std::vector<int>> threw;  // ranks of the same text share a line
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const RankOutcome& o = ranks[r];
    if (o.fate == Fate::threw) threw[o.error].push_back(static_cast<int>(r));
    if (o.fate == Fate::killed) all += fmt::format("rank {} was killed at {} ns\n", r, o.end.count());
    if (o.fate == Fate::finished && o.exit_code != 0) all += fmt::format("rank {} ended with {}\n", r, o.exit_code);
  }
  for (const auto& [error, by] : threw)
    all += fmt::format("{} ended by an exception: {}\n", detail::names_of_ranks(by), error);
  return stuck.empty() ? all : all + stuck + "\n";
}

std::string Outcome::json() const {
  std::string all =
      fmt::format("{{\"rma_sim_report\": 1, \"virtual_ns\": {}, \"events\": {}, \"exit_code\": {},\n\"ranks\": [",
                  time.count(), events, exit_code());
  const char* separator = "\n";
  for (const RankOutcome& r : ranks) {
    all += fmt::format(
        "{}{{\"end_ns\": {}, \"exit_code\": {}, \"computing_ns\": {}, \"posting_ns\": {}, \"waiting_ns\": {}, "
        "\"copying_ns\": {}, \"handling_ns\": {}, \"polling_ns\": {}}}",
        separator, r.end.count(), r.exit_code, r.computing.count(), r.posting.count(), r.waiting.count(),
        r.copying.count(), r.handling.count(), r.polling.count());
    separator = ",\n";
  }
  return all + "],\n\"network\": " + (network.json.empty() ? "null\n" : network.json) + "}\n";
}

}  // namespace rma::sim
