// SPDX-License-Identifier: Apache-2.0
/// \file
/// The state of ARMCI in a process: the Runtime, allocations by their addresses, groups, mutexes, handles. The
/// interface has no argument for it, so that one pointer to it is global in the process (the only one of this archive).
///
/// This is compiled once for all MPIs: code for ARMCI_Group and communicators is in group_calls.cpp and job_*.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "rma/armci.h"
#include "rma/rma.hpp"

/// ARMCI_name is a weak alias of PARMCI_name, which is defined above it.
#define RMA_ARMCI_TWIN(type, name, ...) \
  extern "C" [[gnu::weak, gnu::alias("PARMCI_" #name)]] type ARMCI_##name(__VA_ARGS__)

namespace rma::armci {

/// The members of a group, for every kind of ARMCI_Group: that points to the lists here.
struct group_state {
  explicit group_state(const Team& of, const Team& world);
  Team team;
  std::vector<int> to_world;       ///< by rank in the group
  std::vector<int> to_group;       ///< by number in the world; -1: no member
  int number = 0;                  ///< number of the group in this process; 0 is the group of all
  std::uint64_t communicator = 0;  ///< an MPI_Comm, where there is MPI
};

/// An allocation, made by one call of ARMCI_Malloc.
struct allocation {
  Window<std::byte> window;
  bool one_node = false;  ///< all members' parts are mapped here
  bool dirty = false;     ///< non-blocking operations to other nodes may be pending
};

/// A place in another process's memory.
struct spot {
  allocation* in = nullptr;  ///< null: memory of this process that is no allocation's
  int target = -1;           ///< number in the window's team
  std::size_t at = 0;
};

class handle_table;
class mutex_set;
class note_board;
class job;

struct state {
  explicit state(std::unique_ptr<job> started_by, thread_level threads);
  ~state();

  std::unique_ptr<job> launcher;
  Runtime runtime;
  Team world;
  int me = 0;
  int size = 0;
  bool multiple = false;  ///< threads may call at once
  int uses = 1;           ///< calls of ARMCI_Init minus calls of ARMCI_Finalize
  std::recursive_mutex calls;
  AddressMap addresses;
  std::map<const void*, std::unique_ptr<allocation>> allocations;  ///< by window
  std::map<const int*, std::unique_ptr<group_state>> groups;       ///< by the first word of to_world
  int groups_made = 0;
  group_state* world_group = nullptr;
  group_state* default_group = nullptr;
  std::unique_ptr<mutex_set> mutexes;
  std::unique_ptr<note_board> notes;
  std::unique_ptr<handle_table> handles;
  std::vector<std::byte> room;  ///< for products of blocking accumulates

  /// Finds `address` of process `proc`. Ends the job if it cannot be found.
  spot find(const char* call, int proc, const void* address, std::size_t bytes);
  /// Completes a blocking operation, also at the target.
  void finish(const char* call, const spot& where);
  /// Orders a blocking operation after non-blocking ones for which the program has waited.
  void keep_order(const char* call, const spot& where) {
    if (where.in->dirty) [[unlikely]]
      finish(call, where);
  }
  group_state& add_group(Team team, std::uint64_t communicator);
};

/// The process's state; ends the job with one line if there is none.
state& running(const char* call);
/// Null before ARMCI_Init and after ARMCI_Finalize.
state* current() noexcept;
void set_current(state* now) noexcept;

/// Serializes the calls of threads that may call at once.
class entry {
 public:
  explicit entry(state& s) : guard_(s.calls, std::defer_lock) {
    if (s.multiple) [[unlikely]]
      guard_.lock();
  }

 private:
  std::unique_lock<std::recursive_mutex> guard_;
};

/// Prints "ARMCI_Put: ..." and ends the job.
[[noreturn]] void fail(const char* call, std::string_view what, int code = 1);
/// The same for a failed call of the library.
[[noreturn]] void fail_by(const char* call, status s, std::string_view what);
inline void check(const char* call, status s, std::string_view what = {}) {
  if (!ok(s)) [[unlikely]]
    fail_by(call, s, what);
}

/// Prints the message and ends the whole job.
[[noreturn]] void end_job(int code, std::string_view message) noexcept;

int malloc_in(state& s, const char* call, group_state& group, void** ptrs, armci_size_t bytes);
int free_in(state& s, const char* call, group_state& group, void* ptr);

}  // namespace rma::armci
