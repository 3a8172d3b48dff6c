// SPDX-License-Identifier: Apache-2.0
/// \file
/// Hints: promises and wishes of a program for one window.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#pragma GCC visibility push(default)

namespace rma {

/// In RMA_ACCUMULATE and in messages the last one has dashes: `lock-get-modify-put`.
/// The mode says who makes accumulate, get_accumulate, fetch_and_op and compare_and_swap atomic in a window.
enum class accumulate_mode : std::uint8_t {
  automatic,  ///< RMA_ACCUMULATE; if that is auto: striped where all ranks share memory, handler elsewhere and
              ///< with lock two_sided (RMA_LOCK=two-sided)
  element,    ///< every element by one locked instruction: best for scattered single updates
  striped,    ///< a lock for each 8 KiB of the window (accumulate_granularity); bulk runs SIMD under it. As `element`
              ///< until the first bulk update of a target
  handler,    ///< all at the target, by its progress
  direct,     ///< by the network device, elements of up to 8 bytes: 64-bit sums and swaps by one operation, others by
              ///< a loop of them
  lock_get_modify_put,  ///< by their origin: a lock of the target's part by the network's atomics, read, change, write;
                        ///< the target does nothing. One round trip more than a lock each; the dissertation's GMP
};

/// The network's atomics own the window's atomicity: no processor updates it, not even its owner's.
constexpr bool is_by_adapter(accumulate_mode mode) noexcept {
  return mode == accumulate_mode::direct || mode == accumulate_mode::lock_get_modify_put;
}

/// How a window's fences end one epoch and begin the next: the four designs of the dissertation, chapter 6, and one
/// more.
enum class fence_kind : std::uint8_t {
  automatic,  ///< placed
  placed,     ///< wait until what this rank did is in its targets' memory, then a barrier
  def,        ///< operations wait for the closing fence, which issues them (figure 6.2 and section 6.2)
  imm_naive,  ///< at once; a finish message to each target, then a flag from each rank to each other (figure 6.4)
  imm_opt,    ///< the same with a barrier instead of the flags (figure 6.5)
  imm_ri,     ///< at once, each put with an immediate that the target counts; a barrier (figure 6.6)
};

/// A protocol carries out lock, unlock and lock_all in a window. In RMA_LOCK and in messages their names have dashes:
/// `auto`, `two-sided`, `network`, `cpu`, `hybrid`.
enum class lock_protocol : std::uint8_t {
  /// cpu where all ranks share memory. Across nodes hybrid, and each epoch goes the way that has cost least: a small
  /// one that is deferrable may wait for its end and go to the target as with two_sided. A target that computes may be
  /// waited for; `network` promises that it never is.
  automatic,
  two_sided,  ///< the target's lock manager is the lock; of a deferrable epoch, lock, operations and unlock go there
              ///< together at unlock, and its handler runs them
  network,    ///< a word that the network's atomics own: the target does nothing
  cpu,        ///< a word in memory that the node's ranks share; others ask the target's lock manager
  hybrid,     ///< cpu and network, the lock migrates between them
};

/// How lock "network" uses the network's atomics.
enum class lock_scheme : std::uint8_t {
  automatic,  ///< the library chooses
  word,       ///< one word for each target, which holds the sum of its holders' names
  agent,      ///< the same, but its readers are counted by the target's lock manager, which holds the word for them
  fompi,      ///< foMPI's: a lock_all is one atomic whatever it uses, an exclusive lock four instead of two
};

/// How puts and gets with layouts reach memory that is not mapped. In RMA_LAYOUT and in traces their names have dashes:
/// `auto`, `generic`, `multi-w`, `write-gather`, `read-scatter`, `sgrs`, `host-assisted`. What a scheme cannot carry
/// out goes by generic; the trace says why. Source: dissertation, chapter 8.
enum class layout_scheme : std::uint8_t {
  automatic,  ///< RMA_LAYOUT; if that is auto: the least estimate for the number of pieces and bytes. Where the network
              ///< is one-sided, generic only in epochs of fence, start and neighbors, or with a progress thread: else
              ///< an operation would need a target that computes
  generic,    ///< packed into messages, unpacked by the target's handler, which must make progress
  multi_w,    ///< a write or read of the network for each contiguous piece; generic where it cannot reach the memory
  write_gather,  ///< puts to memory in one piece: one write for as many pieces here as the network gathers
  read_scatter,  ///< gets from memory in one piece: one read for as many pieces here as the network scatters
  sgrs,  ///< send-gather/receive-scatter: lists of pieces go into lists of pieces, over the network's bulk channel;
         ///< the target posts its side, and must make progress
  host_assisted,  ///< the same, where the target has a helper for that: its progress thread
};

/// In which order held operations of an epoch are issued, of one origin to one target that is not mapped. In
/// RMA_SCHEDULE and in traces their names have dashes: `in-order`, `interleave`, `gets-first`, `gets-first+interleave`.
/// All but in_order hold puts, gets and accumulates that nobody waits for until a call that completes them, a signal,
/// or an operation that somebody waits for. Updates keep their order among themselves, and gets do. Source:
/// dissertation, 10.1.
enum class schedule_order : std::uint8_t {
  automatic,              ///< RMA_SCHEDULE
  in_order,               ///< at once, as the program issues them
  interleave,             ///< one that sends, one that fetches, in turn: both directions of a link are used
  gets_first,             ///< what is fetched is waited for: it is asked for before anything is sent
  gets_first_interleave,  ///< in turn, beginning with a get
};

/// Where a hybrid lock is when its window is made.
enum class lock_home : std::uint8_t { automatic, cpu, network };

/// When a hybrid lock migrates.
enum class lock_policy : std::uint8_t {
  automatic,  ///< the library chooses
  naive,      ///< at every request of the side where it is not: the dissertation's
  threshold,  ///< at so many in a row (Hints::lock_threshold)
  adaptive,   ///< when what they would have saved exceeds the price of a migration, which grows with each in vain
  pattern,    ///< when six of the last eight requests came from the side where it is not
  priority,   ///< at every exclusive request of the side where it is not: writers have priority, readers never move it
  native,     ///< adaptive where the adapter itself does the network's atomics; else it is and stays in memory
};

/// Wishes and promises about one window. Collective: the same on every rank, but for `name`, `schedule` and
/// `aggregate`.
struct Hints {
  /// Appears in messages and traces.
  std::string name{};
  /// Bytes per unit of target displacement; 0: the size of the window's element. In dynamic windows 1, always.
  std::size_t displacement_unit = 0;
  /// See accumulate_mode. One asked for here that the window cannot have is an error; RMA_ACCUMULATE is followed
  /// where it can be.
  accumulate_mode accumulate = accumulate_mode::automatic;
  /// Bytes of the window that one lock of mode `striped` guards, rounded up to a power of two; 0: 8 KiB. Fine ones let
  /// ranks update neighboring ranges at once, coarse ones make long updates cheaper. Less than 64: no stripes but each
  /// element by itself, which is mode `element` where the mode is automatic. A rank's part has 4096 locks at most (256
  /// if this is 0); beyond so many, ranges share them. The other modes have no locks of ranges, and do not look at it.
  /// MPI's info key `mpi_accumulate_granularity`. Source: dissertation, chapter 7.
  std::size_t accumulate_granularity = 0;
  /// See layout_scheme (RMA_LAYOUT for all windows).
  layout_scheme layout = layout_scheme::automatic;
  /// See schedule_order. Each rank may say something else: it is about its own operations.
  schedule_order schedule = schedule_order::automatic;
  static constexpr std::size_t aggregate_by_setting = ~std::size_t{0};
  /// Operations of at most so many bytes that nobody waits for, on targets that are not mapped, are held, and go in as
  /// few messages to the target's handler as they fit in, with the call that ends the epoch where that is a message,
  /// too: complete, the closing fence *def*, unlock by a lock manager. Larger ones go at once. The target must make
  /// progress. 0: none is held; aggregate_by_setting: RMA_AGGREGATE. Source: dissertation, 10.2.
  std::size_t aggregate = aggregate_by_setting;
  /// See lock_protocol (RMA_LOCK for all windows). One that the window cannot have is an error.
  lock_protocol lock = lock_protocol::automatic;
  /// Of lock "network"; `automatic`: as RMA_LOCK=network:fompi says, else `word`.
  lock_scheme scheme = lock_scheme::automatic;
  /// Of a hybrid lock that is asked for by name; `automatic`: as RMA_LOCK=hybrid:threshold:8:home=network says, else
  /// the CPU and adaptive. Lock `automatic` is always adaptive.
  lock_home home = lock_home::automatic;
  lock_policy policy = lock_policy::automatic;
  unsigned lock_threshold = 8;
  /// Each lock() of the window is rma::deferrable (RMA_LOCK=auto:deferred, two-sided:deferred for all windows whose
  /// `lock` is automatic).
  bool deferrable = false;
  /// Signals that others can raise here (put_signal and friends); 2^20 at most.
  unsigned signals = 16;
  /// User memory: copy it into shared pages while the window lives, so that the node's ranks map it
  /// (RMA_PROMOTE=1 for all windows). Refused, and said so by `promoted()`, where it would not be safe.
  /// Private again when the window is freed, also beside other threads that write there.
  bool promote = false;
  /// See fence_kind (RMA_FENCE for all windows). A design that the fabric cannot carry out is an error.
  fence_kind fence = fence_kind::automatic;
};

}  // namespace rma

#pragma GCC visibility pop
