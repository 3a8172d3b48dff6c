// SPDX-License-Identifier: Apache-2.0
/// \file
/// The command line that the larger examples share: options that every rank reads and one rank talks about.
#pragma once

#include <cstdio>
#include <exception>
#include <optional>
#include <rma/rma.hpp>
#include <string>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace example {

inline constexpr int exit_usage = 2;

/// Rank 0 says it; all leave together, so that nobody's exit ends the job before it was said.
inline int reject(rma::Runtime& rt, const std::string& program, const std::string& why) {
  if (rt.rank() == 0) fmt::print(stderr, "{}: {} (--help lists the options)\n", program, why);
  rt.world().barrier();
  return exit_usage;
}

/// Reads the options. A value is the exit status to leave with: help was printed, or a mistake explained.
inline std::optional<int> parse(CLI::App& app, rma::Runtime& rt, int argc, char** argv) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::CallForHelp&) {
    if (rt.rank() == 0) fmt::print("{}", app.help());
    std::fflush(stdout);
    rt.world().barrier();
    return 0;
  } catch (const CLI::ParseError& mistake) {
    return reject(rt, app.get_name(), mistake.what());
  }
}

/// `main` of a program that may throw: a runtime that cannot start, a window for which there is no memory.
template <class Body>
int run(const char* program, Body&& body) {
  try {
    return body();
  } catch (const std::exception& failure) {
    fmt::print(stderr, "{}: {}\n", program, failure.what());
    return 1;
  }
}

}  // namespace example
