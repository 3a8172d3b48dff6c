// SPDX-License-Identifier: Apache-2.0
/// \file
/// Caches registrations of the user's memory, since registering a buffer takes longer than sending it.
///
/// A registration covers whole pages and serves every buffer inside it. Where the memory is watched (unmap_watch.hpp)
/// it is kept while unused; the least recently used ones are evicted first. It is never found again after its memory
/// has been unmapped, moved or emptied. Memory that cannot be watched is registered for one use.
#pragma once

#include <sys/types.h>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "fabric/fabric.hpp"
#include "fabric/verbs/mappings.hpp"
#include "fabric/verbs/unmap_watch.hpp"
#include "rma/error.hpp"

namespace rma::verbs {

/// An adapter's handle and keys of registered memory.
struct registration {
  void* handle = nullptr;
  std::uint32_t local_key = 0;
  std::uint32_t remote_key = 0;
};

/// Registers memory with an adapter: ibv_reg_mr and ibv_dereg_mr, or a test's count of them.
class registrar {
 public:
  /// Returns `done`; `out_of_memory` if it may succeed after other registrations are withdrawn; else another error.
  virtual status enroll(void* at, std::size_t bytes, registration& made) noexcept = 0;
  virtual void withdraw(const registration& made) noexcept = 0;

 protected:
  ~registrar() = default;
};

/// The owner makes all calls, one at a time, from any thread (the fabric under the progress lock). In a child after a
/// fork nothing can be acquired, and nothing is withdrawn.
class registration_cache {
 public:
  struct limits {
    std::size_t bytes = std::size_t{1} << 30;  ///< limit of cached memory; 0: no caching
    std::size_t entries = 4096;                ///< each may split the process's mappings at two more places
  };
  struct counters {
    std::uint64_t hits = 0;
    std::uint64_t misses = 0;
    std::uint64_t evictions = 0;      ///< for lack of room
    std::uint64_t invalidations = 0;  ///< entries whose memory changed
    std::uint64_t failures = 0;       ///< acquires without a result
    std::size_t bytes = 0;            ///< registered now, in use or not
    std::size_t entries = 0;          ///< entries that can be found now
  };

  /// A registration in use, or cached.
  class entry {
   public:
    [[nodiscard]] const registration& keys() const noexcept { return keys_; }
    [[nodiscard]] page_range pages() const noexcept { return pages_; }

   private:
    friend class registration_cache;
    using link = boost::intrusive::link_mode<boost::intrusive::normal_link>;

    page_range pages_;
    registration keys_;
    std::uint32_t users_ = 0;
    bool listed_ = false;  ///< it can be found
    boost::intrusive::set_member_hook<link> by_address_;
    boost::intrusive::list_member_hook<link> in_line_;  ///< in the list of unused, spare or removed entries
  };
  static_assert(sizeof(entry) <= 128);

  registration_cache(registrar& with, limits most, unmap_watch::source news = unmap_watch::source::kernel);
  /// The caller has released every entry.
  ~registration_cache();
  registration_cache(const registration_cache&) = delete;
  registration_cache& operator=(const registration_cache&) = delete;

  /// Finds or makes a registration that covers [at, at + bytes), in use until it is released. Null if it cannot be made
  /// now.
  /// A hit costs one system call (`unmap_watch::quiet`) and no allocation.
  entry* acquire(void* at, std::size_t bytes) noexcept;
  /// Acquires registrations for all pieces, with one system call, or for none: then it returns false. Neighboring
  /// pieces are registered together with the gaps between them ("optimistic group registration"): see group_max.
  bool acquire(std::span<const fabric::local_slice> pieces, std::span<entry*> to) noexcept;
  /// Registers all pieces of an operation by one registration of their hull, if this is expected to be cheaper than one
  /// for each, however many there are. The pieces are acquired afterwards, and find it.
  void register_hull(const fabric::piece_bounds& pieces) noexcept;
  /// Groups are formed only for up to so many pieces.
  static constexpr std::size_t group_max = 64;
  void release(entry* e) noexcept;

  /// Called when memory is about to change, or has changed, in a way that the kernel does not report.
  void invalidate(void* at, std::size_t bytes) noexcept;
  /// Withdraws the registrations of changed memory, as every `acquire` does. False if changes are in progress that take
  /// long; an `acquire` would then register for one use.
  bool catch_up() noexcept;

  [[nodiscard]] const counters& counts() const noexcept { return counts_; }
  /// The reason why nothing is cached, or null.
  [[nodiscard]] const char* obstacle() const noexcept { return watch_.obstacle(); }

 private:
  struct by_first {
    bool operator()(const entry& a, const entry& b) const noexcept { return a.pages_.first < b.pages_.first; }
  };
  struct by_last {
    bool operator()(std::uintptr_t a, const entry& b) const noexcept { return a < b.pages_.last; }
  };
  /// No entry in it covers another, so that the entries' ends have the order of their starts.
  using address_set =
      boost::intrusive::set<entry,
                            boost::intrusive::member_hook<entry, decltype(entry::by_address_), &entry::by_address_>,
                            boost::intrusive::compare<by_first>, boost::intrusive::constant_time_size<false>>;
  using line =
      boost::intrusive::list<entry, boost::intrusive::member_hook<entry, decltype(entry::in_line_), &entry::in_line_>,
                             boost::intrusive::constant_time_size<false>>;
  enum class purpose : std::uint8_t {
    kept,    ///< for later use, if its memory can be watched
    merged,  ///< as `kept`, else not made at all: a smaller one suffices
    once,
  };

  [[nodiscard]] page_range pages_around(const void* at, std::size_t bytes) const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    return {first & ~page_mask_, (first + bytes + page_mask_) & ~page_mask_};
  }
  [[nodiscard]] unmap_watch::outcome take_unmaps() noexcept {
    return watch_.quiet() ? unmap_watch::outcome::settled : hear_news();
  }
  entry* acquire(page_range wanted, unmap_watch::outcome news) noexcept;
  void register_groups(std::span<const fabric::local_slice> pieces) noexcept;
  entry* acquire_slow(page_range wanted, unmap_watch::outcome news) noexcept;
  entry* find(page_range wanted) noexcept;
  address_set::iterator first_overlapping(page_range pages) noexcept;
  page_range merged_with_neighbors(page_range wanted) noexcept;
  entry* make(page_range pages, purpose what_for) noexcept;
  entry* new_entry() noexcept;
  void list(entry& e) noexcept;
  void unlist(entry& e) noexcept;
  bool watch(page_range pages) noexcept;
  void unwatch(page_range pages) noexcept;
  void unwatch_what_is_left(page_range pages, std::size_t first_change) noexcept;
  bool evict(std::size_t bytes_wanted) noexcept;
  [[nodiscard]] bool too_many() const noexcept {
    return counts_.bytes > limits_.bytes || counts_.entries > limits_.entries;
  }
  void shrink() noexcept;
  unmap_watch::outcome hear_news() noexcept;
  void apply_news() noexcept;
  void withdraw(entry& e) noexcept;
  [[nodiscard]] bool foreign() const noexcept;

  registrar& registrar_;
  std::uintptr_t page_mask_;
  entry* recent_ = nullptr;  ///< the last one found
  limits limits_;
  counters counts_;
  address_set entries_;
  page_range refused_hull_{};  ///< the last hull that could not be registered
  line unused_;                ///< the least recently used first
  line spare_;
  std::vector<change> news_;
  pid_t process_;
  unmap_watch watch_;
};

}  // namespace rma::verbs
