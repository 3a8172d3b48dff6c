// SPDX-License-Identifier: Apache-2.0
#include "api/window_agree.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/names.hpp"
#include "xfer/protocol/protocol.hpp"

namespace rma::detail {
namespace {

constexpr unsigned signals_max = 1U << 20;
constexpr auto alike_count = static_cast<std::size_t>(alike::count_);

std::uint64_t unit_of(const window_plan& plan, const Hints& hints) noexcept {
  if (hints.displacement_unit != 0) return hints.displacement_unit;
  return plan.kind == call::create_dynamic ? 1 : plan.element_bytes;
}

/// In the order of `alike`.
using wishes = std::array<std::uint64_t, alike_count>;

std::uint64_t digest_of(const wishes& of) noexcept {
  std::uint64_t all = 0;
  for (const std::uint64_t each : of) {
    all = (all ^ each) * 0x9e3779b97f4a7c15ULL;
    all ^= all >> 29;
  }
  return all;
}

wishes wishes_of(const team_core& team, const window_plan& plan, const Hints& hints) {
  const auto digits = [](auto... each) {
    std::uint64_t all = 0;
    ((all = all << 8 | static_cast<std::uint64_t>(each)), ...);
    return all;
  };
  const LockChoice& lock = hints.lock;
  const unsigned policy = static_cast<unsigned>(lock.policy) << 1 | (lock.deferred ? 1U : 0U);
  return {digits(plan.kind, hints.contiguous),
          unit_of(plan, hints),
          hints.signals,
          static_cast<std::uint64_t>(hints.accumulate),
          hints.accumulate_granularity,
          std::uint64_t{lock.threshold} << 32 | digits(lock.protocol, lock.scheme, lock.home, policy),
          static_cast<std::uint64_t>(wished_fence(team.rt->config, hints))};
}

std::string difference(const team_core& team, const window_plan& plan, const Hints& hints, alike what) {
  switch (what) {
    case alike::kind:
      return fmt::format("the ranks make windows in different ways, this one by {}{}; all must call the same",
                         name_of(plan.kind), hints.contiguous ? " with Hints::contiguous" : "");
    case alike::unit:
      return fmt::format(
          "the ranks count displacements in different units, this one in {} bytes (the window's element, "
          "or Hints::displacement_unit)",
          unit_of(plan, hints));
    case alike::signals:
      return fmt::format("the ranks wish different numbers of signals, this one {} (Hints::signals)", hints.signals);
    case alike::accumulate:
      return fmt::format("the ranks wish different accumulate modes, this one '{}' (Hints::accumulate)",
                         name_of(hints.accumulate));
    case alike::granularity:
      return fmt::format(
          "the ranks wish different granularities of atomics, this one {} bytes "
          "(Hints::accumulate_granularity)",
          hints.accumulate_granularity);
    case alike::lock:
      return fmt::format("the ranks wish different locks or options of a lock, this one '{}' (Hints::lock)",
                         name_of(hints.lock.protocol));
    case alike::count_: return "the ranks wish different windows";
    case alike::fence:
      return fmt::format("the ranks wish different fences, this one '{}' (Hints::fence, RMA_FENCE)",
                         name_of(wished_fence(team.rt->config, hints)));
  }
  return {};
}

}  // namespace

void reject(const window_plan& plan, const Hints& hints, status code, const std::string& why) {
  const std::string name = hints.name.empty() ? std::string() : fmt::format(" (window {})", quoted(hints.name));
  throw Error(code, std::string(name_of(plan.kind)) + name, why, -1, plan.where);
}

namespace {

/// Collective: returns the first wish that differs among members; `count_` if that cannot be determined.
alike find_difference(team_core& team, const wishes& mine) {
  std::array<std::uint64_t, 2 * alike_count> highest{};
  for (std::size_t i = 0; i < alike_count; ++i) {
    highest[i] = mine[i];
    highest[alike_count + i] = ~mine[i];
  }
  if (!ok(team.allreduce(highest.data(), highest.size(), element::u64, max))) return alike::count_;
  std::size_t i = 0;
  while (i < alike_count && highest[i] == ~highest[alike_count + i]) ++i;
  return static_cast<alike>(i);
}

}  // namespace

// The wishes go as one number: what windows that can be made cost is a small message.
agreement agree(team_core& team, const window_plan& plan, const Hints& hints, std::uint64_t bytes, status mine) {
  const wishes wanted = wishes_of(team, plan, hints);
  const std::uint64_t one = digest_of(wanted);
  std::array<std::uint64_t, 5> highest{bytes, static_cast<std::uint64_t>(team.mapped),
                                       static_cast<std::uint64_t>(-static_cast<int>(mine)), one, ~one};
  std::uint64_t sum = bytes;
  agreement all;
  all.worst = team.allreduce(highest.data(), highest.size(), element::u64, max);
  if (ok(all.worst)) all.worst = team.allreduce_one(sum, rma::sum);
  if (!ok(all.worst)) return all;
  all.bytes_max = highest[0];
  all.mapped_max = highest[1];
  all.bytes_sum = sum;
  all.worst = static_cast<status>(-static_cast<int>(highest[2]));
  if (ok(all.worst) && highest[3] != ~highest[4]) {
    all.worst = status::bad_setting;
    all.differs = find_difference(team, wanted);
  }
  return all;
}

fence_kind wished_fence(const settings& config, const Hints& hints) {
  if (hints.fence != fence_kind::automatic) return hints.fence;
  for (const fence_kind kind : {fence_kind::placed, fence_kind::def, fence_kind::imm_naive, fence_kind::imm_opt}) {
    if (config.is(knob::fence, name_of(kind))) return kind;
  }
  const bool imm_ri = config.is(knob::fence, "imm-ri") || config.is(knob::fence, "imm-ri:barrier");
  return imm_ri ? fence_kind::imm_ri : fence_kind::automatic;
}

layout_scheme wished_layout(const settings& config, const Hints& hints) {
  if (hints.layout != layout_scheme::automatic) return hints.layout;
  for (const protocol* const each : protocols()) {
    if (config.is(knob::layout, each->name)) return each->scheme;
  }
  return layout_scheme::automatic;
}

namespace {

/// Displacements of a dynamic window are addresses.
bool has_unit(const window_plan& plan, const Hints& hints) noexcept {
  return plan.kind != call::create_dynamic || hints.displacement_unit <= 1;
}

/// Fence imm-ri needs a fabric that can notify, unless all memory is mapped.
bool can_have_fence(const team_core& team, fence_kind kind) noexcept {
  const fabric::network* const wide = team.rt->where.wide.get();
  return kind != fence_kind::imm_ri || team.one_node || wide == nullptr || wide->caps().write_with_immediate;
}

}  // namespace

status check_plan(const team_core& team, const window_plan& plan, const Hints& hints, std::uint64_t& bytes) noexcept {
  bytes = 0;
  if (plan.count > static_cast<std::uint64_t>(PTRDIFF_MAX) / plan.element_bytes) return status::bad_size;
  const bool known = hints.fence <= fence_kind::imm_ri && hints.layout <= layout_scheme::host_assisted &&
                     hints.accumulate <= accumulate_mode::lock_get_modify_put &&
                     hints.lock.protocol <= lock_protocol::hybrid && hints.lock.scheme <= lock_scheme::fompi &&
                     hints.lock.home <= lock_home::network && hints.lock.policy <= lock_policy::native &&
                     hints.schedule <= schedule_order::gets_first_interleave;
  if (hints.signals > signals_max || !known || !has_unit(plan, hints)) return status::bad_argument;
  if (!can_have_fence(team, wished_fence(team.rt->config, hints))) return status::not_supported;
  if (plan.kind == call::allocate_shared && !(team.one_node && (team.rt->intranode || team.size == 1)))
    return status::unreachable;
  if (plan.kind == call::create && plan.memory == nullptr && plan.count != 0) return status::bad_argument;
  const fabric::network* const wide = team.rt->where.wide.get();
  const bool atomics = wide != nullptr && wide->caps().atomics;
  if (is_by_adapter(hints.accumulate) && !atomics) return status::not_supported;
  bytes = plan.count * plan.element_bytes;
  return status::done;
}

void raise_plan(const team_core& team, const window_plan& plan, const Hints& hints, const agreement& all) {
  switch (all.worst) {
    case status::bad_size:
      reject(plan, hints, all.worst,
             fmt::format("{} elements of {} bytes here: more than a process can address, on this or another rank",
                         plan.count, plan.element_bytes));
    case status::unreachable:
      reject(plan, hints, all.worst, "the team spans nodes (or RMA_INTRANODE=off); use team.node()");
    case status::bad_setting: reject(plan, hints, all.worst, difference(team, plan, hints, all.differs));
    case status::not_supported:
      if (!can_have_fence(team, wished_fence(team.rt->config, hints))) {
        reject(plan, hints, all.worst,
               "fence 'imm-ri' (Hints::fence, RMA_FENCE) needs a fabric that writes with an immediate; use imm-opt");
      }
      reject(plan, hints, all.worst,
             "accumulate modes direct and lock_get_modify_put need a network with atomics (on one node also "
             "RMA_FABRIC=verbs, ucx or tcp, "
             "simulated: sim); use element, striped, handler or automatic");
    case status::bad_argument:
      if (!has_unit(plan, hints)) {
        reject(plan, hints, all.worst,
               fmt::format("displacements of a dynamic window are bytes: Hints::displacement_unit is {}, may be 0 or 1",
                           hints.displacement_unit));
      }
      reject(plan, hints, all.worst,
             fmt::format(
                 "a null pointer with elements, {} signals (at most {}), a displacement_unit that the window cannot "
                 "have, or a hint that is none of its enumeration, on this or another rank",
                 hints.signals, signals_max));
    default: raise_team(team, name_of(plan.kind).data(), all.worst, plan.where);
  }
}

}  // namespace rma::detail
