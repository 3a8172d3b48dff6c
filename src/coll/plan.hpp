// SPDX-License-Identifier: Apache-2.0
/// \file
/// The plan of a collective of one shape on one team, made once: its schedule, what a start of it needs, and the
/// records of earlier starts, which are reused.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "coll/algorithm.hpp"
#include "coll/elements.hpp"
#include "coll/shape.hpp"
#include "rma/schedule.hpp"

namespace rma::detail::coll {

class running;

struct plan {
  plan(const collective_call& call, std::int32_t signature, int rank, int size, bool reproducible,
       std::span<const int> nodes);
  plan(const plan&) = delete;
  plan& operator=(const plan&) = delete;
  ~plan();

  /// True if a call like this one, by the same member, has this plan.
  [[nodiscard]] bool serves(const collective_call& c, std::int32_t c_signature) const noexcept {
    return signature == c_signature && bytes == c.bytes && root == c.root && sent_bytes == c.sent.each_bytes &&
           received_bytes == c.received.each_bytes && varied == c.varied && in_place == c.in_place &&
           (!c.user || (element_bytes == element_bytes_of(c) && commutative == commutes(c))) &&
           (!has_lists(c) || !lists_differ(c));
  }
  /// Makes the algorithm build the schedule. `set`: the name that the setting gives, for the reason.
  void build(const collective_call& c, const machine_costs& costs, const algorithm* forced, std::string_view set);
  /// Uses a given schedule. `notified`: its signals are notifications, which need no records.
  void use(const Schedule& made, bool notified = false);

  static constexpr std::int32_t no_signature = -1;  ///< no call has it

  call what;
  std::int32_t signature;
  std::size_t bytes;
  int root;
  std::size_t sent_bytes, received_bytes, element_bytes;
  bool commutative, varied, in_place;
  std::vector<std::size_t> lists[4];  ///< sizes and offsets of the blocks sent and received, in units
  std::vector<int> neighbors[2];
  shape of;
  Schedule schedule;
  std::size_t sends_max = 0;  ///< in one round
  std::size_t receives_max = 0;
  const algorithm* chosen = nullptr;
  bool by_puts = false;  ///< its messages are puts into landing memory
  std::string reason;
  std::size_t in_use = 0;  ///< starts that are not complete, and persistent handles
  std::vector<std::unique_ptr<running>> records;
  std::vector<running*> idle;

 private:
  [[nodiscard]] static bool has_lists(const collective_call& c) noexcept {
    return c.varied || !c.sources.empty() || !c.targets.empty();
  }
  [[nodiscard]] bool lists_differ(const collective_call& c) const noexcept;
};

}  // namespace rma::detail::coll
