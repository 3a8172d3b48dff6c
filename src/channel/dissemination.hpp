// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dissemination barriers by messages, for any fabric and any number of ranks: O(log ranks) messages of each.
///
///   round k:  tell the rank 2^k above: "I am here" --> wait until the rank 2^k below has said so --> round k + 1
///
/// A rank that says so in round k has heard the same in all rounds before: after the last, all have been heard of. A
/// round has one sender, so that the turn it has come to is all there is to keep; memory is taken once for all turns.
/// Source: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988.
///
/// Where the network can (capability `words`) a rank that never sleeps in a round invites its sender to write the turn
/// into a word that it looks at, which costs both less than a message. A write wakes nobody: who goes to sleep takes
/// the invitation back, and is answered by a message (RMA_BARRIER; docs/decisions/0025).
///
///   the one that waits                                  its sender
///   enough waits in a row ended awake   -- invite -->   from now on: writes
///   looks at the word                   <-- word ---
///   is about to sleep                   -- recall -->   from now on: messages
///   has heard it, slept or not          <-- answer --   the last turn that it wrote, should the write have been lost
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

  /// The rank that tells a round here may write it.
  struct incoming_word {
    word64* word = nullptr;
    std::uint32_t tag = 0;     ///< of the invitation, its upper half; the lower half is the turn. 0: never invited
    bool open = false;         ///< not recalled
    std::uint32_t awake = 0;   ///< waits in a row that ended before a sleep
    std::uint32_t enough = 0;  ///< so many of them, and the sender is invited
    /// A sender is ahead by one turn at most. What is left of another invitation, or is half written, is neither.
    [[nodiscard]] bool shows(std::uint32_t turn) const noexcept {
      if (tag == 0) return false;
      const std::uint64_t now = word->load();
      return now >> 32 == tag && static_cast<std::uint32_t>(now) - turn <= 1;
    }
  };
  /// This rank may write a round there.
  struct outgoing_word {
    int rank = -1;
    std::uint32_t tag = 0;   ///< 0: it may not
    std::uint32_t turn = 0;  ///< the last one written
    std::uint64_t address = 0;
    fabric::region_key region;
  };
  struct writing {
    std::array<incoming_word, rounds_max> in{};
    std::array<outgoing_word, rounds_max> out{};
  };
  /// One barrier that is passed again and again, as one rank sees it.
  struct barrier_state {
    std::uint64_t id = 0;
    std::uint32_t turn = 0;                  ///< how often this rank has begun to pass it
    std::array<word32, rounds_max> heard{};  ///< by round: the turn that its sender has come to, by message
    std::unique_ptr<writing> written{};      ///< null where none may write
  };
  /// Finds the state at first use, and drops it in the end: when its last barrier is over nothing more comes for it.
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

  /// Of the turn that this rank has begun.
  [[nodiscard]] static bool heard(const barrier_state& c, unsigned round) noexcept {
    return static_cast<std::int32_t>(c.heard[round].load() - c.turn) >= 0 ||
           (c.written != nullptr && c.written->in[round].shows(c.turn));
  }
  void tell(barrier_state& c, unsigned round, int to) noexcept {
    const std::lock_guard guard(ctx_.lock());
    send(c, round, to);
  }
  /// One round: tells `to` and waits for `from` (world ranks). `peer_failed` if that one is gone, or `failed` says so.
  template <class Failed>
  status meet(barrier_state& c, unsigned round, int to, int from, Failed&& failed) noexcept {
    const auto ready = [&c, round]() noexcept { return heard(c, round); };
    const bool far = &ctx_.network_of(from) == ctx_.wide();
    wait mine{&c, round, from};
    {
      const std::lock_guard guard(ctx_.lock());
      send(c, round, to);
      // From another node it may be there before a wait has been set up.
      if (far && ctx_.ready_soon(ready)) {
        if (board_ != nullptr) stayed_awake(mine);
        return status::done;
      }
      if (far && board_ != nullptr) begin(mine);
    }
    const auto lost = [&]() noexcept {
      const status judged = failed();
      if (judged != status::done || !ctx_.gone(from)) return judged;
      ctx_.set_last_failed(from);
      return status::peer_failed;
    };
    const status s = ctx_.wait({.until = ready, .fails_if = lost});
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

  // Told by writes; all under the progress lock but `end`.
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
  std::unique_ptr<word_board> board_;  ///< null: none may write
  std::uint32_t enough_ = 0;           ///< of a new incoming word
  std::uint32_t last_tag_ = 0;
  wait* waiting_ = nullptr;                                    ///< the thread that waits for a word, if one does
  std::unordered_map<std::uint64_t, barrier_state> barriers_;  ///< guarded by the progress lock
  barrier_state* last_ = nullptr;                              ///< the one that was told of last
};

}  // namespace rma::detail
