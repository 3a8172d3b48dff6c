// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/board.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstring>
#include <fstream>
#include <limits>

#include "core/futex.hpp"
#include "core/membarrier.hpp"
#include "fabric/shm/fd_exchange.hpp"

namespace rma::shm {
namespace {

constexpr std::size_t address_space_max = std::size_t{32} << 40;    // part of the 128 TiB of a process
constexpr std::size_t hosted_segment_bytes = std::size_t{1} << 30;  // thousands of ranks share one address space

std::size_t round_up(std::size_t n, std::size_t to) noexcept { return (n + to - 1) / to * to; }

std::size_t machine_bytes() noexcept {
  struct sysinfo info {};
  ::sysinfo(&info);
  return static_cast<std::size_t>(info.totalram) * info.mem_unit;
}

std::string link_target(const char* path) {
  char text[256];
  const auto n = ::readlink(path, text, sizeof text);
  return n > 0 ? std::string(text, static_cast<std::size_t>(n)) : std::string();
}

std::size_t limit_of(int resource) noexcept {
  rlimit limit{};
  return ::getrlimit(static_cast<__rlimit_resource_t>(resource), &limit) != 0 || limit.rlim_cur == RLIM_INFINITY
             ? std::numeric_limits<std::size_t>::max()
             : static_cast<std::size_t>(limit.rlim_cur);
}

/// Leaves half of the address space to the program.
std::size_t address_space_left() noexcept { return limit_of(RLIMIT_AS) / 2; }

[[noreturn]] void refuse_memory(std::size_t bytes, int error) {
  std::string remedy = "a smaller RMA_SEGMENT_BYTES may help";
  if (error == EFBIG) {
    remedy =
        fmt::format("files may have {} bytes, and the limit holds for it: raise ulimit -f", limit_of(RLIMIT_FSIZE));
  } else if (error == ENOMEM && limit_of(RLIMIT_AS) != std::numeric_limits<std::size_t>::max()) {
    remedy = fmt::format("a process may map {} bytes: raise ulimit -v", limit_of(RLIMIT_AS));
  }
  throw Error(status::out_of_memory, fmt::format("cannot have {} bytes of shared memory for the node: {}; {}", bytes,
                                                 std::strerror(error), remedy));
}

void init_liveness(pthread_mutex_t& mutex) noexcept {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

/// A limit of file sizes also applies to this file without a name. The system sends a signal that would end the process
/// without a message, so it is blocked: the error suffices.
int resize(int fd, std::size_t bytes) noexcept {
  sigset_t one;
  sigset_t before;
  sigset_t pending;
  sigemptyset(&one);
  sigaddset(&one, SIGXFSZ);
  pthread_sigmask(SIG_BLOCK, &one, &before);
  const bool was_pending = ::sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1;
  const int error = ::ftruncate(fd, static_cast<off_t>(bytes)) == 0 ? 0 : errno;
  const timespec now{};
  if (error == EFBIG && !was_pending) (void)::sigtimedwait(&one, nullptr, &now);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

/// The header at the start of the node's memory.
struct header {
  std::uint64_t bells;  ///< part of the names of this job's bells
};

struct bell_name {
  sockaddr_un address{};
  socklen_t bytes = 0;
};

// The name is outside the file system, and disappears with the socket. A stranger that guesses it can only cause
// needless wakes.
bell_name name_of_bell(const std::byte* base, std::size_t rank) noexcept {
  header h{};
  std::memcpy(&h, base, sizeof h);
  bell_name name;
  name.address.sun_family = AF_UNIX;
  const auto end = fmt::format_to_n(name.address.sun_path + 1, sizeof name.address.sun_path - 1, "rma-bell/{:016x}/{}",
                                    h.bells, rank)
                       .out;
  name.bytes = static_cast<socklen_t>(end - reinterpret_cast<char*>(&name.address));
  return name;
}

}  // namespace

std::string machine_identity() {
  std::string boot_id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot_id;
  return boot_id;
}

std::string node_identity(const std::string& virtual_node) {
  return fmt::format("{}/{}/{}/{}/{}", machine_identity(), link_target("/proc/self/ns/net"),
                     link_target("/proc/self/ns/pid"), ::geteuid(), virtual_node);
}

board::board(boot::client& boot, const detail::settings& settings, std::vector<int> members, std::size_t me)
    : members_(std::move(members)), me_(me), mapping_owner_(me) {
  lay_out(settings, std::min({machine_bytes(), address_space_max / size(), address_space_left() / size()}));
  const int timeout_ms = static_cast<int>(settings.number(detail::knob::boot_timeout_ms));
  if (me_ == 0) {
    boot.begin_step("makes the memory of its node");
    make();
    if (size() > 1) invite(boot, timeout_ms);
  } else {
    join(boot, timeout_ms);
  }
  slot(me_).core_group = static_cast<std::uint32_t>(settings.number(detail::knob::core_group));
  enter();
}

board::board(segment_provider& host, const detail::settings& settings, std::vector<int> members, std::size_t me)
    : members_(std::move(members)), me_(me), host_(&host), fenced_by_others_(true), mapping_owner_(me) {
  lay_out(settings, hosted_segment_bytes);
  base_ = host.memory(total_bytes_);
  slot(me_).core_group = static_cast<std::uint32_t>(settings.number(detail::knob::core_group));
  slot(me_).pid = static_cast<std::uint32_t>(::getpid());
  slot(me_).state.store(static_cast<std::uint32_t>(presence::alive));
}

board::~board() {
  detach(false);
  if (host_ != nullptr) {
    host_->give_back();
    return;
  }
  const bool last = slot(mapping_owner_).mapping_users.fetch_sub(1) == 1;
  if (last) ::munmap(base_, total_bytes_);
  ::close(fd_);
  if (bell_ >= 0) ::close(bell_);
}

void board::lay_out(const detail::settings& settings, std::size_t segment_otherwise) {
  const std::size_t n = size();
  const std::size_t sender_words = (n + 63) / 64;
  rings_at_ = round_up(sizeof(rank_slot) + sender_words * sizeof(word64), page_bytes);
  slot_bytes_ = round_up(rings_at_ + n * sizeof(ring_memory), page_bytes);
  slots_at_ = page_bytes;
  segments_at_ = round_up(slots_at_ + n * slot_bytes_, huge_bytes);
  std::size_t wanted = settings.number(detail::knob::segment_bytes);
  asked_for_ = wanted != 0;
  if (!asked_for_) wanted = segment_otherwise;
  wanted = round_up(std::max(wanted, huge_bytes), huge_bytes);
  constexpr std::size_t total_most = std::size_t{1} << 62;  // more than a machine maps, within a file's limits
  if (wanted > (total_most - segments_at_) / n) {
    throw Error(status::out_of_memory, fmt::format("{} ranks on one node with {} bytes each are more than it can map; "
                                                   "lower RMA_SEGMENT_BYTES",
                                                   n, wanted));
  }
  huge_pages_ = host_ == nullptr && settings.on(detail::knob::huge_pages);
  take_segments(wanted);
}

void board::take_segments(std::size_t bytes_of_each) noexcept {
  segment_bytes_ = bytes_of_each;
  total_bytes_ = segments_at_ + size() * segment_bytes_;
}

// Segments are as large as may ever be needed, since they cost only address space. If that is limited they are made
// smaller, unless the user has set their size.
void board::make() {
  fd_ = ::memfd_create("rma-node", MFD_CLOEXEC);
  for (;;) {
    int error = fd_ < 0 ? errno : resize(fd_, total_bytes_);
    if (error == 0) error = map() ? 0 : errno;
    if (error == 0) break;
    if (fd_ < 0 || asked_for_ || segment_bytes_ == huge_bytes) refuse_memory(total_bytes_, error);
    take_segments(round_up(segment_bytes_ / 2, huge_bytes));
  }
  header h{};
  if (::getrandom(&h.bells, sizeof h.bells, 0) != static_cast<ssize_t>(sizeof h.bells)) {
    throw Error(status::bad_boot, "the kernel gives no random bytes (getrandom)");
  }
  std::memcpy(base_, &h, sizeof h);
  for (std::size_t i = 0; i < size(); ++i) init_liveness(slot(i).liveness);
}

// Maps the memory so that huge pages are possible: their addresses and file offsets must be multiples of their size.
bool board::map() noexcept {
  const std::size_t room = total_bytes_ + huge_bytes;
  void* at = ::mmap(nullptr, room, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at != MAP_FAILED) {
    const auto first = reinterpret_cast<std::uintptr_t>(at);
    const std::size_t before = round_up(first, huge_bytes) - first;
    auto* const aligned = static_cast<std::byte*>(at) + before;
    const std::size_t used = round_up(total_bytes_, page_bytes);
    if (before != 0) ::munmap(at, before);
    ::munmap(aligned + used, room - before - used);
    at = ::mmap(aligned, total_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, fd_, 0);
    const int error = errno;
    if (at == MAP_FAILED) ::munmap(aligned, used);
    errno = error;
  }
  if (at == MAP_FAILED) return false;
  base_ = static_cast<std::byte*>(at);
  if (huge_pages_) ::madvise(base_ + segments_at_, total_bytes_ - segments_at_, MADV_HUGEPAGE);
  ::madvise(base_, total_bytes_, MADV_DONTDUMP);
  return true;
}

void board::invite(boot::client& boot, int timeout_ms) {
  boot.begin_step("hands out the memory of its node");
  fd_offer sender(fd_, {static_cast<std::uint32_t>(::getpid()), reinterpret_cast<std::uint64_t>(base_), total_bytes_});
  if (const status s = boot.put(fmt::format("board/{}", members_[0]), sender.invitation()); !ok(s))
    boot::raise_job_ended(boot, s);
  sender.serve(size() - 1, boot, timeout_ms);
}

void board::join(boot::client& boot, int timeout_ms) {
  boot.begin_step(fmt::format("takes the memory of its node from rank {}", members_[0]));
  std::string where;
  if (const status s = boot.get(fmt::format("board/{}", members_[0]), where); !ok(s)) boot::raise_job_ended(boot, s);
  const accepted_fd got = accept_fd(where, boot, members_[0], timeout_ms);
  fd_ = got.fd;
  if (!asked_for_ && got.owner.total_bytes > segments_at_)  // the owner has found the possible size
    take_segments((got.owner.total_bytes - segments_at_) / size() / huge_bytes * huge_bytes);
  if (got.owner.total_bytes != total_bytes_) {
    throw Error(status::bad_boot, fmt::format("rank {} laid out {} bytes of node memory, this rank {}: the ranks of a "
                                              "node need the same RMA_SEGMENT_BYTES and library version",
                                              members_[0], got.owner.total_bytes, total_bytes_));
  }
  if (got.owner.pid == static_cast<std::uint64_t>(::getpid())) {  // a thread of the same process: one mapping
    base_ = reinterpret_cast<std::byte*>(got.owner.base);
    mapping_owner_ = 0;
  } else if (!map()) {
    refuse_memory(total_bytes_, errno);
  }
}

void board::enter() noexcept {
  rank_slot& mine = slot(me_);
  mine.pid = static_cast<std::uint32_t>(::getpid());
  slot(mapping_owner_).mapping_users.fetch_add(1);
  fenced_by_others_ = detail::join_membarrier();
  ::prctl(PR_SET_PTRACER, PR_SET_PTRACER_ANY, 0, 0, 0);  // the node's ranks read and write each other's windows
  pthread_mutex_lock(&mine.liveness);
  mine.state.store(static_cast<std::uint32_t>(presence::alive));
}

void board::detach(bool in_good_order) noexcept {
  rank_slot& mine = slot(me_);
  if (mine.state.load() != static_cast<std::uint32_t>(presence::alive)) return;
  mine.state.store(static_cast<std::uint32_t>(in_good_order ? presence::left : presence::dead));
  if (host_ == nullptr) pthread_mutex_unlock(&mine.liveness);
  for (std::size_t i = 0; i < size(); ++i) {
    if (i != me_) ring_doorbell(i);
  }
}

void board::add_promoted(const std::byte* at, std::size_t bytes, std::size_t offset) {
  const std::lock_guard guard(promoted_lock_);
  promoted_.push_back({at, bytes, offset});
}

void board::remove_promoted(const std::byte* at) noexcept {
  const std::lock_guard guard(promoted_lock_);
  std::erase_if(promoted_, [at](const promoted& p) { return p.at == at; });
}

std::optional<std::size_t> board::own_offset(const std::byte* at, std::size_t bytes) noexcept {
  const std::byte* const mine = segment(me_);
  if (at >= mine && at + bytes <= mine + segment_bytes_) return static_cast<std::size_t>(at - mine);
  const std::lock_guard guard(promoted_lock_);
  for (const promoted& p : promoted_) {
    if (at >= p.at && at + bytes <= p.at + p.bytes) return p.offset + static_cast<std::size_t>(at - p.at);
  }
  return std::nullopt;
}

std::size_t board::search(int world_rank) const noexcept {
  const auto at = std::lower_bound(members_.begin(), members_.end(), world_rank);
  return at != members_.end() && *at == world_rank ? static_cast<std::size_t>(at - members_.begin()) : size();
}

status board::populate(std::size_t offset, std::size_t bytes) noexcept {
  if (host_ != nullptr) return status::done;  // the memory is zero, and pages are allocated when touched
  if (huge_pages_) collapse(offset, bytes);
  if (allocate(offset, bytes)) return status::done;
  depopulate(offset, bytes);  // frees the pieces that were allocated
  return status::out_of_memory;
}

// Older kernels stop at any signal and undo their work: a program's timer may be faster than a large piece. After an
// interruption smaller pieces follow; a single page is fast enough.
bool board::allocate(std::size_t offset, std::size_t bytes) noexcept {
  std::size_t piece_max = std::size_t{16} << 20;
  while (bytes > 0) {
    const std::size_t piece = std::min(bytes, piece_max);
    const int error = ::posix_fallocate(fd_, static_cast<off_t>(file_offset(offset)), static_cast<off_t>(piece));
    if (error == EINTR) {
      piece_max = std::max(piece / 2 / page_bytes * page_bytes, page_bytes);
    } else if (error != 0) {
      return false;
    } else {
      offset += piece;
      bytes -= piece;
    }
  }
  return true;
}

// Shared memory gets huge pages on request, independent of the machine's settings, if a part of each is allocated
// already. It keeps small pages if there are no huge ones, or the kernel is older than 6.1.
void board::collapse(std::size_t offset, std::size_t bytes) noexcept {
  constexpr int collapse_now = 25;  // MADV_COLLAPSE, which Debian 12's headers do not have
  const std::size_t first = round_up(offset, huge_bytes);
  const std::size_t end = (offset + bytes) / huge_bytes * huge_bytes;
  for (std::size_t at = first; at < end; at += huge_bytes) {
    if (!allocate(at, page_bytes)) return;
  }
  if (first < end) ::madvise(segment(me_) + first, end - first, collapse_now);
}

void board::depopulate(std::size_t offset, std::size_t bytes) noexcept {
  if (host_ != nullptr) {
    ::madvise(segment(me_) + offset, bytes, MADV_DONTNEED);
    return;
  }
  ::fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(file_offset(offset)),
              static_cast<off_t>(bytes));
}

presence board::look_at(std::size_t i) noexcept {
  rank_slot& other = slot(i);
  const auto state = static_cast<presence>(other.state.load());
  if (state != presence::alive || i == me_) return state;
  if (host_ != nullptr) {
    if (host_->alive(members_[i])) return presence::alive;
    other.state.store(static_cast<std::uint32_t>(presence::dead));
    return presence::dead;
  }
  const int result = pthread_mutex_trylock(&other.liveness);
  if (result == EBUSY) return presence::alive;
  if (result == 0) {  // the rank has just left regularly
    pthread_mutex_unlock(&other.liveness);
    return static_cast<presence>(other.state.load());
  }
  other.state.store(static_cast<std::uint32_t>(presence::dead));
  if (result == EOWNERDEAD) pthread_mutex_unlock(&other.liveness);  // not made consistent, so it stays unusable
  return presence::dead;
}

void board::wake(std::size_t i) noexcept {
  word32& word = slot(i).doorbell;
  const auto how = doorbell_of(word.exchange(static_cast<std::uint32_t>(doorbell::idle)));
  if (how == doorbell::idle) return;
  if (host_ != nullptr) {
    host_->wake(members_[i]);
  } else if (how == doorbell::bell) {
    ring_bell(i);
  } else {
    detail::futex_wake_all(word);
  }
}

int board::bell() {
  if (bell_ >= 0) return bell_;
  const bell_name mine = name_of_bell(base_, me_);
  bell_ = ::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (bell_ < 0 || ::bind(bell_, reinterpret_cast<const sockaddr*>(&mine.address), mine.bytes) != 0) {
    throw Error(status::out_of_memory, fmt::format("cannot make a socket to be woken by: {}", std::strerror(errno)));
  }
  return bell_;
}

// A full queue is no error: the descriptor is readable already.
void board::ring_bell(std::size_t i) noexcept {
  const bell_name name = name_of_bell(base_, i);
  const char ring = 0;
  (void)::sendto(bell_, &ring, 1, MSG_DONTWAIT | MSG_NOSIGNAL, reinterpret_cast<const sockaddr*>(&name.address),
                 name.bytes);
}

void board::take_ring() noexcept {
  char ring = 0;
  (void)::recv(bell_, &ring, 1, MSG_DONTWAIT);
}

}  // namespace rma::shm
