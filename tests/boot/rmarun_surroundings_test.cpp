// SPDX-License-Identifier: Apache-2.0
// The process state that rmarun finds when it starts, and what is done to it and its ranks from outside.
#include <sched.h>
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "launched.hpp"
#include "skip.hpp"

using namespace rma::boot;
using namespace rma::boot::test;

namespace {

const std::string rmarun = RMARUN_PATH;

/// rmarun in the place of a shell that has run `before`.
std::vector<std::string> shell_that(const std::string& before, const std::string& arguments) {
  return {"-c", before + "\nexec " + rmarun + " " + arguments};
}

/// The letter that ps shows.
char state_of(pid_t pid) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/stat");
  std::string text;
  std::getline(file, text);
  const auto at = text.rfind(')');
  return at == std::string::npos || at + 2 >= text.size() ? '?' : text[at + 2];
}

bool becomes(pid_t pid, char state) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(patience_ms);
  while (state_of(pid) != state) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

/// The main thread of a process goes on before its others, which get the time that it leaves of one core.
void put_main_thread_first(pid_t pid) {
  cpu_set_t all;
  CPU_ZERO(&all);
  REQUIRE(::sched_getaffinity(0, sizeof all, &all) == 0);
  int core = 0;
  while (!CPU_ISSET(core, &all)) ++core;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  for (const auto& task : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    const pid_t thread = std::stoi(task.path().filename());
    REQUIRE(::sched_setaffinity(thread, sizeof one, &one) == 0);
    const sched_param none{};
    if (thread != pid) REQUIRE(::sched_setscheduler(thread, SCHED_IDLE, &none) == 0);
  }
}

}  // namespace

// Goal: what a shell had started before it became rmarun goes on, as with any other program.
// Method: a child that waits for the end of its input, which is when the job is over. Break: at the end, kill all
// children.
TEST_CASE("rmarun in the place of a shell", "[boot][rmarun]") {
  launched job(shell_that("exec 3<&0; { read word; echo kept; } <&3 &", "-n 2 sh -c 'sleep 1000 & echo begun'"),
               std::nullopt, "/bin/sh");
  CHECK(job.line() == "begun");
  CHECK(job.line() == "begun");
  CHECK(job.exit_status() == 0);
  job.close_input();
  CHECK(job.rest_of_output() == "kept\n");
}

// Goal: a stopped rank ends as another one does when it is told to. Break: send no CONT behind the signal.
TEST_CASE("a stopped rank is ended", "[boot][rmarun]") {
  const int number = GENERATE(SIGINT, SIGTERM, SIGHUP, SIGQUIT);
  CAPTURE(number);
  launched job({"-n", "2", "sh", "-c", "ulimit -c 0; echo $$; exec sleep 1000"});
  const std::vector<pid_t> ranks{std::stoi("0" + job.line()), std::stoi("0" + job.line())};
  for (const pid_t rank : ranks) {
    REQUIRE(::kill(rank, SIGSTOP) == 0);
    REQUIRE(becomes(rank, 'T'));
  }
  job.signal(number);
  CHECK(job.exit_status() == 128 + number);
}

// Goal: a signal that rmarun was told to ignore does nothing to it or to the job (nohup, commands in the background).
// Method: three INTs, each taken in before the next: USR1 behind it is answered. Break: count it nevertheless.
TEST_CASE("signals that are ignored", "[boot][rmarun]") {
  const std::string rank = "'trap \"echo signal\" USR1; echo ready; until read word; do :; done; echo $word'";
  launched job(shell_that("trap '' INT HUP", "sh -c " + rank), std::nullopt, "/bin/sh");
  CHECK(job.line() == "ready");
  for (int i = 0; i < 3; ++i) {
    job.signal(SIGINT);
    job.signal(SIGHUP);
    job.signal(SIGUSR1);
    REQUIRE(job.line() == "signal");
  }
  job.type("survived\n");
  job.close_input();
  CHECK(job.line() == "survived");
  CHECK(job.exit_status() == 0);
}

// Goal: ranks that leave while rmarun is stopped have left. Method: they wait for its word, which does not come, and
// end; when it goes on it hears of their ends and of their farewells at once. Break: judge a rank by what the server
// has read so far.
TEST_CASE("ranks that leave while rmarun is stopped", "[boot][rmarun]") {
  constexpr int ranks = 4;
  launched job({"-n", std::to_string(ranks), BOOT_PROBE_PATH, "leave-later"});
  std::vector<pid_t> pids;
  std::vector<process_watch> polled;
  for (int i = 0; i < ranks; ++i) {
    pids.push_back(std::stoi("0" + job.line()));
    polled.emplace_back(pids.back());
  }
  job.signal(SIGSTOP);
  int status = 0;
  REQUIRE(::waitpid(job.pid(), &status, WUNTRACED) == job.pid());
  for (const pid_t pid : pids) ::kill(pid, SIGUSR1);
  for (const process_watch& each : polled) CHECK(each.ends());
  put_main_thread_first(job.pid());
  job.signal(SIGCONT);
  CHECK(job.errors().empty());
  CHECK(job.exit_status() == 0);
}

// Goal: a debugger is put before the program of the ranks it is for. Break: leave asked_.debugger out of command_of.
TEST_CASE("ranks under a debugger", "[boot][rmarun]") {
  launched all({"-n", "2", "--debugger", "env SHOWN=yes", "sh", "-c", "echo $SHOWN"});
  CHECK(all.line() == "yes");
  CHECK(all.line() == "yes");
  CHECK(all.exit_status() == 0);
}

// Goal: gdb has the terminal's input, and one rank. Break: leave take_terminal out, or give all ranks to gdb.
TEST_CASE("one rank under gdb", "[boot][rmarun]") {
  if (::access("/usr/bin/gdb", X_OK) != 0) return rma::test::skip("gdb is not installed");
  launched one({"-n", "2", "--gdb", "1", "sh", "-c", "echo rank $RMA_RANK"}, "run\nquit\n");
  CHECK(one.exit_status() == 0);
  const std::string said = one.rest_of_output();
  CHECK(said.find("rank 0\n") != std::string::npos);
  CHECK(said.find("rank 1\n") != std::string::npos);
  CHECK(said.find("exited normally") != std::string::npos);
}

// Goal: what cannot be done together is refused in one line. Break: leave a line of `contradiction` out.
TEST_CASE("hosts and debuggers that make no sense", "[boot][rmarun]") {
  const std::vector<std::vector<std::string>> mistakes = {
      {"-n", "2", "--hosts", "a,,b", "true"},
      {"-n", "1", "--hosts", "a,b", "true"},
      {"-n", "5", "--hosts", "a:2,b:2", "true"},
      {"-n", "2", "--hosts", "a:x", "true"},
      {"-n", "2", "--hosts", "-oProxyCommand=x", "true"},
      {"-n", "2", "--hostfile", "/no/such/file", "true"},
      {"-n", "2", "--hosts", "a", "--nodes", "2", "true"},
      {"-n", "2", "--gdb", "2", "true"},
      {"-n", "2", "--gdb", "0", "--valgrind", "true"},
  };
  for (const std::vector<std::string>& each : mistakes) {
    CAPTURE(each);
    launched job(each);
    CHECK(job.exit_status() == 2);
  }
}
