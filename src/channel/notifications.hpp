// SPDX-License-Identifier: Apache-2.0
/// \file
/// Notifications: the messages without data of schedules that run again and again, as barriers do.
///
///   sender                                         receiver
///   notify(slots, round, to)  -- its turn -->      slots.heard[round]; a run that awaits it is called
///
/// Each round of such an object has one sender, so that the sender's turn is the only state: nothing is matched,
/// buffered or allocated.
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
#include <span>
#include <unordered_map>

#include "channel/context.hpp"
#include "channel/word_board.hpp"

namespace rma::detail {

class notifications {
 public:
  static constexpr unsigned rounds_max = 32;
  static constexpr unsigned no_round = ~0U;

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
  /// One rank's state of an object, which is used any number of times.
  struct slots {
    std::uint64_t id = 0;
    std::uint32_t turn = 0;                       ///< number of runs that this rank has begun
    unsigned awaited = no_round;                  ///< the round that a run awaits
    int from = -1;                                ///< world rank of that round's sender
    bool slept = false;                           ///< the wait for that round does not poll a word
    void (*over)(void* self) noexcept = nullptr;  ///< called when the awaited round has been heard
    void* self = nullptr;
    std::array<std::uint32_t, rounds_max> heard{};  ///< by round: the sender's turn, from messages
    std::unique_ptr<writing> written{};             ///< null where words are not used
  };

  explicit notifications(context& ctx);
  notifications(const notifications&) = delete;
  notifications& operator=(const notifications&) = delete;
  ~notifications() { ctx_.remove_before_sleep(this); }

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  /// The state of the object of that name, from its first use to `drop`: after its last run no message arrives for it.
  [[nodiscard]] slots& find(std::uint64_t id) noexcept;
  void drop(slots& s) noexcept;
  /// Reports to a world rank that this rank has come to this round of its turn.
  void notify(slots& s, unsigned round, int to) noexcept;
  /// True if `from`, a world rank, has reported this round; otherwise `s.over` is called when it has.
  [[nodiscard]] bool await(slots& s, unsigned round, int from) noexcept;
  /// Ends that.
  void give_up(slots& s) noexcept;
  /// A blocking call waits for the rounds of this turn in between: they may be reported by words.
  void begin_wait(slots& s) noexcept;
  void end_wait(slots& s) noexcept;
  /// Looks at the word of the awaited round, for callers that do not make progress.
  void look(slots& s) noexcept;

 private:
  struct news;
  struct word_grant;

  [[nodiscard]] slots& known(std::uint64_t id) noexcept;
  [[nodiscard]] static bool is_heard(const slots& s, unsigned round) noexcept;
  void hear_awaited(slots& s) noexcept;
  static void on_news(void* self, int source, std::span<const std::byte> payload) noexcept;

  // Notification by words.
  bool write(slots& s, unsigned round, int to) noexcept;
  void note_awake(slots& s, unsigned round) noexcept;
  void invite(slots& s, unsigned round) noexcept;
  void recall(slots& s, unsigned round) noexcept;
  void on_invitation(int source, const word_grant& o) noexcept;
  void on_recall(int source, const word_grant& o) noexcept;
  void on_answer(const word_grant& o) noexcept;
  static void on_word_grant(void* self, int source, std::span<const std::byte> payload) noexcept;
  static unsigned on_duty(void* self) noexcept;
  static void on_sleep(void* self) noexcept;

  context& ctx_;
  std::unique_ptr<word_board> board_;  ///< null where words are not used
  std::uint32_t enough_ = 0;           ///< initial value of incoming_word::enough
  std::uint32_t last_tag_ = 0;
  slots* waiting_ = nullptr;  ///< those of the blocking call whose words are polled: words serve one at a time
  std::unordered_map<std::uint64_t, slots> objects_;
  slots* last_ = nullptr;  ///< those of the last notification
};

}  // namespace rma::detail
