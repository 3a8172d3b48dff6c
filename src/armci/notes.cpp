// SPDX-License-Identifier: Apache-2.0
#include "armci/notes.hpp"

#include <atomic>

#include "armci/state.hpp"

namespace rma::armci {

note_board::note_board(const Team& world)
    : told_(Window<std::uint64_t>::allocate(world, static_cast<std::size_t>(world.size()))),
      sent_(static_cast<std::size_t>(world.size())),
      taken_(static_cast<std::size_t>(world.size())),
      me_(world.rank()) {
  check("ARMCI_Init", told_.lock_all_nothrow(no_check));
}

note_board::~note_board() { (void)told_.try_unlock_all(); }

std::uint64_t note_board::tell(int proc) {
  const std::uint64_t count = ++sent_[static_cast<std::size_t>(proc)];
  check("armci_notify", told_.try_put(count, proc, static_cast<std::size_t>(me_)));
  check("armci_notify", told_.try_flush(proc));
  return count;
}

std::uint64_t note_board::wait(int proc) {
  const std::uint64_t wanted = ++taken_[static_cast<std::size_t>(proc)];
  std::uint64_t seen = 0;
  check("armci_notify_wait",
        told_.wait_until_nothrow(
            static_cast<std::size_t>(proc), [wanted](std::uint64_t value) { return value >= wanted; }, seen, proc));
  return seen;
}

}  // namespace rma::armci

using namespace rma::armci;

namespace {

state& running_with(const char* call, int proc) {
  state& s = running(call);
  if (proc < 0 || proc >= s.size) fail(call, "there is no process " + std::to_string(proc));
  return s;
}

}  // namespace

int armci_notify(int proc) {
  state& s = running_with("armci_notify", proc);
  const entry in(s);
  PARMCI_Fence(proc);
  std::atomic_thread_fence(std::memory_order_release);
  return static_cast<int>(s.notes->tell(proc));
}

int armci_notify_wait(int proc, int* count) {
  const std::uint64_t seen = running_with("armci_notify_wait", proc).notes->wait(proc);
  if (count != nullptr) *count = static_cast<int>(seen);
  return 0;
}
