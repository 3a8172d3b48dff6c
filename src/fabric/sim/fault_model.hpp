// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model of what may differ from run to run within the contract of the fabric, and what may go wrong: drawn from a
/// seed.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "fabric/fabric.hpp"
#include "fabric/sim/event_queue.hpp"

namespace rma::sim {

/// Numbers that depend on the seed alone.
class rng {
 public:
  explicit rng(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t roll() noexcept {
    std::uint64_t z = state_ += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  /// 0 ... sides-1
  std::uint64_t below(std::uint64_t sides) noexcept { return sides == 0 ? 0 : roll() % sides; }
  bool one_in(std::uint64_t n) noexcept { return n != 0 && below(n) == 0; }
  template <class T>
  T one_of(std::initializer_list<T> all) noexcept {
    return all.begin()[below(all.size())];
  }

 private:
  std::uint64_t state_;
};

/// A promise that the network breaks on purpose now and then, to see that somebody notices.
enum class breach : std::uint8_t {
  none,
  read_overtakes,    ///< reads and atomics do not wait for the writes before them
  early_completion,  ///< a write is reported over before it has left the origin's memory
  lost_write,
  lost_message,
  double_message,
  blind_swap,       ///< a compare-and-swap that does not compare
  swallowed_error,  ///< a transfer that failed is reported as done
};

/// By its name; throws Error(bad_argument) with a list of them.
breach breach_named(std::string_view name);

/// The fabric's promises, and its limits.
struct fault_model {
  breach broken = breach::none;
  fabric::capabilities caps;
  std::uint32_t outstanding_reads_max = 0;  ///< reads and atomics of one connection
  std::uint32_t send_queue = 1024;          ///< operations of one rank that are under way, at most
  std::uint32_t receive_queue = 1024;       ///< messages that wait for one rank, at most
  time_ps receiver_not_ready_ps = 0;        ///< until a message that found no room is offered again
  time_ps placement_delay_max_ps = 0;       ///< of a write that is acknowledged before it is in memory
  time_ps jitter_max_ps = 0;                ///< of a packet
  std::uint32_t refused_one_in = 0;         ///< registrations of user memory that fail; 0: none
  std::uint32_t failed_one_in = 0;          ///< writes, reads and atomics that end with an error, though the peer lives
  int slow_rank = -1;                       ///< whose processor takes so many times as long for everything; -1: none
  std::uint32_t slow_times = 1;
  std::uint32_t outages = 0;     ///< links that go down for a while
  time_ps outage_ps = 0;         ///< how long, at most
  time_ps outages_until_ps = 0;  ///< they begin before that
  struct span {
    time_ps from_ps, until_ps;
  };
  std::vector<span> all_down{};  ///< when no link carries anything
};

/// A network that keeps every promise that a network can make.
fault_model calm();
/// How often transfers fail in a run with errors: `failed_one_in`.
std::uint32_t error_rate(std::uint64_t seed);
/// Everything drawn: the least that the contract of the fabric allows, and all that may go wrong in it.
fault_model storm(std::uint64_t seed);

}  // namespace rma::sim
