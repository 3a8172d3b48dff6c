// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <span>

#include "fabric/fabric.hpp"
#include "fabric/verbs/connection.hpp"

namespace rma::verbs {

using slices = std::span<const fabric::local_slice>;

/// One entry of a send queue before it is posted.
struct send_request {
  /// Clears only the fields that matter: an operation uses a third of the request, and clearing all of it would take as
  /// long as the rest of the call.
  send_request() noexcept {
    request.next = nullptr;
    request.num_sge = 0;
    request.send_flags = 0;
    request.wr.rdma = {0, 0};
  }
  [[nodiscard]] bool reads() const noexcept { return request.opcode == IBV_WR_RDMA_READ; }

  ibv_send_wr request;
  std::array<ibv_sge, 32> pieces;
  completion_action then;
  bool must_signal = false;
  bool unsignaled = false;  ///< its completion is not awaited, and may come with that of a later entry
};

inline std::size_t bytes_of(slices local) noexcept {
  std::size_t bytes = 0;
  for (const fabric::local_slice& each : local) bytes += each.bytes;
  return bytes;
}

}  // namespace rma::verbs
