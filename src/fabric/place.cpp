// SPDX-License-Identifier: Apache-2.0
#include "fabric/place.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "boot/descriptors.hpp"
#include "boot/interfaces.hpp"
#include "core/cores.hpp"
#include "fabric/shm/node_platform.hpp"
#include "fabric/shm/shm.hpp"
#include "fabric/sim/run.hpp"
#include "fabric/sim/sim_client.hpp"
#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/sim_platform.hpp"
#include "fabric/survey.hpp"
#include "fabric/tcp/tcp_fabric.hpp"
#include "fabric/tuning.hpp"
#include "fabric/ucx/open.hpp"
#include "fabric/verbs/open.hpp"

namespace rma::fabric {

namespace {

using detail::knob;
using detail::settings;

boot::options boot_options(const settings& s) {
  boot::options how;
  how.address = s.text(knob::boot);
  boot::take_address(how);
  how.rank = static_cast<int>(s.number(knob::rank));
  how.size = static_cast<int>(s.number(knob::size));
  how.key = s.text(knob::key);
  how.node = s.text(knob::node);
  how.timeout_ms = static_cast<int>(s.number(knob::boot_timeout_ms));
  how.interface = s.text(knob::boot_interface);
  how.peer_timeout_ms = static_cast<int>(s.number(knob::peer_timeout_ms));
  how.from_rank_0 = s.from_rank_0();
  how.one_machine = s.one_machine();
  return how;
}

/// A wait has to know the ranks that share this one's processors, and how many these are. A quota is one of its
/// control group, which the ranks of its node share.
shm::node_load load_of(const settings& s, const surveyed& job) {
  shm::node_load load = job.load;
  load.ranks = std::max<std::size_t>(load.ranks, s.number(knob::local_ranks));
  const std::size_t granted = detail::granted_cores();
  if (load.cores == 0) load.cores = static_cast<std::size_t>(std::max(1L, ::sysconf(_SC_NPROCESSORS_ONLN)));
  if (granted < load.cores && job.members.size() > granted) load = {job.members.size(), granted, load.turn};
  return load;
}

std::size_t position(const std::vector<int>& members, int rank) {
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i] == rank) return i;
  }
  throw Error(status::bad_boot, "the launcher's list of nodes does not contain this rank");
}

/// Null, and why, if this rank has no device that it may use.
std::unique_ptr<verbs::opened> open_device(const settings& s, std::string& lacks) {
  if (!s.is(knob::fabric, "auto") && !s.is(knob::fabric, "verbs")) {
    lacks = "RMA_FABRIC=" + s.text(knob::fabric);
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

std::string lacks_ucx(const settings& s) {
  const bool wanted = s.is(knob::fabric, "auto") || s.is(knob::fabric, "ucx");
  return wanted ? ucx::lacks() : "RMA_FABRIC=" + s.text(knob::fabric);
}

std::string lacks_tcp(const settings& s) {
  const bool wanted = s.is(knob::fabric, "auto") || s.is(knob::fabric, "tcp");
  return wanted ? std::string() : "RMA_FABRIC=" + s.text(knob::fabric);
}

/// Listens on loopback only, if nothing but this machine's memory joins the ranks.
std::unique_ptr<network> start_tcp(const settings& s, const boot::client& boot, directory& job, std::string& address) {
  const std::string host = boot.host();
  boot::allow_connections(boot.size());
  auto made = std::make_unique<tcp::tcp_fabric>(
      tcp::start{boot.rank(), boot.size(), host.empty() ? boot::loopback_address() : host, std::string(boot.key()),
                 static_cast<int>(s.number(knob::peer_timeout_ms))});
  made->use(job);
  address = made->address();
  return made;
}

[[noreturn]] void refuse_fabric(std::string_view name, std::string_view why) {
  throw Error(status::unreachable, fmt::format("RMA_FABRIC={}: {}", name, why));
}

/// Whether all ranks say so. As in `survey`, rank 0 asks everybody, and the others rank 0.
bool all_agree(boot::client& boot, std::string_view on_what, bool mine) {
  const auto note = [&](const status s) {
    if (!ok(s)) raise_job_ended(boot, s);
  };
  note(boot.put(fmt::format("{}/{}", on_what, boot.rank()), mine ? "yes" : "no"));
  std::string all = mine ? "yes" : "no";
  if (boot.rank() != 0) {
    note(boot.get(on_what, all));
    return all == "yes";
  }
  for (int r = 1; r < boot.size(); ++r) {
    std::string theirs;
    note(boot.get(fmt::format("{}/{}", on_what, r), theirs));
    if (theirs != "yes") all = "no";
  }
  note(boot.put(on_what, all));
  return all == "yes";
}

enum class wide : std::uint8_t { verbs, ucx, tcp, none };

/// The first network that every rank has, in the order verbs, UCX, TCP. Where UCX has nothing but TCP either, the
/// fabric of our own is faster.
wide choose_wide(const settings& s, boot::client& boot, const surveyed& job) {
  if (job.none.verbs.empty()) return wide::verbs;
  const bool ucx_can = job.none.ucx.empty();
  if (!job.none.tcp.empty()) return ucx_can ? wide::ucx : wide::none;
  return ucx_can && s.is(knob::fabric, "auto") && all_agree(boot, "ucx has a network", ucx::has_network()) ? wide::ucx
                                                                                                           : wide::tcp;
}

/// The fabric between nodes, where it is needed.
std::unique_ptr<network> start_wide(const settings& s, boot::client& boot, const surveyed& job, directory& peers,
                                    std::unique_ptr<verbs::opened> device) {
  const bool verbs_wanted = s.is(knob::fabric, "verbs");
  const bool ucx_wanted = s.is(knob::fabric, "ucx");
  if (verbs_wanted && !job.none.verbs.empty()) refuse_fabric("verbs", job.none.verbs);
  if (ucx_wanted && !job.none.ucx.empty()) refuse_fabric("ucx", job.none.ucx);
  const bool one_node = static_cast<int>(job.members.size()) == boot.size();
  // Without plain memory the ranks of one node use its fabric's calls, or a device, but not UCX or TCP unless they are
  // asked for.
  const bool leads_elsewhere = !one_node || verbs_wanted || ucx_wanted || s.is(knob::fabric, "tcp");
  if (!leads_elsewhere && (s.on(knob::intranode) || !job.none.verbs.empty())) return nullptr;
  std::string key;
  std::string address;
  std::unique_ptr<network> made;
  switch (choose_wide(s, boot, job)) {
    case wide::verbs:
      boot.begin_step("starts the verbs fabric");
      made = device->start({.rank = boot.rank(),
                            .size = boot.size(),
                            .key = std::string(boot.key()),
                            .cache_bytes = s.number(knob::registration_cache_bytes),
                            .common = job.devices,
                            .peers = &peers},
                           address);
      key = verbs::address_key(boot.rank());
      break;
    case wide::ucx:
      boot.begin_step("starts the UCX fabric");
      made = ucx::start(boot.rank(), boot.size(), peers, address);
      key = ucx::address_key(boot.rank());
      break;
    case wide::tcp:
      boot.begin_step("starts the TCP fabric");
      made = start_tcp(s, boot, peers, address);
      key = tcp::address_key(boot.rank());
      break;
    case wide::none:
      throw Error(status::unreachable,
                  fmt::format("the job's ranks are on several nodes, and nothing leads from one to another; "
                              "RDMA verbs: {}; UCX: {}; TCP: {}",
                              job.none.verbs, job.none.ucx, job.none.tcp));
  }
  if (const status p = boot.put(key, address); !ok(p)) raise_job_ended(boot, p);
  return made;
}

job_context simulated_place(const settings& s) {
  const sim::handle me = sim::parse_handle(s.text(knob::boot));
  auto boot = std::make_unique<sim::sim_client>(*me.job, me.rank);
  shm::segment_provider& host = *boot;
  job_context at;
  at.nodes = node_map(boot->size(), [&me](int r) { return me.job->node_of(r); });
  std::vector<int> members = me.job->ranks_of(me.job->node_of(me.rank));
  const std::size_t mine = position(members, me.rank);
  at.board = std::make_unique<shm::board>(host, s, std::move(members), mine);
  at.around = std::make_unique<sim::sim_platform>(*boot, *at.board);
  at.node = std::make_unique<shm::shm_fabric>(*at.board);
  // As with a device on a real node: what could do without it uses it if it is asked for.
  if (me.job->nodes() > 1 || s.is(knob::fabric, "sim"))
    at.wide = std::make_unique<sim::sim_fabric>(boot->round().network(), me.rank);
  at.boot = std::move(boot);
  return at;
}

}  // namespace

Config started_as(int& argc, char** argv, const Config& wanted) {
  Config how = wanted;
  int kept = argc > 0 ? 1 : 0;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word(argv[i]);
    if (word.starts_with(sim::handle_argument)) {
      const Config job = sim::config_of(word.substr(sim::handle_argument.size()));
      how.boot = job.boot;
      how.rank = job.rank;
      how.size = job.size;
      how.settings.insert(job.settings.begin(), job.settings.end());  // those wanted stay
    } else {
      argv[kept++] = argv[i];
    }
  }
  if (kept < argc) argv[kept] = nullptr;
  argc = kept;
  return how;
}

job_context find_place(const settings& s) {
  if (s.text(knob::boot).starts_with(sim::handle_prefix)) return simulated_place(s);
  if (s.is(knob::fabric, "sim")) refuse_fabric("sim", "this job is not simulated (rma-sim, rma::sim::run)");
  job_context at;
  at.boot = boot::join(boot_options(s));
  at.boot->begin_step("looks for network devices");
  introduced mine{
      shm::node_identity(s.text(knob::node)), shm::machine_identity(), detail::core_set::allowed().text(), {}, {}};
  std::unique_ptr<verbs::opened> device = open_device(s, mine.has.verbs);
  if (device != nullptr) mine.device = device->has();
  mine.has.ucx = lacks_ucx(s);
  mine.has.tcp = lacks_tcp(s);
  if (at.boot->rank() == 0 && !s.text(knob::tuning).empty())
    mine.costs = costs_for_all(tuning_text(s.text(knob::tuning)).value_or(""), s.text(knob::device));
  surveyed job = survey(*at.boot, mine);
  const shm::node_load load = load_of(s, job);
  at.wide = start_wide(s, *at.boot, job, *at.directory, std::move(device));
  at.nodes = std::move(job.nodes);
  if (at.wide != nullptr) at.costs = find_costs(job.costs, section_for_all(at.wide->caps().name));
  const std::size_t me = position(job.members, at.boot->rank());
  at.board = std::make_unique<shm::board>(*at.boot, s, std::move(job.members), me);
  at.around = std::make_unique<shm::node_platform>(*at.board, load);
  at.node = std::make_unique<shm::shm_fabric>(*at.board);
  return at;
}

}  // namespace rma::fabric
