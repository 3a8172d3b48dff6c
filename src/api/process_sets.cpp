// SPDX-License-Identifier: Apache-2.0
/// \file
/// Process sets: the library's own, those of RMA_PROCESS_SETS, those of the launcher; of equal names the first counts.
/// Their teams are made where teams are (team.cpp).
#include "boot/process_sets.hpp"
#include "core/names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "rma/runtime.hpp"
#include "runtime/team_core.hpp"

namespace rma {
namespace {

constexpr std::string_view world_set = "rma://world";
constexpr std::string_view node_set = "rma://node";
constexpr std::string_view self_set = "rma://self";

std::vector<boot::process_set> sets_of_setting(const detail::runtime_core& core) {
  return boot::parse_process_sets(core.config.text(detail::knob::process_sets), core.ctx->size());
}

std::vector<int> own_node(const detail::team_core& world) {
  std::vector<int> ranks;
  for (int r = world.first; r < world.first + world.mapped; ++r) {
    if (world.node_index(r) >= 0) ranks.push_back(r);
  }
  return ranks;
}

}  // namespace

std::vector<std::string> Runtime::process_sets() const {
  std::vector<std::string> names{std::string(world_set), std::string(node_set), std::string(self_set)};
  const auto add = [&names](const std::string& name) {
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  };
  for (const boot::process_set& each : sets_of_setting(*core_)) add(each.name);
  for (const std::string& name : core_->boot->process_sets()) add(name);
  return names;
}

std::vector<int> Runtime::ranks_of(std::string_view set, std::source_location where) const {
  if (set == self_set) return {rank()};
  if (set == node_set) return own_node(*world_);
  if (set == world_set) {
    std::vector<int> ranks(static_cast<std::size_t>(size()));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
  }
  for (boot::process_set& each : sets_of_setting(*core_)) {
    if (each.name == set) return std::move(each.ranks);
  }
  std::vector<int> ranks = core_->boot->members_of(std::string(set));
  if (ranks.empty()) {
    const char* const outer = core_->ctx->call();  // null: this one
    throw Error(
        status::bad_argument, fmt::format("[rank {}] {}", rank(), outer != nullptr ? outer : "ranks_of"),
        fmt::format("there is no process set {}; there are {}", detail::quoted(set), fmt::join(process_sets(), ", ")),
        -1, where);
  }
  return ranks;
}

}  // namespace rma
