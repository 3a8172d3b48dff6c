// SPDX-License-Identifier: Apache-2.0
/// \file
/// A connection carries messages one behind the other (messaged/wire.hpp), each with this in front. Data of
/// puts, gets and the bulk channel are received where they belong.
///
/// The bulk channel: a send leaves when the peer has said that its receive is posted, and what room that has.
///
///     origin                              target
///                    <------------------  ready: so many bytes
///     data  ----------------------------> received into the pieces of the receive
///                    <------------------  over
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/messaged/messaged_fabric.hpp"
#include "fabric/messaged/wire.hpp"

namespace rma::tcp {

using fabric::bytes_of;
using messaged::answer;
using messaged::asked_bytes_max;
using messaged::batch_bytes;
using messaged::batch_messages;
using messaged::departure;
using messaged::message_bytes;
using messaged::own_kind;
using messaged::placement;
using messaged::question;
using messaged::under_way_max;

struct front {
  std::uint32_t bytes = 0;  ///< that follow
  std::uint16_t kind = 0;
  std::uint16_t unused = 0;
};

enum class bulk_kind : std::uint16_t {
  ready = messaged::first_line_kind,  ///< a receive is posted
  data,                               ///< of a send, for the next receive
  over,                               ///< they are there
  count_
};

/// In front of the data of a bulk send; the receive ends with that, too.
struct bulk_head {
  std::int64_t result = 0;  ///< a status; no data follow if it is not `done`
};

inline constexpr std::size_t transfer_bytes = 256 << 10;  ///< of one put or get
inline constexpr std::size_t straight_bytes = 16 << 10;   ///< more is not copied into a batch
inline constexpr std::size_t out_bytes_max = 256 << 10;   ///< that wait for the kernel: then nothing more is taken
inline constexpr std::size_t bulk_pieces_max = 40;        ///< of a bulk send or receive
inline constexpr std::size_t bulk_depth = 16;             ///< bulk sends, and receives, of one peer at a time

}  // namespace rma::tcp
