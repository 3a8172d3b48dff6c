// SPDX-License-Identifier: Apache-2.0
// What rmarun finds when it starts, and what is done to it and its ranks from outside.
#include <sys/wait.h>

#include <catch2/catch.hpp>
#include <csignal>
#include <string>
#include <vector>

#include "launched.hpp"

using namespace rma::boot;
using namespace rma::boot::test;

namespace {

const std::string rmarun = RMARUN_PATH;

/// rmarun in the place of a shell that has run `before`.
std::vector<std::string> shell_that(const std::string& before, const std::string& arguments) {
  return {"-c", before + "\nexec " + rmarun + " " + arguments};
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
