// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/unmap_watch.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <new>

#include "core/assert.hpp"
#include "core/clock.hpp"
#include "core/signals_blocked.hpp"

#ifndef UFFD_USER_MODE_ONLY
#define UFFD_USER_MODE_ONLY 1
#endif

namespace rma::verbs {
namespace {

constexpr std::int64_t patience_ns = 20'000'000;  // a woken thread may have to wait for a processor
constexpr std::uint64_t epoch_first = 2;          // a child reads 0

uffdio_range range_of(page_range pages) noexcept { return {pages.first, pages.bytes()}; }

/// One page of private or of shared memory.
class probe_page {
 public:
  explicit probe_page(int sharing) noexcept
      : bytes_(static_cast<std::size_t>(::getpagesize())),
        at_(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, sharing | MAP_ANONYMOUS | MAP_POPULATE, -1, 0)) {}
  ~probe_page() {
    if (at_ != MAP_FAILED) ::munmap(at_, bytes_);
  }
  probe_page(const probe_page&) = delete;
  probe_page& operator=(const probe_page&) = delete;

  [[nodiscard]] page_range pages() const noexcept {
    const auto first = reinterpret_cast<std::uintptr_t>(at_);
    return at_ == MAP_FAILED ? page_range{} : page_range{first, first + bytes_};
  }

 private:
  std::size_t bytes_;
  void* at_;
};

/// Asks the kernel to map pages of shared memory that are mapped already: it fails with EINVAL for one private mapping,
/// with ENOENT for several mappings.
int error_of_continue(int fd, page_range pages) noexcept {
  uffdio_continue request{};
  request.range = range_of(pages);
  request.mode = UFFDIO_CONTINUE_MODE_DONTWAKE;
  return ::ioctl(fd, UFFDIO_CONTINUE, &request) == 0 ? 0 : errno;
}

/// Ends the watch in each mapping separately; this fails for a mapping that cannot have been watched.
class one_by_one final : public mapping_visitor {
 public:
  one_by_one(int fd, page_range pages) noexcept : fd_(fd), pages_(pages) {}
  void visit(const mapping& m) noexcept override {
    uffdio_range part = range_of(common(m.pages, pages_));
    ::ioctl(fd_, UFFDIO_UNREGISTER, &part);
  }

 private:
  int fd_;
  page_range pages_;
};

}  // namespace

unmap_watch::unmap_watch(source from) noexcept : source_(from), process_(::getpid()) {
  if (from == source::kernel && !open() && fd_ >= 0) {
    ::close(fd_);
    fd_ = -1;
  }
}

unmap_watch::~unmap_watch() {
  if (reading_ && !foreign()) {
    // A thread that changes memory still waits for the reader, and would keep waiting if a child has a copy of the
    // descriptor.
    while (change_under_way()) ::poll(nullptr, 0, 1);
    const std::uint64_t one = 1;
    (void)!::write(stop_, &one, sizeof one);
    ::pthread_join(reader_, nullptr);
  }
  if (stop_ >= 0) ::close(stop_);
  if (fd_ >= 0) ::close(fd_);
  if (board_ != nullptr) ::munmap(board_, sizeof(board));
}

bool unmap_watch::foreign() const noexcept { return ::getpid() != process_; }

bool unmap_watch::open() noexcept {
  // An unprivileged process may ask for user-mode faults only; no faults are caused at all.
  auto fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);
  if (fd < 0 && errno == EINVAL) fd = ::syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK);
  fd_ = static_cast<int>(fd);
  obstacle_ = "the system does not permit userfaultfd";
  if (fd < 0) return false;
  obstacle_ = "userfaultfd of this kernel does not report changes";
  uffdio_api api{};
  api.api = UFFD_API;
  api.features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP | UFFD_FEATURE_EVENT_REMOVE;
  if (::ioctl(fd_, UFFDIO_API, &api) != 0) return false;
  const probe_page probe(MAP_PRIVATE);
  if (enlist(probe.pages()) != 0) return false;
  strike_off(probe.pages());
  learn_kinds();
  obstacle_ = nullptr;
  return true;
}

// Since Linux 5.19 shared memory can be watched. Then UFFDIO_CONTINUE must distinguish it, as it does on 6.1 and 6.18.
void unmap_watch::learn_kinds() noexcept {
  const probe_page shared(MAP_SHARED);
  kinds_known_ = true;
  if (shared.pages().empty() || enlist(shared.pages()) != 0) return;
  kinds_known_ = error_of_continue(fd_, shared.pages()) != EINVAL;
  strike_off(shared.pages());
}

// The reader starts after the constructor, so that programs that never register memory have no additional thread.
bool unmap_watch::start() noexcept {
  if (reading_) return true;
  if (board_ == nullptr) {
    void* const at = ::mmap(nullptr, sizeof(board), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return false;
    board_ = ::new (at) board;
    board_->epoch.store(epoch_first);
  }
  if (stop_ < 0) stop_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (stop_ < 0 || ::madvise(board_, sizeof(board), MADV_WIPEONFORK) != 0) return false;
  // The reader blocks signals: a signal handler on it that frees memory would wait for the reader itself.
  {
    const detail::signals_blocked guard;
    reading_ = ::pthread_create(&reader_, nullptr, &unmap_watch::run, this) == 0;
  }
  if (!reading_) return false;
  ::pthread_setname_np(reader_, "rma-unmap");
  while ((epoch_seen_ = board_->epoch.load()) < epoch_first + 2) ::sched_yield();
  return true;
}

int unmap_watch::enlist(page_range pages) noexcept {
  uffdio_register request{};
  request.range = range_of(pages);
  request.mode = UFFDIO_REGISTER_MODE_WP;
  return ::ioctl(fd_, UFFDIO_REGISTER, &request) == 0 ? 0 : errno;
}

unmap_watch::verdict unmap_watch::watch(page_range pages) noexcept {
  if (source_ == source::program) return verdict::tracked;
  if (fd_ < 0 || foreign() || !start()) return verdict::refused;
  // The kernel checks the whole range before it changes any of it, and can run out of memory only after that.
  if (const int error = enlist(pages); error != 0) return error == ENOMEM ? verdict::unfit : verdict::refused;
  // From here on no change is missed: the memory stays as it is now, or a change is reported.
  return private_memory(pages) ? verdict::tracked : verdict::unfit;
}

bool unmap_watch::private_memory(page_range pages) const noexcept {
  if (kinds_known_) {
    const int error = error_of_continue(fd_, pages);
    if (error == EINVAL) return true;
    if (error != ENOENT && error != EAGAIN) return false;
  }
  return all_private_anonymous(pages);
}

void unmap_watch::unwatch(page_range pages) noexcept {
  if (fd_ >= 0 && !pages.empty() && !foreign()) strike_off(pages);
}

void unmap_watch::strike_off(page_range pages) noexcept {
  uffdio_range all = range_of(pages);
  if (::ioctl(fd_, UFFDIO_UNREGISTER, &all) == 0) return;
  // Nothing is mapped there any more, or a part is now memory that cannot have been watched.
  one_by_one rest(fd_, pages);
  visit_mappings(pages, rest);
}

void* unmap_watch::run(void* self) noexcept {
  auto& watch = *static_cast<unmap_watch*>(self);
  std::array<pollfd, 2> wait{{{watch.fd_, POLLIN, 0}, {watch.stop_, POLLIN, 0}}};
  watch.read_events();  // binds the functions that it calls before a thread can wait for it
  for (;;) {
    ::poll(wait.data(), wait.size(), -1);
    if ((wait[1].revents & POLLIN) != 0) return nullptr;
    watch.read_events();
  }
}

// The owner waits between the two steps of the epoch; a thread that changes memory waits before them.
void unmap_watch::read_events() noexcept {
  std::array<uffd_msg, 16> events;
  board_->epoch.fetch_add(1);
  const ssize_t n = ::read(fd_, events.data(), sizeof events);
  const std::size_t count = n > 0 ? static_cast<std::size_t>(n) / sizeof(uffd_msg) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto& arg = events[i].arg;
    switch (events[i].event) {
      case UFFD_EVENT_UNMAP: note({arg.remove.start, arg.remove.end}, true); break;
      case UFFD_EVENT_REMOVE: note({arg.remove.start, arg.remove.end}, false); break;
      case UFFD_EVENT_REMAP:
        // The old addresses are unmapped next, unless they stay mapped. The new ones have inherited the watch.
        note({arg.remap.from, arg.remap.from + arg.remap.len}, false);
        strike_off({arg.remap.to, arg.remap.to + arg.remap.len});
        break;
      default: break;
    }
  }
  board_->epoch.fetch_add(1);
}

void unmap_watch::note(page_range pages, bool gone) noexcept {
  const std::uint64_t written = board_->written.load(std::memory_order_relaxed);
  const std::uint64_t taken = board_->taken.load();
  if (written != taken) {
    const change& last = board_->changes[(written - 1) % changes_max];
    if (last.pages == pages && last.gone == gone) return;
  }
  if (written - taken == changes_max) {
    board_->overflowed.store(true);
    return;
  }
  board_->changes[written % changes_max] = {pages, gone};
  board_->written.store(written + 1);
}

unmap_watch::outcome unmap_watch::catch_up(std::vector<change>& news) noexcept {
  news.clear();
  if (!reading_) return outcome::settled;
  const std::int64_t until = detail::clock_ns() + patience_ns;
  for (;;) {
    const bool busy = change_under_way();
    const std::uint64_t epoch = board_->epoch.load();
    if (epoch == 0) return outcome::forked;
    if (!busy && epoch % 2 == 0) {
      epoch_seen_ = epoch;
      break;
    }
    if (detail::clock_ns() > until) return outcome::busy;
    ::sched_yield();
  }
  RMA_ASSERT(news.capacity() > changes_max);
  const std::uint64_t written = board_->written.load();
  for (std::uint64_t i = board_->taken.load(std::memory_order_relaxed); i != written; ++i) {
    news.push_back(board_->changes[i % changes_max]);
  }
  board_->taken.store(written);
  if (board_->overflowed.exchange(false)) news.push_back({{0, ~std::uintptr_t{0}}, false});
  return outcome::settled;
}

}  // namespace rma::verbs
