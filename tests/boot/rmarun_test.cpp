// SPDX-License-Identifier: Apache-2.0
#include <sys/ptrace.h>

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>

#include "launched.hpp"
#include "skip.hpp"

using namespace rma::boot;
using namespace rma::boot::test;
using Catch::Contains;

namespace {

struct result {
  int exit_status;
  std::string output;
  std::string errors;
};

result run(const std::vector<std::string>& arguments, const std::string& input = "") {
  launched job(arguments, input);
  result seen;
  seen.output = job.rest_of_output();
  seen.errors = job.errors();
  seen.exit_status = job.exit_status();
  return seen;
}

result run_shell(const std::string& ranks, const std::string& script) { return run({"-n", ranks, "sh", "-c", script}); }

std::vector<std::string> sorted_lines(const std::string& text) {
  std::istringstream stream(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  std::sort(lines.begin(), lines.end());
  return lines;
}

/// The processes that rmarun has started itself: ranks and guardian.
std::vector<pid_t> children_of(pid_t pid) {
  const std::string text = std::to_string(pid);
  std::ifstream list("/proc/" + text + "/task/" + text + "/children");
  std::vector<pid_t> found;
  for (pid_t child = 0; list >> child;) found.push_back(child);
  return found;
}

const std::string probe = BOOT_PROBE_PATH;

}  // namespace

TEST_CASE("ranks exchange values through rmarun", "[boot][rmarun]") {
  const result seen = run({"-n", "5", probe, "exchange"});
  CHECK(seen.exit_status == 0);
  CHECK(seen.errors.empty());
  CHECK(sorted_lines(seen.output) == std::vector<std::string>{"rank 0: sum 30", "rank 1: sum 30", "rank 2: sum 30",
                                                              "rank 3: sum 30", "rank 4: sum 30"});
}

TEST_CASE("two jobs at the same time", "[boot][rmarun]") {
  launched one({"-n", "2", probe, "exchange"});
  launched other({"-n", "3", probe, "exchange"});
  CHECK(sorted_lines(one.rest_of_output()) == std::vector<std::string>{"rank 0: sum 1", "rank 1: sum 1"});
  CHECK(other.line().substr(6) == ": sum 5");
  CHECK(one.exit_status() == 0);
  CHECK(other.exit_status() == 0);
}

// Goal: the ranks of a large job find rank 0 whatever its soft limit of descriptors is; where its hard one does not do
// either, the user is told so, once.
// Method: a limit that is small for a few ranks, in rank 0's process alone.
// Break: do not raise the limit (allow_connections), or do not complain.
TEST_CASE("rank 0 serves with few descriptors", "[boot][rmarun]") {
  const bool hard = GENERATE(false, true);
  CAPTURE(hard);
  boot_address where = parse_address("tcp://127.0.0.1:0");
  listen_at(where).reset();
  const std::string script = "[ $RMA_RANK != 0 ] || ulimit " + std::string(hard ? "-n" : "-S -n") +
                             " 16; RMA_BOOT=" + to_text(where) + " exec " + probe + " exchange";
  const result seen = run({"-n", "20", "--timeout", hard ? "2" : "60", "sh", "-c", script});
  CAPTURE(seen.errors);
  CHECK(seen.exit_status == (hard ? 124 : 0));
  const std::string complaint =
      "rma: the server of this job has no descriptor left for the ranks that join, which wait "
      "(this process may have 16 open: ulimit -n raises that)\n";
  const auto at = seen.errors.find(complaint);
  CHECK((at != std::string::npos) == hard);
  if (hard) CHECK(seen.errors.find(complaint, at + 1) == std::string::npos);
  CHECK(sorted_lines(seen.output).size() == (hard ? 0 : 20));
}

TEST_CASE("programs without a runtime are fine", "[boot][rmarun]") {
  const result seen = run({"-n", "3", "echo", "-n", "7", "--", "x"});  // the options are echo's
  CHECK(seen.exit_status == 0);
  CHECK(seen.output == "7 -- x7 -- x7 -- x");
  CHECK(seen.errors.empty());
}

TEST_CASE("what a rank is told", "[boot][rmarun]") {
  const std::string script = "echo $RMA_RANK $RMA_SIZE $RMA_LOCAL_RANKS $RMA_NODE $WORD";
  CHECK(sorted_lines(run({"-n", "5", "--nodes", "2", "-x", "WORD=a b", "sh", "-c", script}).output) ==
        std::vector<std::string>{"0 5 5 node0 a b", "1 5 5 node0 a b", "2 5 5 node0 a b", "3 5 5 node1 a b",
                                 "4 5 5 node1 a b"});
  CHECK(run({"sh", "-c", script}).output == "0 1 1\n");
  const auto keys = sorted_lines(run_shell("2", "echo $RMA_KEY $RMA_BOOT").output);
  REQUIRE(keys.size() == 2);
  CHECK(keys[0] == keys[1]);
  CHECK(keys[0].size() > 64);
  CHECK(run({"-x", "PATH", "sh", "-c", "test -n \"$PATH\""}).exit_status == 0);
  // The last one counts, and is the only one there is: a program may find the first.
  CHECK(run({"-x", "TWICE=1", "-x", "TWICE=2", "printenv", "TWICE"}).output == "2\n");
  const std::string all = run({"-x", "TWICE=1", "-x", "TWICE=2", "env"}).output;
  CHECK_THAT(all, Contains("TWICE=2\n") && !Contains("TWICE=1\n"));
}

// Goal: sets of the command line have teams, of their members alone. Method: two that overlap; each member hears from
// the one before it and adds up all.
TEST_CASE("process sets", "[boot][rmarun]") {
  const std::string program = SETS_PROGRAM_PATH;
  const result seen = run({"-n", "4", "--pset", "even=0,2", "--pset", "rest=1-3", program, "even", "rest"});
  CHECK(seen.errors.empty());
  CHECK(seen.exit_status == 0);
  const auto outside = [](int rank, const std::string& set, int members) {
    return "rank " + std::to_string(rank) + ": team_of: bad_argument: rank " + std::to_string(rank) +
           " is not in process set '" + set + "', whose " + std::to_string(members) +
           " members make its team; see ranks_of";
  };
  std::vector<std::string> expected{"sets: rma://world rma://node rma://self even rest",
                                    "rank 0: even has 2 members, sum 2; after 2",
                                    "rank 2: even has 2 members, sum 2; after 0",
                                    "rank 1: rest has 3 members, sum 6; after 3",
                                    "rank 2: rest has 3 members, sum 6; after 1",
                                    "rank 3: rest has 3 members, sum 6; after 2",
                                    outside(0, "rest", 3),
                                    outside(1, "even", 2),
                                    outside(3, "even", 2)};
  std::sort(expected.begin(), expected.end());
  CHECK(sorted_lines(seen.output) == expected);

  const result unknown = run({"--pset", "io=0", program, "oi"});
  CHECK(unknown.exit_status == 9);
  CHECK_THAT(
      unknown.errors,
      Contains("[rank 0] ranks_of at ") &&
          Contains("bad_argument: there is no process set 'oi'; there are rma://world, rma://node, rma://self, io"));
}

TEST_CASE("mistakes in the command line", "[boot][rmarun]") {
  const auto error_of = [](const std::vector<std::string>& arguments) {
    const result seen = run(arguments);
    CHECK(seen.exit_status == 2);
    CHECK(std::count(seen.errors.begin(), seen.errors.end(), '\n') == 1);
    return seen.errors;
  };
  CHECK_THAT(error_of({}), Contains("which program?"));
  CHECK_THAT(error_of({"--bogus", "true"}), Contains("unknown option '--bogus'"));
  CHECK_THAT(error_of({"-n", "0", "true"}), Contains("-n") || Contains("--ranks"));
  CHECK_THAT(error_of({"-n", "2", "--nodes", "3", "true"}), Contains("--nodes 3 is more than the 2 ranks"));
  CHECK_THAT(error_of({"-x", "RMA_KEY=1", "true"}), Contains("rmarun itself sets RMA_KEY"));
  CHECK_THAT(error_of({"-x", "NOT_SET_ANYWHERE", "true"}), Contains("not set here"));
  CHECK_THAT(error_of({"-x", "=1", "true"}), Contains("the name is missing"));
  CHECK_THAT(error_of({"-x", " NAME=1", "true"}), Contains("a blank in the name"));
  CHECK_THAT(error_of({"--bind", "socket", "true"}), Contains("socket"));
  for (const char* const text : {"nan", "inf", "0", "-1"}) {
    CHECK_THAT(error_of({"--timeout", text, "true"}), Contains("--timeout") && Contains(text));
  }
  CHECK_THAT(error_of({"--pset", "", "true"}), Contains("--pset") && Contains("NAME=RANKS"));
  CHECK_THAT(error_of({"--pset", "io=1", "true"}), Contains("--pset") && Contains("ranks count from 0 to 0"));
  CHECK_THAT(error_of({"-x", "RMA_PROCESS_SETS=io=0", "true"}), Contains("rmarun itself sets RMA_PROCESS_SETS"));
  CHECK(run({"--help"}).exit_status == 0);
  CHECK_THAT(run({"--help"}).output, Contains("Usage: rmarun"));
  CHECK_THAT(run({"--version"}).output, Contains("rmarun "));
}

TEST_CASE("programs that cannot be started", "[boot][rmarun]") {
  const result missing = run({"-n", "4", "no-such-program"});
  CHECK(missing.exit_status == 127);
  CHECK(missing.errors == "rmarun: cannot start 'no-such-program': No such file or directory\n");
  const result folder = run({"/"});
  CHECK(folder.exit_status == 126);
  CHECK(folder.errors == "rmarun: cannot start '/': Permission denied\n");
}

TEST_CASE("the first failure is the exit status", "[boot][rmarun]") {
  const result status = run_shell("3", "if [ $RMA_RANK = 2 ]; then exit 3; fi; exec sleep 1000");
  CHECK(status.exit_status == 3);
  CHECK_THAT(status.errors, Catch::Matches("rmarun: rank 2 \\(pid [0-9]+\\) exited with status 3\n"));
  const result killed = run_shell("3", "if [ $RMA_RANK = 1 ]; then kill -9 $$; fi; exec sleep 1000");
  CHECK(killed.exit_status == 137);
  CHECK_THAT(killed.errors, Catch::Matches("rmarun: rank 1 \\(pid [0-9]+\\) was killed by signal 9 \\(Killed\\)\n"));
}

// Goal: a rank that does not heed TERM is killed. Method: one that ignores it, and so do its children.
TEST_CASE("the rest is ended even if it does not want to", "[boot][rmarun]") {
  launched job(
      {"-n", "2", "sh", "-c", "trap '' TERM; echo ready; if [ $RMA_RANK = 0 ]; then read word; exit 5; fi; sleep 1000"},
      std::nullopt);
  CHECK(job.line() == "ready");
  CHECK(job.line() == "ready");
  job.close_input();
  CHECK_THAT(job.errors(), Contains("exited with status 5"));
  CHECK(job.exit_status() == 5);
}

// Goal: rank 0 outlives the failures of the others. Method: it runs until its input ends, which is after they did; they
// end when told to, by when they are watched.
TEST_CASE("keep going after a failure", "[boot][rmarun]") {
  launched job({"-n", "3", "--keep-going", "sh", "-c",
                "if [ $RMA_RANK = 0 ]; then read word; echo done; exit; fi; "
                "trap 'exit 4' USR1; echo $RMA_RANK $$; while :; do sleep 0.01; done"},
               std::nullopt);
  std::vector<std::string> ready{job.line(), job.line()};
  std::sort(ready.begin(), ready.end());
  REQUIRE(ready[0].starts_with("1 "));
  REQUIRE(ready[1].starts_with("2 "));
  const pid_t exits = std::stoi(ready[0].substr(2));
  const pid_t killed = std::stoi(ready[1].substr(2));
  const process_watch one(exits);
  const process_watch other(killed);
  ::kill(exits, SIGUSR1);
  ::kill(killed, SIGKILL);
  CHECK(one.ends());
  CHECK(other.ends());
  job.close_input();
  CHECK(job.rest_of_output() == "done\n");
  const int exit_status = job.exit_status();
  CHECK((exit_status == 4 || exit_status == 137));  // whichever was first
  CHECK_THAT(job.errors(), Contains("exited with status 4") && Contains("killed by signal 9"));
}

TEST_CASE("a rank that ends without leaving has failed", "[boot][rmarun]") {
  const result seen = run({"-n", "3", "--keep-going", probe, "no-leave"});
  CHECK(seen.exit_status != 0);
  CHECK_THAT(seen.errors, Contains("rank 1 (pid ") &&
                              Contains("exited with status 0, but left the job without destroying its Runtime"));
}

TEST_CASE("an abort names the rank and its reason", "[boot][rmarun]") {
  const result seen = run({"-n", "3", probe, "abort"});
  CHECK(seen.exit_status == 42);
  CHECK(seen.errors == "rmarun: rank 1 aborted the job: the answer\n");
}

TEST_CASE("who dies is known to all others within 2 s", "[boot][rmarun]") {
  launched job({"-n", "4", "--keep-going", probe, "wait"});
  pid_t victim = 0;
  for (int i = 0; i < 4; ++i) {
    const std::string line = job.line();
    if (line.starts_with("ready 2 ")) victim = std::stoi(line.substr(8));
  }
  REQUIRE(victim > 0);
  const auto start = std::chrono::steady_clock::now();
  ::kill(victim, SIGKILL);
  std::vector<std::string> seen{job.line(), job.line(), job.line()};
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(2));
  std::sort(seen.begin(), seen.end());
  CHECK(seen == std::vector<std::string>{"rank 0 saw rank 2 die", "rank 1 saw rank 2 die", "rank 3 saw rank 2 die"});
  CHECK(job.exit_status() == 137);
}

// Goal: the dead rank is blamed, not the one that noticed first. Method: rank 0 reports rank 1, and has failed before
// the kernel reports rank 1's end.
TEST_CASE("the rank that died first is blamed", "[boot][rmarun]") {
  launched job({"-n", "2", probe, "accuse"});
  const pid_t accuser = std::stoi("0" + job.line());
  REQUIRE(accuser > 0);  // 0 is everybody of this group
  const process_watch accuser_watch(accuser);
  const pid_t accused = std::stoi("0" + job.line());
  REQUIRE(accused > 0);
  ::kill(accuser, SIGUSR1);
  CHECK(accuser_watch.ends());
  ::kill(accused, SIGKILL);
  CHECK(job.exit_status() == 137);
  CHECK_THAT(job.errors(), Contains("rank 1 (pid ") && Contains("was killed by signal 9"));
  CHECK_THAT(job.errors(), !Contains("rank 0"));
}

TEST_CASE("a time-out ends the job", "[boot][rmarun]") {
  const result seen = run({"-n", "2", "--timeout", "0.2", "sh", "-c", "exec sleep 1000"});
  CHECK(seen.exit_status == 124);
  CHECK(seen.errors ==
        "rmarun: the job did not end within 0.2 s (--timeout) and is stopped; still running: ranks 0, 1\n"
        "rmarun:   ranks 0-1: has not joined the job\n");
  CHECK(run({"-n", "2", "--timeout", "100", "true"}).exit_status == 0);
  const auto report_after = [](const std::string& timeout_s, const std::string& asked) {
    return run({"--timeout", timeout_s, "-x", asked, "sh", "-c", "echo after $RMA_STALL_REPORT_S"}).output;
  };
  CHECK(report_after("20", "A=1") == "after 15\n");
  CHECK(report_after("20", "RMA_STALL_REPORT_S=7") == "after 7\n");
  CHECK(report_after("100", "A=1") == "after\n");
  CHECK(report_after("2", "A=1") == "after\n");
  const std::string one_fails = "if [ $RMA_RANK = 0 ]; then exit 3; fi; exec sleep 1000";
  CHECK(run({"-n", "2", "--keep-going", "--timeout", "0.3", "sh", "-c", one_fails}).exit_status == 124);
}

// The probe's rank 1 stops itself before it joins, rank 0 waits for it.
TEST_CASE("a time-out says where the ranks are", "[boot][rmarun]") {
  const result seen = run({"-n", "2", "--timeout", "1", "sh", "-c",
                           "[ $RMA_RANK = 1 ] && kill -STOP $$; exec " BOOT_PROBE_PATH " exchange"});
  CHECK(seen.exit_status == 124);
  CHECK_THAT(seen.errors, Contains("rmarun:   rank 0: in the start of the job: has joined the job\n"));
  CHECK_THAT(seen.errors, Contains("rmarun:   rank 1: stopped by a signal; has not joined the job\n"));
}

TEST_CASE("the number of ranks as mpirun takes it", "[boot][rmarun]") {
  const auto ranks = [](const std::vector<std::string>& arguments) { return run(arguments).output; };
  CHECK(ranks({"-np", "3", "sh", "-c", "echo $RMA_SIZE"}) == "3\n3\n3\n");
  CHECK(ranks({"-x", "A=-np", "--tag-output", "-np", "1", "sh", "-c", "echo $A $RMA_SIZE"}) == "0| -np 1\n");
  CHECK(ranks({"-n", "1", "echo", "-np", "2"}) == "-np 2\n");
  CHECK(ranks({"-n", "1", "--", "echo", "-np"}) == "-np\n");
  CHECK(run({"-np"}).exit_status == 2);
}

TEST_CASE("standard input goes to rank 0", "[boot][rmarun]") {
  const std::string script = "printf 'rank %s got <%s>\\n' $RMA_RANK \"$(cat)\"";
  CHECK(sorted_lines(run({"-n", "3", "sh", "-c", script}, "some words").output) ==
        std::vector<std::string>{"rank 0 got <some words>", "rank 1 got <>", "rank 2 got <>"});
  const std::string stream = "test $RMA_RANK = 0 || readlink /proc/$$/fd/0";
  CHECK(run_shell("3", stream).output == "/dev/null\n/dev/null\n");
}

// Goal: lines of different ranks are never mixed. Method: many small writes, lines without an end, both streams.
TEST_CASE("tagged output keeps lines whole", "[boot][rmarun]") {
  const result seen = run({"-n", "4", "--tag-output", "sh", "-c",
                           "i=0; while [ $i -lt 200 ]; do printf a; printf \"b$RMA_RANK\\n\"; i=$((i+1)); done; "
                           "printf end; echo oops >&2"});
  CHECK(seen.exit_status == 0);
  std::vector<std::string> expected;
  std::vector<std::string> expected_errors;
  for (const char rank : {'0', '1', '2', '3'}) {
    for (int i = 0; i < 200; ++i) expected.push_back(std::string() + rank + "| ab" + rank);
    expected.push_back(std::string() + rank + "| end");
    expected_errors.push_back(std::string() + rank + "| oops");
  }
  CHECK(sorted_lines(seen.output) == expected);
  CHECK(sorted_lines(seen.errors) == expected_errors);
}

TEST_CASE("signals are passed on", "[boot][rmarun]") {
  struct expectation {
    int number;
    const char* name;
  };
  const auto each = GENERATE(values<expectation>(
      {{SIGINT, "INT"}, {SIGTERM, "TERM"}, {SIGHUP, "HUP"}, {SIGUSR1, "USR1"}, {SIGUSR2, "USR2"}, {SIGQUIT, "QUIT"}}));
  CAPTURE(each.name);
  const std::string script =
      std::string("trap 'echo got; exit 0' ") + each.name + "; echo ready; while :; do sleep 0.01; done";
  launched job({"-n", "2", "sh", "-c", script});
  CHECK(job.line() == "ready");
  CHECK(job.line() == "ready");
  job.signal(each.number);
  CHECK(job.rest_of_output() == "got\ngot\n");
  CHECK(job.exit_status() == 0);
}

TEST_CASE("a signal that ends the ranks is the exit status", "[boot][rmarun]") {
  launched job({"-n", "2", "sh", "-c", "echo ready; exec sleep 1000"});
  CHECK(job.line() == "ready");
  CHECK(job.line() == "ready");
  job.signal(SIGINT);
  CHECK(job.exit_status() == 130);
  CHECK_THAT(job.errors(), Contains("was killed by signal 2 (Interrupt)"));
}

TEST_CASE("the third interrupt kills", "[boot][rmarun]") {
  launched job({"-n", "1", "sh", "-c", "trap 'echo got' INT; echo ready; while :; do sleep 0.01; done"});
  CHECK(job.line() == "ready");
  job.signal(SIGINT);
  CHECK(job.line() == "got");
  job.signal(SIGINT);
  CHECK(job.line() == "got");
  job.signal(SIGINT);
  CHECK(job.exit_status() == 137);
}

// Goal: after the end nothing runs on, not even what went into a session of its own.
// Method: rmarun ends well, or is killed; the grandchildren are watched by pidfd.
TEST_CASE("nothing is left behind", "[boot][rmarun]") {
  const bool kill_rmarun = GENERATE(false, true);
  CAPTURE(kill_rmarun);
  launched job({"-n", "2", "sh", "-c",
                "trap 'exit 0' TERM; setsid sleep 1000 & echo $!; sleep 1000 & echo $!; echo $$; "
                "while :; do sleep 0.01; done"});
  std::vector<process_watch> polled;
  for (int i = 0; i < 6; ++i) polled.emplace_back(std::stoi("0" + job.line()));
  for (const pid_t child : children_of(job.pid())) polled.emplace_back(child);
  CHECK(polled.size() == 9);  // two ranks, counted twice, four that they started, and the guardian
  job.signal(kill_rmarun ? SIGKILL : SIGTERM);
  CHECK(job.exit_status() == (kill_rmarun ? 137 : 0));
  for (const process_watch& each : polled) CHECK(each.ends());
  CHECK(job.rest_of_output().empty());  // and nobody holds its streams
}

// Goal: an orphan that does not end although it is killed does not keep rmarun from its end, and less if the user asks.
// Method: the test traces it: it stays a zombie until the test has heard of its death, as in a debugger. There are two
// such jobs: the second is asked, and must be the first to end. Break: in clean_up, wait for each orphan, or do not
// heed signals.
TEST_CASE("an orphan that does not end", "[boot][rmarun]") {
  const std::vector<std::string> arguments{"sh", "-c", "setsid sleep 1000 & echo $!; read word; exit 5"};
  launched first(arguments, std::nullopt), second(arguments, std::nullopt);
  const std::array orphans{std::stoi("0" + first.line()), std::stoi("0" + second.line())};
  for (const pid_t orphan : orphans) {
    if (::ptrace(PTRACE_SEIZE, orphan, nullptr, nullptr) != 0)
      return rma::test::skip("processes cannot be traced here");
  }
  const process_watch of_second(orphans[1]);
  first.close_input();
  second.close_input();
  CHECK(of_second.ends());  // killed, which is done when all ranks have ended
  second.signal(SIGINT);
  CHECK(second.exit_status() == 5);
  CHECK(::waitpid(first.pid(), nullptr, WNOHANG) == 0);
  CHECK(first.exit_status() == 5);
  for (const pid_t orphan : orphans) CHECK(::waitpid(orphan, nullptr, __WALL) == orphan);
}

// Goal: ranks go round the cores. Method: one rank more than there can be cores; rmarun says how many there are.
TEST_CASE("binding to cores", "[boot][rmarun]") {
  const std::string ranks = std::to_string(std::thread::hardware_concurrency() + 1);
  const result seen = run({"-n", ranks, "--bind", "core", "grep", "Cpus_allowed_list", "/proc/self/status"});
  CHECK(seen.exit_status == 0);
  std::vector<std::string> lists = sorted_lines(seen.output);
  lists.erase(std::unique(lists.begin(), lists.end()), lists.end());
  const std::string cores = std::to_string(lists.size());
  CHECK(seen.errors == "rmarun: --bind core: " + ranks + " ranks share " + cores + " cores\n");
}

// Goal: ranks that are bound are told which cores share a socket, others nothing. Method: a machine of two sockets that
// hwloc is told of; its cores need not exist. Break: look for caches only.
TEST_CASE("ranks know the group of cores to which they are bound", "[boot][rmarun]") {
  ::setenv("HWLOC_SYNTHETIC", "pack:2 core:2 pu:1", 1);
  const std::string script = "echo $RMA_RANK $RMA_CORE_GROUP";
  CHECK(sorted_lines(run({"-n", "5", "--bind", "core", "sh", "-c", script}).output) ==
        std::vector<std::string>{"0 1", "1 1", "2 2", "3 2", "4 1"});
  CHECK(sorted_lines(run_shell("2", script).output) == std::vector<std::string>{"0 0", "1 0"});
  ::unsetenv("HWLOC_SYNTHETIC");
}
