// SPDX-License-Identifier: Apache-2.0
#include "fabric/survey.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <sstream>

#include "boot/boot.hpp"
#include "core/cores.hpp"

namespace rma::fabric {
namespace {

/// Rank 0 knows this of a machine.
struct machine_load {
  std::string name;
  std::size_t ranks = 0;
  detail::core_set cores{};
};

/// The place in `known` of what is called so, which is appended if it is new.
template <class T, class Name>
std::size_t place_of(std::vector<T>& known, const std::string& name, Name name_of) {
  const auto at = std::find_if(known.begin(), known.end(), [&](const T& each) { return name_of(each) == name; });
  if (at == known.end()) {
    known.push_back(T{name});
    return known.size() - 1;
  }
  return static_cast<std::size_t>(at - known.begin());
}

/// The first line of a text, which is shortened by it.
std::string take_line(std::string& text) {
  const auto end = text.find('\n');
  std::string line = text.substr(0, end);
  text.erase(0, end == std::string::npos ? end : end + 1);
  return line;
}

std::string text_of(const obstacles& o) { return fmt::format("{}\n{}\n{}\n", o.verbs, o.ucx, o.tcp); }

obstacles take_obstacles(std::string& text) { return {take_line(text), take_line(text), take_line(text)}; }

/// Keeps the first obstacle of each kind.
void note(obstacles& first, int rank, const obstacles& its) {
  const auto take = [rank](std::string& kept, const std::string& lacks) {
    if (kept.empty() && !lacks.empty()) kept = fmt::format("rank {}: {}", rank, lacks);
  };
  take(first.verbs, its.verbs);
  take(first.ucx, its.ucx);
  take(first.tcp, its.tcp);
}

/// Rank 0 publishes the number of each rank's node, that of its machine, what all devices have, what no
/// rank may use, and what there is of each machine; a line each.
std::string gather(boot::client& boot) {
  std::vector<std::string> nodes;
  std::vector<machine_load> machines;
  obstacles first;
  verbs::abilities devices;
  std::string node_of;
  std::string machine_of;
  for (int r = 0; r < boot.size(); ++r) {
    std::string theirs;
    if (const status s = boot.get(fmt::format("node/{}", r), theirs); !ok(s)) raise_job_ended(boot, s);
    node_of += fmt::format("{} ", place_of(nodes, take_line(theirs), [](const std::string& name) { return name; }));
    const std::size_t machine =
        place_of(machines, take_line(theirs), [](const machine_load& each) { return each.name; });
    machine_of += fmt::format("{} ", machine);
    ++machines[machine].ranks;
    machines[machine].cores.add(detail::core_set::parse(take_line(theirs)));
    const verbs::abilities device = verbs::abilities::parse(take_line(theirs));
    if (r == 0) devices.ethernet = device.ethernet;
    obstacles has = take_obstacles(theirs);
    if (has.verbs.empty()) has.verbs = obstacle_between(device, devices);
    devices.meet(device);
    note(first, r, has);
  }
  std::string loads;
  for (const machine_load& each : machines) loads += fmt::format("{} {} ", each.ranks, each.cores.count());
  return fmt::format("{}\n{}\n{}\n{}{}", node_of, machine_of, devices.text(), text_of(first), loads);
}

std::vector<std::size_t> numbers(const std::string& line) {
  std::istringstream words(line);
  return {std::istream_iterator<std::size_t>(words), {}};
}

}  // namespace

surveyed survey(boot::client& boot, const introduced& mine) {
  if (boot.size() == 1)
    return {{0},
            node_map(1, [](int) { return 0; }),
            mine.has,
            mine.device,
            {1, detail::core_set::parse(mine.cores).count()}};
  if (const status s =
          boot.put(fmt::format("node/{}", boot.rank()), fmt::format("{}\n{}\n{}\n{}\n{}", mine.node, mine.machine,
                                                                    mine.cores, mine.device.text(), text_of(mine.has)));
      !ok(s))
    raise_job_ended(boot, s);
  std::string text;
  if (boot.rank() == 0) {
    std::string costs = mine.costs;
    std::ranges::replace(costs, '\n', '\t');
    text = costs + '\n' + gather(boot);
    if (const status s = boot.put("nodes", text); !ok(s)) raise_job_ended(boot, s);
  } else if (const status s = boot.get("nodes", text); !ok(s)) {
    raise_job_ended(boot, s);
  }
  surveyed found;
  found.costs = take_line(text);
  std::ranges::replace(found.costs, '\t', '\n');
  const auto me = static_cast<std::size_t>(boot.rank());
  const std::vector<std::size_t> node_of = numbers(take_line(text));
  found.nodes = node_map(boot.size(), [&](int r) { return static_cast<int>(node_of.at(static_cast<std::size_t>(r))); });
  const std::vector<std::size_t> machine_of = numbers(take_line(text));
  found.devices = verbs::abilities::parse(take_line(text));
  found.none = take_obstacles(text);
  const std::vector<std::size_t> loads = numbers(take_line(text));
  for (std::size_t r = 0; r < node_of.size(); ++r) {
    if (node_of[r] == node_of.at(me)) found.members.push_back(static_cast<int>(r));
  }
  const std::size_t machine = machine_of.at(me);
  const auto before = std::count(machine_of.begin(), machine_of.begin() + boot.rank(), machine);
  found.load = {loads.at(2 * machine), loads.at(2 * machine + 1), static_cast<std::size_t>(before)};
  return found;
}

}  // namespace rma::fabric
