// SPDX-License-Identifier: Apache-2.0
/// \file
/// Command lines of tools that start a program: options of the tool, then the program with its own.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

namespace rma::tools {

/// Parses the tool's options. Returns an exit status if the tool must leave with it: help was printed, or `say` has
/// reported an error, for which it is `exit_usage`.
template <class Say>
std::optional<int> parse(CLI::App& app, int argc, char** argv, const Say& say, int exit_usage) {
  try {
    app.parse(argc, argv);
    return std::nullopt;
  } catch (const CLI::Success& shown) {
    return app.exit(shown);
  } catch (const CLI::ParseError& error) {
    say(error.what());
    return exit_usage;
  }
}

/// Removes a leading "--" of the program's command. True if there was one.
inline bool take_separator(std::vector<std::string>& command) {
  if (command.empty() || command.front() != "--") return false;
  command.erase(command.begin());
  return true;
}

}  // namespace rma::tools
