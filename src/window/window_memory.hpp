// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory behind a window: who may reach it, and how it is given back.
#pragma once

#include <cstdint>

namespace rma::detail {

struct window_core;

/// Notes whether others may write to all of this memory of the program's, which is given to the window. If not, no
/// adapter and no fabric is let to it: the handler looks before it writes.
void check_access(window_core& w, void* memory, std::uint64_t bytes) noexcept;
/// Promoted user memory becomes private again.
void demote_memory(window_core& w) noexcept;
/// Nobody reaches the window's user memory through the fabric between nodes any more.
void unregister_memory(window_core& w) noexcept;
/// Gives back what the window holds of this rank's segment.
void release_window(window_core& w) noexcept;
/// The same once all members have left the window.
void leave_window(window_core& w) noexcept;

}  // namespace rma::detail
