// SPDX-License-Identifier: Apache-2.0
/// \file
/// A connection carries a sequence of messages (messaged/wire.hpp), each with a front. Data of puts, gets and the bulk
/// channel are received directly into their destination.
///
/// The bulk channel: the data of a send are sent when the peer has announced its posted receive and the size of that.
///
///     origin                              target
///                    <------------------  ready: size in bytes
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
  std::uint32_t bytes = 0;  ///< length of the message after it
  std::uint16_t kind = 0;
  std::uint16_t unused = 0;
};

enum class bulk_kind : std::uint16_t {
  ready = messaged::first_line_kind,  ///< a receive is posted
  data,                               ///< data of a send, for the next receive
  over,                               ///< the data have arrived
  count_
};

/// The header of the data of a bulk send; the receive completes with its result.
struct bulk_head {
  std::int64_t result = 0;  ///< a status; no data follow if it is not `done`
};

inline constexpr std::size_t transfer_bytes = 256 << 10;  ///< limit of one put or get
inline constexpr std::size_t straight_bytes = 16 << 10;   ///< larger data are not copied into a batch
inline constexpr std::size_t out_bytes_max = 256 << 10;   ///< limit of the bytes that wait for the kernel
inline constexpr std::size_t bulk_pieces_max = 40;        ///< limit of a bulk send or receive
inline constexpr std::size_t bulk_depth = 16;             ///< outstanding bulk sends, and receives, of one peer

}  // namespace rma::tcp
