// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_core.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>

#include "channel/call_scope.hpp"
#include "coll/machine.hpp"
#include "fabric/tuning.hpp"
#include "p2p/messenger.hpp"
#include "runtime/message_node.hpp"
#include "sync/synchronization.hpp"  // tidy: allow(include-direction) a runtime owns it
#include "xfer/remote.hpp"

namespace rma::detail {
namespace {

// Called before the job is joined: a file that cannot be written ends this rank while no other rank waits for it.
std::unique_ptr<trace_file> open_trace(const settings& s) {
  const std::string& name = s.text(knob::trace);
  return name.empty() ? nullptr
                      : std::make_unique<trace_file>(name, static_cast<int>(s.number(knob::rank)),
                                                     s.number(knob::trace_bytes), s.text(knob::trace_calls));
}

/// The costs measured on this machine, if the file contains them; otherwise rank 0 prints one line that it does not.
template <class Costs>
std::optional<Costs> measured_costs(const context& ctx, std::string_view fabric, std::string_view device) {
  const std::string& path = ctx.config().text(knob::tuning);
  if (path.empty()) return {};
  const auto text = fabric::tuning_text(path);
  const std::string section = fabric::section_of(fabric, device);
  const auto costs = fabric::find_costs<Costs>(text.value_or(""), section);
  if (costs || ctx.rank() != 0) return costs;
  fmt::print(stderr, "rma: RMA_TUNING={}: {} {}; built-in figures are used (rma-tune measures)\n", path,
             text ? "it has no whole section" : "it cannot be read for section", section);
  return {};
}

/// Between nodes, or in memory where all ranks are on one node. `for_all`: costs between nodes that all ranks share.
void use_tuning(context& ctx, coll::machine& collectives, const std::optional<fabric::transfer_costs>& for_all) {
  if (const fabric::network* const wide = ctx.wide(); wide != nullptr) {
    if (const auto costs =
            measured_costs<fabric::transfer_costs>(ctx, wide->caps().name, ctx.config().text(knob::device)))
      ctx.use_costs(*costs);
    if (for_all) collectives.use_costs(*for_all);
  } else if (ctx.size() > 1) {
    if (const auto costs = measured_costs<fabric::memory_costs>(ctx, fabric::memory_name, ""))
      collectives.use_costs(*costs);
  }
}

}  // namespace

runtime_core::runtime_core(const Config& wanted)
    : process(::getpid()),
      config(wanted),
      trace(open_trace(config)),
      where(fabric::find_place(config)),
      boot(where.boot.get()),
      board(where.board.get()),
      around(where.around.get()),
      ctx(std::make_unique<context>(config, *boot, *where.node, *around, where.wide.get())),
      dropped(std::make_unique<reclaimer>(*ctx)),
      ops(std::make_unique<engine>(*ctx)),
      nodes(std::make_unique<message_nodes>()),
      messages(std::make_unique<messenger>(*ctx)),
      syncs(std::make_unique<synchronization>(*ops)),
      collectives(std::make_shared<coll::machine>(*ctx, *messages)),
      revoked(std::make_unique<revocations>(*ctx, *ops)),
      intranode(config.on(knob::intranode)),
      exceptions(std::uncaught_exceptions()),
      segment_(board->segment_bytes()) {
  where.directory->answered_by(*ctx);
  use_tuning(*ctx, *collectives, where.costs);
  ctx->trace_to(trace.get());
  messages->trace_to(trace.get());
  nodes->copied_bytes_max = config.number(knob::send_copy_bytes);
  if (where.wide != nullptr) publish_segment();
  if (const status s = boot->fence(); !ok(s)) raise_job_ended(*boot, s);
  around->begin();
  where.node->ranks_are_there();
  ctx->serve_beside();
  log_start();
}

// One line of rank 0 at level info, of each rank at level debug.
void runtime_core::log_start() const {
  const bool debug = config.is(knob::log, "debug");
  if (!debug && (!config.is(knob::log, "info") || ctx->rank() != 0)) return;
  fmt::print(stderr, "rma: rank {} of {}: {} ranks on its node by {}, others by {}; waits {}; progress thread {}\n",
             ctx->rank(), ctx->size(), board->size(), where.node->caps().name,
             where.wide == nullptr ? "nothing" : where.wide->caps().name,
             around->why_waits(static_cast<std::int64_t>(config.number(knob::spin_us)) * 1000),
             ctx->serves_beside() ? "on" : "off");
}

// Left by an exception, the rank leaves as if it had died: the others get peer_failed instead of waiting for it.
runtime_core::~runtime_core() {
  const bool in_good_order = std::uncaught_exceptions() <= exceptions;
  ctx->stop_progress_thread();
  {
    const call_scope in(*ctx, "the end of the Runtime");
    if (in_good_order) (void)messages_leave();
    ctx->drain(in_good_order);
  }
  if (config.on(knob::counters)) print_counters();
  board->detach(in_good_order);
  if (in_good_order) boot->finalize();
  delete copies_.load();
}

copy_records& runtime_core::make_copies() noexcept {
  const std::lock_guard guard(books_);
  if (copies_.load() == nullptr) copies_.store(new copy_records);
  return *copies_.load();
}

void runtime_core::each_count(const std::function<void(std::string_view, std::uint64_t)>& add) {
  constexpr std::string_view names[] = {"messages_sent",        "messages_received",
                                        "messages_refused",     "malformed_notices",
                                        "sends_queued",         "sleeps",
                                        "operations_handler",   "operations_fabric",
                                        "stripe_waits",         "placement_reads",
                                        "lock_waits",           "locks_local",
                                        "locks_remote",         "lock_migrations",
                                        "barrier_words",        "deaths",
                                        "eager_messages",       "announced_messages",
                                        "unexpected_messages",  "rendezvous_messages",
                                        "rendezvous_transfers", "ring_messages",
                                        "layout_requests",      "layout_bytes",
                                        "layouts_asked",        "layout_plans",
                                        "target_wait_ns",       "collective_puts"};
  static_assert(std::size(names) == static_cast<std::size_t>(counter::count_));
  const std::lock_guard guard(ctx->lock());
  for (std::size_t i = 0; i < std::size(names); ++i) add(names[i], ctx->value(static_cast<counter>(i)));
  if (where.wide != nullptr) where.wide->as_facts().counts(add);
  add("unexpected_bytes", messages->unexpected_bytes());
  add("unexpected_bytes_max", messages->unexpected_bytes_max());
  add("message_sources", messages->sources());
  add("ring_bytes", messages->ring_bytes());
  add("segment_bytes_in_use", segment_in_use());
}

// In one write, so that tables of several ranks do not mix.
void runtime_core::print_counters() noexcept {
  try {
    std::string text = fmt::format("rma: counters of rank {} that are not 0:\n", ctx->rank());
    each_count([&](std::string_view name, std::uint64_t value) {
      if (value != 0) text += fmt::format("rma:   {:<24} {:>16}\n", name, value);
    });
    (void)!::write(STDERR_FILENO, text.data(), text.size());
  } catch (...) {  // no memory for a text
  }
}

// Sends whose requests were dropped are still carried out.
status runtime_core::messages_leave() noexcept {
  messages->end_program();
  const auto left = [this]() noexcept {
    const std::lock_guard guard(ctx->lock());
    return nodes->detached_sends == 0;
  };
  return ctx->wait({.until = left});
}

bool runtime_core::forked() const noexcept { return ::getpid() != process; }

// Others ask for it when they first need it: one registration and one key for everything that the library allocates, or
// the table of what is registered.
void runtime_core::publish_segment() {
  boot->begin_step("registers its memory with the network");
  fabric::region_key& mine = segment_keys_[boot->rank()];
  std::size_t bytes = board->segment_bytes();
  status s = status::done;
  if (where.wide->caps().pins_memory) {
    bytes = (sizeof(extent_table) + 4095) / 4096 * 4096;
    s = board->populate(0, bytes);
    if (ok(s) && !segment_.take(0, bytes)) s = status::out_of_memory;
  }
  if (ok(s)) s = where.wide->register_region(board->segment(board->me()), bytes, mine);
  if (!ok(s)) {
    throw Error(s,
                fmt::format("{} cannot register the {} bytes that every rank needs", where.wide->caps().name, bytes));
  }
  s = boot->put(fmt::format("segment/{}", boot->rank()), fmt::format("{} {}", mine.address, mine.key));
  if (!ok(s)) raise_job_ended(*boot, s);
}

std::uint64_t runtime_core::count_team_of(std::string_view process_set) {
  const std::lock_guard guard(books_);
  return teams_of_sets_[std::string(process_set)]++;
}

bool runtime_core::near(int world_rank) const noexcept {
  if (world_rank == boot->rank()) return true;
  return board->index_of(world_rank) < board->size() && (intranode || where.wide == nullptr);
}

status runtime_core::segment_of(int world_rank, fabric::region_key& key) noexcept {
  {
    const std::lock_guard guard(books_);
    if (const auto at = segment_keys_.find(world_rank); at != segment_keys_.end()) {
      key = at->second;
      return status::done;
    }
  }
  std::string text;
  if (const status s = ctx->look_up(world_rank, fmt::format("segment/{}", world_rank), text); !ok(s)) return s;
  const auto cut = text.find(' ');
  key = {std::stoull(text.substr(0, cut)), board->segment_bytes(), std::stoull(text.substr(cut + 1))};
  const std::lock_guard guard(books_);
  segment_keys_[world_rank] = key;
  return status::done;
}

status runtime_core::region_at(int world_rank, std::size_t offset, fabric::region_key& region) noexcept {
  fabric::region_key base;
  if (const status s = segment_of(world_rank, base); !ok(s)) return s;
  if (!where.wide->caps().pins_memory) {
    region = {base.address + offset, base.bytes - offset, base.key};
    return status::done;
  }
  std::array<extent, extent_neighbors> near_it{};
  const std::uint64_t at = base.address + offsetof(extent_table, entries) + home_of(offset) * sizeof(extent);
  const status s = remote_read(*ops, *where.wide, world_rank, base, at, near_it.data(), sizeof near_it);
  if (s != status::done) return s;
  const extent* const found = find_extent(std::span<const extent>(near_it), offset);
  if (found == nullptr) return status::window_freed;
  region = {base.address + offset, found->bytes, found->key};
  return status::done;
}

std::span<extent> runtime_core::own_extents(std::size_t offset) noexcept {
  auto& table = *reinterpret_cast<extent_table*>(board->segment(board->me()));
  return std::span(table.entries).subspan(home_of(offset), extent_neighbors);
}

fabric::region_key runtime_core::own_region(std::size_t offset) noexcept {
  const std::lock_guard guard(books_);
  const fabric::region_key& base = segment_keys_[boot->rank()];
  if (!where.wide->caps().pins_memory) return {base.address + offset, base.bytes - offset, base.key};
  const extent* const found = find_extent(own_extents(offset), offset);
  return found == nullptr ? fabric::region_key{} : fabric::region_key{base.address + offset, found->bytes, found->key};
}

std::optional<std::size_t> runtime_core::propose(std::size_t bytes, std::size_t from,
                                                 std::size_t alignment) const noexcept {
  const std::lock_guard guard(books_);
  return segment_.propose(bytes, from, alignment);
}

std::size_t runtime_core::segment_in_use() const noexcept {
  const std::lock_guard guard(books_);
  return segment_.in_use();
}

// The caller holds books_.
status runtime_core::enroll(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept {
  if (where.wide == nullptr || !where.wide->caps().pins_memory) return status::done;
  extent* unused = nullptr;
  for (extent& e : own_extents(offset)) {
    if (e.bytes == 0) unused = &e;
  }
  if (unused == nullptr) return status::out_of_memory;
  fabric::region_key key;
  const std::lock_guard guard(ctx->lock());
  std::byte* const at = board->segment(board->me()) + offset;
  status s = where.wide->register_region(at, bytes, key);
  if (!ok(s)) s = where.wide->register_region(at, bytes = needed, key);
  if (ok(s)) *unused = {offset, bytes, key.key};
  return ok(s) ? status::done : status::out_of_memory;
}

void runtime_core::withdraw(std::size_t offset) noexcept {
  if (where.wide == nullptr || !where.wide->caps().pins_memory) return;
  const fabric::region_key region = own_region(offset);
  if (region.bytes == 0) return;
  {
    const std::lock_guard guard(ctx->lock());
    where.wide->deregister_region(region);
  }
  const std::lock_guard guard(books_);
  if (extent* const found = find_extent(own_extents(offset), offset); found != nullptr) *found = {};
}

status runtime_core::take(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept {
  if (bytes == 0) return status::done;
  const std::size_t whole = (bytes + 4095) / 4096 * 4096;
  const std::lock_guard guard(books_);
  if (!segment_.take(offset, whole)) return status::not_yet;
  status s = board->populate(offset, whole);
  if (ok(s)) {
    s = enroll(offset, whole, std::min(needed, whole));
    if (!ok(s)) board->depopulate(offset, whole);
  }
  if (!ok(s)) segment_.give_back(offset);
  return s;
}

std::optional<std::size_t> runtime_core::take_any(std::size_t bytes, std::size_t alignment) noexcept {
  for (;;) {
    const auto offset = propose(bytes, 0, alignment);
    const status s = offset ? take(*offset, bytes, bytes) : status::out_of_memory;
    if (s == status::done) return offset;
    if (s != status::not_yet) return std::nullopt;
  }
}

void runtime_core::give_back(std::size_t offset, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  withdraw(offset);
  board->depopulate(offset, (bytes + 4095) / 4096 * 4096);
  const std::lock_guard guard(books_);
  segment_.give_back(offset);
}

void runtime_core::reap_dropped() noexcept {
  for (const segment_part& part : dropped->take_released()) give_back(part.offset, part.bytes);
}

}  // namespace rma::detail
