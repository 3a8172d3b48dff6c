// SPDX-License-Identifier: Apache-2.0
/// \file
/// Posts entries to the send queues, with selective signaling: reads and atomics, which are waited for, the first eight
/// of a burst of writes, and every eighth other entry are signaled. If nothing else follows, `poll` posts an empty
/// signaled write for the completion of the rest: after a long burst, not after a short one or one of a multiple of
/// eight. A message or an unsignaled write, for whose completion no call waits, is signaled only when half of the queue
/// has been posted since the last signaled entry, since entries are free again only by a completion; or if buffers are
/// short.
#pragma once

#include <infiniband/verbs.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "fabric/verbs/completion_queue.hpp"
#include "fabric/verbs/connections.hpp"
#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/send_request.hpp"

namespace rma::verbs {

class send_queues {
 public:
  send_queues(connections& all, const local_memory& memory, completion_budget& budget) noexcept
      : all_(all), memory_(memory), budget_(budget) {}

  [[nodiscard]] bool has_room(const connection& c, std::size_t entries = 1) const noexcept {
    return c.room() >= entries && budget_.has_room(entries);
  }
  /// Returns `posted`, or has done nothing. The caller has checked that there is room.
  status post(connection& c, send_request& o) noexcept;
  /// Posts all with one call, which is one system call and one doorbell. If the last entry is signaled, its completion
  /// is that of all. False if nothing has been posted.
  bool post_list(connection& c, std::span<send_request> all) noexcept;
  /// Removes the oldest entry, which is complete; the result is valid until the next post.
  const completion_action& retire(connection& c) noexcept {
    RMA_ASSERT(c.tail != c.head && budget_.under_way != 0);
    --budget_.under_way;
    return c.at(c.tail++);
  }
  /// True if connections have entries after the last signaled one.
  [[nodiscard]] bool has_tails() const noexcept { return !tails_.empty(); }
  /// Posts an empty signaled write after unsignaled entries, whose completion would not be reported otherwise.
  void ask_for_tails() noexcept;
  /// True if all entries are complete, with silent messages, except those to peers that have left; requests the
  /// completion of the rest.
  bool quiet() noexcept;

  struct counters {
    std::array<std::uint64_t, 8> posted{};  ///< entries, by operation
    std::uint64_t tail_writes = 0;          ///< empty entries among these
    std::uint64_t lists = 0;                ///< calls that posted several entries
    std::uint64_t listed = 0;               ///< the entries of these
    [[nodiscard]] std::uint64_t of(ibv_wr_opcode what) const noexcept {
      return posted[static_cast<std::size_t>(what) % posted.size()];
    }
  };
  [[nodiscard]] const counters& counts() const noexcept { return counts_; }

 private:
  static constexpr std::uint32_t signal_every = 8;  ///< less than the entries of the shortest queue

  /// The label of entry `number` of the connection's send queue.
  static std::uint64_t label_of(const connection& c, std::uint32_t number) noexcept {
    return (std::uint64_t{1} << 63) | (std::uint64_t{c.index} << 32) | number;
  }
  /// True if a write, or the last of several that are posted together, is to be signaled.
  bool signals_write(connection& c, bool must, std::uint32_t count) const noexcept {
    if (c.head - c.tail == c.silent) c.burst = c.head;  // only silent entries are outstanding
    return must || c.unsignalled + count >= signal_every || c.head - c.burst < signal_every || budget_.half_used();
  }
  /// A silent message keeps its buffer until a later entry is signaled: at most half of the buffers are kept in this
  /// way. The other half of the queue has room while the completion is under way.
  [[nodiscard]] bool signals_silent(const connection& c) const noexcept {
    return c.unsignalled + 1 >= (c.mask + 1) / 2 || memory_.is_short_of_buffers() || budget_.half_used();
  }
  void count(const send_request& o) noexcept {
    ++counts_.posted[static_cast<std::size_t>(o.request.opcode) % counts_.posted.size()];
  }
  void list_tail(connection& c) noexcept {
    if (!std::exchange(c.listed, true)) tails_.push_back(&c);
  }

  connections& all_;
  const local_memory& memory_;
  completion_budget& budget_;
  std::vector<connection*> tails_;  ///< connections with entries after the last signaled one
  counters counts_;
};

// It is inlined, since the call would be a sixth of its instructions.
[[gnu::always_inline]] inline status send_queues::post(connection& c, send_request& o) noexcept {
  const bool signalled = o.then.silent || o.unsignaled ? signals_silent(c) : signals_write(c, o.must_signal, 1);
  o.request.wr_id = label_of(c, c.head);
  o.request.sg_list = o.pieces.data();
  if (signalled) o.request.send_flags |= IBV_SEND_SIGNALED;
  ibv_send_wr* refused = nullptr;
  if (::ibv_post_send(c.queue_pair, &o.request, &refused) != 0) return status::retry_queue_full;
  c.at(c.head++) = o.then;
  count(o);
  ++budget_.under_way;
  c.unsignalled = signalled ? 0 : c.unsignalled + 1;
  if (o.then.silent) {
    ++c.silent;
  } else if (!signalled && !o.unsignaled) {
    list_tail(c);
  }
  return status::posted;
}

}  // namespace rma::verbs
