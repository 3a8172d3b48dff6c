// SPDX-License-Identifier: Apache-2.0
#include "rma_sim_options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string_view>
#include <utility>

#include "command_line.hpp"

namespace rma::simulator {
namespace {

constexpr int ranks_max = 1 << 20;

constexpr const char* usage = R"(Runs a program as many simulated ranks, in virtual time, inside one process.

  rma-sim -n 16 ./app args...                       16 ranks that share one node
  rma-sim -n 64 --ranks-per-node 8 ./app            on eight nodes
  rma-sim -n 4 --kill 2@1.5ms -x RMA_LOCK_RECOVERY=off ./app
  rma-sim -n 8 --ranks-per-node 1 --faults --seed 7 ./app        delays, full queues, outages from a seed
  rma-sim -n 64 --ranks-per-node 2 --topology torus:8x4 --report --heat-map links.svg ./app
  rma-sim report run.json --heat-map links.svg                   the same later, of a run with --json run.json

PROGRAM is a loadable module, or a program with such a module beside it: for DIR/app that is DIR/sim/app.so or
DIR/app.so. A module is the program's code, compiled with -fPIC and linked with -shared. Its main function is called
once for each rank, so what it keeps in global variables is shared by all ranks. Ranks run one at a time in one thread:
a loop that waits for memory to change must call the library, or it never ends.

The same command line gives the same run. Exit status: that of the first rank that does not end with 0, or the code
given to Runtime::abort; 2 if the ranks wait for each other for ever (what each waits for is printed) or for a mistake
in the command line. Ranks that --kill ends do not count.)";

constexpr std::array<std::string_view, 7> reserved = {"RMA_BOOT", "RMA_RANK", "RMA_SIZE",       "RMA_KEY",
                                                      "RMA_NODE", "RMA_JOB",  "RMA_LOCAL_RANKS"};

/// CLI11 knows nothing of the program and its arguments.
class usage_formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: rma-sim [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
  }
};

/// "1.5ms" and the like.
std::optional<std::chrono::nanoseconds> parse_time(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || !(number >= 0)) return std::nullopt;
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  constexpr std::array<std::pair<std::string_view, double>, 4> units{{{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}}};
  const auto found = std::find_if(units.begin(), units.end(), [&](const auto& u) { return u.first == unit; });
  if (found == units.end() || number * found->second > 9e15) return std::nullopt;
  return std::chrono::nanoseconds(static_cast<std::int64_t>(number * found->second));
}

/// The options' values as words, before they are parsed.
struct words {
  std::vector<std::string> kills;
  std::string limit;
  std::string stack = "256K";
  unsigned watchdog_s = 60;
};

void declare(CLI::App& app, settings& out, words& said) {
  app.set_version_flag("--version", "rma-sim " + std::string(version()));
  app.add_option("-n,--ranks", out.job.ranks, "How many ranks to simulate")
      ->check(CLI::Range(1, ranks_max))
      ->capture_default_str();
  app.add_option("--ranks-per-node", out.job.ranks_per_node, "Ranks that share a node's memory; 0: all of them")
      ->check(CLI::Range(0, ranks_max))
      ->capture_default_str();
  app.add_option("--topology", out.job.topology, "What connects the nodes: switch, fat-tree:k=16,n=3, torus:8x8, ...");
  app.add_option("--params", out.job.parameters, "The machine: the name of a preset, or a file");
  app.add_option("--seed", out.job.seed, "Of all that is drawn by chance")->capture_default_str();
  app.add_option("-x", out.exports, "NAME=VALUE or NAME: give the ranks this environment variable; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--kill", said.kills, "RANK@TIME: that rank dies then, say 3@20us; may be repeated")
      ->allow_extra_args(false);
  app.add_option("--limit", said.limit, "End the run at this virtual time, say 10s");
  app.add_option("--watchdog", said.watchdog_s,
                 "Say so when one rank has run alone for so many seconds of real time, as in an endless loop; 0: never")
      ->check(CLI::Range(0U, 86'400U))
      ->capture_default_str();
  app.add_option("--stack", said.stack, "Stack of each rank in bytes (K, M); taken as far as it is touched")
      ->capture_default_str();
  app.add_flag("--faults", out.job.faults,
               "Faults drawn from the seed: delays, full queues, outages, all that a fabric's contract allows");
  app.add_option(
      "--send-queue", out.job.send_queue,
      "Operations of one rank that its adapter takes at a time; 0: 1024, or with --faults what the seed says");
  app.add_flag("--errors", out.job.errors,
               "Some transfers between nodes fail, though both ranks live: the program sees transfer_failed");
  app.add_option("--breach", out.job.breach, "For tests of checkers: a promise that the network breaks on purpose");
  app.add_flag("--report", out.report, "At the end: virtual time, where the ranks' time went, what the network did");
  app.add_option("--json", out.json, "FILE for what every rank, link and adapter did; `rma-sim report` reads it");
  app.add_option("--heat-map", out.heat_map, "FILE.svg for a picture of the links' use over time");
  app.add_option("--trace", out.trace, "FILE for a Perfetto trace of links and adapters in virtual time");
}

/// Understands what was said; what is wrong with it, or "".
std::string understand(const words& said, settings& out) {
  for (const std::string& each : said.kills) {
    const std::string_view text(each);
    const auto cut = std::min(text.find('@'), text.size());
    sim::Kill kill;
    const auto [end, error] = std::from_chars(text.data(), text.data() + cut, kill.rank);
    const auto when = cut == text.size() ? std::nullopt : parse_time(text.substr(cut + 1));
    if (error != std::errc{} || end != text.data() + cut || !when)
      return fmt::format("--kill {}: RANK@TIME is needed, with a unit (ns, us, ms, s), say 3@20us", each);
    if (kill.rank < 0 || kill.rank >= out.job.ranks)
      return fmt::format("--kill {}: ranks count from 0 to {}", each, out.job.ranks - 1);
    kill.at = *when;
    out.job.kills.push_back(kill);
  }
  if (!said.limit.empty()) {
    const auto limit = parse_time(said.limit);
    if (!limit || limit->count() == 0)
      return fmt::format("--limit {}: a time with a unit (ns, us, ms, s) is needed, say 10s", said.limit);
    out.job.limit = *limit;
  }
  out.job.watchdog = std::chrono::seconds(said.watchdog_s);
  std::size_t bytes = 0;
  const char* const last = said.stack.data() + said.stack.size();
  const auto [end, error] = std::from_chars(said.stack.data(), last, bytes);
  const std::string_view unit(end, static_cast<std::size_t>(last - end));
  const unsigned shift = unit == "K" ? 10 : unit == "M" ? 20 : 0;
  if (error != std::errc{} || (shift == 0 && !unit.empty()) || bytes > (std::size_t{1} << 30) >> shift ||
      bytes << shift < 16384)
    return fmt::format("--stack {}: 16K to 1024M are possible", said.stack);
  out.job.stack_bytes = bytes << shift;
  out.job.watch_network = out.report || !out.json.empty() || !out.heat_map.empty() || !out.trace.empty();
  return "";
}

/// The error in the rest of the command line; "" if there is none.
std::string contradiction(const settings& asked, bool separated) {
  if (asked.command.empty()) return "which program? See rma-sim --help";
  const std::string& first = asked.command.front();
  if (!separated && first.starts_with('-')) return fmt::format("unknown option '{}'; see rma-sim --help", first);
  for (const std::string& each : asked.exports) {
    const std::string name = each.substr(0, each.find('='));
    if (name.empty()) return fmt::format("-x {}: the name is missing", each);
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end())
      return fmt::format("-x {}: rma-sim itself says what {} would", each, name);
    if (each == name && std::getenv(name.c_str()) == nullptr)
      return fmt::format("-x {0}: not set here; set it, or write -x {0}=VALUE", name);
  }
  return "";
}

}  // namespace

std::optional<int> parse_command_line(int argc, char** argv, settings& out) {
  CLI::App app(usage, "rma-sim");
  app.formatter(std::make_shared<usage_formatter>());
  words said;
  declare(app, out, said);
  app.prefix_command();  // words after the program's name are the program's
  if (const auto exit_status = tools::parse(app, argc, argv, say, exit_usage)) return exit_status;
  out.command = app.remaining();
  const bool separated = tools::take_separator(out.command);
  std::string wrong = understand(said, out);
  if (wrong.empty()) wrong = contradiction(out, separated);
  if (wrong.empty()) return std::nullopt;
  say(wrong);
  return exit_usage;
}

void say(const std::string& text) {
  std::fflush(stdout);
  std::fprintf(stderr, "rma-sim: %s\n", text.c_str());
}

bool write_file(const std::string& name, const std::string& text) {
  if (name.empty()) return true;
  if (text.empty()) {
    say(fmt::format("{}: not written, all ranks share one node and there was no network", name));
    return true;
  }
  std::ofstream out(name);
  out << text;
  out.close();
  if (!out) say(fmt::format("cannot write {}", name));
  return static_cast<bool>(out);
}

}  // namespace rma::simulator
