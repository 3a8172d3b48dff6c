// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of librma_mpi in a process: the Runtime, the windows that it has taken over, and the decoded datatypes.
/// MPI's interface has no argument for it, so that one pointer to it is global in the process (the only one of this
/// library).
///
/// A window that is taken over has a window of the MPI's own beside it, without memory. The program has its handle:
/// names, attributes, groups, error handlers and info stay the MPI's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "mpi_job/mpi_job.hpp"  // also MPI's header
#include "rma/rma.hpp"

namespace rma::mpi {

struct datatype;
class type_table;
class request_list;

/// A window that is taken over.
struct window {
  std::atomic<MPI_Win> handle = MPI_WIN_NULL;  ///< handle of the MPI's own window beside it
  Window<std::byte> memory;
  int rank = 0;
  int size = 0;
  bool no_locks = false;       ///< the program has given this info key
  bool noncontiguous = false;  ///< the parts of a shared window are not one piece
  bool deferrable = false;     ///< the program cannot load or store memory of other ranks directly

  // Displacement units: one for all ranks, or 0 and one for each.
  std::int64_t unit = 1;
  std::vector<int> units;

  // The values of MPI_Win_get_attr.
  void* base = nullptr;
  MPI_Aint bytes = 0;
  int own_unit = 1;
  int flavor = MPI_WIN_FLAVOR_CREATE;
  int model = MPI_WIN_UNIFIED;

  /// The displacement in bytes. A negative one is beyond every part, also where its product does not fit.
  [[nodiscard]] std::uint64_t offset(int target, MPI_Aint displacement) const noexcept {
    std::int64_t at = 0;
    if (__builtin_mul_overflow(displacement, unit != 0 ? unit : unit_of(target), &at)) [[unlikely]]
      return std::numeric_limits<std::uint64_t>::max();
    return static_cast<std::uint64_t>(at);
  }

 private:
  /// The unit of a rank that the window does not have is any: the operation reports it.
  [[nodiscard]] std::int64_t unit_of(int target) const noexcept {
    const auto t = static_cast<std::size_t>(target);
    return t < units.size() ? units[t] : 1;
  }
};

/// Counters of a process, for RMA_MPI_EXPLAIN.
struct decisions {
  std::atomic<std::uint64_t> windows_here = 0;    ///< made here as their first ranks
  std::atomic<std::uint64_t> windows_of_mpi = 0;  ///< left to MPI
};

struct state {
  explicit state(const Config& config, MPI_Comm own);
  ~state();

  MPI_Comm comm;  ///< a copy of MPI_COMM_WORLD, for this library's own collectives
  // See progress_hook.hpp. The end of the Runtime may poll MPI.
  std::atomic<bool> is_hooked = false;
  std::atomic<bool> polls_mpi = false;  ///< a wait of this library polls MPI, whose progress must not call it again
  std::atomic<std::uint32_t> rounds_of_mpi = 0;

  Runtime runtime;
  Team world;
  bool explain = false;  ///< set by rank 0 for all
  decisions counts;
  std::unique_ptr<type_table> types;
  std::unique_ptr<request_list> requests;

  std::atomic<window*> last = nullptr;  ///< the window that was found last
  std::shared_mutex mutex;              ///< guards the following members
  std::unordered_map<std::uint64_t, std::unique_ptr<window>> windows;
  std::vector<std::unique_ptr<window>> free_windows;  ///< kept, since another thread may read `handle`
  std::map<std::vector<int>, Team> teams;             ///< teams of communicators, by their ranks in the world
};

// The one mutable global of this library: MPI's calls have no argument that could identify the runtime.
extern std::atomic<state*> the_state;

/// Null before MPI_Init, after MPI_Finalize, and if the library stands aside.
inline state* current() noexcept { return the_state.load(std::memory_order_acquire); }
inline void set_current(state* now) noexcept { the_state.store(now, std::memory_order_release); }

window* find_slow(state& s, MPI_Win win) noexcept;

/// Returns the window of that handle; null if it is the MPI's.
inline window* find(MPI_Win win) noexcept {
  state* const s = current();
  if (s == nullptr) [[unlikely]]
    return nullptr;
  window* const last = s->last.load(std::memory_order_acquire);
  if (last != nullptr && last->handle.load(std::memory_order_relaxed) == win) [[likely]]
    return last;
  return find_slow(*s, win);
}

/// With RMA_MPI_EXPLAIN=1, rank 0 of the job prints the decision in one line on standard error.
void explain(const state& s, const std::string& what);
/// Counts a window that the MPI makes. The communicator's first rank says why: rank 0 of the job need not be in it.
void leave_to_mpi(state& s, const char* call, MPI_Comm comm, const char* why);

/// MPI's error class of a status.
int error_class(status s) noexcept;
/// Calls the window's error handler, unless the status is a success. Returns MPI's error code.
int report_slow(window& w, const char* call, status s, int target);
inline int report(window& w, const char* call, status s, int target = -1) {
  if (ok(s)) [[likely]]
    return MPI_SUCCESS;
  return report_slow(w, call, s, target);
}

/// Lets MPI make progress, as a wait for another rank of the program must: that rank may be waiting in MPI for this
/// one. The Runtime calls it in all of its waits (Runtime::on_wait).
void poll_mpi(state& s) noexcept;

}  // namespace rma::mpi
