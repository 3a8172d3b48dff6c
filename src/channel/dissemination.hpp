// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dissemination barriers by messages, for any fabric and any number of ranks: O(log ranks) messages of each.
///
///   round k:  notify the rank 2^k above --> wait until the rank 2^k below has notified this one --> round k + 1
///
/// A rank that notifies in round k has been notified in all earlier rounds: after the last round all ranks have
/// arrived. Each round has one sender, so that the sender's turn is the only state; it is allocated once for all turns.
/// Source: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988.
///
/// Where the network supports it (capability `words`) a rank that never sleeps in a round invites its sender to write
/// the turn into a word that it polls, which costs both less than a message. A write wakes no rank: a rank that is
/// about to sleep recalls the invitation, and the sender answers with a message (RMA_BARRIER; docs/decisions/0025).
///
///   receiver                                            sender
///   enough waits in a row ended awake   -- invite -->   from now on it writes
///   polls the word                      <-- word ---
///   is about to sleep                   -- recall -->   from now on it sends messages
///   gets the turn, asleep or not        <-- answer --   the last turn that it wrote, in case the write was lost
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>

#include "channel/context.hpp"
#include "channel/word_board.hpp"

namespace rma::detail {

class dissemination {
 public:
  static constexpr unsigned rounds_max = 32;

  /// The word into which the sender of a round may write.
  struct incoming_word {
    word64* word = nullptr;
    std::uint32_t tag = 0;     ///< upper half of the word: the invitation's number, 0 for none; lower half: turn
    bool open = false;         ///< the invitation is not recalled
    std::uint32_t awake = 0;   ///< waits in a row that ended before a sleep
    std::uint32_t enough = 0;  ///< number of them after which the sender is invited
    /// A sender is ahead by one turn at most. Words of another invitation, or half-written ones, are ignored.
    [[nodiscard]] bool shows(std::uint32_t turn) const noexcept {
      if (tag == 0) return false;
      const std::uint64_t now = word->load();
      return now >> 32 == tag && static_cast<std::uint32_t>(now) - turn <= 1;
    }
  };
  /// The word of a receiver into which this rank may write a round.
  struct outgoing_word {
    int rank = -1;
    std::uint32_t tag = 0;   ///< 0: it is not invited
    std::uint32_t turn = 0;  ///< the last one written
    std::uint64_t address = 0;
    fabric::region_key region;
  };
  struct writing {
    std::array<incoming_word, rounds_max> in{};
    std::array<outgoing_word, rounds_max> out{};
  };
  /// One rank's state of a barrier, which is used any number of times.
  struct barrier_state {
    std::uint64_t id = 0;
    std::uint32_t turn = 0;                  ///< number of barriers that this rank has begun
    std::array<word32, rounds_max> heard{};  ///< by round: the sender's turn, from messages
    std::unique_ptr<writing> written{};      ///< null where words are not used
  };
  /// Finds the state at first use, and drops it at the end: after its last barrier no message arrives for it.
  class barrier_handle {
   public:
    barrier_handle() = default;
    barrier_handle(const barrier_handle&) = delete;
    barrier_handle& operator=(const barrier_handle&) = delete;
    ~barrier_handle() {
      if (at_ != nullptr) all_->drop(at_->id);
    }
    barrier_state& in(dissemination& all, std::uint64_t id) noexcept {
      if (at_ == nullptr) at_ = &(all_ = &all)->find(id);
      return *at_;
    }

   private:
    dissemination* all_ = nullptr;
    barrier_state* at_ = nullptr;
  };

  explicit dissemination(context& ctx);
  dissemination(const dissemination&) = delete;
  dissemination& operator=(const dissemination&) = delete;
  ~dissemination() { ctx_.remove_before_sleep(this); }

  /// True if the message of that round has arrived, in the turn that this rank has begun.
  [[nodiscard]] static bool heard(const barrier_state& c, unsigned round) noexcept {
    return static_cast<std::int32_t>(c.heard[round].load() - c.turn) >= 0 ||
           (c.written != nullptr && c.written->in[round].shows(c.turn));
  }
  void tell(barrier_state& c, unsigned round, int to) noexcept {
    const std::lock_guard guard(ctx_.lock());
    send(c, round, to);
  }
  /// One round: notifies `to` and waits for `from` (world ranks). `peer_failed` if `from` is gone, or by `failed`.
  template <class Failed>
  status meet(barrier_state& c, unsigned round, int to, int from, Failed&& failed) noexcept {
    const auto ready = [&c, round]() noexcept { return heard(c, round); };
    const bool far = &ctx_.network_of(from) == ctx_.wide();
    wait mine{&c, round, from};
    {
      const std::lock_guard guard(ctx_.lock());
      send(c, round, to);
      // A message from another node may arrive before a wait has been set up.
      if (far && ctx_.ready_soon(ready)) {
        if (board_ != nullptr) stayed_awake(mine);
        return status::done;
      }
      if (far && board_ != nullptr) begin(mine);
    }
    const auto gone = [&]() noexcept {
      const status judged = failed();
      if (judged != status::done || !ctx_.gone(from)) return judged;
      ctx_.set_last_failed(from);
      return status::peer_failed;
    };
    const status s = ctx_.wait({.until = ready, .fails_if = gone});
    if (far && board_ != nullptr) end(mine);
    return s;
  }

 private:
  struct news;
  struct word_grant;
  struct wait {
    barrier_state* of;
    unsigned round;
    int from;
    bool slept = false;
  };
  barrier_state& find(std::uint64_t id) noexcept;
  void drop(std::uint64_t id) noexcept;
  void send(barrier_state& c, unsigned round, int to) noexcept;
  barrier_state& known(std::uint64_t id) noexcept;
  static void on_news(void* self, int source, std::span<const std::byte> payload) noexcept;

  // Notification by words; all under the progress lock except `end`.
  bool write(barrier_state& c, unsigned round, int to) noexcept;
  void begin(wait& mine) noexcept;
  void end(wait& mine) noexcept;
  void stayed_awake(const wait& mine) noexcept;
  void invite(const wait& w) noexcept;
  void recall(const wait& w) noexcept;
  void on_invitation(int source, const word_grant& o) noexcept;
  void on_recall(int source, const word_grant& o) noexcept;
  static void on_offer(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_sleep(void* self) noexcept;

  context& ctx_;
  std::unique_ptr<word_board> board_;  ///< null where words are not used
  std::uint32_t enough_ = 0;           ///< initial value of incoming_word::enough
  std::uint32_t last_tag_ = 0;
  wait* waiting_ = nullptr;                                    ///< the wait of the thread that waits for a word, if any
  std::unordered_map<std::uint64_t, barrier_state> barriers_;  ///< guarded by the progress lock
  barrier_state* last_ = nullptr;                              ///< the barrier of the last notification
};

}  // namespace rma::detail
