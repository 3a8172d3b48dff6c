// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_core.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>

namespace rma::detail {
namespace {

// Before the job is joined: a file that cannot be written ends this rank while nobody waits for it.
std::unique_ptr<trace_file> open_trace(const settings& s) {
  const std::string& name = s.text(knob::trace);
  return name.empty() ? nullptr : std::make_unique<trace_file>(name, static_cast<int>(s.number(knob::rank)));
}

}  // namespace

runtime_core::runtime_core(const Config& wanted)
    : config(wanted),
      trace(open_trace(config)),
      where(fabric::find_place(config)),
      boot(where.boot.get()),
      board(where.board.get()),
      around(where.around.get()),
      ctx(std::make_unique<context>(config, *boot, *where.node, *around, where.wide.get())),
      mail(std::make_unique<mailbox>(*ctx)),
      ops(std::make_unique<engine>(*ctx)),
      segment(board->segment_bytes()),
      intranode(config.on(knob::intranode)),
      exceptions(std::uncaught_exceptions()) {
  if (where.wide != nullptr) publish_segment();
  if (const status s = boot->fence(); !ok(s)) fabric::raise_job_ended(s);
  if (config.on(knob::progress_thread)) ctx->start_progress_thread();
}

// Left by an exception, the rank leaves as if it had died: the others get peer_failed instead of waiting for it.
runtime_core::~runtime_core() {
  const bool in_good_order = std::uncaught_exceptions() <= exceptions;
  ctx->stop_progress_thread();
  ctx->drain();
  board->leave(in_good_order);
  if (in_good_order) boot->leave();
}

// One registration and one key for everything that the library allocates: others ask for it when they first need it.
void runtime_core::publish_segment() {
  fabric::region_key& mine = segment_keys[boot->rank()];
  status s = where.wide->register_region(board->segment(board->me()), board->segment_bytes(), mine);
  if (ok(s)) s = boot->put(fmt::format("segment/{}", boot->rank()), fmt::format("{} {}", mine.address, mine.key));
  if (!ok(s)) fabric::raise_job_ended(s);
}

bool runtime_core::near(int world_rank) const noexcept {
  if (world_rank == boot->rank()) return true;
  return board->index_of(world_rank) < board->size() && (intranode || where.wide == nullptr);
}

status runtime_core::segment_of(int world_rank, fabric::region_key& key) noexcept {
  if (const auto at = segment_keys.find(world_rank); at != segment_keys.end()) {
    key = at->second;
    return status::done;
  }
  std::string text;
  if (const status s = ctx->look_up(fmt::format("segment/{}", world_rank), text); !ok(s)) return s;
  const auto cut = text.find(' ');
  key = {std::stoull(text.substr(0, cut)), board->segment_bytes(), std::stoull(text.substr(cut + 1))};
  segment_keys[world_rank] = key;
  return status::done;
}

status runtime_core::take(std::size_t offset, std::size_t bytes) noexcept {
  if (bytes == 0) return status::done;
  const std::size_t whole = (bytes + 4095) / 4096 * 4096;
  if (const status s = board->populate(offset, whole); s != status::done) return s;
  segment.take(offset, whole);
  return status::done;
}

void runtime_core::give_back(std::size_t offset, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  board->depopulate(offset, (bytes + 4095) / 4096 * 4096);
  segment.give_back(offset);
}

}  // namespace rma::detail
