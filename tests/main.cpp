// SPDX-License-Identifier: Apache-2.0
/// \file
/// The main function of every test program: Catch2's, plus skipped test cases, which Catch2 2 does not know.
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>

#include <cstdio>
#include <string>
#include <string_view>

#include "skip.hpp"

namespace {

constexpr int exit_skipped = 77;

struct counts {
  int cases = 0;
  int skipped = 0;
  std::string current;
  bool current_skipped = false;
};

counts& the_counts() {
  static counts value;
  return value;
}

/// Counts test cases as they start and end.
struct case_listener : Catch::TestEventListenerBase {
  using TestEventListenerBase::TestEventListenerBase;

  void testCaseStarting(const Catch::TestCaseInfo& info) override {
    the_counts().current = info.name;
    the_counts().current_skipped = false;
  }
  void testCaseEnded(const Catch::TestCaseStats&) override {
    the_counts().cases += 1;
    the_counts().skipped += the_counts().current_skipped ? 1 : 0;
  }
};

CATCH_REGISTER_LISTENER(case_listener)

}  // namespace

void rma::test::skip(std::string_view why) {
  the_counts().current_skipped = true;
  std::printf("[skip] %s: %.*s\n", the_counts().current.c_str(), static_cast<int>(why.size()), why.data());
  std::fflush(stdout);
}

int main(int argc, char** argv) {
  const int failed = Catch::Session().run(argc, argv);
  if (failed != 0) return 1;  // Catch2 returns a count, which could be 77
  const counts& seen = the_counts();
  if (seen.skipped > 0) std::printf("%d of %d test cases skipped\n", seen.skipped, seen.cases);
  return seen.skipped > 0 && seen.skipped == seen.cases ? exit_skipped : 0;
}
