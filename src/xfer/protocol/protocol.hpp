// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocol table: the ways to carry out a put or get of a layout between ranks whose memory is not mapped. Each
/// way is a record in a file of its own, listed once in rows.hpp; the chooser takes the one that is asked for by name
/// (RMA_LAYOUT, Hints::layout), else the least estimate among those that can.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "xfer/protocols.hpp"

namespace rma::detail {

/// Where the target's memory is: in this process, or in a region that a fabric reaches.
struct placement {
  bool mapped = false;
  bool registered = true;  ///< the fabric reaches it without the target's help
  std::byte* base = nullptr;
  const fabric::region_key* region = nullptr;
  fabric::region_key attached;  ///< what `region` points to, of a dynamic window
};

struct protocol {
  layout_scheme scheme;
  /// Its name in settings, traces and documents.
  std::string_view name;
  bool needs_target;  ///< its processor takes part
  /// Why it cannot carry the operation out; null if it can.
  const char* (*refuses)(const window_core& w, const placement& at, const checked_operation& o) noexcept;
  /// How long it is expected to take from its issue to its effect at the target, in ns.
  std::int64_t (*estimate_ns)(const window_core& w, const checked_operation& o) noexcept;
  /// Starts it. `posted`, `done` or an error, as for the whole operation.
  status (*start)(window_core& w, const placement& at, const checked_operation& o, request_node** request) noexcept;
};

/// All of them.
[[nodiscard]] std::span<const protocol* const> protocols() noexcept;

struct choice {
  const protocol* chosen;
  const char* why;
};
/// The protocol for an operation whose data are not contiguous. One that can carry it out always exists: generic.
[[nodiscard]] choice choose_protocol(const window_core& w, const placement& at, const checked_operation& o) noexcept;

extern const protocol generic_protocol;
extern const protocol multi_w_protocol;
extern const protocol write_gather_protocol;
extern const protocol read_scatter_protocol;
extern const protocol sgrs_protocol;
extern const protocol host_assisted_protocol;

}  // namespace rma::detail
