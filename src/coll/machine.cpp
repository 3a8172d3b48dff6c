// SPDX-License-Identifier: Apache-2.0
#include "coll/machine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstring>
#include <string>
#include <utility>

#include "coll/algorithms/builders.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "core/settings.hpp"

namespace rma::detail::coll {
namespace {

/// The header in front of the text.
struct failure_message {
  std::uint64_t team;
  std::uint64_t turn;
  std::int16_t why;
  std::uint16_t text_bytes;
  std::int32_t other;
};
constexpr std::size_t text_bytes_max = 256;

constexpr std::pair<call, knob> settings_of_calls[] = {
    {call::barrier, knob::coll_barrier},
    {call::broadcast, knob::coll_broadcast},
    {call::reduce, knob::coll_reduce},
    {call::allreduce, knob::coll_allreduce},
    {call::scan, knob::coll_scan},
    {call::reduce_scatter, knob::coll_reduce_scatter},
    {call::exscan, knob::coll_exscan},
    {call::gather, knob::coll_gather},
    {call::scatter, knob::coll_scatter},
    {call::allgather, knob::coll_allgather},
    {call::alltoall, knob::coll_alltoall},
    {call::neighbor_allgather, knob::coll_allgather},
    {call::neighbor_alltoall, knob::coll_alltoall},
};

memory_collectives::way memory_way_of(std::string_view name) noexcept {
  using way = memory_collectives::way;
  if (name == "flat" || name == "release-gather") return way::flat;
  if (name == "direct") return way::direct;
  return name == "tree" ? way::tree : way::automatic;
}

}  // namespace

machine::machine(context& ctx, messenger& messages) : ctx_(ctx), messages_(messages), puts_(ctx, *this), notices_(ctx) {
  for (const auto& [what, setting] : settings_of_calls) {
    const std::string& name = ctx.config().text(setting);
    forced_[static_cast<std::size_t>(what)] = find_algorithm(what, name);  // null: auto, or in memory
    memory_[static_cast<std::size_t>(what)] = forced_[static_cast<std::size_t>(what)] == nullptr;
    memory_ways_[static_cast<std::size_t>(what)] = memory_way_of(name);
  }
  reproducible_ = ctx.config().on(knob::coll_reproducible);
  const std::string& progress = ctx.config().text(knob::nbc_progress);
  if (progress == "test-on-init") progress_of_start_ = start_progress::test_on_init;
  if (progress == "wait-on-send") progress_of_start_ = start_progress::wait_on_send;
  if (progress == "start-all") progress_of_start_ = start_progress::start_all;
  ctx_.set_handler(message::collective_failed, &machine::on_failure, this);
  ctx_.add_duty(&machine::on_duty, this);
  ctx_.add_before_sleep(&machine::before_sleep, this);
}

std::string machine::name_set(call what) const {
  const auto* const of = std::find_if(std::begin(settings_of_calls), std::end(settings_of_calls),
                                      [what](const auto& each) { return each.first == what; });
  if (of == std::end(settings_of_calls)) return {};  // a schedule
  std::string name = ctx_.config().text(of->second);
  return name == "auto" ? std::string{} : name;
}

// All members must make the same choice. So costs between nodes are what rank 0 has measured, since each node may have
// measured others; those in memory are measured where all ranks read the same file. A put within a node is a copy
// by the kernel. A rendezvous takes a message there and one back before the data, and a message at their end.
machine_costs machine::costs(bool one_node) const noexcept {
  const fabric::network& network = ctx_.wide() != nullptr ? *ctx_.wide() : ctx_.node();
  const auto eager = static_cast<double>(messenger::eager_bytes(ctx_.config(), network.caps()));
  if (one_node && ctx_.wide() == nullptr) {
    const fabric::memory_costs& m = memory_costs_;
    return {m.latency_ns,   m.message_ns, m.byte_ns,        m.combined_byte_ns, eager,        m.rendezvous_ns,
            m.long_byte_ns, m.byte_ns,    4 * m.latency_ns, 10 * m.message_ns,  3 * m.byte_ns};
  }
  const fabric::transfer_costs& costs = network_costs_ ? *network_costs_ : network.caps().costs;
  const double latency_ns = static_cast<double>(costs.message_ns) * 0.4;
  const double message_ns = std::max(0.6 * static_cast<double>(costs.piece_ns), latency_ns / 22);
  return {latency_ns,
          message_ns,
          costs.message_byte_ns,
          0.03,
          std::min(eager, static_cast<double>(network.caps().message_bytes_max) * 0.9),
          4 * latency_ns,
          costs.byte_ns,
          costs.byte_ns,
          latency_ns,
          0.95 * message_ns,  // nothing is matched
          2 * costs.message_byte_ns - costs.byte_ns};
}

void machine::add_work(running& r) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!r.over());
  if (r.working) return;
  r.working = true;
  work_.push_back(r);
  ctx_.on_duty(this, true);
}

void machine::remove_work(running& r) noexcept {
  RMA_ASSERT(r.working && !work_.empty());
  r.working = false;
  work_.erase(work_.iterator_to(r));
  if (work_.empty()) ctx_.on_duty(this, false);
}

/// Runs one turn of the first collective that has work: the lock is free in between.
unsigned machine::on_duty(void* self) noexcept {
  auto& me = *static_cast<machine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  if (me.work_.empty()) return 0;
  running& r = me.work_.front();
  RMA_ASSERT(r.working && !r.over());
  me.remove_work(r);
  (void)r.do_local_work();
  return 1;
}

void machine::before_sleep(void* self) noexcept {
  auto& me = *static_cast<machine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  for (const auto& [id, team] : me.teams_) {
    RMA_ASSERT(team != nullptr);
    team->look_for_mismatches();
  }
}

void machine::send_failure(int to, std::uint64_t team_id, std::uint64_t turn, status why, std::string_view text,
                           int other) noexcept {
  const std::size_t room = ctx_.network_of(to).caps().message_bytes_max - sizeof(failure_message);
  text = text.substr(0, std::min(text_bytes_max, room));
  const failure_message m{team_id, turn, static_cast<std::int16_t>(why), static_cast<std::uint16_t>(text.size()),
                          other};
  ctx_.send_record(to, message::collective_failed, m, std::as_bytes(std::span(text)));
}

void machine::on_failure(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<machine*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  failure_message m;
  if (payload.size() < sizeof m) {
    me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::collective_failed), payload.size(),
                             malformed_reason::wrong_length);
    return;
  }
  std::memcpy(&m, payload.data(), sizeof m);
  const auto text = payload.subspan(sizeof m);
  if (text.size() != m.text_bytes || m.why > 0 || m.why < -127) {
    me.ctx_.reject_malformed(source, static_cast<std::uint16_t>(message::collective_failed), payload.size(),
                             malformed_reason::wrong_contents);
    return;
  }
  std::string said(reinterpret_cast<const char*>(text.data()), text.size());
  const auto why = static_cast<status>(m.why);
  const auto at = me.teams_.find(m.team);
  if (at != me.teams_.end()) {
    take(*at->second, {m.team, m.turn, why, std::move(said), m.other});
  } else if (me.early_.size() < early_max) {
    me.early_.push_back({m.team, m.turn, why, std::move(said), m.other});
    RMA_ASSERT(me.early_.size() <= early_max);
  }
}

void machine::take(team_state& t, failure&& f) noexcept {
  if (f.why == status::done) {
    t.on_place(f.turn, std::move(f.text));
  } else {
    t.on_failure(f.turn, f.why, std::move(f.text), f.other);
  }
}

// The team gets the failures of its collectives that were reported before this member had created it.
void machine::add(std::uint64_t team_id, team_state& t) {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(!teams_.contains(team_id));
  teams_[team_id] = &t;
  std::erase_if(early_, [&](failure& f) {
    const bool about_it = f.team == team_id;
    if (about_it) take(t, std::move(f));
    return about_it;
  });
  puts_.take_early(team_id);
}

void machine::note_replaced(call what, const algorithm& chosen) noexcept {
  const std::uint32_t bit = std::uint32_t{1} << static_cast<unsigned>(what);
  if (name_set(what) != one_sided::name || chosen.by_puts || (replaced_noted_ & bit) != 0) return;
  replaced_noted_ |= bit;
  const std::string why = puts_.why_not();
  if (ctx_.rank() != 0 || why.empty() || ctx_.config().is(knob::log, "error")) return;
  constexpr std::string_view of_neighbors = "neighbor_";  // these have the settings of the others
  std::string setting(name_of(what));
  if (setting.starts_with(of_neighbors)) setting.erase(0, of_neighbors.size());
  std::transform(setting.begin(), setting.end(), setting.begin(), [](unsigned char c) { return std::toupper(c); });
  fmt::print(stderr, "rma: rank 0: RMA_COLL_{}={} does not apply: {}; {} is used\n", setting, one_sided::name, why,
             chosen.name);
}

}  // namespace rma::detail::coll
