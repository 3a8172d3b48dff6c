// SPDX-License-Identifier: Apache-2.0
/// \file
/// behavior aggregate | arrays | outstanding [N]: what ARMCI costs, by counters of the runtime below it. Started by
/// rmarun on two virtual nodes or one.
///
/// aggregate    100 small puts on an aggregate handle are one message
/// arrays       1000 arrays take no descriptor; prints the memory of one
/// outstanding  N puts on one handle, none of which is waited for before all are started
#include <dirent.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

#include "armci/state.hpp"

namespace {

std::uint64_t counter(std::string_view name) {
  for (const rma::Counter& each : rma::armci::current()->runtime.counters()) {
    if (each.name == name) return each.value;
  }
  return 0;
}

int descriptors() {
  int count = 0;
  DIR* const all = ::opendir("/proc/self/fd");
  while (all != nullptr && ::readdir(all) != nullptr) ++count;
  if (all != nullptr) ::closedir(all);
  return count;
}

struct array {
  explicit array(armci_size_t bytes) : at(static_cast<std::size_t>(armci_msg_nproc())) {
    ARMCI_Malloc(at.data(), bytes);
  }
  ~array() { ARMCI_Free(at[static_cast<std::size_t>(armci_msg_me())]); }
  array(const array&) = delete;
  array& operator=(const array&) = delete;
  [[nodiscard]] char* of(int proc) const { return static_cast<char*>(at[static_cast<std::size_t>(proc)]); }
  std::vector<void*> at;
};

/// Puts `count` doubles, 24 bytes apart, to the last process on one handle; returns how many messages that took.
std::uint64_t put_all(const array& to, int count, bool aggregate) {
  const int last = armci_msg_nproc() - 1;
  std::vector<double> values(static_cast<std::size_t>(count));
  armci_hdl_t handle;
  ARMCI_INIT_HANDLE(&handle);
  if (aggregate) ARMCI_SET_AGGREGATE_HANDLE(&handle);
  const std::uint64_t before = counter("messages_sent");
  for (int i = 0; i < count; ++i) {
    values[static_cast<std::size_t>(i)] = i + 0.5;
    ARMCI_NbPut(&values[static_cast<std::size_t>(i)], to.of(last) + 24 * i, 8, last, &handle);
  }
  ARMCI_Wait(&handle);
  const std::uint64_t sent = counter("messages_sent") - before;
  ARMCI_Fence(last);
  return sent;
}

bool right_values(const array& in, int count) {
  bool right = true;
  for (int i = 0; i < count; ++i) {
    double value = 0;
    std::memcpy(&value, in.of(armci_msg_me()) + 24 * i, sizeof value);
    right = right && value == i + 0.5;
  }
  return right;
}

int aggregate() {
  constexpr int count = 100;
  const array shared(24 * count);
  int wrong = 0;
  ARMCI_Barrier();
  if (armci_msg_me() == 0) {
    (void)put_all(shared, 1, true);  // the first use of a target takes more messages
    const std::uint64_t together = put_all(shared, count, true);
    std::printf("aggregate: %d puts, %d messages\n", count, static_cast<int>(together));
    wrong = together > 1 ? 1 : 0;
  }
  ARMCI_Barrier();
  if (armci_msg_me() == armci_msg_nproc() - 1 && !right_values(shared, count)) wrong = 1;
  armci_msg_igop(&wrong, 1, const_cast<char*>("+"));
  return wrong;
}

int arrays() {
  constexpr int count = 1000;
  constexpr armci_size_t bytes = 64;
  std::vector<std::unique_ptr<array>> all;
  for (int i = 0; i < 10; ++i) all.push_back(std::make_unique<array>(bytes));
  const int descriptors_before = descriptors();
  const std::uint64_t memory_before = counter("segment_bytes_in_use");
  for (int i = 10; i < count; ++i) all.push_back(std::make_unique<array>(bytes));
  int wrong = descriptors() > descriptors_before ? 1 : 0;
  const int me = armci_msg_me();
  const int right = (me + 1) % armci_msg_nproc();
  for (int i = 0; i < count; ++i) ARMCI_PutValueInt(i, all[static_cast<std::size_t>(i)]->of(right), right);
  ARMCI_Barrier();
  for (int i = 0; i < count; ++i) {
    int value = -1;
    std::memcpy(&value, all[static_cast<std::size_t>(i)]->of(me), sizeof value);
    wrong += value == i ? 0 : 1;
  }
  if (me == 0) {
    const std::uint64_t of_one = (counter("segment_bytes_in_use") - memory_before) / (count - 10);
    std::printf("arrays: %d, each %d bytes of shared memory for %d of data; %d descriptors before and after\n", count,
                static_cast<int>(of_one), static_cast<int>(bytes), descriptors_before);
  }
  ARMCI_Barrier();
  while (!all.empty()) all.pop_back();
  armci_msg_igop(&wrong, 1, const_cast<char*>("+"));
  return wrong;
}

int outstanding(int count) {
  const array shared(24 * static_cast<armci_size_t>(count));
  int wrong = 0;
  ARMCI_Barrier();
  if (armci_msg_me() == 0) (void)put_all(shared, count, false);
  ARMCI_Barrier();
  if (armci_msg_me() == armci_msg_nproc() - 1 && !right_values(shared, count)) wrong = 1;
  armci_msg_igop(&wrong, 1, const_cast<char*>("+"));
  if (armci_msg_me() == 0) std::printf("outstanding: %d puts on a handle, %d wrong\n", count, wrong);
  return wrong;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view what = argc > 1 ? argv[1] : "";
  ARMCI_Init();
  const int wrong = what == "aggregate" ? aggregate()
                    : what == "arrays"  ? arrays()
                                        : outstanding(argc > 2 ? std::atoi(argv[2]) : 10000);
  ARMCI_Finalize();
  return wrong == 0 ? 0 : 1;
}
