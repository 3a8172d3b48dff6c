// SPDX-License-Identifier: Apache-2.0
/// \file
/// Windows: the choice of those that are taken over, their creation and release, and their attributes.
#include <algorithm>
#include <cstdio>
#include <mutex>
#include <numeric>

#include "mpi/info.hpp"
#include "mpi/types.hpp"

namespace rma::mpi {
namespace {

/// The program's request for a window.
struct request_of_window {
  const char* call;
  MPI_Aint bytes;
  int unit;
  MPI_Info info;
  MPI_Comm comm;
  int flavor;
};

bool has_two_groups(MPI_Comm comm) {
  int inter = 0;
  PMPI_Comm_test_inter(comm, &inter);
  return inter != 0;
}

/// Ranks in MPI_COMM_WORLD of the communicator's ranks; empty if it has others.
std::vector<int> ranks_in_world(const state& s, MPI_Comm comm) {
  MPI_Group some = MPI_GROUP_NULL;
  MPI_Group all = MPI_GROUP_NULL;
  int size = 0;
  PMPI_Comm_group(comm, &some);
  PMPI_Comm_group(s.comm, &all);
  PMPI_Group_size(some, &size);
  std::vector<int> mine(static_cast<std::size_t>(size));
  std::vector<int> in_world(mine.size());
  std::iota(mine.begin(), mine.end(), 0);
  PMPI_Group_translate_ranks(some, size, mine.data(), all, in_world.data());
  PMPI_Group_free(&some);
  PMPI_Group_free(&all);
  if (std::find(in_world.begin(), in_world.end(), MPI_UNDEFINED) != in_world.end()) return {};
  return in_world;
}

/// The team of a communicator's ranks; none if the window is to be left to MPI. All its ranks see the same, so that
/// either all of them take the window over or none does.
std::optional<Team> team_for(state* s, const request_of_window& asked) {
  if (s == nullptr || asked.comm == MPI_COMM_NULL) return std::nullopt;
  if (has_two_groups(asked.comm)) return std::nullopt;  // MPI has no such windows: its own call reports the error
  const std::vector<int> ranks = ranks_in_world(*s, asked.comm);
  if (ranks.empty()) {
    leave_to_mpi(*s, asked.call, asked.comm, "its communicator has ranks outside MPI_COMM_WORLD");
    return std::nullopt;
  }
  int how = MPI_UNEQUAL;
  PMPI_Comm_compare(asked.comm, s->comm, &how);
  if (how == MPI_IDENT || how == MPI_CONGRUENT) return s->world;
  {
    const std::shared_lock guard(s->mutex);
    if (const auto known = s->teams.find(ranks); known != s->teams.end()) return known->second;
  }
  PMPI_Barrier(asked.comm);  // MPI makes progress while ranks are late
  try {
    const Team made = s->runtime.team_of_ranks(ranks);
    const std::lock_guard guard(s->mutex);
    return s->teams.emplace(ranks, made).first->second;
  } catch (const Error& e) {
    std::fprintf(stderr, "librma_mpi: %s: left to MPI: %s\n", asked.call, e.what());
    return std::nullopt;
  }
}

std::unique_ptr<window> take_record(state& s) {
  const std::lock_guard guard(s.mutex);
  if (s.free_windows.empty()) return std::make_unique<window>();
  std::unique_ptr<window> record = std::move(s.free_windows.back());
  s.free_windows.pop_back();
  return record;
}

/// Exchanges the displacement units of all ranks.
void agree_on_units(window& w, int unit, const window_info& info, MPI_Comm comm) {
  w.own_unit = unit;
  w.units.clear();
  w.unit = unit;
  if (info.same_disp_unit) return;
  const int mine[2] = {unit, -unit};
  int most[2] = {0, 0};
  PMPI_Allreduce(mine, most, 2, MPI_INT, MPI_MAX, comm);
  if (most[0] == -most[1]) return;
  w.unit = 0;
  w.units.resize(static_cast<std::size_t>(w.size));
  PMPI_Allgather(&unit, 1, MPI_INT, w.units.data(), 1, MPI_INT, comm);
}

/// A part that is empty has no address, unless the parts are one piece.
std::byte* shared_base(const window& w, int rank, std::size_t bytes) noexcept {
  return bytes > 0 || !w.noncontiguous ? w.memory.pointer_to(rank) : nullptr;
}

status make_shared(const Team& team, window& w, const Hints& hints) {
  const auto bytes = static_cast<std::size_t>(w.bytes);
  const status made = Window<std::byte>::try_allocate_shared(team, bytes, w.memory, hints);
  w.base = ok(made) ? shared_base(w, w.rank, bytes) : nullptr;
  return made;
}

status make_memory(const Team& team, window& w, const window_info& info) {
  const Hints hints{.accumulate_granularity = info.granularity_bytes, .contiguous = !info.noncontiguous};
  const auto bytes = static_cast<std::size_t>(w.bytes);
  switch (w.flavor) {
    case MPI_WIN_FLAVOR_ALLOCATE: {
      const status made = Window<std::byte>::try_allocate(team, bytes, w.memory, hints);
      w.base = ok(made) ? w.memory.data() : nullptr;
      return made;
    }
    case MPI_WIN_FLAVOR_SHARED: return make_shared(team, w, hints);
    case MPI_WIN_FLAVOR_DYNAMIC: return Window<std::byte>::try_create_dynamic(team, w.memory, hints);
    default: return Window<std::byte>::try_create(team, {static_cast<std::byte*>(w.base), bytes}, w.memory, hints);
  }
}

int reject(MPI_Comm comm, int code) {
  PMPI_Comm_call_errhandler(comm, code);
  return code;
}

int make(state& s, const Team& team, const request_of_window& asked, void* base, MPI_Win* win) {
  if (asked.bytes < 0) return reject(asked.comm, MPI_ERR_SIZE);
  if (asked.unit <= 0) return reject(asked.comm, MPI_ERR_DISP);
  std::unique_ptr<window> w = take_record(s);
  w->rank = team.rank();
  w->size = team.size();
  w->flavor = asked.flavor;
  w->base = base;
  w->bytes = asked.bytes;
  const window_info info = info_of(asked.info);
  w->no_locks = info.no_locks;
  w->deferrable = asked.flavor != MPI_WIN_FLAVOR_SHARED;
  w->noncontiguous = info.noncontiguous;
  agree_on_units(*w, asked.unit, info, asked.comm);
  if (const status made = make_memory(team, *w, info); !ok(made)) {
    explain(s, std::string(asked.call) + ": " + std::string(name_of(made)));
    return reject(asked.comm, error_class(made));
  }
  void* nothing = nullptr;  // this flavor needs least of Open MPI: it exists on one rank as well
  const int code = PMPI_Win_allocate(0, 1, asked.info, asked.comm, &nothing, win);
  if (code != MPI_SUCCESS) return code;
  w->handle = *win;
  if (w->rank == 0) ++s.counts.windows_here;
  const std::lock_guard guard(s.mutex);
  s.windows[number_of(*win)] = std::move(w);
  return MPI_SUCCESS;
}

int free_window(state& s, MPI_Win* win) {
  window* const w = find(*win);
  const std::uint64_t key = number_of(*win);
  if (w->memory.has_open_epoch()) return report(*w, "MPI_Win_free", status::wrong_epoch);
  const int code = PMPI_Win_free(win);  // calls the attributes' functions, which may use the window
  if (code != MPI_SUCCESS) return code;
  const status freed = w->memory.try_free();
  const std::lock_guard guard(s.mutex);
  w->handle = MPI_WIN_NULL;
  s.last = nullptr;
  const auto found = s.windows.find(key);
  s.free_windows.push_back(std::move(found->second));
  s.windows.erase(found);
  return ok(freed) ? MPI_SUCCESS : reject(s.comm, MPI_ERR_RMA_SYNC);
}

bool own_attribute(window& w, int keyval, void* value) noexcept {
  const auto give = [&](void* what) {
    *static_cast<void**>(value) = what;
    return true;
  };
  if (keyval == MPI_WIN_BASE) return give(w.flavor == MPI_WIN_FLAVOR_DYNAMIC ? MPI_BOTTOM : w.base);
  if (keyval == MPI_WIN_SIZE) return give(&w.bytes);
  if (keyval == MPI_WIN_DISP_UNIT) return give(&w.own_unit);
  if (keyval == MPI_WIN_CREATE_FLAVOR) return give(&w.flavor);
  if (keyval == MPI_WIN_MODEL) return give(&w.model);
  return false;
}

/// `rank` MPI_PROC_NULL: the first part that is not empty.
status shared_part(window& w, int rank, MPI_Aint* bytes, int* unit, void** base) noexcept {
  if (w.flavor != MPI_WIN_FLAVOR_SHARED) return status::not_supported;
  for (int r = 0; r < w.size; ++r) {
    std::size_t part = 0;
    if (const status s = w.memory.try_part_bytes(r, part); !ok(s)) return s;
    if (rank == r || (rank == MPI_PROC_NULL && part > 0)) {
      *bytes = static_cast<MPI_Aint>(part);
      *unit = w.unit != 0 ? static_cast<int>(w.unit) : w.units[static_cast<std::size_t>(r)];
      *base = shared_base(w, r, part);
      return status::done;
    }
  }
  if (rank != MPI_PROC_NULL) return status::bad_rank;
  *bytes = 0;
  *unit = w.own_unit;
  *base = nullptr;
  return status::done;
}

}  // namespace
}  // namespace rma::mpi

using namespace rma::mpi;

int MPI_Win_create(void* base, MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const request_of_window asked{"MPI_Win_create", size, disp_unit, info, comm, MPI_WIN_FLAVOR_CREATE};
  if (const auto team = team_for(current(), asked)) return make(*current(), *team, asked, base, win);
  return PMPI_Win_create(base, size, disp_unit, info, comm, win);
}

int MPI_Win_allocate(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  const request_of_window asked{"MPI_Win_allocate", size, disp_unit, info, comm, MPI_WIN_FLAVOR_ALLOCATE};
  const auto team = team_for(current(), asked);
  if (!team) return PMPI_Win_allocate(size, disp_unit, info, comm, baseptr, win);
  const int code = make(*current(), *team, asked, nullptr, win);
  if (code == MPI_SUCCESS) *static_cast<void**>(baseptr) = find(*win)->base;
  return code;
}

int MPI_Win_allocate_shared(MPI_Aint size, int disp_unit, MPI_Info info, MPI_Comm comm, void* baseptr, MPI_Win* win) {
  const request_of_window asked{"MPI_Win_allocate_shared", size, disp_unit, info, comm, MPI_WIN_FLAVOR_SHARED};
  const auto team = team_for(current(), asked);
  if (!team) return PMPI_Win_allocate_shared(size, disp_unit, info, comm, baseptr, win);
  const int code = make(*current(), *team, asked, nullptr, win);
  if (code == MPI_SUCCESS) *static_cast<void**>(baseptr) = find(*win)->base;
  return code;
}

int MPI_Win_create_dynamic(MPI_Info info, MPI_Comm comm, MPI_Win* win) {
  const request_of_window asked{"MPI_Win_create_dynamic", 0, 1, info, comm, MPI_WIN_FLAVOR_DYNAMIC};
  if (const auto team = team_for(current(), asked)) return make(*current(), *team, asked, nullptr, win);
  return PMPI_Win_create_dynamic(info, comm, win);
}

int MPI_Win_attach(MPI_Win win, void* base, MPI_Aint size) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_attach(win, base, size);
  std::uint64_t at = 0;
  if (size == 0) return MPI_SUCCESS;
  return report(*w, "MPI_Win_attach",
                w->memory.try_attach({static_cast<std::byte*>(base), static_cast<std::size_t>(size)}, at));
}

int MPI_Win_detach(MPI_Win win, const void* base) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_detach(win, base);
  auto* const begin = static_cast<std::byte*>(const_cast<void*>(base));
  return report(*w, "MPI_Win_detach", w->memory.try_detach({begin, 1}));
}

int MPI_Win_shared_query(MPI_Win win, int rank, MPI_Aint* size, int* disp_unit, void* baseptr) {
  window* const w = find(win);
  if (w == nullptr) return PMPI_Win_shared_query(win, rank, size, disp_unit, baseptr);
  return report(*w, "MPI_Win_shared_query", shared_part(*w, rank, size, disp_unit, static_cast<void**>(baseptr)), rank);
}

int MPI_Win_get_attr(MPI_Win win, int win_keyval, void* attribute_val, int* flag) {
  window* const w = find(win);
  if (w == nullptr || !own_attribute(*w, win_keyval, attribute_val))
    return PMPI_Win_get_attr(win, win_keyval, attribute_val, flag);
  *flag = 1;
  return MPI_SUCCESS;
}

int MPI_Win_free(MPI_Win* win) {
  if (win == nullptr || find(*win) == nullptr) return PMPI_Win_free(win);
  return free_window(*current(), win);
}
