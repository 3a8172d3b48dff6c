// SPDX-License-Identifier: Apache-2.0
#include "fabric/sim/pattern.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/assert.hpp"
#include "rma/error.hpp"

namespace rma::sim {
namespace {

constexpr std::uint64_t token_bytes = 8;

world_options options_of(const Config& job) {
  world_options o;
  o.ranks = job.ranks;
  o.ranks_per_node = job.ranks_per_node;
  o.seed = job.seed;
  o.stack_bytes = job.stack_bytes;
  o.machine = load_parameters(job.parameters.empty() ? default_machine : std::string_view(job.parameters));
  o.machine.wake_time_ps = 0;  // waiting ranks do not sleep
  if (job.limit.count() < 0) throw Error(status::bad_argument, "a limit of virtual time below zero");
  if (job.limit.count() > 0) o.limit_ps = picoseconds(job.limit).count();
  return o;
}

topology topology_of(const Config& job, int nodes) {
  return topology(job.topology.empty() ? std::string_view("fat-tree") : std::string_view(job.topology), nodes);
}

}  // namespace

pattern_job::pattern_job(const Config& job, IntraNode intra_node)
    : world_(options_of(job)),
      network_(world_.events(), world_.options().machine, topology_of(job, world_.nodes()), *this),
      intra_node_(intra_node),
      states_(static_cast<std::size_t>(job.ranks)) {
  for (const Kill& k : job.kills) {
    if (k.rank < 0 || k.rank >= job.ranks || k.at.count() < 0)
      throw Error(status::bad_argument, fmt::format("no rank {} at {} ns to kill", k.rank, k.at.count()));
    world_.kill_at(k.rank, picoseconds(k.at).count());
  }
}

// ---- checks -----------------------------------------------------------------------------------------------------

void pattern_job::check_rank(std::string_view call, int other) const {
  if (other >= 0 && other < world_.size()) return;
  throw Error(status::bad_rank, fmt::format("{}: there is no rank {} among {}", call, other, world_.size()), other);
}

std::uint64_t pattern_job::checked_bytes(std::string_view call, std::int64_t bytes) const {
  if (bytes < 0) throw Error(status::bad_size, fmt::format("{}: {} bytes are not possible", call, bytes));
  const auto size = static_cast<std::uint64_t>(bytes);
  if (size > network_.bytes_max()) {
    throw Error(status::bad_size, fmt::format("{}: {} bytes are more than the {} that can be simulated", call, size,
                                              network_.bytes_max()));
  }
  return size;
}

// ---- waiting ----------------------------------------------------------------------------------------------------

bool pattern_job::holds(const rank_state& s) const noexcept {
  switch (s.what) {
    case wait::none: return false;
    case wait::completion: return operations_[s.which].completed;
    case wait::token: return s.token_bytes[s.which] >= s.wanted;
    case wait::data: break;
  }
  const auto found = s.arrived.find(static_cast<int>(s.which));
  return found != s.arrived.end() && found->second >= s.wanted;
}

void pattern_job::await(int rank, wait what, std::size_t which, std::uint64_t wanted) {
  world_.pass_charged_time(rank);  // runs the events that are due before
  rank_state& s = of(rank);
  s.what = what;
  s.which = which;
  s.wanted = wanted;
  world_.arm(rank);
  while (!holds(s)) world_.park(rank, never_ps);
  s.what = wait::none;
  world_.charge(rank, world_.options().machine.poll_time_ps, activity::poll);
}

// Called when the state of this rank has changed. The rank is woken only if the condition of its wait holds.
void pattern_job::look(int rank) noexcept {
  if (holds(of(rank))) world_.wake(rank);
}

// ---- calls ------------------------------------------------------------------------------------------------------

PatternHandle pattern_job::start(int rank, bool is_get, int other, std::int64_t bytes, int tag) {
  RMA_ASSERT(world_.running() == rank);
  const std::string_view call = is_get ? "get" : "put";
  check_rank(call, other);
  const std::uint64_t size = checked_bytes(call, bytes);
  if (tag < 0) throw Error(status::bad_argument, fmt::format("{}: tag {} is below zero", call, tag));
  const bool intra_node = world_.node_of(rank) == world_.node_of(other);
  const std::size_t number = operations_.size();
  operations_.push_back({.origin = rank,
                         .other = other,
                         .tag = tag,
                         .is_get = is_get,
                         .intra_node = intra_node,
                         .bytes = size,
                         .bytes_left = size,
                         .called_ps = world_.local_time_ps(rank),
                         .ready_ps = 0});
  of(rank).open.push_back(number);
  if (intra_node && intra_node_ != IntraNode::adapter) {
    copy(number);
  } else {
    post(number);
  }
  return {number};
}

void pattern_job::post(std::size_t number) {
  operation& o = operations_[number];
  const parameters& with = world_.options().machine;
  world_.charge(o.origin, with.library_overhead_ps + with.post_time_ps, activity::post);
  const time_ps when_ps = world_.local_time_ps(o.origin);
  const bool read_by_adapter = !o.is_get && o.bytes > with.inline_payload_bytes;
  o.ready_ps = when_ps + with.nic_message_time_ps + (read_by_adapter ? 3 : 1) * with.pcie_latency_ps;
  network_.post({.id = 2 * number,
                 .from_node = world_.node_of(o.origin),
                 .to_node = world_.node_of(o.other),
                 .bytes = o.is_get ? 0 : o.bytes,
                 .acknowledged = !o.is_get,
                 .to_adapter = o.is_get},
                when_ps);
}

void pattern_job::copy(std::size_t number) {
  const int origin = operations_[number].origin;
  if (intra_node_ == IntraNode::copy) {
    const parameters& with = world_.options().machine;
    world_.charge(origin, with.library_overhead_ps, activity::post);
    world_.charge_copy(origin, operations_[number].bytes, with.copy_latency_ps, activity::copy);
    world_.pass_charged_time(origin);
  }
  operation& o = operations_[number];  // other ranks may have added operations meanwhile
  const time_ps now_ps = world_.local_time_ps(origin);
  o.ready_ps = o.started_ps = now_ps;
  o.sent_ps = now_ps + engine_time(o.bytes);  // the engine takes no part in it
  o.completed = true;
  count(o);
  if (!o.is_get) when_noticed<&pattern_job::data_noticed>(number);
}

void pattern_job::poll(int rank, int tag, int wanted) {
  if (tag < 0) throw Error(status::bad_argument, fmt::format("poll: tag {} is below zero", tag));
  if (wanted < 0) throw Error(status::bad_size, fmt::format("poll: {} puts are not possible", wanted));
  if (wanted == 0) return;
  await(rank, wait::data, static_cast<std::size_t>(tag), static_cast<std::uint64_t>(wanted));
  const auto found = of(rank).arrived.find(tag);
  found->second -= static_cast<std::uint64_t>(wanted);
  if (found->second == 0) of(rank).arrived.erase(found);
}

void pattern_job::complete(int rank, PatternHandle handle) {
  if (handle.number >= operations_.size() || operations_[handle.number].origin != rank) {
    throw Error(status::bad_argument, fmt::format("complete: rank {} has not got this handle from put or get", rank));
  }
  await(rank, wait::completion, handle.number, 1);
}

void pattern_job::complete_all(int rank) {
  for (const std::size_t number : std::exchange(of(rank).open, {})) await(rank, wait::completion, number, 1);
}

void pattern_job::compute(int rank, picoseconds time) {
  if (time.count() < 0) throw Error(status::bad_argument, fmt::format("compute: {} ps are below zero", time.count()));
  world_.charge(rank, time.count(), activity::compute);
  world_.pass_charged_time(rank);
}

void pattern_job::barrier(int rank) {
  const parameters& with = world_.options().machine;
  const int size = world_.size();
  const std::uint64_t wanted = ++of(rank).barriers * token_bytes;
  unsigned round = 0;
  for (std::int64_t distance = 1; distance < size; distance *= 2, ++round) {
    const int to = static_cast<int>((rank + distance) % size);
    if (of(rank).token_bytes.size() <= round) of(rank).token_bytes.resize(round + 1);
    world_.charge(rank, with.library_overhead_ps + with.post_time_ps, activity::post);
    network_.post({.id = token_id(round, to),
                   .from_node = world_.node_of(rank),
                   .to_node = world_.node_of(to),
                   .bytes = token_bytes,
                   .acknowledged = false},
                  world_.local_time_ps(rank));
    await(rank, wait::token, round, wanted);
  }
}

void pattern_job::close_phase(int rank) {
  rank_state& s = of(rank);
  world_.pass_charged_time(rank);
  const time_ps now_ps = world_.local_time_ps(rank);
  if (s.phase != no_phase) s.phases_ps[s.phase] += now_ps - s.phase_since_ps;
  s.phase_since_ps = now_ps;
  s.phase = no_phase;
}

void pattern_job::phase(int rank, std::string_view label) {
  close_phase(rank);
  if (label.empty()) return;
  const auto found = std::find(labels_.begin(), labels_.end(), label);
  const auto number = static_cast<std::size_t>(found - labels_.begin());
  if (found == labels_.end()) labels_.emplace_back(label);
  rank_state& s = of(rank);
  if (s.phases_ps.size() <= number) s.phases_ps.resize(number + 1);
  s.phase = number;
}

// ---- news from the network --------------------------------------------------------------------------------------

template <void (pattern_job::*Member)(std::uint64_t) noexcept>
void pattern_job::when_noticed(std::uint64_t data) {
  const time_ps overhead_ps = world_.options().machine.library_overhead_ps;
  if (overhead_ps == 0) return (this->*Member)(data);
  world_.events().at(
      world_.events().now_ps() + overhead_ps,
      [](void* self, std::uint64_t what) noexcept { (static_cast<pattern_job*>(self)->*Member)(what); }, this, data);
}

time_ps pattern_job::engine_time(std::uint64_t bytes) const noexcept {
  const parameters& with = world_.options().machine;
  const auto one = [&](std::uint64_t size) {
    return size == 0 ? 0 : std::max(time_of(size, with.dma_speed_gbs), with.nic_packet_time_ps);
  };
  const auto whole = bytes / with.packet_payload_bytes;
  return static_cast<time_ps>(whole) * one(with.packet_payload_bytes) + one(bytes % with.packet_payload_bytes);
}

void pattern_job::on_departure(transfer_id id, std::uint64_t first, std::uint32_t bytes) noexcept {
  if ((id & token_mark) != 0) return;
  operation& o = operations_[id / 2];
  if (o.is_get && id % 2 == 0) return;  // a request has no data
  const time_ps now_ps = world_.events().now_ps();
  if (first == 0) o.started_ps = now_ps - engine_time(bytes);
  if (first + bytes == o.bytes) o.sent_ps = now_ps;
}

void pattern_job::on_arrival(transfer_id id, std::uint64_t, std::uint32_t bytes) noexcept {
  if ((id & token_mark) != 0) return when_noticed<&pattern_job::token_noticed>(with_bytes(id, bytes));
  operation& o = operations_[id / 2];
  if (o.is_get && id % 2 == 0) return answer(o, id + 1);
  o.bytes_left -= bytes;
  if (o.bytes_left != 0) return;
  if (o.is_get) return when_noticed<&pattern_job::completion_noticed>(id / 2);
  when_noticed<&pattern_job::data_noticed>(id / 2);
}

void pattern_job::on_acknowledgement(transfer_id id) noexcept {
  when_noticed<&pattern_job::completion_noticed>(id / 2);
}

// The source's adapter replies to a get without its processor.
void pattern_job::answer(operation& get, transfer_id id) noexcept {
  const parameters& with = world_.options().machine;
  const time_ps now_ps = world_.events().now_ps();
  get.ready_ps = now_ps + with.nic_message_time_ps + (get.bytes == 0 ? 0 : 2 * with.pcie_latency_ps);
  network_.post({.id = id,
                 .from_node = world_.node_of(get.other),
                 .to_node = world_.node_of(get.origin),
                 .bytes = get.bytes,
                 .acknowledged = false,
                 .from_adapter = true},
                now_ps);
}

void pattern_job::data_noticed(std::uint64_t number) noexcept {
  const operation& o = operations_[number];
  ++of(o.other).arrived[o.tag];
  look(o.other);
}

void pattern_job::completion_noticed(std::uint64_t number) noexcept {
  operation& o = operations_[number];
  o.completed = true;
  count(o);
  look(o.origin);
}

void pattern_job::token_noticed(std::uint64_t what) noexcept {
  const auto to = static_cast<int>(static_cast<std::uint32_t>(what));
  const auto round = static_cast<std::size_t>(what >> rank_bits) & round_mask;
  auto& tokens = of(to).token_bytes;
  if (tokens.size() <= round) tokens.resize(round + 1);
  tokens[round] += what >> bytes_shift & bytes_mask;
  look(to);
}

void pattern_job::count(const operation& done) noexcept {
  TransferUse& use = use_[done.intra_node ? 1 : 0];
  const picoseconds latency(world_.events().now_ps() - done.called_ps);
  const picoseconds queued(done.started_ps - done.ready_ps);
  const picoseconds interrupted(done.sent_ps - done.started_ps - engine_time(done.bytes));
  ++use.count;
  use.bytes += done.bytes;
  use.latency += latency;
  use.latency_max = std::max(use.latency_max, latency);
  use.queued += queued;
  use.queued_max = std::max(use.queued_max, queued);
  use.interrupted += interrupted;
  use.interrupted_max = std::max(use.interrupted_max, interrupted);
}

// ---- the run ----------------------------------------------------------------------------------------------------

int pattern_job::run_rank(int rank, const std::function<void(PatternRank&)>& rank_main) {
  PatternRank me(*this, rank);
  try {
    rank_main(me);
    close_phase(rank);
    return 0;
  } catch (...) {
    error_ = std::current_exception();
    error_rank_ = rank;
  }
  world_.abort(1, {});  // does not return: no rank continues
  return 1;
}

PatternOutcome pattern_job::run(const std::function<void(PatternRank&)>& rank_main) {
  world_.run([&](int rank) { return run_rank(rank, rank_main); });
  if (error_ != nullptr) {
    try {
      std::rethrow_exception(error_);
    } catch (const Error& e) {
      throw Error(e.code(), fmt::format("rank {}: {}", error_rank_, e.what()), error_rank_);
    }
  }
  const time_ps stopped_ps = world_.events().now_ps();
  while (world_.events().next_ps() <= world_.options().limit_ps && world_.events().run_one()) continue;
  events_ = world_.events().ran();
  return outcome(stopped_ps);
}

PatternOutcome run_pattern(const Config& job, const std::function<void(PatternRank&)>& rank_main,
                           IntraNode intra_node) {
  return pattern_job(job, intra_node).run(rank_main);
}

// ---- what a rank sees -------------------------------------------------------------------------------------------

int PatternRank::size() const noexcept { return job_.job().size(); }
int PatternRank::node() const noexcept { return job_.job().node_of(rank_); }
picoseconds PatternRank::now() const noexcept { return picoseconds(job_.job().local_time_ps(rank_)); }
PatternHandle PatternRank::put(int dest, std::int64_t bytes, int tag) {
  return job_.start(rank_, false, dest, bytes, tag);
}
PatternHandle PatternRank::get(int source, std::int64_t bytes) { return job_.start(rank_, true, source, bytes, 0); }
void PatternRank::poll(int tag, int count) { job_.poll(rank_, tag, count); }
void PatternRank::complete(PatternHandle handle) { job_.complete(rank_, handle); }
void PatternRank::complete_all() { job_.complete_all(rank_); }
void PatternRank::compute(picoseconds time) { job_.compute(rank_, time); }
void PatternRank::barrier() { job_.barrier(rank_); }
void PatternRank::phase(std::string_view label) { job_.phase(rank_, label); }

}  // namespace rma::sim
