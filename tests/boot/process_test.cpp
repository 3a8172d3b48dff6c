// SPDX-License-Identifier: Apache-2.0
// A Runtime in a process that is not as it should be, and how it ends one.
#include <unistd.h>

#include <catch2/catch.hpp>

#include <string>
#include <vector>

#include "boot/digest.hpp"
#include "launched.hpp"
#include "sanitizers.hpp"
#include "skip.hpp"

using namespace rma::boot;
using namespace rma::boot::test;
using Catch::Contains;

namespace {

const std::string program = PROCESS_PROGRAM_PATH;
const std::string probe = BOOT_PROBE_PATH;

struct result {
  int exit_status;
  std::string output;
  std::string errors;
};

result run_shell(const std::string& script) {
  launched job({"-c", script}, "", "/bin/sh");
  result seen;
  seen.output = job.rest_of_output();
  seen.errors = job.errors();
  seen.exit_status = job.exit_status();
  return seen;
}

/// Two ranks started by hand. Their exit statuses are the last line of output.
std::string by_hand(const std::string& zero, const std::string& one) {
  boot_address where = parse_address("tcp://127.0.0.1:0");
  listen_at(where).reset();  // a port that was free a moment ago
  return "export RMA_BOOT=" + to_text(where) + " RMA_SIZE=2 RMA_BOOT_TIMEOUT_MS=10000 RMA_KEY=" + random_hex(32) +
         "; RMA_RANK=1 " + one + " & RMA_RANK=0 " + zero + "; zero=$?; wait $!; echo $zero $?";
}

std::string by_hand(const std::string& command) { return by_hand(command, command); }

}  // namespace

// Goal: an aborted job is no success, whatever its code, and its reason is said once.
// Break: end the process with the code as it is, of which the system keeps eight bits.
TEST_CASE("an abort's exit status", "[boot][abort]") {
  struct expectation {
    const char* code;
    int exit_status;
  };
  const auto each = GENERATE(values<expectation>({{"256", 1}, {"0", 1}, {"7", 7}, {"-1", 255}, {"263", 7}}));
  CAPTURE(each.code);
  const std::string command = program + " abort " + each.code;
  const result alone = run_shell("RMA_BOOT=alone exec " + command);
  CHECK(alone.exit_status == each.exit_status);
  CHECK(alone.errors == "rma: rank 0 aborted the job: because\n");
  const result launched_one = run_shell("exec " RMARUN_PATH " -n 1 " + command);
  CHECK(launched_one.exit_status == each.exit_status);
  CHECK(launched_one.errors == "rmarun: rank 0 aborted the job: because\n");
  const result two = run_shell(by_hand(command));
  CHECK(two.output.starts_with(std::to_string(each.exit_status) + " "));
  CHECK_THAT(two.errors, Contains("rma: rank 0 aborted the job: because\n"));
}

// Goal: a program without standard streams prints to nobody, and not into the library's sockets.
// Break: do not fill them before the job is joined.
TEST_CASE("ranks with closed standard streams", "[boot][tcp]") {
  const std::string closed = GENERATE("<&- >&- 2>&-", ">&-", "2>&-");
  CAPTURE(closed);
  const result seen = run_shell(by_hand(program + " print " + closed));
  CAPTURE(seen.errors);
  CHECK(seen.output.ends_with("0 0\n"));
}

// Goal: a limit of file sizes, which holds for memory without a name, too, is named. Break: let the signal come.
TEST_CASE("a limit of file sizes", "[boot][rmarun]") {
  const result seen = run_shell("ulimit -f 100; exec " RMARUN_PATH " -n 2 " + program);
  CHECK(seen.exit_status == 9);
  CHECK_THAT(seen.errors, Contains("ulimit -f"));
}

// Goal: a forked child that comes back from main is not taken for the rank, which goes on.
// Break: destroy the child's Runtime as if it were the rank's.
TEST_CASE("a forked child comes back from main", "[boot][rmarun]") {
  const std::string ranks = GENERATE("1", "3");
  const std::string settings = GENERATE("", "RMA_PROGRESS_THREAD=1 ", "RMA_FABRIC=tcp ");
  const std::string leaks = "ASAN_OPTIONS=detect_leaks=0 ";  // the child leaves everything as it is
  const result seen =
      run_shell(leaks + settings + "exec " RMARUN_PATH " --timeout 20 -n " + ranks + " " + program + " fork");
  CAPTURE(ranks, settings);
  CHECK(seen.errors.empty());
  CHECK(seen.exit_status == 0);
}

// Goal: who hears in the middle of its start that the job is over says who, or what, has ended it.
// Method: the other one joins, and ends without leaving. Break: name the status alone.
TEST_CASE("a rank ends while the job starts", "[boot][tcp]") {
  const std::string one_ends = "'[ $RMA_RANK = 0 ] || exec " + probe + " join; exec " + program + "'";
  const result dead = run_shell("exec " RMARUN_PATH " -n 2 --keep-going sh -c " + one_ends);
  CHECK_THAT(dead.errors, Contains("rank 1 ended while the job started (peer_failed); see what it has said\n"));
  const result lost = run_shell(by_hand(probe + " join", program));
  CHECK_THAT(lost.errors, Contains("the job's server, in the process of rank 0, ended while the job started "
                                   "(fabric_lost); see what it has said\n"));
}

// Goal: what is missing is named. Method: threads with stacks of a size that the process may not map.
// Break: let the exception of std::thread out.
TEST_CASE("no thread for the server", "[boot][rmarun]") {
  if (rma::test::address_sanitizer || rma::test::thread_sanitizer) {
    return rma::test::skip("sanitizers map more than a limit would allow");
  }
  const std::string limits = "ulimit -s 1000000000 && ulimit -v 4000000 || exit 77; ";
  const result seen = run_shell(limits + "exec " RMARUN_PATH " true");
  if (seen.exit_status == 77) return rma::test::skip("these limits cannot be set here");
  CHECK(seen.exit_status == 1);
  CHECK(seen.errors ==
        "rmarun: cannot start a thread for the job's server: Resource temporarily unavailable; threads are "
        "limited by ulimit -u and a control group's pids.max, their memory by ulimit -v\n");
}

// Goal: as above, for the ranks. Method: limits that leave room for some of them. Break: no limit_behind in
// tools/rmarun_job.cpp.
TEST_CASE("no descriptors for all ranks", "[boot][rmarun]") {
  if (rma::test::address_sanitizer || rma::test::thread_sanitizer) {
    return rma::test::skip("sanitizers need descriptors of their own");
  }
  const result seen = run_shell("ulimit -n 12; exec " RMARUN_PATH " -n 16 true");
  CHECK(seen.exit_status == 126);
  CHECK(seen.errors ==
        "rmarun: cannot start 'true': Too many open files; this process may have 12 open: ulimit -n raises that\n");
}

TEST_CASE("no processes for all ranks", "[boot][rmarun]") {
  if (::geteuid() == 0) return rma::test::skip("the number of root's processes has no limit");
  const result seen = run_shell("exec prlimit --nproc=1 " RMARUN_PATH " -n 2 true");
  CHECK(seen.exit_status != 0);
  CHECK_THAT(seen.errors, Contains("limited by ulimit -u"));
}
