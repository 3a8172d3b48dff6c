// SPDX-License-Identifier: Apache-2.0
#include "rmarun_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

#include "boot/process_sets.hpp"
#include "rma/error.hpp"

#ifndef RMA_VERSION
#define RMA_VERSION "unknown"
#endif

namespace rma::launcher {

namespace {

constexpr const char* usage = R"(Starts a program as several ranks on this machine.

  rmarun -n 4 ./app args...                  four ranks
  rmarun -n 4 --nodes 2 ./app                as if on two machines: ranks 0, 1 and ranks 2, 3
  rmarun -n 4 --timeout 60 --tag-output ./app

Standard input goes to rank 0. INT, TERM, HUP, QUIT, USR1 and USR2 are passed on to all ranks; at the third INT or TERM
they are killed. When a rank fails, the others are ended and rmarun exits as that rank did: with its status, or with
128 + the signal's number. Other statuses: 124 after --timeout, 127 if the program is not found, 126 if it cannot be
executed, 2 for a mistake in the command line.)";

constexpr std::array<std::string_view, 9> reserved = {"RMA_BOOT",        "RMA_RANK",         "RMA_SIZE",
                                                      "RMA_KEY",         "RMA_NODE",         "RMA_JOB",
                                                      "RMA_LOCAL_RANKS", "RMA_PROCESS_SETS", "RMA_CORE_GROUP"};

/// CLI11 knows nothing of the program and its arguments.
class usage_formatter : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App*, std::string) const override {
    return "Usage: rmarun [OPTIONS] [--] PROGRAM [ARGUMENTS...]\n";
  }
};

/// Options as they were written, until they are known to be right.
struct written {
  std::string bind = "none";
  std::string hosts;
  std::string hostfile;
};

void declare_debuggers(CLI::App& app, settings& out) {
  app.add_option("--gdb", out.gdb_rank, "Start this rank in gdb, which reads the standard input")
      ->check(CLI::Range(0, 1 << 20));
  app.add_option("--debugger", out.debugger,
                 "Start each rank by this command, as in 'xterm -e gdb --args'; with --gdb, that rank");
  app.add_flag("--valgrind", out.valgrind, "Start each rank in valgrind; one with errors ends with status 99");
}

void declare(CLI::App& app, settings& out, std::string& bind) {
  app.set_version_flag("--version", "rmarun " RMA_VERSION);
  app.add_option("-n,--ranks", out.ranks, "How many ranks to start; mpirun's -np is the same")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  app.add_option("--nodes", out.nodes, "Divide the ranks, in blocks, among so many virtual nodes")
      ->check(CLI::Range(1, 1 << 20));
  app.add_option("--bind", bind, "core: bind rank i to core i (modulo their number); none: let them wander")
      ->check(CLI::IsMember({"core", "none"}))
      ->capture_default_str();
  app.add_option("--timeout", out.timeout_s,
                 "End the job after so many seconds, and say where each rank is; ranks that wait say so before")
      ->check(CLI::PositiveNumber);
  app.add_flag("--keep-going", out.keep_going, "When a rank fails, let the others go on");
  app.add_flag("--tag-output", out.tag_output, "Begin each line of output with the rank that wrote it: 'RANK| '");
  app.add_option("--pset", out.process_sets,
                 "NAME=RANKS, as in io=0-3,5: define a process set, for Runtime::team_of; may be repeated")
      ->allow_extra_args(false);
  app.add_option("-x", out.exports, "NAME=VALUE or NAME: give the ranks this environment variable; may be repeated")
      ->allow_extra_args(false);
}

/// -np, which would be two options of one letter to CLI11, becomes -n where it is rmarun's.
void accept_np(const CLI::App& app, int argc, char** argv) {
  for (int i = 1; i < argc && argv[i][0] == '-' && std::string_view(argv[i]) != "--"; ++i) {
    if (std::string_view(argv[i]) == "-np") argv[i][2] = '\0';
    const CLI::Option* const option = app.get_option_no_throw(argv[i]);
    if (option != nullptr && option->get_items_expected_max() > 0) ++i;  // its value
  }
}

/// Takes --hosts or --hostfile; what is wrong with them, or "".
std::string take_hosts(settings& out, const written& text, bool ranks_are_open) {
  if (text.hosts.empty() && text.hostfile.empty()) return "";
  const bool by_file = !text.hostfile.empty();
  try {
    if (by_file) {
      std::ifstream file(text.hostfile);
      if (!file) return fmt::format("--hostfile {}: it cannot be read", text.hostfile);
      out.hosts = parse_hostfile(std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
    } else {
      out.hosts = parse_hosts(text.hosts);
    }
    if (ranks_are_open) out.ranks = std::max(slots_of(out.hosts), static_cast<int>(out.hosts.size()));
    out.places = spread(out.ranks, out.hosts);
  } catch (const std::exception& error) {
    return fmt::format("{}: {}", by_file ? "--hostfile" : "--hosts", error.what());
  }
  if (words_of(out.ssh).empty()) return "--ssh '': which command?";
  if (out.nodes > 0) return "--nodes divides this machine, and --hosts names others; give one of them";
  if (out.bind_core) return "--bind core is for ranks on this machine";
  return "";
}

/// What is wrong with settings that are each fine by themselves; "" if nothing.
std::string contradiction(const settings& asked, bool separated) {
  if (asked.command.empty()) return "which program? See rmarun --help";
  const std::string& first = asked.command.front();
  if (!separated && first.starts_with('-')) return fmt::format("unknown option '{}'; see rmarun --help", first);
  if (asked.nodes > asked.ranks) {
    return fmt::format("--nodes {} is more than the {} ranks; every node needs one", asked.nodes, asked.ranks);
  }
  if (asked.gdb_rank >= asked.ranks) {
    return fmt::format("--gdb {}: the ranks are 0 to {}", asked.gdb_rank, asked.ranks - 1);
  }
  if (!std::isfinite(asked.timeout_s)) return fmt::format("--timeout {}: how many seconds?", asked.timeout_s);
  if (std::ranges::count(asked.process_sets, "") != 0) return "--pset '': give it as NAME=RANKS";
  try {
    (void)boot::parse_process_sets(joined(asked.process_sets), asked.ranks);
  } catch (const Error& error) {
    return std::string("--pset: ") + error.what();
  }
  for (const std::string& each : asked.exports) {
    const std::string name = each.substr(0, each.find('='));
    if (name.empty()) return fmt::format("-x {}: the name is missing", each);
    if (name.find_first_of(" \t\n") != std::string::npos) return fmt::format("-x '{}': a blank in the name", each);
    if (std::find(reserved.begin(), reserved.end(), name) != reserved.end()) {
      return fmt::format("-x {}: rmarun itself sets {}", each, name);
    }
    if (each == name && std::getenv(name.c_str()) == nullptr) {
      return fmt::format("-x {0}: not set here; set it, or write -x {0}=VALUE", name);
    }
  }
  return "";
}

}  // namespace

std::optional<int> parse_command_line(int argc, char** argv, settings& out) {
  CLI::App app(usage, "rmarun");
  app.formatter(std::make_shared<usage_formatter>());
  written text;
  declare(app, out, text.bind);
  declare_debuggers(app, out);
  app.prefix_command();  // what follows the program's name is the program's
  accept_np(app, argc, argv);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    say(error.what());
    return exit_usage;
  }
  out.bind_core = text.bind == "core";
  out.command = app.remaining();
  bool separated = false;
  if (!out.command.empty() && out.command.front() == "--") {
    out.command.erase(out.command.begin());
    separated = true;
  }
  std::string wrong = take_hosts(out, text, app.count("--ranks") == 0);
  if (wrong.empty()) wrong = contradiction(out, separated);
  if (!wrong.empty()) {
    say(wrong);
    return exit_usage;
  }
  return std::nullopt;
}

std::vector<std::string> command_of(const settings& asked, int rank) {
  std::vector<std::string> words;
  if (rank == asked.gdb_rank && asked.debugger.empty()) {
    words = {"gdb", "-q", "--args"};
  } else if (!asked.debugger.empty() && (asked.gdb_rank < 0 || rank == asked.gdb_rank)) {
    words = words_of(asked.debugger);
  } else if (asked.valgrind) {
    words = {"valgrind", "--quiet", "--error-exitcode=99"};
  }
  words.insert(words.end(), asked.command.begin(), asked.command.end());
  return words;
}

std::vector<std::string> words_of(const std::string& command) {
  std::istringstream words(command);
  return {std::istream_iterator<std::string>(words), {}};
}

std::string joined(const std::vector<std::string>& process_sets) {
  return fmt::format("{}", fmt::join(process_sets, ";"));
}

void say(const std::string& text) {
  const std::string line = "rmarun: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace rma::launcher
