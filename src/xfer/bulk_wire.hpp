// SPDX-License-Identifier: Apache-2.0
/// \file
/// The control messages of transfers over the bulk channel. A message is one of the structs below, which start with
/// `what`.
///
///   put:  origin                         target            get:  origin                      target
///         request --------------------->  posts                  posts
///                 <------- ready(count)   receives               request(count) ---------->
///         sends ======================>                                      <============ sends
///                 <-------------- (over)                         (more(count) ----------->)
///
/// Receives are posted before the message that lets the peer send is made, in one step under the progress lock; such
/// messages arrive in order, and the peer sends in their order. So each send matches its receive. A side that cannot
/// send its data sends the same number of empty messages, so that no receive remains that would take the data of the
/// next transfer. Layouts are named by their numbers, see layout_exchange.hpp.
#pragma once

#include <cstdint>

namespace rma::detail {

enum class bulk_word : std::uint8_t {
  request,  ///< origin: request of a put or get
  ready,    ///< target: number of posted receives of a put
  more,     ///< origin: number of further posted receives of a get
  over,     ///< target: a put is placed (if the sends' completions do not imply it), or a put or get fails
};

struct bulk_request {
  bulk_word what = bulk_word::request;
  std::uint8_t put = 0;
  std::uint16_t pieces_max = 0;  ///< longest list at the origin
  std::int32_t signal = -1;      ///< see operation_args
  std::uint64_t window = 0;
  std::uint64_t offset = 0;  ///< from the start of the target's part
  std::uint64_t ticket = 0;  ///< ticket of the origin's operation
  std::uint32_t posted = 0;  ///< posted receives of a get
  std::uint32_t here = 0;    ///< the number of the origin's layout
  std::uint32_t there = 0;   ///< the number of the target's
  std::uint32_t unused = 0;
};

/// ready, more, over.
struct bulk_news {
  bulk_word what = bulk_word::ready;
  std::int8_t result = 0;  ///< over: a status
  std::uint16_t unused = 0;
  std::uint32_t count = 0;  ///< ready, more
  std::uint64_t ticket = 0;
};

}  // namespace rma::detail
