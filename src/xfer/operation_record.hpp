// SPDX-License-Identifier: Apache-2.0
/// \file
/// The record of one operation, from its issue to its end.
///
///   free --> held in its target's queue, for a reason --> pending: posted to a fabric, or sent to the target's
///   handler
///        --> complete --> free
///
/// Records come from the engine's pool and never move, so that a fabric's token, a peer's acknowledgement and a request
/// can refer to them. All fields but `over` are guarded by the progress lock.
#pragma once

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/slist.hpp>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "core/trace.hpp"
#include "fabric/fabric.hpp"
#include "rma/detail/view.hpp"
#include "rma/detail/word.hpp"
#include "rma/error.hpp"
#include "rma/layout.hpp"

namespace rma::detail {

class engine;
struct checked_operation;
struct operation_record;
struct target_state;
struct window_core;

/// The reason why an operation is held in its target's queue.
enum class hold_reason : std::uint8_t {
  none,       ///< it is in no queue
  fence,      ///< fence "def": held until the closing fence
  unlock,     ///< lock "two-sided": held until the lock is requested, with or without the epoch's end
  gather,     ///< held until one system call makes several copies
  scheduled,  ///< RMA_SCHEDULE, RMA_AGGREGATE: held until the epoch ends, or a call waits for it
  room,       ///< the part after the first `posted` bytes is held until the network takes more
};

/// Posts more of an operation that was held for room, with record `o`, as far as there is room now.
/// `retry_queue_full`: not all of it; else the record is pending, or has ended. The caller holds the progress lock.
using resume_function = status (*)(window_core& w, const checked_operation& o) noexcept;

/// The trace event of an operation, written at its end.
struct operation_note {
  trace_file* into = nullptr;
  trace_event event;  ///< without the window's name and the end
  std::string window;
  int peer = -1;
  operation_note* next_free = nullptr;
};

/// The layouts of an operation's data, if it is not contiguous. Separate from the record, since few operations need it.
struct operation_shapes {
  Layout origin, result, target;
  operation_shapes* next_free = nullptr;
};

/// One operation. It ends when its last piece does, see engine::end_piece.
struct operation_record : fabric::completion {
 private:
  using link = boost::intrusive::link_mode<boost::intrusive::normal_link>;
  boost::intrusive::slist_member_hook<link> queued_;
  boost::intrusive::list_member_hook<link> listed_;

 public:
  /// A target's held operations, in the order of issue; the operations that a peer has to acknowledge, in the order of
  /// their messages; the pool's free records. A record is in one of these queues at most.
  using queue =
      boost::intrusive::slist<operation_record,
                              boost::intrusive::member_hook<operation_record, boost::intrusive::slist_member_hook<link>,
                                                            &operation_record::queued_>,
                              boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>;
  /// The pending operations to one target.
  using list =
      boost::intrusive::list<operation_record,
                             boost::intrusive::member_hook<operation_record, boost::intrusive::list_member_hook<link>,
                                                           &operation_record::listed_>,
                             boost::intrusive::constant_time_size<false>>;

  /// The target declined its part of a copy: the origin uses another protocol.
  static constexpr status refused = status::not_supported;

  engine* owner = nullptr;
  std::uint32_t index = 0;           ///< index in the pool
  std::uint32_t generation = 0;      ///< incremented at each use, to recognize late events
  std::uint32_t pieces = 0;          ///< pending pieces, plus one while they are being posted
  status result = status::done;      ///< the worst result of its pieces
  bool detached = false;             ///< it is freed at its end: no request refers to it
  bool immediate = false;            ///< its fence counts it at the target
  bool by_message = false;           ///< the target's handler carries it out: an acknowledgement ends it
  bool batched = false;              ///< it is scheduled, and will be sent in one message with others
  bool request_owns_result = false;  ///< dropping the request discards the result
  word32 over{};
  std::uint32_t reports = 0;            ///< target_state::reports when it failed
  std::uint32_t malformed_notices = 0;  ///< the peer's number of notices when it was sent
  target_state* state = nullptr;        ///< the target in whose list it is; null if in none
  std::uint64_t number = 0;  ///< number of its last message, in the peer's count; else of those posted to its target
  std::uint64_t value = 0;   ///< the old value of an atomic, or the small value of a put

  std::byte* into = nullptr;           ///< buffer for the result from messages; null: discard it
  std::uint64_t bytes = 0;             ///< bytes of data
  std::uint64_t arrived = 0;           ///< bytes of the result that have arrived, in order
  operation_note* note = nullptr;      ///< null: it is not traced
  operation_shapes* shapes = nullptr;  ///< null: contiguous

  // The held operation, as the protocol that carries it out later reads it.
  const void* origin = nullptr;  ///< data of the origin
  std::uint64_t offset = 0;      ///< bytes from the start of the target's part (dynamic: an address)
  std::int32_t target = -1;      ///< rank in the window's team
  std::int32_t signal = -1;      ///< see operation_args
  call kind = call::put;
  operation op = operation::replace;
  element type = element::u8;
  hold_reason held = hold_reason::none;
  std::uint32_t copy_bytes = 0;  ///< capacity of `copy`

  std::uint64_t posted = 0;          ///< held for room: bytes posted so far
  resume_function resume = nullptr;  ///< held for room: posts the rest
  /// A copy of the origin's data, where these may change meanwhile. Reused by the next user of the record.
  std::unique_ptr<std::byte[]> copy;

  /// Copies the origin's data, and returns the copy.
  std::byte* keep(const void* from, std::size_t size) {
    std::byte* const at = size <= sizeof value ? reinterpret_cast<std::byte*>(&value) : room_for(size);
    if (at != from) std::memcpy(at, from, size);
    return at;
  }

 private:
  std::byte* room_for(std::size_t size) {
    if (copy_bytes < size) {
      copy = std::make_unique<std::byte[]>(size);
      copy_bytes = static_cast<std::uint32_t>(size);
    }
    return copy.get();
  }
};
static_assert(sizeof(operation_record) <= 192);

/// The operations by message that a peer has not acknowledged, in the order of their messages.
struct sent_operations {
  operation_record::queue waiting;
};

/// The number of a record in messages, which the reply repeats; never 0.
inline std::uint64_t id_of(const operation_record& op) noexcept {
  return (std::uint64_t{op.generation} << 32) | (std::uint64_t{op.index} + 1);
}

}  // namespace rma::detail
