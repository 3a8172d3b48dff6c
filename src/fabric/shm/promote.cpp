// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/promote.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "core/signals_blocked.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/fork_copies.hpp"

namespace rma::shm {
namespace {

/// The number of threads; 0 if the system does not report it.
int threads_of_this_process() noexcept {
  int count = 0;
  if (DIR* const d = ::opendir("/proc/self/task")) {
    while (const dirent* e = ::readdir(d)) count += e->d_name[0] != '.' ? 1 : 0;
    ::closedir(d);
  }
  return count;
}

/// Whole pages also hold neighbors of the user's range; the address sanitizer may forbid reading these.
[[gnu::no_sanitize_address]] void copy_pages(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  using any_word [[gnu::may_alias]] = std::uint64_t;
  for (std::size_t i = 0; i < bytes / sizeof(any_word); ++i) {
    reinterpret_cast<any_word*>(to)[i] = reinterpret_cast<const any_word*>(from)[i];
  }
}

/// Moves the mapping `made` over `pages`, atomically: other threads see the one or the other, and the old one stays if
/// there is no memory for the new one. It uses the system call itself: UCX's memory hooks replace mremap by a function
/// with four arguments, which loses the new address.
bool put_in_place(void* made, page_range pages) noexcept {
  if (made == MAP_FAILED) return false;
  if (::syscall(SYS_mremap, made, pages.bytes, pages.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pages.at) != -1) return true;
  const int error = errno;
  ::munmap(made, pages.bytes);
  errno = error;
  return false;
}

/// The location of a part of this rank's segment. It is determined in advance, since the board itself may lie in a page
/// that is being replaced.
struct segment_part {
  segment_part(board& node, std::size_t offset) noexcept
      : at(node.segment(node.me()) + offset),
        descriptor(node.descriptor()),
        file_offset(static_cast<off_t>(node.file_offset(offset))) {}

  std::byte* at;
  int descriptor;
  off_t file_offset;
};

/// Maps the part a second time.
void* map_again(const segment_part& part, std::size_t bytes, int flags, void* at = nullptr) noexcept {
  return ::mmap(at, bytes, PROT_READ | PROT_WRITE, flags, part.descriptor, part.file_offset);
}

/// Maps the part over `pages` with a call of the C library: hooks of this call, like those of UCX for registered
/// memory, are notified of the change, even if the same pages are mapped already.
void map_over(page_range pages, const segment_part& part) noexcept {
  (void)!map_again(part, pages.bytes, MAP_SHARED | MAP_FIXED | MAP_POPULATE, pages.at);
}

/// The kernel copies a private page at its first write. Exchanging a byte for itself is a write that loses no write of
/// another thread.
[[gnu::no_sanitize_address]] void write_to_each(page_range pages) noexcept {
  auto* const bytes = reinterpret_cast<unsigned char*>(pages.at);
  for (std::size_t at = 0; at < pages.bytes; at += page_bytes) {
    unsigned char now = __atomic_load_n(bytes + at, __ATOMIC_RELAXED);
    __atomic_compare_exchange_n(bytes + at, &now, now, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
  }
}

/// Makes private pages while no other thread runs. They are mapped at their address, not moved there, so that the
/// kernel merges them with their neighbors: memory that was promoted in a thousand places is still one mapping
/// afterwards. Without memory for private pages, the shared ones are mapped again.
bool come_back(page_range pages, const segment_part& part) noexcept {
  const detail::signals_blocked guard;  // a handler must not write to a page between its copy and its replacement
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (::mmap(pages.at, pages.bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED) {
    map_over(pages, part);
    return false;
  }
  copy_pages(pages.at, part.at, pages.bytes);
  return true;
}

/// Makes private pages while other threads run: pages of the same file, which the kernel copies. A page that the
/// program drops later (MADV_DONTNEED) is that of the file again, and zero, since that part of the file is never
/// reused.
bool part_from_segment(page_range pages, const segment_part& part) noexcept {
  map_over(pages, part);
  if (!put_in_place(map_again(part, pages.bytes, MAP_PRIVATE), pages)) return false;
  write_to_each(pages);
  return true;
}

/// One mapping of /proc/self/smaps.
struct mapping {
  std::uintptr_t first = 0, last = 0;
  std::string permissions, inode, name, flags;
};

/// The reason why this mapping cannot be promoted, or empty.
std::string obstacle_in(const mapping& m) {
  if (m.permissions != "rw-p") return fmt::format("its pages are mapped {}, not private and writable", m.permissions);
  if (m.inode != "0") return "its pages belong to a file";
  if (m.name == "[stack]") return "it lies on the stack";
  if (m.flags.find(" lo") != std::string::npos) return "its pages are locked";
  if (m.flags.find(" dc") != std::string::npos) return "its pages are registered with a device";
  if (m.flags.find(" um") != std::string::npos || m.flags.find(" uw") != std::string::npos)
    return "its pages are watched by userfaultfd";
  return {};
}

bool parse_head(const std::string& line, mapping& m) {
  std::istringstream in(line);
  std::string range, offset, device;
  if (!(in >> range >> m.permissions >> offset >> device >> m.inode)) return false;
  const auto dash = range.find('-');
  if (dash == std::string::npos || range.find(':') != std::string::npos) return false;
  m.first = std::stoull(range.substr(0, dash), nullptr, 16);
  m.last = std::stoull(range.substr(dash + 1), nullptr, 16);
  m.name.clear();
  in >> m.name;
  m.flags.clear();
  return true;
}

}  // namespace

page_range pages_around(void* at, std::size_t bytes) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(at) / page_bytes * page_bytes;
  const auto last = (reinterpret_cast<std::uintptr_t>(at) + bytes + page_bytes - 1) / page_bytes * page_bytes;
  return {reinterpret_cast<std::byte*>(first), bytes == 0 ? 0 : last - first};
}

std::string promotion_obstacle(page_range pages) {
  if (pages.bytes == 0) return "it is empty";
  const int threads = threads_of_this_process();
  if (threads > 1) return fmt::format("{} threads run in this process", threads);
  if (threads == 0) return "the system does not say whether other threads run";
  const auto first = reinterpret_cast<std::uintptr_t>(pages.at);
  const auto last = first + pages.bytes;
  std::ifstream smaps("/proc/self/smaps");
  std::uintptr_t covered = first;
  mapping m;
  bool inside = false;
  // The kernel counts pages while the file is read, so it is read no further than needed.
  for (std::string line; covered < last && std::getline(smaps, line);) {
    if (line.rfind("VmFlags:", 0) == 0 && inside) {
      m.flags = fmt::format(" {}", line.substr(8));
      if (const std::string why = obstacle_in(m); !why.empty()) return why;
      covered = m.last;
    }
    if (line.size() > 0 && line[0] != ' ' && line.find("-") < 17 && parse_head(line, m)) {
      inside = m.first <= covered && m.last > covered && covered < last;
    }
  }
  return covered >= last ? std::string() : "part of it is not mapped";
}

std::string promote(board& node, page_range pages, std::size_t offset) {
  if (node.descriptor() < 0) return "the memory of a simulated node is no file that could be mapped";
  if (std::string why = promotion_obstacle(pages); !why.empty()) return why;
  const segment_part part(node, offset);
  void* const made = map_again(part, pages.bytes, MAP_SHARED | MAP_POPULATE);
  const detail::signals_blocked guard;  // a handler must not write to a page between its copy and its replacement
  if (made != MAP_FAILED) copy_pages(part.at, pages.at, pages.bytes);
  if (put_in_place(made, pages)) {
    map_over(pages, part);
    copy_promoted_at_forks();
    node.add_promoted(pages.at, pages.bytes, offset);
    return {};
  }
  return fmt::format("the system refuses to replace its pages: {}", std::strerror(errno));
}

bool demote(board& node, page_range pages, std::size_t offset) noexcept {
  node.remove_promoted(pages.at);
  const segment_part part(node, offset);
  if (threads_of_this_process() == 1) return come_back(pages, part);
  if (part_from_segment(pages, part)) node.depopulate(offset, pages.bytes);
  return false;
}

}  // namespace rma::shm
