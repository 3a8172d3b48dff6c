// SPDX-License-Identifier: Apache-2.0
#include "rma/protocols.hpp"

#include <fmt/format.h>

#include "xfer/protocol/protocol.hpp"

namespace rma {

std::vector<std::string> protocols() {
  std::vector<std::string> lines;
  for (const detail::protocol* const each : detail::protocols()) {
    const bool scheme = each->scheme != layout_scheme::automatic;
    lines.push_back(fmt::format("{}: {}{}", each->name, scheme ? "layouts between nodes (RMA_LAYOUT)" : "operations",
                                each->needs_target ? ", the target's processor takes part" : ""));
  }
  return lines;
}

}  // namespace rma
