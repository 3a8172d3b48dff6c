// SPDX-License-Identifier: Apache-2.0
#include "rmarun_options.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <iterator>
#include <memory>
#include <sstream>
#include <string_view>

#include "boot/process_sets.hpp"
#include "command_line.hpp"
#include "rma/error.hpp"

#ifndef RMA_VERSION
#define RMA_VERSION "unknown"
#endif

namespace rma::launcher {

namespace {

constexpr const char* usage = R"(Starts a program as several ranks, on this machine or on several hosts.

  rmarun -n 4 ./app args...                  four ranks
  rmarun -n 4 --nodes 2 ./app                as if on two machines: ranks 0, 1 and ranks 2, 3
  rmarun -n 4 --hosts a,b ./app              ranks 0, 1 on host a and ranks 2, 3 on host b, by ssh
  rmarun -n 4 --gdb 2 ./app                  rank 2 under gdb, which has the terminal
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

/// Texts that become settings once they have been looked at.
struct raw_texts {
  std::string bind = "none";
  std::string hosts, hostfile;
  std::string debugger;
  int gdb = -1;
  bool valgrind = false;
};

void declare_places(CLI::App& app, settings& out, raw_texts& raw) {
  CLI::Option* const hosts = app.add_option(
      "--hosts", raw.hosts, "A,B:2,...: start the ranks there by ssh, in blocks; :2 says how many a host takes");
  CLI::Option* const file =
      app.add_option("--hostfile", raw.hostfile, "The same, one host a line: NAME, NAME:2 or NAME slots=2");
  hosts->excludes(file);
  app.add_option("--ssh", out.ssh, "The command that reaches a host, with options")
      ->default_str("ssh -o BatchMode=yes");
}

void declare_debuggers(CLI::App& app, raw_texts& raw) {
  CLI::Option* const gdb = app.add_option("--gdb", raw.gdb, "Run this rank under gdb, with the terminal as its input")
                               ->check(CLI::NonNegativeNumber);
  CLI::Option* const valgrind = app.add_flag("--valgrind", raw.valgrind, "Run each rank under valgrind");
  CLI::Option* const debugger = app.add_option(
      "--debugger", raw.debugger, "Start each rank by this command, as in 'xterm -e gdb --args' or 'strace -f'");
  gdb->excludes(valgrind)->excludes(debugger);
  valgrind->excludes(debugger);
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

/// The error in settings that are each fine by themselves; "" if there is none.
std::string contradiction(const settings& asked, bool separated) {
  if (asked.command.empty()) return "which program? See rmarun --help";
  const std::string& first = asked.command.front();
  if (!separated && first.starts_with('-')) return fmt::format("unknown option '{}'; see rmarun --help", first);
  if (asked.nodes > 0 && !asked.hosts.empty()) return "--nodes is for one machine, and --hosts for several";
  if (asked.debugged >= asked.ranks) {
    return fmt::format("--gdb {}: the ranks are 0 ... {}", asked.debugged, asked.ranks - 1);
  }
  if (asked.debugged >= 0 && !asked.hosts.empty()) return "--gdb is for ranks on this machine, not with --hosts";
  if (asked.bind_core && !asked.hosts.empty()) return "--bind core is for ranks on this machine, not with --hosts";
  if (asked.nodes > asked.ranks) {
    return fmt::format("--nodes {} is more than the {} ranks; every node needs one", asked.nodes, asked.ranks);
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

namespace {

std::vector<std::string> words_of(const std::string& text) {
  std::istringstream in(text);
  return {std::istream_iterator<std::string>(in), {}};
}

/// Throws rma::Error with what is wrong.
void take(const raw_texts& raw, settings& out) {
  out.bind_core = raw.bind == "core";
  if (!raw.hosts.empty()) out.hosts = parse_hosts(raw.hosts);
  if (!raw.hostfile.empty()) out.hosts = read_hostfile(raw.hostfile);
  if (!out.hosts.empty()) (void)divide(out.hosts, out.ranks);
  if (out.ssh.empty()) out.ssh = "ssh -o BatchMode=yes";
  out.debugger = words_of(raw.debugger);
  if (raw.valgrind) out.debugger = {"valgrind", "--error-exitcode=1", "--quiet"};
  out.debugged = raw.gdb;
  if (raw.gdb >= 0) out.debugger = {"gdb", "--args"};
}

}  // namespace

std::optional<int> parse_command_line(int argc, char** argv, settings& out) {
  CLI::App app(usage, "rmarun");
  app.formatter(std::make_shared<usage_formatter>());
  raw_texts raw;
  declare(app, out, raw.bind);
  declare_places(app, out, raw);
  declare_debuggers(app, raw);
  bool remote = false;
  app.add_flag("--remote-rank", remote)->group("");  // hidden: what --hosts starts
  app.prefix_command();                              // words after the program's name are the program's
  accept_np(app, argc, argv);
  if (const auto exit_status = tools::parse(app, argc, argv, say, exit_usage)) return exit_status;
  if (remote) return run_remote_rank();
  try {
    take(raw, out);
  } catch (const Error& error) {
    say(error.what());
    return exit_usage;
  }
  out.command = app.remaining();
  const bool separated = tools::take_separator(out.command);
  if (const std::string wrong = contradiction(out, separated); !wrong.empty()) {
    say(wrong);
    return exit_usage;
  }
  return std::nullopt;
}

std::string joined(const std::vector<std::string>& process_sets) {
  return fmt::format("{}", fmt::join(process_sets, ";"));
}

void say(const std::string& text) {
  const std::string line = "rmarun: " + text + "\n";
  (void)!::write(STDERR_FILENO, line.data(), line.size());
}

}  // namespace rma::launcher
