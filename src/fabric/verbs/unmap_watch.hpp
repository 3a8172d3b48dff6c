// SPDX-License-Identifier: Apache-2.0
/// \file
/// Learns when watched memory is unmapped, moved or emptied, by whatever thread and by whatever call: from the events
/// of a userfaultfd, which a thread of its own reads. docs/decisions/0009-registration-cache.md has the reasons.
///
/// The kernel holds a thread that changes watched memory until its event has been read. The reader only writes the
/// event down: it takes no lock, no memory, and calls nobody, so that whoever frees memory waits for nothing but it.
/// The owner hears of changes when it asks.
///
/// The event of an unmapping comes after the addresses are free again: another thread may have mapped them before the
/// event can be read. So the owner asks the kernel, too, whether a change is under way.
///
/// Never a page fault: the memory is registered for write protection, but no page is ever protected.
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

/// A change has happened to memory, watched or once watched.
struct change {
  page_range pages;
  bool gone = false;  ///< unmapped, so that it is not watched any more; otherwise it has lost its contents
};

/// All calls but the constructor's are the owner's: one at a time. After a fork the child's copy does nothing.
class unmap_watch {
 public:
  /// A source tells of changes.
  enum class source : std::uint8_t {
    kernel,
    program,  ///< the owner hears from the program itself; then everything counts as watched
  };
  enum class verdict : std::uint8_t {
    tracked,
    refused,  ///< nothing has changed: not permitted, no such kernel, the memory of a device, watched by somebody else
    unfit,    ///< perhaps watched, in part or whole, but changes could escape: to be unwatched
  };
  enum class outcome : std::uint8_t {
    settled,
    busy,    ///< a thread that changes memory does not get on; ask again later
    forked,  ///< this is a child's copy
  };
  /// Changes that are kept until the owner asks. Above this, the news is that everything has changed.
  static constexpr std::size_t changes_max = 1024;

  explicit unmap_watch(source from) noexcept;
  /// Nothing may be watched any more.
  ~unmap_watch();
  unmap_watch(const unmap_watch&) = delete;
  unmap_watch& operator=(const unmap_watch&) = delete;

  /// Why nothing can be watched here, or null.
  [[nodiscard]] const char* obstacle() const noexcept { return obstacle_; }

  /// Only private memory of no file can be watched: a file or shared memory also changes through descriptors.
  /// Watching twice is watching once.
  verdict watch(page_range pages) noexcept;
  /// `pages` must not contain what the owner knows to be gone: before Linux 6.17 this also ends what another watch of
  /// the process does there.
  void unwatch(page_range pages) noexcept;

  /// True if there is no news: then whatever happened to watched memory before the call has been handed out, and at
  /// addresses that the caller has got since, too. One system call.
  [[nodiscard]] bool quiet() const noexcept {
    return !reading_ || (!change_under_way() && board_->epoch.load() == epoch_seen_);
  }
  /// Waits for changes under way, some milliseconds at most, and replaces the contents of `news`, for which
  /// `changes_max` + 1 places must be reserved.
  outcome catch_up(std::vector<change>& news) noexcept;

 private:
  /// The reader tells the owner by a board. Its pages are wiped in a child.
  struct board {
    std::atomic<std::uint64_t> epoch{2};    ///< odd while events are being read and written down; 0 in a child
    std::atomic<std::uint64_t> written{0};  ///< changes, ever; the reader's
    std::atomic<std::uint64_t> taken{0};    ///< changes, ever; the owner's
    std::atomic<bool> lost{false};          ///< there was no room
    change changes[changes_max];
  };

  /// The kernel refuses to protect pages while a change is under way, before it looks at which. These are none.
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
  int stop_ = -1;  ///< an eventfd that ends the reader
  board* board_ = nullptr;
  std::uint64_t epoch_seen_ = 0;
  bool reading_ = false;      ///< the reader runs: from the first `watch` on
  bool kinds_known_ = false;  ///< UFFDIO_CONTINUE tells private memory from shared
  source source_;
  const char* obstacle_ = nullptr;
  pid_t process_;
  pthread_t reader_{};
};

}  // namespace rma::verbs
