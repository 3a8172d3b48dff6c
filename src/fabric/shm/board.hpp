// SPDX-License-Identifier: Apache-2.0
/// \file
/// The memory that the ranks of a node share: one memfd with a slot for each rank (liveness, doorbell, message rings)
/// and a segment for each rank (library windows). The lowest rank of the node makes it and passes the file descriptor
/// to the others over a Unix socket; it has no name in any file system, and nothing remains after a crash.
///
///   header | slot 0: doorbell, rings from each rank | slot 1 ... | segment 0 | segment 1 | ...
///
/// Pages are allocated when touched, so that unused rings and segments cost only address space.
#pragma once

#include <pthread.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "boot/boot.hpp"
#include "core/settings.hpp"
#include "fabric/shm/ring.hpp"
#include "rma/detail/word.hpp"
#include "rma/error.hpp"

namespace rma::shm {

using detail::word32;
using detail::word64;

inline constexpr std::size_t page_bytes = 4096;
inline constexpr std::size_t huge_bytes = std::size_t{2} << 20;  ///< size of a huge page

enum class presence : std::uint32_t { absent = 0, alive = 1, left = 2, dead = 3 };
enum class whereabouts : std::uint32_t { outside = 0, spinning = 1, asleep = 2 };
/// The kinds of sleep: on the doorbell word, or on descriptors including the bell. They are the low bits of the word;
/// the next bit means that only a thread that serves others sleeps; the bits above it count the armings.
enum class doorbell : std::uint32_t { idle = 0, futex = 1, bell = 2 };
inline constexpr std::uint32_t doorbell_serves = 4;
inline constexpr unsigned doorbell_bits = 3;
constexpr doorbell doorbell_of(std::uint32_t word) noexcept { return static_cast<doorbell>(word & 3U); }

/// The call in which a rank has been waiting for long, or none. A text for reports, read and written without a lock.
struct waiting_place {
  word32 set;  ///< the text is complete
  char text[120];
};

/// A rank's state that the other ranks of the node read.
struct rank_slot {
  pthread_mutex_t liveness;  ///< robust, held while alive: the kernel reports its owner's death in 0.1 ms
  word32 state;              ///< presence
  std::uint32_t pid;
  word32 mapping_users;         ///< number of ranks of this process that use this rank's mapping
  std::uint32_t core_group;     ///< the cores to which it is bound, see RMA_CORE_GROUP; 0: none
  word32 fences;                ///< not 0 if it executes a fence for others before it sleeps (core/membarrier.hpp)
  alignas(64) word32 doorbell;  ///< not idle while it sleeps; a rank with an event for it sets 0 and wakes it
  alignas(64) word32 inside;    ///< whereabouts: does it run handlers now
  alignas(64) waiting_place waits;
  word64 stall_told_ns;           ///< used in the first slot: time of the last report of a long wait
  alignas(64) word64 senders[1];  ///< a bit for each rank that has sent to it; it has (ranks+63)/64 words
};

/// Provides a node's memory, liveness and wakes for ranks that are all run by one thread and so unknown to the kernel.
class segment_provider {
 public:
  /// Returns the same memory for all ranks of the node, initially zero. Throws Error(out_of_memory, bad_boot).
  virtual std::byte* memory(std::size_t bytes) = 0;
  virtual void give_back() noexcept = 0;
  virtual bool alive(int world_rank) noexcept = 0;
  /// Ends the sleep of a rank whose doorbell was armed.
  virtual void wake(int world_rank) noexcept = 0;

 protected:
  ~segment_provider() = default;
};

/// This process's view of the node's memory.
class board {
 public:
  /// Makes or joins the memory of `members` (world ranks of this node, ascending; `me` is an index).
  /// Throws Error(out_of_memory, bad_boot, peer_failed).
  board(boot::client& boot, const detail::settings& settings, std::vector<int> members, std::size_t me);
  /// Uses the memory of `host`. Throws Error(out_of_memory, bad_boot).
  board(segment_provider& host, const detail::settings& settings, std::vector<int> members, std::size_t me);
  ~board();
  board(const board&) = delete;
  board& operator=(const board&) = delete;

  [[nodiscard]] std::size_t size() const noexcept { return members_.size(); }
  [[nodiscard]] std::size_t me() const noexcept { return me_; }
  [[nodiscard]] const std::vector<int>& members() const noexcept { return members_; }
  /// Index on the node of a world rank, or size() if it is elsewhere.
  [[nodiscard]] std::size_t index_of(int world_rank) const noexcept {
    const auto guess = static_cast<std::size_t>(static_cast<std::int64_t>(world_rank) - members_.front());
    return guess < size() && members_[guess] == world_rank ? guess : search(world_rank);  // mostly consecutive
  }

  [[nodiscard]] rank_slot& slot(std::size_t i) const noexcept {
    return *reinterpret_cast<rank_slot*>(base_ + slots_at_ + i * slot_bytes_);
  }
  /// The ring of messages from `from` to `to`.
  [[nodiscard]] ring_memory& ring(std::size_t to, std::size_t from) const noexcept {
    return *reinterpret_cast<ring_memory*>(base_ + slots_at_ + to * slot_bytes_ + rings_at_ +
                                           from * sizeof(ring_memory));
  }
  [[nodiscard]] std::byte* segment(std::size_t i) const noexcept { return base_ + segments_at_ + i * segment_bytes_; }
  [[nodiscard]] std::size_t segment_bytes() const noexcept { return segment_bytes_; }
  /// Memory allocated in whole, aligned pages of `huge_bytes` uses huge pages, if the kernel has any.
  [[nodiscard]] bool huge_pages() const noexcept { return huge_pages_; }
  [[nodiscard]] bool same_process(std::size_t i) const noexcept { return slot(i).pid == slot(me_).pid; }

  /// The memfd (-1 with a segment provider), and the offset in it of an offset in this rank's segment.
  [[nodiscard]] int descriptor() const noexcept { return fd_; }
  [[nodiscard]] std::size_t file_offset(std::size_t offset) const noexcept {
    return segments_at_ + me_ * segment_bytes_ + offset;
  }

  /// Allocates zeroed memory for a part of this rank's segment. `out_of_memory` here prevents a bus error later.
  status populate(std::size_t offset, std::size_t bytes) noexcept;
  /// Frees the pages of a part of this rank's segment.
  void depopulate(std::size_t offset, std::size_t bytes) noexcept;

  /// Records that user memory at `at` is mapped to `offset` of this rank's segment (promote.hpp), or no longer.
  void add_promoted(const std::byte* at, std::size_t bytes, std::size_t offset);
  void remove_promoted(const std::byte* at) noexcept;
  /// The offset of this memory in this rank's segment, which the other ranks map; empty if it is not in the segment.
  [[nodiscard]] std::optional<std::size_t> own_offset(const std::byte* at, std::size_t bytes) noexcept;

  /// True if the rank waits in the library, spinning or asleep.
  [[nodiscard]] bool is_inside(std::size_t i) const noexcept {
    return slot(i).inside.load(std::memory_order_relaxed) != static_cast<std::uint32_t>(whereabouts::outside);
  }
  /// True if only its progress thread sleeps, until a request arrives.
  [[nodiscard]] bool is_served(std::size_t i) const noexcept {
    return (slot(i).doorbell.load(std::memory_order_relaxed) & doorbell_serves) != 0;
  }
  /// Wakes rank `i` if it sleeps. The caller must have executed a full fence between its store and this call.
  void ring_doorbell(std::size_t i) noexcept {
    if (slot(i).doorbell.load(std::memory_order_relaxed) != 0) [[unlikely]]
      wake(i);
  }
  /// As `ring_doorbell`, for events that only threads of the program wait for: threads that only serve others keep
  /// sleeping.
  void ring_waiters(std::size_t i) noexcept {
    const std::uint32_t word = slot(i).doorbell.load(std::memory_order_relaxed);
    if (word != 0 && (word & doorbell_serves) == 0) [[unlikely]]
      wake(i);
  }
  /// True if other processes execute fences for this one (core/membarrier.hpp), or all ranks are run by this thread.
  [[nodiscard]] bool fenced_by_others() const noexcept { return fenced_by_others_; }
  /// A descriptor that becomes readable when another rank rings while the doorbell is `bell`. It is made at the first
  /// call. Throws Error(out_of_memory).
  int bell();
  /// Removes one ring from the bell.
  void take_ring() noexcept;
  /// Reads the liveness word of rank `i`.
  presence look_at(std::size_t i) noexcept;
  /// Leaves regularly, or so that the others see a death.
  void detach(bool in_good_order) noexcept;

 private:
  struct promoted {
    const std::byte* at;
    std::size_t bytes;
    std::size_t offset;
  };

  [[nodiscard]] std::size_t search(int world_rank) const noexcept;
  void lay_out(const detail::settings& settings, std::size_t segment_otherwise);
  void take_segments(std::size_t bytes_of_each) noexcept;
  void make();
  void invite(boot::client& boot, int timeout_ms);
  void join(boot::client& boot, int timeout_ms);
  bool map() noexcept;
  bool allocate(std::size_t offset, std::size_t bytes) noexcept;
  void collapse(std::size_t offset, std::size_t bytes) noexcept;
  void enter() noexcept;
  void wake(std::size_t i) noexcept;
  void ring_bell(std::size_t i) noexcept;

  std::vector<int> members_;
  std::size_t me_;
  segment_provider* host_ = nullptr;
  int fd_ = -1;
  bool fenced_by_others_ = false;
  bool huge_pages_ = false;
  int bell_ = -1;  ///< Unix datagram socket without a name in the file system
  std::byte* base_ = nullptr;
  std::size_t slots_at_ = 0, slot_bytes_ = 0, rings_at_ = 0;
  std::size_t segments_at_ = 0, segment_bytes_ = 0, total_bytes_ = 0;
  std::mutex promoted_lock_;  ///< any thread may make windows
  std::vector<promoted> promoted_;
  bool asked_for_ = false;         ///< the user has set the size of segments, which is then fixed
  std::size_t mapping_owner_ = 0;  ///< owner of the mapping: me, or a rank of the same process
};

/// Names the kernel: ranks with the same name share processors.
std::string machine_identity();

/// Two ranks share memory if these are the same: kernel, network and process name spaces, user, virtual node.
std::string node_identity(const std::string& virtual_node);

}  // namespace rma::shm
