// SPDX-License-Identifier: Apache-2.0
/// \file
/// The server's state of a job: its present ranks, the key-value store, and the pending requests.
///
/// Pure bookkeeping: frames go out through a function, nothing is read, waited for or timed. A job has one round;
/// a rank that left and joins again (a second Runtime in one process) takes part in the next one.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "boot/protocol.hpp"

namespace rma::boot {

enum class rank_state : std::uint8_t { absent, joined, left, dead };

class round {
 public:
  using send_function = std::function<void(int rank, const std::string& frame_bytes)>;

  round(int size, send_function send);

  /// `rank` is absent and has proven the key.
  void join(int rank);
  /// A frame of a joined rank: put, get, fence, leave, ask_late, step. False if it makes no sense.
  [[nodiscard]] bool handle(int rank, const frame& received);
  /// The rank is gone without having left (or will never join). Told to all that are here; no effect if it left.
  void die(int rank);

  [[nodiscard]] rank_state state(int rank) const { return members_[index(rank)].state; }
  /// In the order in which the deaths became known.
  [[nodiscard]] const std::vector<int>& deaths() const noexcept { return deaths_; }
  /// True if a rank has left, and the remaining ones have not been notified.
  [[nodiscard]] bool has_departures() const noexcept { return !departures_.empty(); }
  void tell_departures();
  /// True if no rank is present and none will join.
  [[nodiscard]] bool over() const noexcept { return gone_ == members_.size(); }
  void broadcast(const std::string& frame_bytes);
  /// `rank` was last seen doing this, for people.
  [[nodiscard]] std::string where(int rank) const;

 private:
  enum class doing : std::uint8_t { running, in_get, in_fence };
  struct member {
    rank_state state = rank_state::absent;
    doing now = doing::running;
    std::string wanted;  ///< the key it waits for
    std::string step;    ///< step of the start, as last reported by the rank
    bool step_waits = false;
  };

  static std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
  bool put(body_reader body);
  bool get(int rank, body_reader body);
  void fence(int rank);
  void finalize(int rank);
  bool begin_step(int rank, body_reader body);
  [[nodiscard]] std::string late() const;
  void wake(int rank);
  void fail_gets(bool because_of_a_death);
  void fail_fence();
  void fail_hopeless_gets();

  std::vector<member> members_;
  std::vector<int> deaths_;
  std::vector<int> departures_;  ///< not told yet
  std::unordered_map<std::string, std::string> values_;
  send_function send_;
  std::size_t came_ = 0;  ///< ranks that ever joined
  std::size_t gone_ = 0;  ///< left or dead
  std::size_t in_get_ = 0;
  std::size_t in_fence_ = 0;
  bool started_ = false;  ///< all ranks have come to a fence, which ends the start
};

}  // namespace rma::boot
