// SPDX-License-Identifier: Apache-2.0
/// \file
/// Detects that watched memory is unmapped, moved or emptied, by any thread and any call, from the events of a
/// userfaultfd, which a thread of its own reads. docs/decisions/0009-registration-cache.md has the reasons.
///
/// The kernel blocks a thread that changes watched memory until its event has been read. The reader only records the
/// event: it takes no lock, allocates no memory and calls no other code, so that a thread that frees memory waits for
/// nothing else. The owner polls for changes.
///
/// The event of an unmapping arrives after the addresses are free again: another thread may have mapped them before the
/// event can be read. So the owner also asks the kernel whether a change is in progress.
///
/// No page fault is ever caused: the memory is registered for write protection, but no page is ever protected.
#pragma once

#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <sys/types.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "fabric/verbs/mappings.hpp"

namespace rma::verbs {

/// A change of memory that is or was watched.
struct change {
  page_range pages;
  bool gone = false;  ///< it was unmapped and is not watched any more; otherwise it has lost its contents
};

/// The owner makes all calls after the constructor's, one at a time. After a fork the child's copy does nothing.
class unmap_watch {
 public:
  /// The source of reports of changes.
  enum class source : std::uint8_t {
    kernel,
    program,  ///< the program itself reports to the owner; all memory counts as watched
  };
  enum class verdict : std::uint8_t {
    tracked,
    refused,  ///< nothing was done: no permission, an old kernel, memory of a device, or watched by other code
    unfit,    ///< perhaps watched, in part or whole, but changes could be missed: to be unwatched
  };
  enum class outcome : std::uint8_t {
    settled,
    busy,    ///< a thread that changes memory makes no progress; try again later
    forked,  ///< this is a child's copy
  };
  /// The number of changes that are kept for the owner. With more of them, all memory is reported as changed.
  static constexpr std::size_t changes_max = 1024;

  explicit unmap_watch(source from) noexcept;
  /// No memory may be watched any more.
  ~unmap_watch();
  unmap_watch(const unmap_watch&) = delete;
  unmap_watch& operator=(const unmap_watch&) = delete;

  /// The reason why nothing can be watched here, or null.
  [[nodiscard]] const char* obstacle() const noexcept { return obstacle_; }

  /// Watches private memory without a file only: a file or shared memory also changes through descriptors. Watching a
  /// range twice is allowed.
  verdict watch(page_range pages) noexcept;
  /// `pages` must not contain memory that the owner knows to be gone: before Linux 6.17 this call also ends other
  /// watches of the process there.
  void unwatch(page_range pages) noexcept;

  /// True if there are no new changes: then all changes of watched memory before the call have been reported, also
  /// those at addresses that were mapped again since. Costs one system call.
  [[nodiscard]] bool quiet() const noexcept {
    return !reading_ || (!change_under_way() && board_->epoch.load() == epoch_seen_);
  }
  /// Waits for changes in progress, some milliseconds at most, and replaces the contents of `news`, which must have a
  /// capacity of `changes_max` + 1.
  outcome catch_up(std::vector<change>& news) noexcept;

 private:
  /// The memory through which the reader reports to the owner. Its pages are wiped in a child.
  struct board {
    std::atomic<std::uint64_t> epoch{2};    ///< odd while events are being read and recorded; 0 in a child
    std::atomic<std::uint64_t> written{0};  ///< number of changes recorded, set by the reader
    std::atomic<std::uint64_t> taken{0};    ///< number of changes reported, set by the owner
    std::atomic<bool> overflowed{false};    ///< changes were lost for lack of room
    change changes[changes_max];
  };

  /// The kernel refuses to protect pages while a change is in progress, before it checks the range, which is empty
  /// here.
  [[nodiscard]] bool change_under_way() const noexcept {
    uffdio_writeprotect nothing{};
    return ::ioctl(fd_, UFFDIO_WRITEPROTECT, &nothing) != 0 && errno == EAGAIN;
  }
  [[nodiscard]] bool foreign() const noexcept;
  bool open() noexcept;
  bool start() noexcept;
  void learn_kinds() noexcept;
  int enlist(page_range pages) noexcept;
  [[nodiscard]] bool private_memory(page_range pages) const noexcept;
  static void* run(void* self) noexcept;
  void read_events() noexcept;
  void note(page_range pages, bool gone) noexcept;
  void strike_off(page_range pages) noexcept;

  int fd_ = -1;
  int stop_ = -1;  ///< eventfd that ends the reader
  board* board_ = nullptr;
  std::uint64_t epoch_seen_ = 0;
  bool reading_ = false;      ///< the reader runs, from the first `watch` on
  bool kinds_known_ = false;  ///< UFFDIO_CONTINUE distinguishes private from shared memory
  source source_;
  const char* obstacle_ = nullptr;
  pid_t process_;
  pthread_t reader_{};
};

}  // namespace rma::verbs
