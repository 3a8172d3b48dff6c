// SPDX-License-Identifier: Apache-2.0
/// \file
/// The control messages of transfers over the bulk channel. A message is one of these, `what` first.
///
///   put:  origin                         target            get:  origin                      target
///         request --------------------->  posts                  posts
///                 <------- ready(count)   receives               request(count) ---------->
///         sends ======================>                                      <============ sends
///                 <-------------- (over)                         (more(count) ----------->)
///
/// Receives are posted before the message that lets the peer send is made, in one step under the progress lock; such
/// messages come in order, and the peer sends in their order. So each send meets its receive. A side that cannot send
/// what it should sends nothing at all, in as many sends: no receive is left to take the next one's data.
#pragma once

#include <cstdint>

namespace rma::detail {

enum class bulk_word : std::uint8_t {
  define,   ///< a piece of the description of a layout
  request,  ///< origin: put or get that
  ready,    ///< target: so many receives of a put are posted
  more,     ///< origin: so many more receives of a get are posted
  over,     ///< target: a put is there (if the sends' completions do not say so), or a put or get cannot be done
  ask,      ///< target: what the layouts of that request are
};

struct define_header {
  bulk_word what = bulk_word::define;
  std::uint8_t unused[3]{};
  std::uint32_t number = 0;
  std::uint32_t bytes = 0;  ///< of the whole description
  std::uint32_t at = 0;     ///< where the bytes that follow belong
};

struct bulk_request {
  bulk_word what = bulk_word::request;
  std::uint8_t put = 0;
  std::uint16_t pieces_max = 0;  ///< of a list here
  std::int32_t signal = -1;      ///< see operation_args
  std::uint64_t window = 0;
  std::uint64_t offset = 0;  ///< from the start of the target's part
  std::uint64_t ticket = 0;  ///< of the origin
  std::uint32_t posted = 0;  ///< receives of a get
  std::uint32_t here = 0;    ///< the number of the origin's layout
  std::uint32_t there = 0;   ///< the number of the target's
  std::uint32_t unused = 0;
};

/// ready, more, over, ask.
struct bulk_news {
  bulk_word what = bulk_word::ready;
  std::int8_t result = 0;  ///< over: a status
  std::uint16_t unused = 0;
  std::uint32_t count = 0;  ///< ready, more
  std::uint64_t ticket = 0;
};

}  // namespace rma::detail
