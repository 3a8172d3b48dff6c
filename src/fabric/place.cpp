// SPDX-License-Identifier: Apache-2.0
#include "fabric/place.hpp"

#include <fmt/format.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fabric/shm/node_surroundings.hpp"
#include "fabric/shm/shm.hpp"
#include "fabric/sim/run.hpp"
#include "fabric/sim/sim_boot.hpp"
#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/sim_surroundings.hpp"

namespace rma::fabric {

void raise_job_ended(status s) { throw Error(s, fmt::format("the job ended while it started ({})", name_of(s))); }

namespace {

using detail::knob;
using detail::settings;

boot::options boot_options(const settings& s) {
  boot::options how;
  how.address = s.text(knob::boot);
  how.rank = static_cast<int>(s.number(knob::rank));
  how.size = static_cast<int>(s.number(knob::size));
  how.key = s.text(knob::key);
  how.node = s.text(knob::node);
  how.timeout_ms = static_cast<int>(s.number(knob::boot_timeout_ms));
  return how;
}

/// World ranks that share this rank's node, ascending. Rank 0 gathers the identities and publishes the list once:
/// each rank asks two keys, not one of everybody.
std::vector<int> find_node(boot::client& boot, const std::string& identity) {
  const int size = boot.size();
  if (size == 1) return {0};
  if (const status s = boot.put(fmt::format("node/{}", boot.rank()), identity); !ok(s)) raise_job_ended(s);
  std::string text;
  if (boot.rank() == 0) {
    std::vector<std::string> known;
    for (int r = 0; r < size; ++r) {
      std::string theirs;
      if (const status s = boot.get(fmt::format("node/{}", r), theirs); !ok(s)) raise_job_ended(s);
      std::size_t node = 0;
      while (node < known.size() && known[node] != theirs) ++node;
      if (node == known.size()) known.push_back(theirs);
      text += fmt::format("{} ", node);
    }
    if (const status s = boot.put("nodes", text); !ok(s)) raise_job_ended(s);
  } else if (const status s = boot.get("nodes", text); !ok(s)) {
    raise_job_ended(s);
  }
  std::vector<int> node_of;
  for (std::size_t at = 0; at < text.size();) {
    const auto cut = text.find(' ', at);
    node_of.push_back(std::stoi(text.substr(at, cut - at)));
    at = cut + 1;
  }
  std::vector<int> members;
  for (int r = 0; r < size; ++r) {
    if (node_of.at(static_cast<std::size_t>(r)) == node_of.at(static_cast<std::size_t>(boot.rank())))
      members.push_back(r);
  }
  return members;
}

std::size_t position(const std::vector<int>& members, int rank) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank) return i;
  }
  throw Error(status::bad_boot, "the launcher's list of nodes does not contain this rank");
}

std::unique_ptr<shm::board> make_board(boot::client& boot, const settings& s) {
  std::vector<int> members = find_node(boot, shm::node_identity(s.text(knob::node)));
  const std::size_t me = position(members, boot.rank());
  return std::make_unique<shm::board>(boot, s, std::move(members), me);
}

place simulated_place(const settings& s) {
  const sim::handle me = sim::parse_handle(s.text(knob::boot));
  auto boot = std::make_unique<sim::sim_client>(*me.job, me.rank);
  shm::landlord& host = *boot;
  place at;
  std::vector<int> members = me.job->ranks_of(me.job->node_of(me.rank));
  const std::size_t mine = position(members, me.rank);
  at.board = std::make_unique<shm::board>(host, s, std::move(members), mine);
  at.around = std::make_unique<sim::sim_surroundings>(*boot, *at.board);
  at.node = std::make_unique<shm::shm_fabric>(*at.board);
  if (me.job->nodes() > 1) at.wide = std::make_unique<sim::sim_fabric>(boot->round().network(), me.rank);
  at.boot = std::move(boot);
  return at;
}

}  // namespace

Config started_as(int& argc, char** argv) {
  Config how;
  int kept = argc > 0 ? 1 : 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word.starts_with(sim::handle_argument)) {
      how = sim::config_of(word.substr(sim::handle_argument.size()));
    } else {
      argv[kept++] = argv[i];
    }
  }
  if (kept < argc) argv[kept] = nullptr;
  argc = kept;
  return how;
}

place find_place(const settings& s) {
  if (s.text(knob::boot).starts_with(sim::handle_prefix)) return simulated_place(s);
  place at;
  at.boot = boot::join(boot_options(s));
  at.board = make_board(*at.boot, s);
  at.around = std::make_unique<shm::node_surroundings>(*at.board, s.number(knob::local_ranks));
  at.node = std::make_unique<shm::shm_fabric>(*at.board);
  return at;
}

}  // namespace rma::fabric
