// SPDX-License-Identifier: Apache-2.0
/// \file
/// The file of measured costs (RMA_TUNING), which rma-tune writes and a Runtime reads: one section for each fabric,
/// device and machine. In a header alone, since the tool is linked with the public library.
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
#include <optional>
#include <sstream>
#include <string>
#include <string_view>

#include "fabric/fabric.hpp"

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

/// The first line of the section.
inline std::string section_of(std::string_view fabric, std::string_view device) {
  return "[" + std::string(fabric) + "|" + std::string(device) + "|" + machine_name() + "]";
}

namespace tuning {

struct figure {
  std::string_view name;
  std::int64_t transfer_costs::*whole = nullptr;
  double transfer_costs::*part = nullptr;
};

inline constexpr std::array<figure, 6> figures = {{
    {"write_ns", &transfer_costs::write_ns, nullptr},
    {"piece_ns", &transfer_costs::piece_ns, nullptr},
    {"byte_ns", nullptr, &transfer_costs::byte_ns},
    {"message_ns", &transfer_costs::message_ns, nullptr},
    {"message_byte_ns", nullptr, &transfer_costs::message_byte_ns},
    {"list_entry_ns", &transfer_costs::list_entry_ns, nullptr},
}};

}  // namespace tuning

/// The costs that the text says in that section; nothing if it is not there, or is not whole.
inline std::optional<transfer_costs> find_costs(const std::string& text, const std::string& section) {
  std::istringstream lines(text);
  std::string line;
  transfer_costs costs;
  unsigned found = 0;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) inside = line == section;
    const auto equals = line.find(" = ");
    if (!inside || equals == std::string::npos) continue;
    for (std::size_t i = 0; i < tuning::figures.size(); ++i) {
      const tuning::figure& each = tuning::figures[i];
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
  if (found != (1U << tuning::figures.size()) - 1) return {};
  return costs;
}

/// The text with that section in the place of an older one.
inline std::string with_costs(const std::string& text, const std::string& section, const transfer_costs& costs) {
  std::istringstream lines(text);
  std::string line, made;
  bool inside = false;
  while (std::getline(lines, line)) {
    if (line.starts_with('[')) inside = line == section;
    if (!inside) made += line + "\n";
  }
  made += section + "\n";
  for (const tuning::figure& each : tuning::figures) {
    std::ostringstream value;
    each.whole != nullptr ? value << costs.*each.whole : value << costs.*each.part;
    made += std::string(each.name) + " = " + value.str() + "\n";
  }
  return made;
}

}  // namespace rma::fabric
