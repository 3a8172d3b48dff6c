// SPDX-License-Identifier: Apache-2.0
/// \file
/// rma-info: what this library is, what it can do here, and every setting with its value and where that came from.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>

#include "rma/protocols.hpp"
#include "rma/rma.hpp"

namespace {

constexpr int routes_max = 64;
constexpr int exit_not_written = 1;
constexpr int exit_mistake = 2;

template <class... Args>
void add(std::string& to, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(to), format, std::forward<Args>(args)...);
}

void add_routes(std::string& to, const rma::Runtime& rt) {
  if (rt.size() == 1) return;
  add(to, "\nfrom rank 0\n");
  for (int rank = 1; rank < std::min(rt.size(), routes_max); ++rank)
    add(to, "  to rank {}: {}\n", rank, rt.route(rank));
  if (rt.size() > routes_max) add(to, "  and so on\n");
}

void add_settings(std::string& to, const rma::Runtime& rt) {
  add(to, "\nsettings (environment, or rma::Config::settings)\n");
  for (const rma::Setting& s : rt.settings()) {
    add(to, "  {:<22} = {:<10} [{}]\n  {:<22}   {}\n  {:<22}   values: {}\n", s.name,
        s.value.empty() ? "(empty)" : s.value, s.origin, "", s.summary, "", s.choices);
  }
}

/// Exit status.
int print(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0) return 0;
  std::fprintf(stderr, "rma-info: cannot write: %s\n", std::strerror(errno));
  return exit_not_written;
}

int inform() {
  rma::Runtime rt;
  int exit_status = 0;
  const int on_node = rt.world().node().size();  // by all ranks
  if (rt.rank() == 0) {
    std::string text;
    add(text, "rma {}\nranks {}, on this node {}\n\nfabrics\n", rma::version(), rt.size(), on_node);
    for (const std::string& f : rt.fabrics()) add(text, "  {}\n", f);
    add(text, "\nprotocols\n");
    for (const std::string& p : rma::protocols()) add(text, "  {}\n", p);
    add(text, "\nwaits\n  {}\n", rt.waits());
    add_routes(text, rt);
    add_settings(text, rt);
    exit_status = print(text);
  }
  rt.world().barrier();
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Prints the library's version, its fabrics with their capabilities, and all settings.");
    app.set_version_flag("--version", std::string(rma::version()));
    try {
      app.parse(argc, argv);
    } catch (const CLI::Success& asked) {
      std::ostringstream text;
      app.exit(asked, text, text);
      return print(text.str());
    } catch (const CLI::ParseError& mistake) {
      std::fprintf(stderr, "rma-info: %s\n", mistake.what());
      return exit_mistake;
    }
    return inform();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rma-info: %s\n", e.what());
    return exit_mistake;
  }
}
