// SPDX-License-Identifier: Apache-2.0
/// \file
/// The record of one operation, from its issue to its end.
///
///   free --> held in its target's queue, for a reason --> under way: posted to a fabric, or sent to the target's
///   handler
///        --> over --> free
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

/// Why an operation is in its target's queue.
enum class hold_reason : std::uint8_t {
  none,       ///< it is in no queue
  fence,      ///< fence "def": until the closing fence
  unlock,     ///< lock "two-sided": until the lock is asked for, with or without the epoch's end
  gather,     ///< until one call of the kernel makes several copies
  scheduled,  ///< RMA_SCHEDULE, RMA_AGGREGATE: until the epoch ends, or something waits for it
  room,       ///< until the network takes more: the rest of it, of which `posted` bytes have gone
};

/// Goes on with an operation that was held for room, whose record `o` names, as far as there is room now.
/// `retry_queue_full`: not to its end; else the record is under way, or over. The caller holds the progress lock.
using resume_function = status (*)(window_core& w, const checked_operation& o) noexcept;

/// The trace says this of an operation when it ends.
struct operation_note {
  trace_file* into = nullptr;
  trace_event event;  ///< but for its window's name and its end
  std::string window;
  int peer = -1;
  operation_note* next_free = nullptr;
};

/// Where the data of an operation lie, if not in one piece. Kept apart from the record: few operations need it.
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
  /// A target's held operations in the order of their issue; those of which a peer's acknowledgement is awaited, in the
  /// order of their messages; the pool's free ones. A record is in one of them at most.
  using queue =
      boost::intrusive::slist<operation_record,
                              boost::intrusive::member_hook<operation_record, boost::intrusive::slist_member_hook<link>,
                                                            &operation_record::queued_>,
                              boost::intrusive::cache_last<true>, boost::intrusive::constant_time_size<false>>;
  /// Those under way towards one target.
  using list =
      boost::intrusive::list<operation_record,
                             boost::intrusive::member_hook<operation_record, boost::intrusive::list_member_hook<link>,
                                                           &operation_record::listed_>,
                             boost::intrusive::constant_time_size<false>>;

  /// The target does not make its part of a copy. The origin does it another way.
  static constexpr status refused = status::not_supported;

  engine* owner = nullptr;
  std::uint32_t index = 0;           ///< in the pool
  std::uint32_t generation = 0;      ///< rises with each use: what arrives late is not for the record's next user
  std::uint32_t pieces = 0;          ///< not over yet, and one more while they are being posted
  status result = status::done;      ///< the worst of its pieces
  bool detached = false;             ///< nobody looks at it: given back when it is over
  bool immediate = false;            ///< its fence counts it at the target
  bool by_message = false;           ///< the target's handler does it: its end is an acknowledgement
  bool batched = false;              ///< of one that is scheduled: it goes in one message with others
  bool request_owns_result = false;  ///< the result is not wanted any more when the request is dropped
  word32 over{};
  std::uint32_t reports = 0;            ///< the state's, when it failed
  std::uint32_t malformed_notices = 0;  ///< the peer's, when it was sent
  target_state* state = nullptr;        ///< whose list it is in; null if in none
  std::uint64_t number = 0;  ///< of its last message, as the peer counts them; else of those posted to its target
  std::uint64_t value = 0;   ///< the old value of an atomic; of a put, a small value that is put

  std::byte* into = nullptr;           ///< where the result goes that comes by message; null: it is not wanted
  std::uint64_t bytes = 0;             ///< of data
  std::uint64_t arrived = 0;           ///< of the result's, in order
  operation_note* note = nullptr;      ///< null: it is not traced
  operation_shapes* shapes = nullptr;  ///< null: contiguous

  // The held operation. Whatever carries it out reads it from here.
  const void* origin = nullptr;  ///< data that go out
  std::uint64_t offset = 0;      ///< bytes from the start of the target's part (dynamic: an address)
  std::int32_t target = -1;      ///< rank in the window's team
  std::int32_t signal = -1;      ///< see operation_args
  call kind = call::put;
  operation op = operation::replace;
  element type = element::u8;
  hold_reason held = hold_reason::none;
  std::uint32_t copy_bytes = 0;  ///< there is room for in `copy`

  std::uint64_t posted = 0;          ///< bytes of one that is held for room
  resume_function resume = nullptr;  ///< of one that is held for room
  /// Of what goes out, where the origin's memory may change meanwhile. Kept for the record's next user.
  std::unique_ptr<std::byte[]> copy;

  /// Copies what goes out, and returns where it is.
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

/// Operations by message to one peer that it has not acknowledged, in the order of their messages.
struct sent_operations {
  operation_record::queue waiting;
};

/// A message carries this to name the record that its answer is for; never 0.
inline std::uint64_t id_of(const operation_record& op) noexcept {
  return (std::uint64_t{op.generation} << 32) | (std::uint64_t{op.index} + 1);
}

}  // namespace rma::detail
