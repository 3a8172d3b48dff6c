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
#include "fabric/verbs/open.hpp"

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

/// How the job's ranks lie on nodes, and what leads from one to another.
struct surveyed {
  std::vector<int> members;  ///< world ranks that share this rank's node, ascending
  std::string no_verbs;      ///< why not all ranks can use verbs; empty if they can
};

/// Rank 0 gathers what each rank has and publishes the outcome once: each rank asks two keys, not one of everybody.
/// `lacks` says why this rank has no RDMA device.
surveyed survey(boot::client& boot, const std::string& identity, const std::string& lacks) {
  const int size = boot.size();
  if (size == 1) return {{0}, lacks};
  if (const status s = boot.put(fmt::format("node/{}", boot.rank()), identity + '\n' + lacks); !ok(s))
    raise_job_ended(s);
  std::string text;
  if (boot.rank() == 0) {
    std::vector<std::string> known;
    std::string missing;
    for (int r = 0; r < size; ++r) {
      std::string theirs;
      if (const status s = boot.get(fmt::format("node/{}", r), theirs); !ok(s)) raise_job_ended(s);
      const auto cut = theirs.find('\n');
      if (cut + 1 < theirs.size() && missing.empty()) missing = fmt::format("rank {}: {}", r, theirs.substr(cut + 1));
      theirs.resize(cut);
      std::size_t node = 0;
      while (node < known.size() && known[node] != theirs) ++node;
      if (node == known.size()) known.push_back(theirs);
      text += fmt::format("{} ", node);
    }
    text += '\n' + missing;
    if (const status s = boot.put("nodes", text); !ok(s)) raise_job_ended(s);
  } else if (const status s = boot.get("nodes", text); !ok(s)) {
    raise_job_ended(s);
  }
  surveyed found;
  const auto end = text.find('\n');
  found.no_verbs = text.substr(end + 1);
  text.resize(end);
  std::vector<int> node_of;
  for (std::size_t at = 0; at < text.size();) {
    const auto cut = text.find(' ', at);
    node_of.push_back(std::stoi(text.substr(at, cut - at)));
    at = cut + 1;
  }
  for (int r = 0; r < size; ++r) {
    if (node_of.at(static_cast<std::size_t>(r)) == node_of.at(static_cast<std::size_t>(boot.rank())))
      found.members.push_back(r);
  }
  return found;
}

std::size_t position(const std::vector<int>& members, int rank) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank) return i;
  }
  throw Error(status::bad_boot, "the launcher's list of nodes does not contain this rank");
}

/// Null, and why, if this rank has no device that it may use.
std::unique_ptr<verbs::opened> open_device(const settings& s, std::string& lacks) {
  if (s.is(knob::fabric, "shm")) {
    lacks = "RMA_FABRIC=shm";
    return nullptr;
  }
  try {
    return verbs::open(s.text(knob::device));
  } catch (const Error& e) {
    if (e.code() == status::bad_setting) throw;
    lacks = e.what();
    return nullptr;
  }
}

/// The fabric between nodes, where it is needed and every rank has it.
std::unique_ptr<network> start_wide(const settings& s, boot::client& boot, const surveyed& job,
                                    std::unique_ptr<verbs::opened> device) {
  const bool forced = s.is(knob::fabric, "verbs");
  const bool one_node = static_cast<int>(job.members.size()) == boot.size();
  if (!job.no_verbs.empty() && forced)
    throw Error(status::unreachable, fmt::format("RMA_FABRIC=verbs: {}", job.no_verbs));
  if (!job.no_verbs.empty() || (one_node && s.on(knob::intranode) && !forced)) return nullptr;
  std::string address;
  std::unique_ptr<network> made =
      device->start({boot.rank(), boot.size(), s.text(knob::key), s.number(knob::registration_cache_bytes)}, address);
  if (const status p = boot.put(verbs::address_key(boot.rank()), address); !ok(p)) raise_job_ended(p);
  return made;
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
  std::string lacks;
  std::unique_ptr<verbs::opened> device = open_device(s, lacks);
  surveyed job = survey(*at.boot, shm::node_identity(s.text(knob::node)), lacks);
  at.wide = start_wide(s, *at.boot, job, std::move(device));
  const std::size_t me = position(job.members, at.boot->rank());
  at.board = std::make_unique<shm::board>(*at.boot, s, std::move(job.members), me);
  at.around = std::make_unique<shm::node_surroundings>(*at.board, s.number(knob::local_ranks));
  at.node = std::make_unique<shm::shm_fabric>(*at.board);
  return at;
}

}  // namespace rma::fabric
