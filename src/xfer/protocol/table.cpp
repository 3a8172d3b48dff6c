// SPDX-License-Identifier: Apache-2.0
#include "core/assert.hpp"
#include "xfer/complete.hpp"
#include "xfer/copy_trial.hpp"
#include "xfer/held_operations.hpp"
#include "xfer/protocol/rows.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t bit_of(std::size_t row) noexcept { return std::uint32_t{1} << row; }
static_assert(std::size(protocol_rows) <= 32);

/// True if the target makes progress while the operation is pending: it has a thread for that, or takes part in the end
/// of the epoch. Otherwise `auto` keeps one-sided operations one-sided.
bool target_serves(const window_core& w, const checked_operation& o) noexcept {
  return w.terms.active || w.ctx->serves_beside() || !w.ctx->network_of(o.peer).caps().one_sided;
}

/// True if one of the schemes for layouts carries the operation out: between nodes, or if a scheme is set.
bool goes_by_scheme(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  if (o.contiguous || at.mapped || only_by_handler(w, at, o) != nullptr) return false;
  return o.far != nullptr || (!w.intranode && w.scheme_of_layouts != layout_scheme::automatic);
}

route choose_scheme(const window_core& w, const placement& at, const checked_operation& o,
                    std::uint32_t tried) noexcept {
  const protocol* best = &generic_protocol;
  std::int64_t best_ns = INT64_MAX;
  const char* why = "no other scheme can";
  for (std::size_t row = 0; row < std::size(protocol_rows); ++row) {
    const protocol& each = *protocol_rows[row];
    if (each.scheme == layout_scheme::automatic || (tried & bit_of(row)) != 0) continue;
    const bool asked_for = each.scheme == w.scheme_of_layouts;
    if (const char* const reason = each.refuses(w, at, o); reason != nullptr) {
      if (asked_for) return {&generic_protocol, reason};
      continue;
    }
    if (asked_for) return {&each, w.layout_why};
    if (each.needs_target && !target_serves(w, o)) continue;
    const std::int64_t ns = each.estimate_ns(w, o);
    why = best_ns == INT64_MAX ? "auto: no other scheme can" : "auto: the least estimate";
    if (ns >= best_ns) continue;
    best = &each;
    best_ns = ns;
  }
  return {best, why};
}

/// Records the measurement of a copy for the protocol that made it.
status learn(window_core& w, const checked_operation& o, const protocol& made, status s) noexcept {
  copy_trial& trial = *o.trial;
  const copy_way way = &made == &fabric_protocol   ? copy_way::fabric
                       : &made == &shared_protocol ? copy_way::shared
                                                   : copy_way::staged;
  if (way != trial.way()) return s;
  if (&made != &promised_protocol) return s == status::not_supported && way != copy_way::fabric ? s : trial.over(s);
  if (s != status::posted) return s;
  const status arrived = trial.measured() ? complete_promised(w, o.args->target) : status::done;
  if (arrived == status::done) (void)trial.over(status::done);
  return s;  // the flush will report a death of the target
}

status start_best(window_core& w, const placement& at, checked_operation& o, request_node** request) noexcept {
  for (std::uint32_t tried = 0;;) {
    const route best = choose_protocol(w, at, o, tried);
    RMA_ASSERT(best.chosen != nullptr && best.chosen->refuses(w, at, o) == nullptr);
    RMA_ASSERT(o.state != nullptr && (o.far == nullptr || o.far == o.state));
    o.choose(best.chosen->name.data(), best.why);
    status s = best.chosen->start(w, at, o, request);
    if (o.trial != nullptr) s = learn(w, o, *best.chosen, s);
    if (s != status::not_supported || best.chosen == &handler_protocol) return s;
    for (std::size_t row = 0; row < std::size(protocol_rows); ++row) {
      if (protocol_rows[row] == best.chosen) tried |= bit_of(row);
    }
    if (best.chosen == &generic_protocol) return s;
  }
}

/// The cached route of such an operation on this target, or null if the choice may differ each time: for layouts,
/// dynamic windows, operations that were held, and copies whose way is chosen by experience.
[[gnu::always_inline]] inline route* route_of(const window_core& w, const checked_operation& o) noexcept {
  if (!o.contiguous || w.kind == call::create_dynamic || o.put_off) return nullptr;
  if (o.atomic()) return &o.state->routes[2];
  if (o.far != nullptr) return &o.state->routes[o.bytes > w.ctx->wide()->caps().handler_bytes_max ? 1 : 0];
  if (o.bytes <= always_message_max) return &o.state->routes[0];
  const user_memory forced = w.team->rt->ops->forced();
  const bool learns = w.intranode && forced != user_memory::handler && forced != user_memory::cma;
  return learns ? nullptr : &o.state->routes[1];
}

/// Makes the next operation on this target use the fast path, unless the window excludes that permanently.
void remember_near(window_core& w, const checked_operation& o) noexcept {
  const int target = o.args->target;
  if (target == w.last_handler_target.target || w.needs_entry_scope || w.may_hold || w.kind == call::create_dynamic)
    return;
  if (w.view_at(target) == nullptr || w.view_at(target)->base != nullptr) return;
  const window_block& theirs = *w.identity_of(target);
  fabric::network& network = w.ctx->network_of(o.peer);
  const bool tries_ways = network.caps().copies_by_cpu && w.team->rt->ops->forced() == user_memory::automatic;
  w.last_handler_target = {target,         o.peer,    theirs.identity.bytes, o.state, w.view_at(target), &network,
                           &theirs.region, tries_ways};
}

/// Called after an operation on another process of this node.
void note_near(window_core& w, const checked_operation& o, status s) noexcept {
  if (!w.intranode || !ok(s) || o.args->target == w.team->rank) return;
  const bool is_short = o.protocol == promised_protocol.name.data() || (has_ways(w, o) && o.bytes <= one_message_max);
  const bool is_atomic = o.atomic() && w.team->rt->ops->forced() == user_memory::automatic;
  if (is_short || is_atomic) remember_near(w, o);
}

/// Runs an operation on another process of this node, whose memory is not mapped, or on this rank itself, if handlers
/// own its memory.
status run_near(window_core& w, const placement& at, checked_operation& o, request_node** request) noexcept {
  status s = status::done;
  if (has_ways(w, o) && o.args->target != w.team->rank) {
    copy_trial trial(w, o);
    o.trial = &trial;
    s = start_best(w, at, o, request);
    o.trial = nullptr;
  } else {
    s = start_best(w, at, o, request);
  }
  note_near(w, o, s);
  return s;
}

/// Runs an operation without a cached route, or with one that does not hold now. Stores the choice in `known`.
[[gnu::noinline]] status run_unknown(window_core& w, const placement& at, checked_operation& o, route* known,
                                     request_node** request) noexcept {
  if (known != nullptr && known->chosen == nullptr && !is_behind_others(o)) *known = choose_protocol(w, at, o);
  return o.far == nullptr && !at.mapped ? run_near(w, at, o, request) : start_best(w, at, o, request);
}

}  // namespace

std::span<const protocol* const> protocols() noexcept { return protocol_rows; }

const char* only_near(const window_core& w, const placement& at, const checked_operation& o) noexcept {
  if (o.far != nullptr) return "the target is on another node";
  if (at.mapped) return "the target's memory is mapped";
  if (!w.intranode) return "RMA_INTRANODE=off";
  if (w.team->rt->ops->forced() == user_memory::cma) return "RMA_USER_MEMORY=cma";
  return only_by_handler(w, at, o);
}

std::int64_t message_estimate_ns(const window_core& w, const checked_operation& o) noexcept {
  const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
  return costs.message_ns + static_cast<std::int64_t>(static_cast<double>(o.bytes) * costs.message_byte_ns);
}

std::int64_t transfer_estimate_ns(const window_core& w, const checked_operation& o) noexcept {
  const fabric::transfer_costs& costs = w.ctx->costs_of(o.peer);
  return costs.write_ns + static_cast<std::int64_t>(static_cast<double>(o.bytes) * costs.byte_ns);
}

route choose_protocol(const window_core& w, const placement& at, const checked_operation& o,
                      std::uint32_t tried) noexcept {
  if (goes_by_scheme(w, at, o)) return choose_scheme(w, at, o, tried);
  const protocol* best = &handler_protocol;
  std::int64_t best_ns = INT64_MAX;
  for (std::size_t row = 0; row < std::size(protocol_rows); ++row) {
    const protocol& each = *protocol_rows[row];
    if (each.scheme != layout_scheme::automatic || (tried & bit_of(row)) != 0) continue;
    if (each.refuses(w, at, o) != nullptr) continue;
    const std::int64_t ns = each.estimate_ns(w, o);
    if (ns >= best_ns) continue;
    best = &each;
    best_ns = ns;
  }
  return {best, best->why != nullptr ? best->why(w, at, o) : "the least estimate"};
}

// The first lines are the path of most operations: few instructions, and no more than one frame.
status run_protocol(window_core& w, const placement& at, checked_operation& o, request_node** request) noexcept {
  const bool near = o.far == nullptr && !at.mapped;
  if (near) w.ctx->poll_occasionally();
  route* const known = at.mapped ? nullptr : route_of(w, o);
  if (known == nullptr || known->chosen == nullptr || (near && is_behind_others(o))) [[unlikely]]
    return run_unknown(w, at, o, known, request);
  o.choose(known->chosen->name.data(), known->why);
  const status s = known->chosen->start(w, at, o, request);
  if (s == status::not_supported) [[unlikely]]
    return run_unknown(w, at, o, nullptr, request);
  if (near && w.intranode) note_near(w, o, s);
  return s;
}

}  // namespace rma::detail
