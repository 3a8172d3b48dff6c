// SPDX-License-Identifier: Apache-2.0
#include "armci/state.hpp"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "armci/handles.hpp"
#include "armci/job.hpp"
#include "armci/mutexes.hpp"
#include "armci/notes.hpp"

namespace rma::armci {
namespace {

// The one mutable global of this archive: ARMCI's calls have no argument that could identify the runtime.
std::atomic<state*> the_state = nullptr;

}  // namespace

state* current() noexcept { return the_state.load(std::memory_order_acquire); }
void set_current(state* now) noexcept { the_state.store(now, std::memory_order_release); }

state& running(const char* call) {
  state* const s = current();
  if (s == nullptr) [[unlikely]]
    fail(call, "ARMCI is not running: call ARMCI_Init first, and nothing after ARMCI_Finalize");
  return *s;
}

void fail(const char* call, std::string_view what, int code) {
  end_job(code, std::string(call) + ": " + std::string(what));
}

void fail_by(const char* call, status s, std::string_view what) {
  std::string text(name_of(s));
  if (!what.empty()) text += ": " + std::string(what);
  if (s == status::peer_failed && current() != nullptr) {
    text += "; dead processes:";
    for (const int rank : current()->runtime.failed_ranks()) text += " " + std::to_string(rank);
  }
  fail(call, text);
}

group_state::group_state(const Team& of, const Team& world)
    : team(of), to_world(static_cast<std::size_t>(of.size())), to_group(static_cast<std::size_t>(world.size()), -1) {
  for (int r = 0; r < of.size(); ++r) {
    const int in_world = of.world_rank(r);
    to_world[static_cast<std::size_t>(r)] = in_world;
    to_group[static_cast<std::size_t>(in_world)] = r;
  }
}

namespace {

// Progress does not depend on calls, as in other ARMCIs: a program may compute, poll its memory until another process
// has written to it, or block in MPI for any time.
Config config_of(const job& launcher, thread_level threads) {
  Config config = launcher.config();
  if (std::getenv("RMA_PROGRESS_THREAD") == nullptr) config.settings["RMA_PROGRESS_THREAD"] = "1";
  config.threads = threads;
  return config;
}

}  // namespace

state::state(std::unique_ptr<job> started_by, thread_level threads)
    : launcher(std::move(started_by)),
      runtime(config_of(*launcher, threads)),
      world(runtime.world()),
      me(runtime.rank()),
      size(runtime.size()),
      multiple(runtime.threads() == thread_level::multiple),
      addresses(world),
      notes(std::make_unique<note_board>(world)),
      handles(std::make_unique<handle_table>()) {
  world_group = &add_group(world, launcher->communicator());
  default_group = world_group;
}

state::~state() {
  for (auto& [address, each] : allocations) (void)each->window.try_unlock_all();
}

group_state& state::add_group(Team team, std::uint64_t communicator) {
  auto made = std::make_unique<group_state>(team, world);
  group_state& group = *made;
  group.number = groups_made++;
  group.communicator = communicator;
  groups.emplace(group.to_world.data(), std::move(made));
  return group;
}

spot state::find(const char* call, int proc, const void* address, std::size_t bytes) {
  const AddressMap::Place found = addresses.find(proc, address);
  if (found) [[likely]]
    return {static_cast<allocation*>(found.object), found.target, found.at};
  if (proc == me) return {};
  if (proc < 0 || proc >= size)
    fail(call, "there is no process " + std::to_string(proc) + " among " + std::to_string(size));
  char text[128];
  std::snprintf(text, sizeof text, "%zu bytes at %p of process %d are not memory of ARMCI_Malloc", bytes, address,
                proc);
  fail(call, text);
}

void end_job(int code, std::string_view message) noexcept {
  state* const s = current();
  const std::string text = "ARMCI error" + (s == nullptr ? std::string() : " at process " + std::to_string(s->me)) +
                           ": " + std::string(message);
  std::fprintf(stderr, "%s\n", text.c_str());
  (void)std::fflush(nullptr);
  const int kept = code > 0 && code < 256 ? code : 1;  // the range that launchers understand
  if (s != nullptr) {
    s->launcher->abort(kept);
    s->runtime.abort(kept, text);
  }
  std::_Exit(kept);
}

void state::finish(const char* call, const spot& where) {
  if (where.in->one_node) return;
  check(call, where.in->window.try_flush(where.target));
}

}  // namespace rma::armci
