// SPDX-License-Identifier: Apache-2.0
/// \file
/// Algorithms of collectives, by call and name. How to add one: a file in algorithms/ that builds one rank's schedule
/// for a shape, and a row in table.cpp; tests/coll and the conformance suite then run it on everything.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "coll/shape.hpp"
#include "rma/schedule.hpp"

namespace rma::detail::coll {

/// The work of the slowest rank, for the model.
struct effort {
  double rounds = 0;          ///< sequential rounds, each with messages of about the same length
  double messages = 0;        ///< sent and received by one rank
  double bytes = 0;           ///< through one rank's link, the larger direction
  double combined_bytes = 0;  ///< combined or copied by one rank
  double link_share = 1;      ///< number of ranks of a node that send to others at once
  double near_rounds = 0;     ///< number of rounds in which all messages stay within nodes
  bool copies = false;        ///< a rank sends so many at once that the link does not hide its copies
};

struct algorithm {
  std::string_view name;
  call what;
  /// Adds the steps of `s.rank` to an empty schedule.
  void (*build)(const shape& s, Schedule& to);
  effort (*estimate)(const shape& s) noexcept;
  bool (*fits)(const shape& s) noexcept = nullptr;  ///< null: always
  bool by_puts = false;                             ///< its sends are puts with a signal (put_channels.hpp)
};

[[nodiscard]] std::span<const algorithm> algorithms() noexcept;
/// Returns null if there is none of that name.
[[nodiscard]] const algorithm* find_algorithm(call what, std::string_view name) noexcept;
/// "linear, binomial, ..." for messages and settings.
[[nodiscard]] std::string names_of_algorithms(call what);

/// Costs of a message and of a byte, in ns.
struct machine_costs {
  double latency_ns = 1000;
  double message_ns = 200;  ///< to send or to receive one, beside others
  double byte_ns = 0.1;
  double combined_byte_ns = 0.05;
  double eager_bytes = 4096;
  double rendezvous_ns = 3000;   ///< latency of a longer message
  double long_byte_ns = 0.1;     ///< in a longer message: no copies at the ends
  double link_byte_ns = 0.1;     ///< time per byte of short ones that fill the link
  double put_latency_ns = 1000;  ///< latency of a put with a signal
  double put_ns = 200;           ///< to post one, or to take it from its slot, beside others
  double put_byte_ns = 0.2;      ///< with the copies at both ends
};
[[nodiscard]] double estimated_ns(const effort& e, const machine_costs& m) noexcept;

struct choice {
  const algorithm* chosen = nullptr;
  double estimate_ns = 0;
  const algorithm* second = nullptr;  ///< the best of the others
  double second_ns = 0;
};
/// Returns `forced` (null: none) if it fits, else the algorithm with the least estimate of those that fit. The choice
/// is the same on all members: it uses nothing that differs between them.
[[nodiscard]] choice choose(const shape& s, const machine_costs& m, const algorithm* forced) noexcept;
/// For the trace: "binomial: 12.0 us; next linear, 14.1 us". `set`: the name of the setting, empty for auto; the
/// reason says if it is not the one chosen.
[[nodiscard]] std::string reason_of(const choice& c, std::string_view set);

}  // namespace rma::detail::coll
