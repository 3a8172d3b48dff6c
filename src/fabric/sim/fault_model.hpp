// SPDX-License-Identifier: Apache-2.0
/// \file
/// A model, drawn from a seed, of the behavior that may differ between runs within the contract of the fabric, and of
/// its faults.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include "fabric/fabric.hpp"
#include "fabric/sim/event_queue.hpp"

namespace rma::sim {

/// Pseudo-random numbers that depend on the seed alone.
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

/// A guarantee that the network violates on purpose at times, to check that tests detect it.
enum class breach : std::uint8_t {
  none,
  read_overtakes,    ///< reads and atomics do not wait for the writes before them
  early_completion,  ///< a write is reported complete before it has left the origin's memory
  lost_write,
  lost_message,
  double_message,
  blind_swap,       ///< a compare-and-swap that does not compare
  swallowed_error,  ///< a transfer that failed is reported as done
};

/// The breach of this name; throws Error(bad_argument) with a list of the names.
breach breach_named(std::string_view name);

/// The guarantees and the limits of the simulated fabric.
struct fault_model {
  breach broken = breach::none;
  fabric::capabilities caps;
  std::uint32_t outstanding_reads_max = 0;  ///< outstanding reads and atomics of one connection, at most
  std::uint32_t send_queue = 1024;          ///< outstanding operations of one rank, at most
  std::uint32_t receive_queue = 1024;       ///< messages in the receive queue of one rank, at most
  time_ps receiver_not_ready_ps = 0;        ///< delay before a message that found no room is retried
  time_ps placement_delay_max_ps = 0;       ///< delay from a write's acknowledgement to its placement
  time_ps jitter_max_ps = 0;                ///< delay of a packet
  std::uint32_t refused_one_in = 0;         ///< registrations of user memory that fail; 0: none
  std::uint32_t failed_one_in = 0;          ///< writes, reads and atomics that end with an error, though the peer lives
  int slow_rank = -1;                       ///< its processor is slower by the factor `slow_times`; -1: none
  std::uint32_t slow_times = 1;
  std::uint32_t outages = 0;     ///< links that go down for a while
  time_ps outage_ps = 0;         ///< duration of one, at most
  time_ps outages_until_ps = 0;  ///< they begin before this time
  struct span {
    time_ps from_ps, until_ps;
  };
  std::vector<span> all_down{};  ///< intervals in which no link carries packets
};

/// A network without faults that gives every guarantee that a network can give.
fault_model calm();
/// The value of `failed_one_in` for a run with errors.
std::uint32_t error_rate(std::uint64_t seed);
/// Draws all parameters from the seed: guarantees down to the least that the contract of the fabric demands, and all
/// faults that it allows.
fault_model storm(std::uint64_t seed);

}  // namespace rma::sim
