// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory of a window: its protection, its registrations, and its release.
#pragma once

#include <cstdint>

namespace rma::detail {

struct window_core;

/// Records whether the program's memory of the window is writable as a whole. If it is not, no adapter and no fabric
/// may access it: the handler checks each access.
void check_access(window_core& w, void* memory, std::uint64_t bytes) noexcept;
/// Makes promoted user memory private again.
void demote_memory(window_core& w) noexcept;
/// Ends all access to the window's user memory through the fabric between nodes.
void unregister_memory(window_core& w) noexcept;
/// Releases the window's memory in this rank's segment.
void release_window(window_core& w) noexcept;
/// As the other, once all members have left the window.
void leave_window(window_core& w) noexcept;

}  // namespace rma::detail
