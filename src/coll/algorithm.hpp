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

/// The slowest rank has to do this, for the model.
struct effort {
  double rounds = 0;          ///< one after the other, each with messages of the same length, about
  double messages = 0;        ///< sent and received by one rank
  double bytes = 0;           ///< through one rank's link, the larger direction
  double combined_bytes = 0;  ///< by one rank, and copied
  double link_share = 1;      ///< so many ranks of a node send to others at once
  double near_rounds = 0;     ///< those of the rounds in which all messages stay within nodes
  bool copies = false;        ///< a rank sends so many at once that its copies do not hide behind the link
};

struct algorithm {
  std::string_view name;
  call what;
  /// Adds the steps of `s.rank` to an empty schedule.
  void (*build)(const shape& s, Schedule& to);
  effort (*estimate)(const shape& s) noexcept;
  bool (*fits)(const shape& s) noexcept = nullptr;  ///< null: always
};

[[nodiscard]] std::span<const algorithm> algorithms() noexcept;
/// Null if there is none of that name.
[[nodiscard]] const algorithm* find_algorithm(call what, std::string_view name) noexcept;
/// "linear, binomial, ..." for messages and settings.
[[nodiscard]] std::string names_of_algorithms(call what);

/// A message and a byte cost so much, in ns.
struct machine_costs {
  double latency_ns = 1000;
  double message_ns = 200;  ///< to send or to receive one, beside others
  double byte_ns = 0.1;
  double combined_byte_ns = 0.05;
  double eager_bytes = 4096;
  double rendezvous_ns = 3000;  ///< latency of a longer one
  double long_byte_ns = 0.1;    ///< in a longer one: no copies at the ends
};
[[nodiscard]] double estimated_ns(const effort& e, const machine_costs& m) noexcept;

struct choice {
  const algorithm* chosen = nullptr;
  double estimate_ns = 0;
  const algorithm* second = nullptr;  ///< the best of those that were not taken
  double second_ns = 0;
  const algorithm* refused = nullptr;  ///< forced, but it does not fit
};
/// `forced` (null: none) if it fits, else the least estimate of those that do. The same on all members: it looks at
/// nothing that differs between them.
[[nodiscard]] choice choose(const shape& s, const machine_costs& m, const algorithm* forced) noexcept;
/// For the trace: "binomial: 12.0 us (next: linear, 14.1 us)".
[[nodiscard]] std::string reason_of(const choice& c);

}  // namespace rma::detail::coll
