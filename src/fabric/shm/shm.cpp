// SPDX-License-Identifier: Apache-2.0
/// \file
/// Control path of the shm fabric: capabilities and regions.
#include "fabric/shm/shm.hpp"

#include <limits>

#include "fabric/shm/cma.hpp"

namespace rma::shm {

shm_fabric::shm_fabric(board& node)
    : network(*this, *this, this), board_(node), peers_(node.size()), known_((node.size() + 63) / 64) {
  caps_.remote_slices_max = 64;
  caps_.messages_after_writes = true;
  caps_.name = "shm";
  caps_.gather_max = std::numeric_limits<std::uint16_t>::max();
  caps_.bulk_pieces_max = payload_max / sizeof(fabric::remote_slice) - 1;  // a bulk send's list is one message
  caps_.scatter_max = std::numeric_limits<std::uint16_t>::max();
  caps_.inline_bytes_max = payload_max;
  caps_.message_bytes_max = payload_max;
  caps_.write_means = fabric::write_completion::placed;
  caps_.in_order_placement = true;
  caps_.write_with_immediate = true;
  caps_.atomics = true;
  caps_.one_sided = true;
  caps_.copies_by_cpu = true;
  caps_.maps_memory = true;
}

// Only an attempt shows if one process may copy to another: security modules, seccomp filters and processes that may
// not be traced can each forbid it. A read at address 0 moves no data. The result for one neighbor is assumed for all.
void shm_fabric::ranks_are_there() noexcept {
  std::size_t other = 0;
  while (other < board_.size() && board_.same_process(other)) ++other;
  if (other == board_.size()) return;
  std::byte nothing{};
  const fabric::local_slice here{&nothing, 1};
  const fabric::remote_slice there{0, 1};
  const status s = cma_copy(cma_direction::read, board_.slot(other).pid, {&here, 1}, {&there, 1});
  if (s != status::not_supported) return;
  caps_.one_sided = false;
  caps_.not_one_sided_because =
      "user memory needs its owner's calls, since process_vm_readv is forbidden here; kernel.yama.ptrace_scope=1, a "
      "seccomp profile that allows it or CAP_SYS_PTRACE helps";
}

status shm_fabric::register_region(void* at, std::size_t bytes, fabric::region_key& key) noexcept {
  key = {reinterpret_cast<std::uint64_t>(at), bytes, 0};
  // key: 1 + offset in the segment for memory that all ranks of the node map, 0 for private memory
  if (const auto offset = board_.own_offset(static_cast<const std::byte*>(at), bytes)) key.key = 1 + *offset;
  return status::done;
}

void shm_fabric::deregister_region(const fabric::region_key&) noexcept {}

}  // namespace rma::shm
