// SPDX-License-Identifier: Apache-2.0
/// \file
/// Making windows. Collective: agree on sizes and a place, publish blocks, look at the others' blocks, choose who
/// owns atomicity. Errors are agreed on, too: all ranks throw the same.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "api/status_of.hpp"
#include "api/window_agree.hpp"
#include "channel/call_scope.hpp"
#include "core/memory.hpp"
#include "core/memory_access.hpp"
#include "core/names.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/promote.hpp"
#include "rma/detail/window_ops.hpp"
#include "sync/epochs.hpp"
#include "sync/lock_hybrid.hpp"
#include "sync/locking.hpp"
#include "window/window_core.hpp"
#include "window/window_memory.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {
namespace {

constexpr std::uint64_t magic_base = 0x726d612d77696e00ULL;
constexpr std::size_t stripes_max = 256;
constexpr std::size_t hinted_stripes_max = 4096;  ///< 256 KiB of locks
constexpr std::size_t stripe_bytes_min = 64;      ///< finer than that is each element by itself
constexpr std::size_t stripe_bytes_most = std::size_t{1} << 62;
/// Library memory that others copy to begins in the middle of a page: users' large buffers begin at the start of one,
/// and copies between equal offsets in pages make loads wait for stores (docs/decisions/0007-copies.md). Memory
/// that only adapters move begins at the start: a packet of 4 KiB is one page then, not parts of two.
constexpr std::size_t page_offset_bytes = 2048;
constexpr std::uint64_t asked_bytes_min = std::uint64_t{8} << 20;  ///< the machine is asked whether it has so much
constexpr std::size_t huge_from_bytes = shm::huge_bytes / 2;       ///< blocks of so much have huge pages

std::uint64_t mix(std::uint64_t a, std::uint64_t b) noexcept {
  std::uint64_t x = a * 0x9e3779b97f4a7c15ULL + b + 0x7f4a;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  return x ^ (x >> 27);
}

/// log2 of the bytes that one stripe guards.
unsigned stripe_shift_of(const Hints& hints) noexcept {
  if (hints.accumulate_granularity == 0) return stripe_shift_unless_hinted;
  const std::size_t wished = std::clamp(hints.accumulate_granularity, stripe_bytes_min, stripe_bytes_most);
  return static_cast<unsigned>(std::countr_zero(std::bit_ceil(wished)));
}

std::uint32_t stripes_for(const Hints& hints, std::size_t bytes) noexcept {
  const std::size_t most = hints.accumulate_granularity == 0 ? stripes_max : hinted_stripes_max;
  const std::size_t whole = std::max<std::size_t>(bytes, 1) - 1;
  return static_cast<std::uint32_t>(std::bit_ceil(std::min((whole >> stripe_shift_of(hints)) + 1, most)));
}

/// The data begin `offset` bytes behind a multiple of `grain`.
block_layout lay_out(std::size_t mapped, const Hints& hints, std::size_t bytes, std::size_t grain,
                     std::size_t offset) noexcept {
  const auto line = [](std::size_t n) { return (n + 63) / 64 * 64; };
  block_layout l;
  l.stripes = stripes_for(hints, bytes);
  l.signals_at = line(sizeof(window_block));
  l.posts_at = line(l.signals_at + hints.signals * sizeof(word64));
  l.completions_at = line(l.posts_at + mapped * sizeof(word32));
  l.records_at = line(l.completions_at + mapped * sizeof(word32));
  l.waiters_at = line(l.records_at + mapped);
  l.stripes_at = line(l.waiters_at + (mapped + 63) / 64 * sizeof(word64));
  l.data_at = l.stripes_at + l.stripes * sizeof(stripe_lock);
  l.data_at = (l.data_at + grain - 1) / grain * grain + offset;
  return l;
}

/// Whole huge pages, but for a rest of less than half of one.
std::uint64_t on_huge_pages(std::uint64_t bytes) noexcept {
  const std::uint64_t rest = bytes % shm::huge_bytes;
  return rest < huge_from_bytes ? bytes : bytes + shm::huge_bytes - rest;
}

/// True if all parts are in the block of rank 0.
bool is_one_piece(const window_core& w) noexcept { return w.kind == call::allocate_shared && w.hints.contiguous; }

/// Where the part of a rank begins in a window of one piece; the sizes of those before it are published.
std::byte* part_in_piece(const window_core& w, int rank) noexcept {
  std::uint64_t before = 0;
  for (int r = 0; r < rank; ++r) before += w.identity_of(r)->identity.bytes;
  const auto first = static_cast<std::size_t>(w.team->node_index(0));
  return w.board->segment(first) + w.block_offset + w.layout.data_at + before;
}

/// Collective.
void find_part_in_piece(window_core& w, const window_plan& plan) {
  w.my_block().identity.bytes = w.local_bytes;
  if (const status s = w.team->barrier(); !ok(s)) {
    leave_window(w);
    raise_team(*w.team, name_of(plan.kind).data(), s, plan.where);
  }
  w.local_base = part_in_piece(w, w.team->rank);
}

void publish(window_core& w) {
  window_block& mine = w.my_block();
  if (w.locks == lock_protocol::hybrid) set_home(w, wished_home(w));
  mine.identity.magic = magic_base ^ w.id;
  if (!is_one_piece(w)) mine.identity.bytes = w.local_bytes;  // others are reading it already (find_part_in_piece)
  mine.identity.slot = w.slot;
  (void)w.ctx->node().register_region(w.local_base, w.local_bytes, mine.region);
  const bool in_segment = w.kind == call::allocate || w.kind == call::allocate_shared || w.promoted_bytes != 0;
  if (w.promoted_bytes != 0) {
    mine.region.key = 1 + w.promoted_offset + (reinterpret_cast<std::uintptr_t>(w.local_base) % 4096);
  }
  if (w.ctx->wide() != nullptr) {
    const bool library = w.kind == call::allocate || w.kind == call::allocate_shared;
    const fabric::region_key block = w.team->rt->own_region(w.block_offset);
    w.own_block = block;
    mine.identity.wide = {reinterpret_cast<std::uint64_t>(w.local_base), w.local_bytes, block.key};
    const std::lock_guard guard(w.ctx->lock());
    mine.identity.wide_reachable =
        w.local_bytes == 0 ||
        (is_one_piece(w) ? w.team->rank == 0
         : library       ? block.bytes >= w.block_bytes
                   : w.writable && ok(w.ctx->wide()->register_region(w.local_base, w.local_bytes, mine.identity.wide)));
  }
  mine.reachable = in_segment || w.local_bytes == 0 ? 1 : 0;
}

/// A window that threads share is not for inlined calls. With assertions, a call of a thread that may not call is
/// always noticed.
bool may_inline(const window_core& w) noexcept {
#if defined(RMA_ASSERTS)
  if (w.ctx->is_single_threaded()) return false;
#endif
  return !w.shared_by_threads;
}

void attach_targets(window_core& w, const window_plan& plan) {
  const std::size_t count = w.team->places.size();
  w.views.assign(count, {});
  w.states = std::vector<target_state>(count);
  w.notified.assign(count, {});
  w.first = static_cast<std::uint32_t>(w.team->first);
  w.mapped = may_inline(w) ? static_cast<std::uint32_t>(count) : 0;
  w.targets = w.views.data();
  w.stripe_mask = w.layout.stripes - 1;
  w.stripe_shift = static_cast<std::uint8_t>(stripe_shift_of(w.hints));
  w.my_lock_tag = lock_tag(static_cast<std::uint32_t>(w.ctx->rank()));
  w.my_stripe_tag = 1 + static_cast<std::uint32_t>(w.ctx->rank());
  w.updating = &w.my_block().updating;
  auto* const records = w.array<word<std::uint8_t>>(w.my_block(), w.layout.records_at);
  for (std::size_t i = 0; i < count; ++i) {
    const int slot = w.team->places[i];
    if (slot < 0) continue;
    const bool self = static_cast<int>(w.first + i) == w.team->rank;
    window_block& block = *w.block_at(slot);
    target_view& v = w.views[i];
    v.record = records + i;
    v.stripes = w.array<stripe_lock>(block, w.layout.stripes_at);
    v.stripe_bias = &block.stripe_bias;
    const bool by_memory = w.locks == lock_protocol::cpu || w.locks == lock_protocol::hybrid;
    if (by_memory && (w.intranode || self)) v.lock = &block.lock;
    if (plan.kind == call::create_dynamic) continue;
    const bool same = w.board->same_process(static_cast<std::size_t>(slot));
    if (is_one_piece(w)) {
      v.base = part_in_piece(w, static_cast<int>(w.first + i));
    } else if (self || (w.intranode && same)) {
      v.base = reinterpret_cast<std::byte*>(block.region.address);
    } else if (w.intranode && block.reachable != 0) {
      v.base = block.identity.bytes == 0 ? reinterpret_cast<std::byte*>(&block)
                                         : w.board->segment(static_cast<std::size_t>(slot)) + (block.region.key - 1);
    }
  }
}

/// A value of RMA_ACCUMULATE that is more than a mode.
constexpr std::string_view unbiased_stripes = "striped:unbiased";

accumulate_mode wished_mode(const window_core& w) {
  if (w.hints.accumulate != accumulate_mode::automatic) return w.hints.accumulate;
  if (w.ctx->config().is(knob::accumulate, unbiased_stripes)) return accumulate_mode::striped;
  for (const accumulate_mode each : {accumulate_mode::element, accumulate_mode::striped, accumulate_mode::handler,
                                     accumulate_mode::direct, accumulate_mode::lock_get_modify_put}) {
    if (w.ctx->config().is(knob::accumulate, name_of(each))) return each;
  }
  return accumulate_mode::automatic;
}

/// Whether the network's atomics reach this rank's part, as the mode needs them.
bool adapter_reaches(const window_core& w, accumulate_mode mode) noexcept {
  if (w.ctx->wide() == nullptr || !w.ctx->wide()->caps().atomics || w.kind == call::create_dynamic) return false;
  if (mode == accumulate_mode::lock_get_modify_put) return w.my_block().identity.wide_reachable != 0;
  return w.element_bytes <= 8 && w.my_block().identity.wide_reachable != 0 &&
         reinterpret_cast<std::uintptr_t>(w.local_base) % 8 == 0 && w.local_bytes % 8 == 0;
}

/// Whether the hint asks for less than a stripe can be.
bool wants_elements(const Hints& hints) noexcept {
  return hints.accumulate_granularity != 0 && hints.accumulate_granularity < stripe_bytes_min;
}

/// True if updates of single elements need no stripes until the first bulk update.
bool may_be_biased(const window_core& w) noexcept {
  return !w.ctx->config().is(knob::accumulate, unbiased_stripes) && w.board->fenced_by_others() &&
         !w.shared_by_threads && reinterpret_cast<std::uintptr_t>(w.local_base) % 8 == 0;
}

/// One owner of atomicity for all ranks; sets the limits of the inlined calls accordingly.
status choose_mode(window_core& w, const window_plan& plan) {
  bool mapped = w.team->one_node && plan.kind != call::create_dynamic;
  for (const target_view& v : w.views) mapped = mapped && v.base != nullptr;
  constexpr std::uint32_t every_one_mapped = 1, every_one_fenced = 2, every_one_biased = 4;
  std::uint32_t all = (mapped ? every_one_mapped : 0) | (w.board->fenced_by_others() ? every_one_fenced : 0) |
                      (may_be_biased(w) ? every_one_biased : 0);
  if (const status s = w.team->allreduce_one(all, band); s != status::done) return s;
  w.all_mapped = (all & every_one_mapped) != 0;
  for (target_view& v : w.views) v.plain_record = (all & every_one_fenced) != 0 ? 1 : 0;
  accumulate_mode wished = wished_mode(w);
  if (is_by_adapter(wished)) {
    std::uint32_t everywhere = adapter_reaches(w, wished) ? 1 : 0;
    if (const status s = w.team->allreduce_one(everywhere, min); s != status::done) return s;
    if (everywhere != 0) {
      w.mode = wished;
    } else if (is_by_adapter(w.hints.accumulate)) {
      return status::not_supported;
    }
    wished = accumulate_mode::automatic;
  }
  const bool by_memory = wished == accumulate_mode::element || wished == accumulate_mode::striped;
  if (by_memory && !w.all_mapped && w.hints.accumulate != accumulate_mode::automatic) return status::not_supported;
  if (!is_by_adapter(w.mode)) {
    w.mode = !w.all_mapped || (w.defers && wished == accumulate_mode::automatic) ? accumulate_mode::handler
             : wished == accumulate_mode::automatic
                 ? (wants_elements(w.hints) ? accumulate_mode::element : accumulate_mode::striped)
                 : wished;
  }
  const bool by_processor = w.mode == accumulate_mode::element || w.mode == accumulate_mode::striped;
  const bool biased = w.mode == accumulate_mode::striped && (all & every_one_biased) != 0;
  if (biased) w.my_block().stripe_bias.store(stripes_biased);
  const bool forced = w.observed || w.checks || w.unit != w.element_bytes || w.defers;
  for (std::size_t i = 0; i < w.views.size(); ++i) {
    target_view& v = w.views[i];
    // Where updates are locked instructions, or leave a mark. Not where neighbors store as they like.
    v.elements = biased                               ? element_path::biased
                 : w.mode == accumulate_mode::element ? element_path::locked
                                                      : element_path::stripe;
    const bool tells = v.elements != element_path::stripe || v.base == nullptr;
    const bool marks = locked_is_fence && tells && plan.kind != call::allocate_shared && v.plain_record != 0;
    v.stored = v.stored_at_rest = marks ? 0 : 1;
    if (v.base == nullptr || forced) continue;
    const window_block& block = *w.block_at(w.team->places[i]);
    v.limit_open = block.identity.bytes / w.element_bytes;
    const bool aligned = reinterpret_cast<std::uintptr_t>(v.base) % plan.element_alignment == 0;
    v.atomic_limit_open = by_processor && aligned ? v.limit_open : 0;
  }
  return status::done;
}

void promote_memory(window_core& w) {
  const auto pages = shm::pages_around(w.local_base, w.local_bytes);
  runtime_core& rt = *w.team->rt;
  w.promotion = shm::promotion_obstacle(pages);
  if (!w.promotion.empty()) return;
  const auto offset = rt.take_any(pages.bytes, 4096);
  if (!offset) {
    w.promotion = "the segment has no room for a copy";
    return;
  }
  w.promotion = shm::promote(*w.board, pages, *offset);
  if (!w.promotion.empty()) {
    rt.give_back(*offset, pages.bytes);
    return;
  }
  w.promoted_bytes = pages.bytes;
  w.promoted_offset = *offset;
}

/// The settings were checked when they were read, hints and what the fabric can do by check_plan.
void choose_fence(window_core& w) {
  w.fence = wished_fence(w.team->rt->config, w.hints);
  w.scheme_of_layouts = wished_layout(w.ctx->config(), w.hints);
  if (w.hints.layout != layout_scheme::automatic) w.layout_why = "Hints::layout";
  w.fence_why = w.hints.fence != fence_kind::automatic ? "Hints::fence" : "RMA_FENCE";
  if (w.fence != fence_kind::automatic) return;
  // One barrier behind writes that are known to be there: less than what any of the others sends, on every fabric.
  w.fence = fence_kind::placed;
  w.fence_why = "auto";
}

std::unique_ptr<window_core> new_core(const Team& handle, const window_plan& plan, const Hints& hints) {
  team_core& team = handle.core();
  auto w = std::make_unique<window_core>();
  w->team = handle.shared_core();
  w->ctx = team.rt->ctx.get();
  w->board = team.rt->board;
  w->epochs = &rules_of_epochs();
  w->kind = plan.kind;
  w->hints = hints;
  w->id = mix(team.id, ++team.children);
  w->barrier_id = mix(w->id, 1);
  w->element_bytes = plan.element_bytes;
  const std::size_t natural = plan.kind == call::create_dynamic ? 1 : plan.element_bytes;
  w->unit = hints.displacement_unit != 0 ? hints.displacement_unit : natural;
  w->intranode = team.rt->intranode;
  w->trace = team.rt->trace.get();
  w->spans_nodes = !team.one_node && w->ctx->wide() != nullptr;
  w->observed = w->trace != nullptr || team.rt->around->keeps_accounts();
  w->shared_by_threads = w->ctx->threads() == thread_level::multiple;
  w->checks = team.rt->config.on(knob::check);
  w->needs_entry_scope = w->observed || w->shared_by_threads || w->checks;
  w->blocked_by = w->ctx->is_single_threaded() ? window_core::wrong_thread : std::uint8_t{0};
  w->local_bytes = plan.count * plan.element_bytes;
  w->rng_state = mix(w->id, static_cast<std::uint64_t>(team.rank));
  choose_fence(*w);
  const std::lock_guard guard(w->ctx->lock());
  w->slot = team.rt->ops->new_slot();
  return w;
}

/// A large block lies on huge pages, if the segments have room for whole ones.
team_core::placement place_block(window_core& w, std::uint64_t room) {
  const std::uint64_t bytes = w.block_bytes;
  const auto allocate = [&](bool huge) {
    w.block_bytes = huge ? on_huge_pages(bytes) : bytes;
    return w.team->allocate(huge ? on_huge_pages(room) : room, w.block_bytes, w.layout.data_at,
                            huge ? shm::huge_bytes : 4096);
  };
  const bool large = room >= huge_from_bytes;  // here as elsewhere: all ranks try twice, or none
  const team_core::placement at = allocate(large && w.team->rt->board->huge_pages());
  return large && at.result == status::out_of_memory ? allocate(false) : at;
}

/// The members on this machine ask for so much, and those of them in this rank's control groups, whose limits are
/// theirs.
struct demand {
  std::uint64_t on_machine_bytes = 0;
  std::uint64_t in_groups_bytes = 0;
};

status sum_up(team_core& team, std::uint64_t bytes, demand& of) {
  struct asked {
    std::uint64_t bytes, machine, groups;
  };
  const asked mine{bytes, std::hash<std::string>()(shm::machine_identity()), control_groups_id()};
  std::vector<asked> all(static_cast<std::size_t>(team.size));
  const status s = team.allgather(std::as_bytes(std::span(&mine, 1)), reinterpret_cast<std::byte*>(all.data()));
  for (const asked& one : all) {
    if (one.machine != mine.machine) continue;
    of.on_machine_bytes += one.bytes;
    if (one.groups == mine.groups) of.in_groups_bytes += one.bytes;
  }
  return s;
}

/// A block takes so much of the machine: whole pages, what the kernel needs to map them, and what else the rank is
/// about to take. A window that has been accepted must not end its ranks.
std::uint64_t taken_bytes(std::uint64_t block_bytes) noexcept {
  constexpr std::uint64_t other_bytes = std::uint64_t{1} << 20;
  return on_huge_pages(block_bytes) + block_bytes / 64 + other_bytes;
}

/// Whether this machine has so much memory left: to take more is no error, but ends processes. Nodes that are simulated
/// take what is touched.
status look_for_memory(const window_core& w, const agreement& all) {
  team_core& team = *w.team;
  const bool simulated = w.board->descriptor() < 0;
  if (all.bytes_sum <= asked_bytes_min || (simulated && !team.one_node)) return status::done;
  demand of;
  auto worst = static_cast<std::int32_t>(sum_up(team, taken_bytes(w.block_bytes), of));
  if (!ok(static_cast<status>(worst))) return static_cast<status>(worst);
  if (of.on_machine_bytes > machine_bytes_left() || of.in_groups_bytes > granted_bytes_left())
    worst = static_cast<std::int32_t>(status::out_of_memory);
  const status agreed = team.allreduce_one(worst, min);
  return ok(agreed) ? static_cast<status>(worst) : agreed;
}

[[noreturn]] void refuse_bytes(const window_core& w, const window_plan& plan, const agreement& all) {
  const std::uint64_t machine = machine_bytes_left();
  const std::uint64_t granted = granted_bytes_left();
  reject(plan, w.hints, status::out_of_memory,
         fmt::format("the ranks ask for {} bytes together, at most {} on one; this machine has {} bytes available{}, "
                     "and a rank's segment {} bytes with {} in use here (RMA_SEGMENT_BYTES){}",
                     all.bytes_sum, all.bytes_max, machine,
                     granted < machine ? fmt::format(", its control groups grant {}", granted) : "",
                     w.board->segment_bytes(), w.team->rt->segment_in_use(),
                     w.team->one_node ? "" : "; other nodes may have less"));
}

/// Takes the window's part of the segments, at the same offset everywhere.
void take_place(window_core& w, const window_plan& plan, agreement all) {
  team_core& team = *w.team;
  runtime_core& rt = *team.rt;
  const bool library_memory = plan.kind == call::allocate || plan.kind == call::allocate_shared;
  const bool copied_to = library_memory && (team.one_node || all.mapped_max > 1);
  w.layout =
      lay_out(all.mapped_max, w.hints, all.bytes_max, library_memory ? 4096 : 64, copied_to ? page_offset_bytes : 0);
  const std::uint64_t in_piece = team.rank == 0 ? all.bytes_sum : 0;
  const std::uint64_t most = is_one_piece(w) ? all.bytes_sum : all.bytes_max;
  w.block_bytes = w.layout.data_at + (is_one_piece(w) ? in_piece : library_memory ? w.local_bytes : 0);
  w.part_bytes_max = all.bytes_max;
  const std::uint64_t room = w.layout.data_at + (library_memory ? most : 0);
  team_core::placement at{library_memory ? look_for_memory(w, all) : status::done, 0};
  if (ok(at.result)) at = place_block(w, room);
  if (at.result == status::out_of_memory) refuse_bytes(w, plan, all);
  if (!ok(at.result)) raise_team(team, name_of(plan.kind).data(), at.result, plan.where);
  w.block_offset = at.offset;
  w.local_base = library_memory ? rt.board->segment(rt.board->me()) + at.offset + w.layout.data_at
                                : static_cast<std::byte*>(plan.memory);
}

/// The window is complete here, or not, and so it is everywhere: a rank may serve others in this window, by its
/// progress thread, as soon as one of them uses it.
status complete_everywhere(window_core& w, status here) {
  if (here != status::done && here != status::not_supported) return here;
  std::uint32_t all = here == status::done ? 1 : 0;
  if (const status s = w.team->allreduce_one(all, min); s != status::done) return s;
  return all != 0 ? status::done : status::not_supported;
}

void take_out(window_core& w) {
  const std::lock_guard guard(w.ctx->lock());
  w.team->rt->ops->remove(w);
}

}  // namespace

window_view* make_window(const Team& handle, const window_plan& plan, const Hints& hints) {
  team_core& team = handle.core();
  runtime_core& rt = *team.rt;
  const call_scope in(*rt.ctx, name_of(plan.kind).data());
  if (const status s = rt.ctx->check_caller(); s != status::done)
    raise_team(team, name_of(plan.kind).data(), s, plan.where);
  std::uint64_t bytes = 0;
  const status mine = check_plan(team, plan, hints, bytes);
  rt.dropped->announce();
  const agreement all = agree(team, plan, hints, bytes, mine);
  if (!ok(all.worst)) raise_plan(team, plan, hints, all);
  rt.reap_dropped();  // here, where all members come by

  auto w = new_core(handle, plan, hints);
  if (std::string why_not; choose_lock(*w, why_not) != status::done)
    reject(plan, hints, status::not_supported, why_not);
  choose_schedule(*w);
  // Not between nodes, whatever the locks: nothing wakes a target there that makes nothing but inlined calls.
  const bool in_memory = w->locks == lock_protocol::cpu && w->intranode && !w->spans_nodes;
  w->inline_sync = in_memory && !w->observed && may_inline(*w) ? 1 : 0;
  take_place(*w, plan, all);
  if (is_one_piece(*w)) find_part_in_piece(*w, plan);
  if (plan.kind == call::create && (hints.promote || rt.config.on(knob::promote))) promote_memory(*w);
  if (plan.kind == call::create) check_access(*w, w->local_base, w->local_bytes);
  publish(*w);
  {
    const std::lock_guard guard(rt.ctx->lock());
    rt.ops->add(*w);
    rt.revoked->add(*w);
  }
  status s = team.barrier();  // every block is written
  if (s == status::done) {
    attach_targets(*w, plan);
    s = complete_everywhere(*w, choose_mode(*w, plan));
  }
  if (s != status::done) {
    take_out(*w);
    if (s != status::not_supported) {
      leave_window(*w);
      raise_team(team, name_of(plan.kind).data(), s, plan.where);
    }
    release_window(*w);
    reject(plan, hints, s,
           fmt::format("accumulate mode '{}' needs every rank's memory {}, and that of this window is not",
                       name_of(hints.accumulate),
                       is_by_adapter(hints.accumulate) ? "registered and in whole words of 8 bytes" : "mapped"));
  }
  if (team.one_node) {
    const auto lines = [&](int r) { return &w->block_at(team.node_index(r))->lines; };
    w->barrier.attach(lines(team.rank), lines(0), lines(team.size == 2 ? 1 - team.rank : 0),
                      static_cast<std::uint32_t>(team.size));
  }
  const bool asks_target = w->mode == accumulate_mode::handler || w->locks == lock_protocol::two_sided;
  if (w->spans_nodes && asks_target) rt.ctx->serve_beside(true);
  if (rt.config.is(knob::log, "debug")) {
    fmt::print(stderr, "rma: rank {}: {} (window {}): {} bytes here, accumulates {}, locks {} ({})\n", rt.ctx->rank(),
               name_of(plan.kind), detail::quoted(hints.name), w->local_bytes, name_of(w->mode), name_of(w->locks),
               w->locks_why);
  }
  w->allow_locks(true);
  return w.release();
}

status try_make_window(const Team& team, const window_plan& plan, const Hints& hints, window_view*& made) noexcept {
  return status_of([&] { made = make_window(team, plan, hints); });
}

}  // namespace rma::detail
