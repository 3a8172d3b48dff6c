// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of measured costs (RMA_TUNING), which rma-tune writes and a Runtime reads: one section for each fabric,
/// device and machine, and one for the memory of each machine. In a header alone, since the tool is linked with the
/// public library.
///
///   [tcp||AMD EPYC 7763 64-Core Processor x 2]
///   write_ns = 21000
///   ...
#pragma once

#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "fabric/fabric.hpp"
#include "fabric/memory_costs.hpp"

namespace rma::fabric {

/// The processors of this machine, in words.
inline std::string machine_name() {
  std::ifstream file("/proc/cpuinfo");
  std::string line, name = "unknown";
  while (std::getline(file, line)) {
    if (!line.starts_with("model name")) continue;
    if (const auto colon = line.find(": "); colon != std::string::npos) name = line.substr(colon + 2);
    break;
  }
  return name + " x " + std::to_string(::sysconf(_SC_NPROCESSORS_ONLN));
}

/// The name of memory in place of a fabric's.
inline constexpr std::string_view memory_name = "memory";

/// The first line of the section.
inline std::string section_of(std::string_view fabric, std::string_view device) {
  return "[" + std::string(fabric) + "|" + std::string(device) + "|" + machine_name() + "]";
}

namespace tuning {

template <class Costs>
struct figure {
  std::string_view name;
  std::int64_t Costs::*whole = nullptr;
  double Costs::*part = nullptr;
};

template <class Costs>
inline constexpr std::array<figure<Costs>, 6> figures;
template <>
inline constexpr std::array<figure<transfer_costs>, 6> figures<transfer_costs> = {{
    {"write_ns", &transfer_costs::write_ns, nullptr},
    {"piece_ns", &transfer_costs::piece_ns, nullptr},
    {"byte_ns", nullptr, &transfer_costs::byte_ns},
    {"message_ns", &transfer_costs::message_ns, nullptr},
    {"message_byte_ns", nullptr, &transfer_costs::message_byte_ns},
    {"list_entry_ns", &transfer_costs::list_entry_ns, nullptr},
}};
template <>
inline constexpr std::array<figure<memory_costs>, 6> figures<memory_costs> = {{
    {"latency_ns", nullptr, &memory_costs::latency_ns},
    {"message_ns", nullptr, &memory_costs::message_ns},
    {"byte_ns", nullptr, &memory_costs::byte_ns},
    {"rendezvous_ns", nullptr, &memory_costs::rendezvous_ns},
    {"long_byte_ns", nullptr, &memory_costs::long_byte_ns},
    {"combined_byte_ns", nullptr, &memory_costs::combined_byte_ns},
}};

}  // namespace tuning

/// The costs that the text says in that section; nothing if it is not there, or is not whole.
template <class Costs = transfer_costs>
std::optional<Costs> find_costs(const std::string& text, const std::string& section) {
  constexpr auto& figures = tuning::figures<Costs>;
  std::istringstream lines(text);
  std::string line;
  Costs costs;
  unsigned found = 0;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) inside = line == section;
    const auto equals = line.find(" = ");
    if (!inside || equals == std::string::npos) continue;
    for (std::size_t i = 0; i < figures.size(); ++i) {
      const auto& each = figures[i];
      if (line.substr(0, equals) != each.name) continue;
      const std::string value = line.substr(equals + 3);
      char* end = nullptr;
      const double number = std::strtod(value.c_str(), &end);
      if (end == value.c_str() || *end != '\0' || !std::isfinite(number) || number < 0 || number > 1e12) return {};
      if (each.whole != nullptr) costs.*each.whole = static_cast<std::int64_t>(number);
      if (each.part != nullptr) costs.*each.part = number;
      found |= 1U << i;
    }
  }
  if (found != (1U << figures.size()) - 1) return {};
  return costs;
}

/// The section of a fabric in what rank 0 publishes for all ranks: costs that must be alike on all of them.
inline std::string section_for_all(std::string_view fabric) { return "[" + std::string(fabric) + "]"; }

/// The text with that section in the place of an older one.
template <class Costs = transfer_costs>
std::string with_costs(const std::string& text, const std::string& section, const Costs& costs) {
  std::istringstream lines(text);
  std::string line, made;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) inside = line == section;
    if (!inside) made += line + "\n";
  }
  made += section + "\n";
  for (const auto& each : tuning::figures<Costs>) {
    std::ostringstream value;
    each.whole != nullptr ? value << costs.*each.whole : value << costs.*each.part;
    made += std::string(each.name) + " = " + value.str() + "\n";
  }
  return made;
}

/// The file's costs of this machine's networks, in sections for all ranks.
inline std::string costs_for_all(const std::string& file_text, std::string_view device) {
  std::string made;
  for (const std::string_view fabric : {"verbs", "ucx", "tcp"}) {
    if (const auto costs = find_costs(file_text, section_of(fabric, device)))
      made = with_costs(made, section_for_all(fabric), *costs);
  }
  return made;
}

/// The file's text; nothing if it cannot be read.
inline std::optional<std::string> tuning_text(const std::string& path) {
  std::ifstream file(path);
  if (!file) return {};
  return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace rma::fabric
