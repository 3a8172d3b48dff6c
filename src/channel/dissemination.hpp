// SPDX-License-Identifier: Apache-2.0
/// \file
/// Dissemination barriers by messages, for any fabric and any number of ranks: O(log ranks) messages of each.
///
///   round k:  tell the rank 2^k above: "I am here" --> wait until the rank 2^k below has said so --> round k + 1
///
/// Who says so in round k has heard the same in all rounds before: after the last, everybody has been heard of. A round
/// has one sender, so that the turn it has come to is all there is to keep; memory is taken once for all turns.
/// Source: Hensgen, Finkel and Manber, Two Algorithms for Barrier Synchronization, 1988.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <unordered_map>

#include "channel/context.hpp"

namespace rma::detail {

class dissemination {
 public:
  static constexpr unsigned rounds_max = 32;

  /// One barrier that is passed again and again, as one rank sees it.
  struct circle {
    std::uint64_t id = 0;
    std::uint32_t turn = 0;                  ///< how often this rank has begun to pass it
    std::array<word32, rounds_max> heard{};  ///< by round: the turn that its sender has come to
  };
  /// Finds the circle at first use, and drops it in the end: when its last barrier is over nothing more comes for it.
  class seat {
   public:
    seat() = default;
    seat(const seat&) = delete;
    seat& operator=(const seat&) = delete;
    ~seat() {
      if (at_ != nullptr) all_->drop(at_->id);
    }
    circle& in(dissemination& all, std::uint64_t id) noexcept {
      if (at_ == nullptr) at_ = &(all_ = &all)->find(id);
      return *at_;
    }

   private:
    dissemination* all_ = nullptr;
    circle* at_ = nullptr;
  };

  explicit dissemination(context& ctx);

  /// Of the turn that this rank has begun.
  [[nodiscard]] static bool heard(const circle& c, unsigned round) noexcept {
    return static_cast<std::int32_t>(c.heard[round].load() - c.turn) >= 0;
  }
  void tell(const circle& c, unsigned round, int to) noexcept {
    const std::lock_guard guard(ctx_.lock());
    send(c, round, to);
  }
  /// One round: tells `to` and waits for `from` (world ranks). `peer_failed` if that one is gone, or `failed` says so.
  template <class Failed>
  status meet(const circle& c, unsigned round, int to, int from, Failed&& failed) noexcept {
    const auto ready = [&c, round]() noexcept { return heard(c, round); };
    {
      const std::lock_guard guard(ctx_.lock());
      send(c, round, to);
      // From another node it may be there before a wait has been set up.
      if (&ctx_.network_of(from) == ctx_.wide() && ctx_.ready_soon(ready)) return status::done;
    }
    return ctx_.wait_for_message(ready, [&]() noexcept {
      const status s = failed();
      if (s != status::done || !ctx_.gone(from)) return s;
      ctx_.blame(from);
      return status::peer_failed;
    });
  }

 private:
  struct news;
  circle& find(std::uint64_t id) noexcept;
  void drop(std::uint64_t id) noexcept;
  void send(const circle& c, unsigned round, int to) noexcept;
  circle& known(std::uint64_t id) noexcept;
  static void on_news(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  std::unordered_map<std::uint64_t, circle> circles_;  ///< guarded by the progress lock
  circle* last_ = nullptr;                             ///< the one that was told of last
};

}  // namespace rma::detail
