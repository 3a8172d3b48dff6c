// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a messenger knows of another rank.
#pragma once

#include <cstddef>
#include <cstdint>

#include "p2p/messenger.hpp"

namespace rma::detail {

struct messenger::peer {
  int rank = -1;
  bool gone = false;                ///< dead, or has left the job, and everything that it has said is known
  bool is_busy = false;             ///< in `busy_`
  std::uint16_t sequence = 0;       ///< of the next envelope
  std::uint32_t used = 0;           ///< of the peer's memory for what it does not expect
  std::uint32_t freed = 0;          ///< of this rank's, which the peer does not know yet
  std::size_t eager_max = 0;        ///< bytes of an eager message to it
  std::size_t piece_max = 0;        ///< of data in one message
  message_operation::list queued;   ///< sends whose envelopes have not left
  message_operation::list streams;  ///< sends whose data leave in messages
};

}  // namespace rma::detail
