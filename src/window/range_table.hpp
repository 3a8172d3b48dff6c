// SPDX-License-Identifier: Apache-2.0
/// \file
/// The table of held and requested byte ranges of one rank's part, which that rank's handlers change.
///
///   request --no conflict with a held range or an earlier waiter--> held --release--> gone
///      |                                                             ^
///      +-- conflict --> waits, in the order of arrival --------------+  when all conflicting ranges are gone
///      |                  |
///      |                  +-- the rank of a conflicting range has died --> failed
///
/// Pure: each call returns the replies to send. Earlier waiters count as conflicts, so that no request starves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "rma/epoch.hpp"

namespace rma::detail {

struct range_entry {
  int rank = 0;              ///< world rank of the origin
  std::uint32_t ticket = 0;  ///< the origin's number for the request
  lock_kind kind = lock_kind::shared;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool held = false;
};

struct range_answer {
  int rank;
  std::uint32_t ticket;
  bool granted;  ///< false: a rank that it waited for has died
};

constexpr bool conflict(const range_entry& a, const range_entry& b) noexcept {
  const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
  return overlap && (a.kind == lock_kind::exclusive || b.kind == lock_kind::exclusive);
}

class range_table {
 public:
  void request(const range_entry& wanted, std::vector<range_answer>& answers) {
    RMA_ASSERT(!wanted.held);
    entries_.push_back(wanted);
    grant(answers);
  }
  void release(int rank, std::uint32_t ticket, std::vector<range_answer>& answers) {
    std::erase_if(entries_, [&](const range_entry& e) { return e.rank == rank && e.ticket == ticket; });
    grant(answers);
  }
  /// Handles a dead rank: fails the requests that wait for its ranges; then frees these, if `recover`.
  void forget_dead(int rank, bool recover, std::vector<range_answer>& answers) {
    std::vector<range_entry> kept;
    for (const range_entry& e : entries_) {
      if (e.rank == rank) {
        if (e.held) kept.push_back(e);
      } else if (!e.held && waits_for(e, rank)) {
        answers.push_back({e.rank, e.ticket, false});
      } else {
        kept.push_back(e);
      }
    }
    entries_ = std::move(kept);
    if (recover) std::erase_if(entries_, [&](const range_entry& e) { return e.rank == rank; });
    grant(answers);
  }
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  [[nodiscard]] bool waits_for(const range_entry& e, int rank) const noexcept {
    return std::any_of(entries_.begin(), entries_.end(), [&](const range_entry& other) {
      return other.rank == rank && other.held && conflict(other, e);
    });
  }
  void grant(std::vector<range_answer>& answers) {
    for (auto at = entries_.begin(); at != entries_.end(); ++at) {
      if (at->held || std::any_of(entries_.begin(), at, [&](const range_entry& e) { return conflict(e, *at); }))
        continue;
      // Later entries do not hold conflicting ranges: each was granted only without an earlier conflict.
      RMA_ASSERT(
          std::none_of(at + 1, entries_.end(), [&](const range_entry& e) { return e.held && conflict(e, *at); }));
      at->held = true;
      answers.push_back({at->rank, at->ticket, true});
    }
  }

  std::vector<range_entry> entries_;  ///< in order of arrival
};

}  // namespace rma::detail
