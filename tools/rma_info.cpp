// SPDX-License-Identifier: Apache-2.0
/// \file
/// rma-info: what this library is, what it can do here, and every setting with its value and where that came from.
#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>
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

void add_settings(std::string& to, const rma::Runtime& rt, bool all) {
  add(to, "\nsettings (environment, or rma::Config::settings)\n");
  for (const rma::Setting& s : rt.settings()) {
    if (s.internal && !all) continue;
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

std::string as_text(const rma::Runtime& rt, int on_node, bool all) {
  std::string text;
  add(text, "rma {}\nranks {}, on this node {}\n\nfabrics\n", rma::version(), rt.size(), on_node);
  for (const std::string& f : rt.fabrics()) add(text, "  {}\n", f);
  add(text, "\nprotocols\n");
  for (const std::string& p : rma::protocols()) add(text, "  {}\n", p);
  add(text, "\nwaits\n  {}\n", rt.waits());
  add_routes(text, rt);
  add_settings(text, rt, all);
  if (!all) add(text, "  (rma-info --all also lists what only launchers and tests set)\n");
  return text;
}

std::string as_json(const rma::Runtime& rt, int on_node) {
  nlohmann::ordered_json all;
  all["version"] = rma::version();
  all["ranks"] = rt.size();
  all["ranks_on_this_node"] = on_node;
  all["fabrics"] = rt.fabrics();
  all["protocols"] = rma::protocols();
  all["waits"] = rt.waits();
  for (int rank = 1; rank < rt.size(); ++rank) all["routes_from_rank_0"][std::to_string(rank)] = rt.route(rank);
  for (const rma::Setting& s : rt.settings())
    all["settings"][std::string(s.name)] = {
        {"value", s.value}, {"origin", s.origin}, {"values", s.choices}, {"summary", s.summary}};
  return all.dump(2) + "\n";
}

/// Text as troff wants it: a backslash starts a request, and so does a point or an apostrophe in front of a line. Lists
/// of values have no blanks to break at.
std::string troff(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    if (c == '\\')
      safe += "\\e";
    else if (c == '-')
      safe += "\\-";
    else if (c == '|')
      safe += "|\\:";  // a line may break behind it
    else
      safe += c;
  }
  return safe.starts_with('.') || safe.starts_with('\'') ? "\\&" + safe : safe;
}

/// The page rma-settings(7).
std::string as_man_page(const rma::Runtime& rt) {
  std::string text;
  add(text, ".TH RMA\\-SETTINGS 7 \"\" \"rma {}\" \"rma\"\n.ad l\n", rma::version());
  add(text, ".SH NAME\nrma\\-settings \\- environment variables of programs that use rma\n");
  add(text,
      ".SH DESCRIPTION\nEach is an environment variable of a rank, or an entry of rma::Config::settings, which "
      "comes first.\n.BR rma\\-info (1)\nprints the values that a program would see, and where they come "
      "from.\n.SH SETTINGS\n");
  for (const rma::Setting& s : rt.settings())
    add(text, ".TP\n.B {}\n{}.\n.br\nValues: {}.\n", troff(s.name), troff(s.summary), troff(s.choices));
  add(text, ".SH SEE ALSO\n.BR rma\\-info (1),\n.BR rmarun (1),\n.BR rma\\-sim (1),\n.BR rma\\-tune (1)\n");
  return text;
}

enum class format : std::uint8_t { text, all, json, man };

int inform(format how) {
  rma::Runtime rt;
  int exit_status = 0;
  const int on_node = rt.world().node().size();  // by all ranks
  if (rt.rank() == 0) {
    exit_status = print(how == format::json  ? as_json(rt, on_node)
                        : how == format::man ? as_man_page(rt)
                                             : as_text(rt, on_node, how == format::all));
  }
  rt.world().barrier();
  return exit_status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    CLI::App app("Prints the library's version, its fabrics with their capabilities, and all settings.");
    app.set_version_flag("--version", std::string(rma::version()));
    format how = format::text;
    app.add_flag_callback(
        "--all", [&how] { how = format::all; }, "Also list the settings of launchers and tests");
    app.add_flag_callback(
        "--json", [&how] { how = format::json; }, "Print it as JSON");
    app.add_flag_callback(
           "--man", [&how] { how = format::man; }, "Print the manual page rma-settings(7)")
        ->excludes("--json");
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
    return inform(how);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rma-info: %s\n", e.what());
    return exit_mistake;
  }
}
