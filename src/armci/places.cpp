// SPDX-License-Identifier: Apache-2.0
/// \file
/// Domains: processes that can use each other's pointers as their own. A pointer here is the owner's: another process
/// cannot dereference it even if it reaches the memory, so that each process is a domain.
#include <cstring>

#include "armci/state.hpp"

using namespace rma::armci;

int armci_domain_nprocs(armci_domain_t /*domain*/, int /*id*/) { return 1; }
int armci_domain_id(armci_domain_t /*domain*/, int proc) { return proc; }
int armci_domain_glob_proc_id(armci_domain_t /*domain*/, int id, int /*local_proc*/) { return id; }
int armci_domain_my_id(armci_domain_t /*domain*/) { return running("armci_domain_my_id").me; }
int armci_domain_count(armci_domain_t /*domain*/) { return running("armci_domain_count").size; }
int armci_domain_same_id(armci_domain_t /*domain*/, int proc) {
  return proc == running("armci_domain_same_id").me ? 1 : 0;
}
int ARMCI_Same_node(int proc) { return proc == running("ARMCI_Same_node").me ? 1 : 0; }
int ARMCI_Uses_shm() { return 0; }
int ARMCI_Uses_shm_grp(ARMCI_Group* /*group*/) { return 0; }
void ARMCI_Set_shm_limit(unsigned long /*bytes*/) {}  // RMA_SEGMENT_BYTES is the limit

namespace {

/// Calls visit(offset) for each row of counts[0] bytes.
template <class Visit>
void for_each_row(int levels, const int* strides, const int* counts, std::ptrdiff_t offset, Visit&& visit) {
  if (levels == 0) {
    visit(offset);
    return;
  }
  for (int i = 0; i < counts[levels]; ++i)
    for_each_row(levels - 1, strides, counts, offset + std::ptrdiff_t{strides[levels - 1]} * i, visit);
}

}  // namespace

void armci_write_strided(void* ptr, int levels, int* strides, int* counts, char* buffer) {
  const auto bytes = static_cast<std::size_t>(counts[0]);
  for_each_row(levels, strides, counts, 0, [&](std::ptrdiff_t at) {
    std::memcpy(buffer, static_cast<char*>(ptr) + at, bytes);
    buffer += bytes;
  });
}

void armci_read_strided(void* ptr, int levels, int* strides, int* counts, char* buffer) {
  const auto bytes = static_cast<std::size_t>(counts[0]);
  for_each_row(levels, strides, counts, 0, [&](std::ptrdiff_t at) {
    std::memcpy(static_cast<char*>(ptr) + at, buffer, bytes);
    buffer += bytes;
  });
}
