// SPDX-License-Identifier: Apache-2.0
#include "window/window_memory.hpp"

#include <mutex>
#include <utility>

#include "core/memory_access.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/promote.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

// Thousands of simulated ranks are one process, with mappings for each: there the ends are taken for the whole.
void check_access(window_core& w, void* memory, std::uint64_t bytes) noexcept {
  if (bytes == 0) return;
  auto* const at = static_cast<std::byte*>(memory);
  const bool simulated = w.board->descriptor() < 0;
  if (!(simulated ? can_write(at, 1) && can_write(at + bytes - 1, 1) : is_mapped_for_writing(at, bytes)))
    w.writable = false;
}

void demote_memory(window_core& w) noexcept {
  if (w.promoted_bytes == 0) return;
  runtime_core& rt = *w.team->rt;
  const std::uint64_t bytes = std::exchange(w.promoted_bytes, 0);
  if (shm::demote(*w.board, shm::pages_around(w.local_base, w.local_bytes), w.promoted_offset)) {
    rt.give_back(w.promoted_offset, bytes);
  } else {
    rt.withdraw(w.promoted_offset);
  }
}

void unregister_memory(window_core& w) noexcept {
  if (w.ctx->wide() == nullptr) return;
  if (w.kind == call::create_dynamic) {
    const std::lock_guard guard(w.ctx->lock());
    for (attachment& each : w.attachments) {
      w.ctx->wide()->deregister_region(each.wide);
      each.wide = {};
    }
    return;
  }
  window_identity& mine = w.my_block().identity;
  if (w.kind != call::create || w.local_bytes == 0 || mine.wide_reachable == 0) return;
  mine.wide_reachable = 0;
  const std::lock_guard guard(w.ctx->lock());
  w.ctx->wide()->deregister_region(mine.wide);
}

void release_window(window_core& w) noexcept {
  runtime_core& rt = *w.team->rt;
  demote_memory(w);
  unregister_memory(w);
  if (w.table_bytes != 0) rt.give_back(w.table_offset, w.table_bytes);
  rt.give_back(w.block_offset, w.block_bytes);
}

// The others may still use this rank's part.
void leave_window(window_core& w) noexcept {
  demote_memory(w);  // the user may give that memory back after this
  unregister_memory(w);
  w.team->drop(w.id, {{{w.block_offset, w.block_bytes}, {w.table_offset, w.table_bytes}}});
}

}  // namespace rma::detail
