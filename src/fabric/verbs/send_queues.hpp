// SPDX-License-Identifier: Apache-2.0
/// \file
/// Entries go into the send queues here. They are signalled now and then: reads and atomics, which somebody waits for,
/// the first eight of a burst of writes, and every eighth other one. If nothing else follows, `poll` asks for the end
/// of the rest with an empty write: after a long burst, not after a short one or one of a multiple of eight. A message,
/// whose end nobody waits for, is silent as long as there are buffers.
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
  /// `posted`, or nothing has happened. There is room.
  status post(connection& c, send_request& o) noexcept;
  /// All by one call, which is one system call and one doorbell. The last one tells the end of all. False if nothing
  /// has been posted.
  bool post_list(connection& c, std::span<send_request> all) noexcept;
  /// The oldest entry is over; valid until the next one is posted.
  const completion_action& retire(connection& c) noexcept {
    RMA_ASSERT(c.tail != c.head && budget_.under_way != 0);
    --budget_.under_way;
    return c.at(c.tail++);
  }
  /// Has been told the end of all entries.
  [[nodiscard]] bool has_tails() const noexcept { return !tails_.empty(); }
  /// Entries whose end nobody would tell: an empty write behind them does.
  void ask_for_tails() noexcept;
  /// True if all entries are over, silent messages too, but for those to peers that have left; asks for their end.
  bool quiet() noexcept;

  struct counters {
    std::array<std::uint64_t, 8> posted{};  ///< entries, by operation
    std::uint64_t tail_writes = 0;          ///< of these, empty ones
    std::uint64_t lists = 0;                ///< calls that posted several entries
    std::uint64_t listed = 0;               ///< the entries of these
    [[nodiscard]] std::uint64_t of(ibv_wr_opcode what) const noexcept {
      return posted[static_cast<std::size_t>(what) % posted.size()];
    }
  };
  [[nodiscard]] const counters& counts() const noexcept { return counts_; }

 private:
  static constexpr std::uint32_t signal_every = 8;  ///< less than the shortest queue has entries

  /// The label of entry `number` of the connection's send queue.
  static std::uint64_t label_of(const connection& c, std::uint32_t number) noexcept {
    return (std::uint64_t{1} << 63) | (std::uint64_t{c.index} << 32) | number;
  }
  /// Of a write, or of the last of several that are posted together.
  bool signals_write(connection& c, bool must, std::uint32_t count) const noexcept {
    if (c.head - c.tail == c.silent) c.burst = c.head;  // nothing is under way that somebody waits for
    return must || c.unsignalled + count >= signal_every || c.head - c.burst < signal_every || budget_.half_used();
  }
  /// A silent message keeps its buffer until something behind it is signalled: at most half of them are kept so.
  [[nodiscard]] bool signals_silent(const connection& c) const noexcept {
    return c.unsignalled + 1 >= signal_every || memory_.is_short_of_buffers() || budget_.half_used();
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
  std::vector<connection*> tails_;  ///< connections with entries that nobody will tell us the end of
  counters counts_;
};

// Inlined: a sixth of its instructions would be the call.
[[gnu::always_inline]] inline status send_queues::post(connection& c, send_request& o) noexcept {
  const bool signalled = o.then.silent ? signals_silent(c) : signals_write(c, o.must_signal, 1);
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
  } else if (!signalled) {
    list_tail(c);
  }
  return status::posted;
}

}  // namespace rma::verbs
