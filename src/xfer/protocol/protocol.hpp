// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocol table: the ways to carry out an operation. Each way is a record in a file of its own, listed once in
/// rows.hpp. One chooser takes the one that is asked for by name, else the least estimate among those that can: for a
/// put or get of a layout between ranks whose memory is not mapped among the schemes (RMA_LAYOUT, Hints::layout), for
/// everything else among the others (RMA_USER_MEMORY). What it says of a contiguous operation between nodes is kept for
/// each target and size class (target_state::routes).
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
  layout_scheme scheme;  ///< by which it is asked for; `automatic`: it is no scheme for layouts
  /// Its name in settings, traces and documents.
  std::string_view name;
  bool needs_target;  ///< its processor takes part
  /// Why it cannot carry the operation out; null if it can.
  const char* (*refuses)(const window_core& w, const placement& at, const checked_operation& o) noexcept;
  /// How long it is expected to take from its issue to its effect at the target, in ns.
  std::int64_t (*estimate_ns)(const window_core& w, const checked_operation& o) noexcept;
  /// Starts it. `posted`, `done` or an error, as for the whole operation.
  /// `not_supported`: nothing happened, and the next best protocol is started.
  status (*start)(window_core& w, const placement& at, const checked_operation& o, request_node** request) noexcept;
  /// Why it is the one, where its estimate is not the reason; null: nothing to add.
  const char* (*why)(const window_core& w, const placement& at, const checked_operation& o) noexcept = nullptr;
};

/// All of them.
[[nodiscard]] std::span<const protocol* const> protocols() noexcept;

/// The protocol for an operation, but for those whose bits are set in `tried`, a bit for each row of the table: they
/// have turned it down at their start. One that can carry it out always exists: a message to the target's handler.
[[nodiscard]] route choose_protocol(const window_core& w, const placement& at, const checked_operation& o,
                                    std::uint32_t tried = 0) noexcept;
/// Chooses a protocol and starts it, or the next best one if that turns the operation down.
status run_protocol(window_core& w, const placement& at, checked_operation& o, request_node** request) noexcept;

/// Why nothing but a message to the target's handler carries the operation out; null: something else does.
[[nodiscard]] const char* only_by_handler(const window_core& w, const placement& at,
                                          const checked_operation& o) noexcept;
/// Why it is no copy between private memory of two processes of this node, or has to go another way; null: it is one.
[[nodiscard]] const char* only_near(const window_core& w, const placement& at, const checked_operation& o) noexcept;
/// The target's handler is expected to take so long, or the network's own write or read.
[[nodiscard]] std::int64_t message_estimate_ns(const window_core& w, const checked_operation& o) noexcept;
[[nodiscard]] std::int64_t transfer_estimate_ns(const window_core& w, const checked_operation& o) noexcept;

extern const protocol direct_protocol;
extern const protocol device_protocol;
extern const protocol promised_protocol;
extern const protocol staged_protocol;
extern const protocol shared_protocol;
extern const protocol fabric_protocol;
extern const protocol handler_protocol;
extern const protocol generic_protocol;
extern const protocol multi_w_protocol;
extern const protocol write_gather_protocol;
extern const protocol read_scatter_protocol;
extern const protocol sgrs_protocol;
extern const protocol host_assisted_protocol;
extern const protocol lock_get_modify_put_protocol;

}  // namespace rma::detail
