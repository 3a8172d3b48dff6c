// SPDX-License-Identifier: Apache-2.0
/// \file
/// The protocol table: the protocols for operations. Each is a record in a file of its own, listed once in rows.hpp.
/// One chooser takes the protocol requested by name, else the one with the least estimate among those that support the
/// operation: among the schemes for a put or get of a layout between ranks whose memory is not mapped (RMA_LAYOUT,
/// Hints::layout), among the others for all other operations (RMA_USER_MEMORY). Its choice for a contiguous operation
/// between nodes is cached for each target and size class (target_state::routes).
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "xfer/protocols.hpp"

namespace rma::detail {

/// The location of the target's memory: mapped in this process, or in a region that a fabric reaches.
struct placement {
  bool mapped = false;
  bool registered = true;  ///< the fabric reaches it without the target's help
  std::byte* base = nullptr;
  const fabric::region_key* region = nullptr;
  fabric::region_key attached;  ///< the object of `region` for a dynamic window
};

struct protocol {
  layout_scheme scheme;  ///< scheme that selects it; `automatic`: it is no scheme for layouts
  /// Its name in settings, traces and documents.
  std::string_view name;
  bool needs_target;  ///< the target's processor takes part
  /// The reason why it does not support the operation; null if it does.
  const char* (*refuses)(const window_core& w, const placement& at, const checked_operation& o) noexcept;
  /// The expected time from its issue to its effect at the target, in ns.
  std::int64_t (*estimate_ns)(const window_core& w, const checked_operation& o) noexcept;
  /// Starts it. Returns `posted`, `done` or an error, as for the whole operation.
  /// `not_supported` means that nothing was done, and the next best protocol is started.
  status (*start)(window_core& w, const placement& at, const checked_operation& o, request_node** request) noexcept;
  /// The reason of its choice, if that is not the estimate; else null.
  const char* (*why)(const window_core& w, const placement& at, const checked_operation& o) noexcept = nullptr;
};

/// All protocols.
[[nodiscard]] std::span<const protocol* const> protocols() noexcept;

/// The protocol for an operation, except those whose bits are set in `tried`, a bit for each row of the table: they
/// have refused it at their start. One that supports it always exists: a message to the target's handler.
[[nodiscard]] route choose_protocol(const window_core& w, const placement& at, const checked_operation& o,
                                    std::uint32_t tried = 0) noexcept;
/// Chooses a protocol and starts it, or the next best one if that refuses the operation.
status run_protocol(window_core& w, const placement& at, checked_operation& o, request_node** request) noexcept;

/// The reason why only a message to the target's handler can carry the operation out; null if another protocol can.
[[nodiscard]] const char* only_by_handler(const window_core& w, const placement& at,
                                          const checked_operation& o) noexcept;
/// The reason why it is not a copy between private memory of two processes of this node, or needs another protocol;
/// null if it is such a copy.
[[nodiscard]] const char* only_near(const window_core& w, const placement& at, const checked_operation& o) noexcept;
/// The expected time by the target's handler, or by the network's own write or read.
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
