// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hints: what a program promises and wishes for one window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>
#include <string_view>

#pragma GCC visibility push(default)

namespace rma {

/// The mode determines how accumulate, get_accumulate, fetch_and_op and compare_and_swap of a window are made atomic.
/// In RMA_ACCUMULATE and in messages the last one has dashes: `lock-get-modify-put`.
enum class accumulate_mode : std::uint8_t {
  automatic,  ///< RMA_ACCUMULATE; if that is auto: striped where all ranks share memory, handler elsewhere and
              ///< with lock two_sided (RMA_LOCK=two-sided)
  element,    ///< every element by one locked instruction: best for scattered single updates
  striped,    ///< a lock for each 8 KiB of the window (accumulate_granularity); long updates run SIMD loops under it.
              ///< As `element` until the first bulk update of a target
  handler,    ///< the target carries out all updates, when it makes progress
  direct,     ///< the network adapter, for elements of up to 8 bytes: one atomic for 64-bit sums and swaps, a loop of
              ///< compare-and-swaps for the others
  lock_get_modify_put,  ///< the origin locks the target's part by network atomics, reads, modifies and writes; the
                        ///< target does nothing. One round trip more than a lock; the dissertation's GMP
};

/// True if only network atomics update elements of the window: no processor does, not even the owner's.
constexpr bool is_by_adapter(accumulate_mode mode) noexcept {
  return mode == accumulate_mode::direct || mode == accumulate_mode::lock_get_modify_put;
}

/// The design of a window's fences: the four designs of the dissertation, chapter 6, and `placed`. In RMA_FENCE and in
/// messages their names have dashes.
enum class fence_kind : std::uint8_t {
  automatic,  ///< placed
  placed,     ///< waits until this rank's operations are in their targets' memory, then a barrier
  def,        ///< the closing fence issues the operations (figure 6.2 and section 6.2)
  imm_naive,  ///< issued at once; a finish message to each target, then a flag from each rank to all (figure 6.4)
  imm_opt,    ///< as imm_naive with a barrier instead of the flags (figure 6.5)
  imm_ri,     ///< issued at once, each put with an immediate that the target counts; a barrier (figure 6.6)
};

/// The protocol that carries out lock, unlock and lock_all in a window. The names in RMA_LOCK and in messages are
/// `auto`, `two-sided`, `network`, `cpu`, `hybrid`.
enum class lock_protocol : std::uint8_t {
  /// cpu where all ranks share memory. Across nodes hybrid, and each epoch uses the way that has cost least so far: a
  /// small deferrable epoch may be sent to the target at its end, as with two_sided. An origin may wait for a target
  /// that computes; with `network` it never does.
  automatic,
  two_sided,  ///< the target's lock manager grants the lock; a deferrable epoch is sent there as one message at unlock:
              ///< lock, operations and unlock, which its handler runs
  network,    ///< a word that only network atomics access: the target does nothing
  cpu,        ///< a word in memory that the node's ranks share; ranks of other nodes ask the target's lock manager
  hybrid,     ///< cpu and network: the lock migrates between them
};

/// The scheme by which lock protocol "network" uses network atomics.
enum class lock_scheme : std::uint8_t {
  automatic,  ///< the library chooses
  word,       ///< one word for each target, which holds the sum of the holders' tags
  agent,      ///< as word, but the target's lock manager counts the readers and holds the word for them
  fompi,      ///< foMPI's: a lock_all costs one atomic in all, an exclusive lock four instead of two
};

/// The scheme by which puts and gets with layouts access memory that is not mapped. The names in RMA_LAYOUT and traces
/// are `auto`, `generic`, `multi-w`, `write-gather`, `read-scatter`, `sgrs`, `host-assisted`. Operations that a scheme
/// cannot carry out use generic; the trace says why. Source: dissertation, chapter 8.
enum class layout_scheme : std::uint8_t {
  automatic,  ///< RMA_LAYOUT; if that is auto: the least estimate for the number of pieces and bytes. Where the network
              ///< is one-sided, generic is considered only in epochs of fence, start and neighbors, or with a progress
              ///< thread: elsewhere an operation would depend on a target that computes
  generic,    ///< packed into messages, unpacked by the target's handler, which must make progress
  multi_w,    ///< an RDMA write or read for each contiguous piece; generic where the memory is not registered
  write_gather,  ///< puts to contiguous memory: one write for as many local pieces as the adapter gathers
  read_scatter,  ///< gets from contiguous memory: one read for as many local pieces as the adapter scatters
  sgrs,  ///< send-gather/receive-scatter: sends from lists of pieces into receives of lists of pieces, over the bulk
         ///< channel; the target posts the receives, and must make progress
  host_assisted,  ///< as sgrs, where the target's progress thread posts the receives
};

/// The order in which operations of one origin to one target that is not mapped are issued. The names in RMA_SCHEDULE
/// and in traces are `in-order`, `interleave`, `gets-first`, `gets-first+interleave`. All but in_order hold puts, gets
/// and accumulates that no call waits for until a call completes them, a signal follows, or an operation with a result
/// that a call waits for. Updates keep their order among themselves, and so do gets. Source:
/// dissertation, 10.1.
enum class schedule_order : std::uint8_t {
  automatic,              ///< RMA_SCHEDULE
  in_order,               ///< at once, in program order
  interleave,             ///< puts and gets alternate, so that both directions of a link are used
  gets_first,             ///< all gets before all puts, since results of gets are waited for
  gets_first_interleave,  ///< puts and gets alternate, beginning with a get
};

/// The initial home of a hybrid lock.
enum class lock_home : std::uint8_t { automatic, cpu, network };

/// The policy that decides when a hybrid lock migrates.
enum class lock_policy : std::uint8_t {
  automatic,  ///< the library chooses
  naive,      ///< at every request of the other side: the dissertation's policy
  threshold,  ///< after LockChoice::threshold requests of the other side in a row
  adaptive,   ///< when the time that it would have saved exceeds the cost of a migration, which failures raise
  pattern,    ///< when six of the last eight requests came from the other side
  priority,   ///< at every exclusive request of the other side: writers have priority, readers never migrate it
  native,     ///< adaptive where the adapter carries out network atomics itself; else the home is always cpu
};

/// A lock protocol with its options. Where it is a text, it is one that RMA_LOCK takes:
///
///   auto[:deferred]   two-sided[:deferred]   network[:word|:agent|:fompi]   cpu
///   hybrid[:naive|:threshold:K|:adaptive|:pattern|:priority|:native][:home=cpu|:home=network]
///
///   Hints hints{.lock = lock_protocol::two_sided};
///   hints.lock = "hybrid:threshold:8:home=network";
///
/// Options that are not given are as in RMA_LOCK if that names the same protocol, else the first of each list, and for
/// hybrid `adaptive` and `home=cpu`.
struct LockChoice {
  lock_protocol protocol = lock_protocol::automatic;  ///< `automatic`: as in RMA_LOCK
  lock_scheme scheme = lock_scheme::automatic;        ///< scheme of `network`
  lock_home home = lock_home::automatic;              ///< home of `hybrid`
  lock_policy policy = lock_policy::automatic;        ///< policy of `hybrid`; lock `automatic` is always adaptive
  unsigned threshold = 8;                             ///< K of policy `threshold`
  bool deferred = false;                              ///< makes each lock() of the window rma::deferrable

  /// As RMA_LOCK says.
  constexpr LockChoice() noexcept = default;
  /// That protocol, with the options of RMA_LOCK.
  constexpr LockChoice(lock_protocol which) noexcept : protocol(which) {}
  /// Errors     throws Error(bad_argument), which names the values, if the text is none of them
  LockChoice(std::string_view text, std::source_location where = std::source_location::current());
  LockChoice(const char* text, std::source_location where = std::source_location::current())
      : LockChoice(std::string_view(text), where) {}

  friend bool operator==(const LockChoice&, const LockChoice&) = default;
};

/// Wishes and promises about one window. They must be the same on every rank, except `name`, `schedule` and
/// `aggregate`.
struct Hints {
  /// Name of the window in messages and traces.
  std::string name{};
  /// Bytes per unit of target displacement; 0: the size of the window's element. In dynamic windows 1, always.
  std::size_t displacement_unit = 0;
  /// See accumulate_mode. A mode that the window cannot have is an error if it is given here; RMA_ACCUMULATE applies
  /// where it is possible.
  accumulate_mode accumulate = accumulate_mode::automatic;
  /// Bytes of the window that one lock of mode `striped` guards, rounded up to a power of two; 0: 8 KiB. Fine stripes
  /// let ranks update neighboring ranges at once, coarse ones make long updates cheaper. Less than 64: each element by
  /// itself, without stripes: mode `element` where the mode is automatic. A rank's part has 4096 locks at most (256
  /// if this is 0); longer parts share them between ranges. The other modes have no such locks, and ignore this hint.
  /// MPI's info key `mpi_accumulate_granularity`. Source: dissertation, chapter 7.
  std::size_t accumulate_granularity = 0;
  /// See layout_scheme (RMA_LAYOUT for all windows).
  layout_scheme layout = layout_scheme::automatic;
  /// See schedule_order. Ranks may differ, since each value applies to the rank's own operations.
  schedule_order schedule = schedule_order::automatic;
  static constexpr std::size_t aggregate_by_setting = ~std::size_t{0};
  /// Operations of at most this many bytes on targets that are not mapped are held if no call waits for their results
  /// and sent to the target's handler in as few messages as possible, together with the call that ends the epoch where
  /// that is a message: complete, the closing fence *def*, unlock by a lock manager. Larger ones are issued at once.
  /// The target must make progress. 0 holds none; aggregate_by_setting: RMA_AGGREGATE. Source: dissertation, 10.2.
  std::size_t aggregate = aggregate_by_setting;
  /// See LockChoice and lock_protocol (RMA_LOCK for all windows). A protocol that the window cannot have is an error.
  LockChoice lock{};
  /// Number of signals that other ranks can raise here (put_signal, get_signal, accumulate_signal); 2^20 at most.
  unsigned signals = 16;
  /// Moves user memory into shared pages while the window lives, so that the node's ranks map it
  /// (RMA_PROMOTE=1 for all windows). Not done where it would not be safe; `promoted()` reports that.
  /// The memory is private again when the window is freed, even if other threads write there meanwhile.
  bool promote = false;
  /// Parts of allocate_shared lie in one piece: that of each rank begins where that of the rank before it ends, as in
  /// MPI_Win_allocate_shared without `alloc_shared_noncontig`. The piece is memory of rank 0, which is best where one
  /// rank writes it all; else each part is in its own rank's memory. Other windows ignore it.
  bool contiguous = false;
  /// See fence_kind (RMA_FENCE for all windows). A design that the fabric cannot carry out is an error.
  fence_kind fence = fence_kind::automatic;
};

}  // namespace rma

#pragma GCC visibility pop
