// SPDX-License-Identifier: Apache-2.0
/// \file
/// What the handler protocol puts on the wire. An operation is one or more messages:
///
///   operation_header | block_range ... | data        origin -> target
///   reply_header | data                              target -> origin, if something comes back
///   count                                            target -> origin, acknowledges so many messages
#pragma once

#include <cstdint>

#include "rma/detail/view.hpp"

namespace rma::detail {

struct operation_header {
  std::uint64_t window;
  std::uint64_t ticket;    ///< of the origin, comes back with the data; 0: nothing comes back
  std::uint64_t position;  ///< of the first byte in the packed operation
  std::uint32_t blocks;
  std::uint32_t data_bytes;
  std::int32_t signal;  ///< raised after this message, -1: none
  call kind;
  operation op;
  element type;
  std::uint8_t promised;  ///< the target stays in the library for it
};

/// A piece of the target's part: bytes from its start (dynamic windows: an address).
struct block_range {
  std::uint64_t offset;
  std::uint64_t bytes;
};

struct reply_header {
  std::uint64_t ticket;
  std::uint64_t position;
};

struct notify_header {
  std::uint64_t window;
  std::uint32_t kind;
  std::uint32_t index;
};

}  // namespace rma::detail
