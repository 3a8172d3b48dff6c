// SPDX-License-Identifier: Apache-2.0
/// \file
/// What goes over a connection: messages one behind the other, each with this in front.
///
///     origin                              target
///     put, put, ...  ------------------>  received into the region
///     ask_placed     ------------------>
///                    <------------------  result: the worst of the puts since the last one
///     ask_get        ------------------>
///                    <------------------  give_get, with the data, received where they belong
///     ask_atomic     ------------------>  by the processor
///                    <------------------  result: what it has found
///
/// The bulk channel: a send leaves when the peer has said that its receive is posted, and what room that has.
///
///     origin                              target
///                    <------------------  bulk_ready: so many bytes
///     bulk  ---------------------------->  received into the pieces of the receive
///                    <------------------  bulk_over
///
/// Answers come in the order of the questions, so that they need not say which one they answer.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fabric/object_bytes.hpp"
#include "rma/error.hpp"

namespace rma::tcp {

struct front {
  std::uint32_t bytes = 0;  ///< that follow
  std::uint16_t kind = 0;
  std::uint16_t unused = 0;
};

/// Messages of the fabric's own.
enum class own_kind : std::uint16_t {
  goodbye,
  understood,
  immediate,
  put,
  ask_placed,  ///< whether all puts before it went well
  ask_get,
  give_get,
  ask_atomic,
  result,      ///< of an atomic, and of `ask_placed`
  bulk_ready,  ///< a receive is posted
  bulk,        ///< the data of a send, for the next receive
  bulk_over,   ///< they are there
  count_
};

/// Where the data of a put go, which follow.
struct placement {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
};

/// A get or an atomic.
struct question {
  std::uint64_t key = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint64_t operand = 0;  ///< added, or compared with
  std::uint64_t desired = 0;
  std::uint64_t swap = 0;
};

struct answer {
  std::uint64_t found = 0;
  std::int64_t result = 0;  ///< a status; a get's data follow if it is `done`
};

/// In front of the data of a bulk send; the receive ends with that, too.
struct bulk_head {
  std::int64_t result = 0;  ///< a status; no data follow if it is not `done`
};

using fabric::bytes_of;

inline constexpr std::size_t message_bytes = 33 << 10;    ///< of one to a handler: 32 KiB and what is said about them
inline constexpr std::size_t transfer_bytes = 256 << 10;  ///< of one put or get
inline constexpr std::size_t straight_bytes = 16 << 10;   ///< more is not copied into a batch
inline constexpr std::size_t batch_bytes = 63 << 10;      ///< of a batch: what goes to the peer as one packet
inline constexpr unsigned batch_messages = 64;            ///< nor does it with so many
inline constexpr std::size_t asked_bytes_max = 4 << 20;   ///< of gets under way to one peer, more than one if they fit
inline constexpr std::size_t out_bytes_max = 256 << 10;   ///< that wait for the kernel: then nothing more is taken
inline constexpr std::size_t bulk_pieces_max = 40;        ///< of a bulk send or receive
inline constexpr std::size_t bulk_depth = 16;             ///< bulk sends, and receives, of one peer at a time
inline constexpr std::uint32_t under_way_max = 1024;      ///< questions to one peer

}  // namespace rma::tcp
