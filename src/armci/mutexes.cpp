// SPDX-License-Identifier: Apache-2.0
#include "armci/mutexes.hpp"

namespace rma::armci {

mutex_set::mutex_set(const char* call, Team team, int count)
    : counts_(static_cast<std::size_t>(team.size())), me_(team.rank()) {
  if (count < 0) fail(call, "a negative number of mutexes");
  check(call, team.try_allgather(count, std::span(counts_)));
  Hints hints;
  hints.name = call;
  hints.signals = nodes_max;
  check(call, Window<std::uint64_t>::try_allocate(team, nodes_max + static_cast<std::size_t>(count), words_, hints));
  check(call, words_.lock_all_nothrow(no_check));
}

mutex_set::~mutex_set() = default;

std::uint64_t mutex_set::name_of(int node) const noexcept {
  return 1 + static_cast<std::uint64_t>(me_) * nodes_max + static_cast<std::uint64_t>(node);
}

void mutex_set::require(const char* call, int mutex, int rank) const {
  if (rank < 0 || static_cast<std::size_t>(rank) >= counts_.size())
    fail(call, "there is no such process among those of the mutexes");
  if (mutex < 0 || mutex >= counts_[static_cast<std::size_t>(rank)])
    fail(call, "there is no mutex " + std::to_string(mutex) + ": process " + std::to_string(rank) + " has " +
                   std::to_string(counts_[static_cast<std::size_t>(rank)]));
}

int mutex_set::take_node(const char* call, int mutex, int rank) {
  const std::lock_guard guard(threads_);
  int found = -1;
  for (int n = nodes_max - 1; n >= 0; --n) {
    const hold& each = holds_[static_cast<std::size_t>(n)];
    if (each.mutex < 0) found = n;
    if (each.mutex == mutex && each.rank == rank) fail(call, "this process holds that mutex already");
  }
  if (found < 0) fail(call, "a process holds at most " + std::to_string(nodes_max) + " mutexes of a set at once");
  holds_[static_cast<std::size_t>(found)] = {mutex, rank};
  words_[static_cast<std::size_t>(found)] = 0;
  return found;
}

void mutex_set::lock(const char* call, int mutex, int rank) {
  require(call, mutex, rank);
  const int node = take_node(call, mutex, rank);
  const auto tail = static_cast<std::size_t>(nodes_max + mutex);
  std::uint64_t before = 0;
  check(call, words_.try_fetch_and_op(name_of(node), before, rank, tail, rma::replace));
  if (before == 0) return;
  const int ahead = static_cast<int>((before - 1) / nodes_max);
  check(call, words_.try_put(name_of(node), ahead, static_cast<std::size_t>((before - 1) % nodes_max)));
  check(call, words_.try_flush(ahead));
  check(call, words_.wait_signal_nothrow(static_cast<unsigned>(node), 1, ahead),
        "waiting behind process " + std::to_string(ahead));
}

bool mutex_set::try_lock(const char* call, int mutex, int rank) {
  require(call, mutex, rank);
  const int node = take_node(call, mutex, rank);
  std::uint64_t before = 0;
  check(call, words_.try_compare_and_swap(0, name_of(node), before, rank, static_cast<std::size_t>(nodes_max + mutex)));
  if (before == 0) return true;
  give_back(node);
  return false;
}

int mutex_set::node_of(const char* call, int mutex, int rank) {
  const std::lock_guard guard(threads_);
  for (int n = 0; n < nodes_max; ++n) {
    const hold& each = holds_[static_cast<std::size_t>(n)];
    if (each.mutex == mutex && each.rank == rank) return n;
  }
  fail(call, "this process does not hold mutex " + std::to_string(mutex) + " of process " + std::to_string(rank));
}

void mutex_set::give_back(int node) {
  const std::lock_guard guard(threads_);
  holds_[static_cast<std::size_t>(node)] = {};
}

void mutex_set::unlock(const char* call, int mutex, int rank) {
  require(call, mutex, rank);
  const int node = node_of(call, mutex, rank);
  const auto here = static_cast<std::size_t>(node);
  std::uint64_t next = 0;
  check(call, words_.try_get(next, me_, here));
  if (next == 0) {
    const auto tail = static_cast<std::size_t>(nodes_max + mutex);
    std::uint64_t before = 0;
    check(call, words_.try_compare_and_swap(name_of(node), 0, before, rank, tail));
    if (before == name_of(node)) {
      give_back(node);
      return;
    }
    // Another process has entered the queue, and is about to write its name.
    const auto is_there = [](std::uint64_t value) { return value != 0; };
    check(call, words_.wait_until_nothrow(here, is_there, next));
  }
  give_back(node);
  const int after = static_cast<int>((next - 1) / nodes_max);
  check(call, words_.try_put_signal({}, after, 0, static_cast<unsigned>((next - 1) % nodes_max)));
  check(call, words_.try_flush(after));
}

void mutex_set::destroy(const char* call) {
  for (const hold& each : holds_) {
    if (each.mutex >= 0) fail(call, "this process still holds mutex " + std::to_string(each.mutex));
  }
  check(call, words_.try_unlock_all());
  check(call, words_.try_free());
}

}  // namespace rma::armci

using namespace rma::armci;

int PARMCI_Create_mutexes(int count) {
  state& s = running("ARMCI_Create_mutexes");
  const entry in(s);
  if (s.mutexes != nullptr) fail("ARMCI_Create_mutexes", "there are mutexes already: call ARMCI_Destroy_mutexes first");
  s.mutexes = std::make_unique<mutex_set>("ARMCI_Create_mutexes", s.world, count);
  return 0;
}
RMA_ARMCI_TWIN(int, Create_mutexes, int count);

int PARMCI_Destroy_mutexes() {
  state& s = running("ARMCI_Destroy_mutexes");
  const entry in(s);
  if (s.mutexes == nullptr) return 1;
  s.mutexes->destroy("ARMCI_Destroy_mutexes");
  s.mutexes.reset();
  return 0;
}
RMA_ARMCI_TWIN(int, Destroy_mutexes, void);

namespace {

mutex_set& mutexes_of(state& s, const char* call) {
  if (s.mutexes == nullptr) fail(call, "there are no mutexes: call ARMCI_Create_mutexes first");
  return *s.mutexes;
}

}  // namespace

// No guard is taken: other threads must be able to unlock while this one waits. A thread's mutexes are its own
// business.
void PARMCI_Lock(int mutex, int proc) {
  mutexes_of(running("ARMCI_Lock"), "ARMCI_Lock").lock("ARMCI_Lock", mutex, proc);
}
RMA_ARMCI_TWIN(void, Lock, int mutex, int proc);

void PARMCI_Unlock(int mutex, int proc) {
  mutexes_of(running("ARMCI_Unlock"), "ARMCI_Unlock").unlock("ARMCI_Unlock", mutex, proc);
}
RMA_ARMCI_TWIN(void, Unlock, int mutex, int proc);
