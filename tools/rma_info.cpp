// SPDX-License-Identifier: Apache-2.0
/// \file
/// rma-info: what this library is, what it can do here, and every setting with its value and where that came from.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>

#include "rma/rma.hpp"

namespace {

constexpr int routes_max = 64;

void print_routes(const rma::Runtime& rt) {
  if (rt.size() == 1) return;
  fmt::print("\nfrom rank 0\n");
  for (int rank = 1; rank < std::min(rt.size(), routes_max); ++rank)
    fmt::print("  to rank {}: {}\n", rank, rt.route(rank));
  if (rt.size() > routes_max) fmt::print("  and so on\n");
}

void print_settings(const rma::Runtime& rt) {
  fmt::print("\nsettings (environment, or rma::Config::settings)\n");
  for (const rma::Setting& s : rt.settings()) {
    fmt::print("  {:<22} = {:<10} [{}]\n  {:<22}   {}\n  {:<22}   values: {}\n", s.name,
               s.value.empty() ? "(empty)" : s.value, s.origin, "", s.summary, "", s.choices);
  }
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Prints the library's version, its fabrics with their capabilities, and all settings.");
  app.set_version_flag("--version", std::string(rma::version()));
  CLI11_PARSE(app, argc, argv);
  try {
    rma::Runtime rt;
    const int on_node = rt.world().node().size();  // by all ranks
    if (rt.rank() == 0) {
      fmt::print("rma {}\nranks {}, on this node {}\n\nfabrics\n", rma::version(), rt.size(), on_node);
      for (const std::string& f : rt.fabrics()) fmt::print("  {}\n", f);
      fmt::print("\nwaits\n  {}\n", rt.waits());
      print_routes(rt);
      print_settings(rt);
    }
    rt.world().barrier();
  } catch (const rma::Error& e) {
    fmt::print(stderr, "rma-info: {}\n", e.what());
    return 2;
  }
  return 0;
}
