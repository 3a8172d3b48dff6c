// SPDX-License-Identifier: Apache-2.0
/// \file
/// Kinds of locks, and assertions about epochs.
#pragma once

#include <cstdint>

#pragma GCC visibility push(default)

namespace rma {

/// The kind of a lock.
enum class lock_kind : std::uint8_t { shared = 1, exclusive = 2 };
/// `win.lock(rma::shared, target)`: other ranks may hold the lock shared at the same time.
inline constexpr lock_kind shared = lock_kind::shared;
/// `win.lock(rma::exclusive, target)`: no other rank may hold the lock.
inline constexpr lock_kind exclusive = lock_kind::exclusive;

/// Counts of this rank's lock requests on a window, except requests for mapped memory by protocol `cpu`.
struct LockCounts {
  std::uint64_t local = 0;       ///< requests for targets of this node
  std::uint64_t remote = 0;      ///< requests for targets of other nodes
  std::uint64_t migrations = 0;  ///< migrations of hybrid locks that requests of this rank caused
  std::int64_t waited_ns = 0;    ///< time from requests until the locks were held
};

/// Promises about an epoch, and a permission (deferrable), combined with |. A fence that finds a promise broken still
/// does its work and then reports wrong_epoch: do not call it again for that. Any other bit is refused with
/// bad_argument, and the call has done nothing.
enum class assertion : std::uint8_t {
  none = 0,      ///< nothing is promised
  no_store = 1,  ///< fence, post: this rank's memory was not written by plain stores since the last one
  no_put = 2,    ///< fence, post: no rank will put or accumulate into this rank until the next one
  /// fence: no rank started an operation that this fence must complete (given on all ranks). The fence need not wait
  /// for the other ranks, and orders none of their earlier actions: no store into their own part, no attach
  no_precede = 4,
  no_succeed = 8,  ///< fence: no operation follows; no epoch is opened (given on all ranks)
  /// lock, lock_all: acquires no lock; the program guarantees that no rank holds a conflicting lock.
  /// post and start, both or neither: post sends nothing and start does not wait; the program guarantees that post was
  /// called first.
  no_check = 16,
  /// lock: the lock may be acquired as late as by the first operation whose result is waited for, a flush, or unlock;
  /// until then it excludes no other rank. Acquiring a lock at once first acquires the deferred locks of its window, in
  /// program order. The protocols two_sided and automatic use this between nodes: a small epoch is one message.
  deferrable = 32,
};
/// The union of two sets of assertions.
constexpr assertion operator|(assertion a, assertion b) noexcept {
  return static_cast<assertion>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
/// True if `set` contains `one`.
constexpr bool has(assertion set, assertion one) noexcept {
  return (static_cast<unsigned>(set) & static_cast<unsigned>(one)) != 0;
}
/// False if a bit is set that is no assertion; calls refuse such a set with bad_argument.
constexpr bool is_assertion(assertion set) noexcept {
  using enum assertion;
  return (static_cast<unsigned>(set) &
          ~static_cast<unsigned>(no_store | no_put | no_precede | no_succeed | no_check | deferrable)) == 0;
}
inline constexpr assertion no_store = assertion::no_store;      ///< MPI_MODE_NOSTORE
inline constexpr assertion no_put = assertion::no_put;          ///< MPI_MODE_NOPUT
inline constexpr assertion no_precede = assertion::no_precede;  ///< MPI_MODE_NOPRECEDE
inline constexpr assertion no_succeed = assertion::no_succeed;  ///< MPI_MODE_NOSUCCEED
inline constexpr assertion no_check = assertion::no_check;      ///< MPI_MODE_NOCHECK
inline constexpr assertion deferrable = assertion::deferrable;  ///< the lock may be taken later

}  // namespace rma

#pragma GCC visibility pop
