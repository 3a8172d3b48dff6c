// SPDX-License-Identifier: Apache-2.0
/// \file
/// rma-sim: runs a program as simulated ranks inside this process. See rma-sim --help.
#include <fmt/format.h>
#include <malloc.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <string_view>

#include "fabric/sim/handle.hpp"
#include "rma_sim_exit.hpp"
#include "rma_sim_module.hpp"
#include "rma_sim_options.hpp"
#include "rma_sim_report.hpp"

namespace {

using namespace rma::simulator;
namespace sim = rma::sim;

void export_variables(const settings& asked) {
  for (const std::string& each : asked.exports) {
    const auto cut = each.find('=');
    if (cut != std::string::npos) ::setenv(each.substr(0, cut).c_str(), each.substr(cut + 1).c_str(), 1);
  }
}

/// Prints the launcher's last words, each line with our name.
void tell(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    say(text.substr(at, end - at));
    at = end + 1;
  }
}

/// Where the job went wrong, how to have that again.
void print_replay(const settings& asked) {
  std::string line = fmt::format("replay: rma-sim -n {} --ranks-per-node {} --seed {}{}", asked.job.ranks,
                                 asked.job.ranks_per_node, asked.job.seed, asked.job.faults ? " --faults" : "");
  if (asked.job.errors) line += " --errors";
  for (const std::string& each : asked.exports) line += " -x " + each;
  for (const std::string& each : asked.command) line += " " + each;
  say(line);
}

int run(const settings& asked) {
  const loaded program = load_program(asked.command.front());
  if (program.main == nullptr) {
    say(program.error);
    return exit_usage;
  }
  export_variables(asked);
  std::setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
  const sim::Outcome out = sim::run_program(asked.job, asked.command, [&](int argc, char** argv) {
    const std::string_view last(argv[argc - 1]);
    take_exits_of(sim::parse_handle(last.substr(sim::handle_argument.size())).job);
    return program.main(argc, argv);
  });
  take_exits_of(nullptr);
  std::fflush(stdout);
  tell(out.text());
  if (!out.ok() && (asked.job.faults || asked.job.errors)) print_replay(asked);
  if (asked.report) tell(report_text(out));
  const bool written = write_file(asked.json, asked.json.empty() ? "" : out.json()) &&
                       write_file(asked.heat_map, out.network.heat_map) && write_file(asked.trace, out.network.trace);
  return written ? out.exit_code() : exit_usage;
}

/// Ranks take and give back buffers of every size, all in this process: what one gave back is kept for the next,
/// instead of pages that the kernel clears again and again (a third of the conformance suite's time).
void keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 1 && std::string_view(argv[1]) == "report") return report_main(argc - 1, argv + 1);
  settings asked;
  if (const auto exit_status = parse_command_line(argc, argv, asked)) return *exit_status;
  keep_freed_memory();
  try {
    return run(asked);
  } catch (const std::exception& error) {  // a machine that cannot be made
    say(error.what());
    return exit_usage;
  }
}
