// SPDX-License-Identifier: Apache-2.0
/// \file
/// A table of who holds and who waits for which bytes of one rank's part: kept by that rank, changed by its handlers.
///
///   request --no conflict with what is held, or waits before it--> held --release--> gone
///      |                                                            ^
///      +-- conflict --> waits, in the order of arrival -------------+  when what it conflicts with is gone
///      |                  |
///      |                  +-- a rank that it conflicts with has died --> failed
///
/// Pure: each call says what to answer to whom. Waiters that arrived before are conflicts, too, so that nobody starves.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "core/assert.hpp"
#include "rma/epoch.hpp"

namespace rma::detail {

struct range_entry {
  int rank = 0;              ///< world rank of who asked
  std::uint32_t ticket = 0;  ///< its number for it
  lock_kind kind = lock_kind::shared;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  bool held = false;
};

struct range_answer {
  int rank;
  std::uint32_t ticket;
  bool granted;  ///< else a rank that it waited for has died
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
  /// The rank is dead. Who waits for what it held is told so, and waits no more; then that is free, if `recover`.
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
      // Those behind it do not hold what conflicts: each was granted only if nothing before it did.
      RMA_ASSERT(
          std::none_of(at + 1, entries_.end(), [&](const range_entry& e) { return e.held && conflict(e, *at); }));
      at->held = true;
      answers.push_back({at->rank, at->ticket, true});
    }
  }

  std::vector<range_entry> entries_;  ///< in the order of arrival
};

}  // namespace rma::detail
