// SPDX-License-Identifier: Apache-2.0
#include "runtime/runtime_core.hpp"

#include <fmt/format.h>

#include <fstream>
#include <string>
#include <vector>

namespace rma::detail {
namespace {

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

[[noreturn]] void boot_lost(status s) {
  throw Error(s, fmt::format("the job ended while it started ({})", name_of(s)));
}

/// World ranks that share this rank's node, ascending. Rank 0 gathers the identities and publishes the list once:
/// each rank asks two keys, not one of everybody.
std::vector<int> find_node(boot::client& boot, const std::string& identity) {
  const int size = boot.size();
  if (size == 1) return {0};
  if (const status s = boot.put(fmt::format("node/{}", boot.rank()), identity); !ok(s)) boot_lost(s);
  std::string text;
  if (boot.rank() == 0) {
    std::vector<std::string> known;
    for (int r = 0; r < size; ++r) {
      std::string theirs;
      if (const status s = boot.get(fmt::format("node/{}", r), theirs); !ok(s)) boot_lost(s);
      std::size_t node = 0;
      while (node < known.size() && known[node] != theirs) ++node;
      if (node == known.size()) known.push_back(theirs);
      text += fmt::format("{} ", node);
    }
    if (const status s = boot.put("nodes", text); !ok(s)) boot_lost(s);
  } else if (const status s = boot.get("nodes", text); !ok(s)) {
    boot_lost(s);
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

// Before the job is joined: a file that cannot be written ends this rank while nobody waits for it.
std::unique_ptr<trace_file> open_trace(const settings& s) {
  const std::string& name = s.text(knob::trace);
  return name.empty() ? nullptr : std::make_unique<trace_file>(name, static_cast<int>(s.number(knob::rank)));
}

std::unique_ptr<shm::board> make_board(boot::client& boot, const settings& s) {
  std::vector<int> members = find_node(boot, shm::node_identity(s.text(knob::node)));
  const std::size_t me = position(members, boot.rank());
  return std::make_unique<shm::board>(boot, s, std::move(members), me);
}

}  // namespace

runtime_core::runtime_core(const Config& wanted)
    : config(wanted),
      trace(open_trace(config)),
      boot(boot::join(boot_options(config))),
      board(make_board(*boot, config)),
      around(std::make_unique<shm::node_surroundings>(*board, config.number(knob::local_ranks))),
      network(std::make_unique<shm::shm_fabric>(*board)),
      ctx(std::make_unique<context>(config, *boot, *network, *around)),
      mail(std::make_unique<mailbox>(*ctx)),
      ops(std::make_unique<engine>(*ctx)),
      segment(board->segment_bytes()),
      intranode(config.on(knob::intranode)),
      exceptions(std::uncaught_exceptions()) {
  if (const status s = boot->fence(); !ok(s)) boot_lost(s);
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
