// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/promote.hpp"

#include <dirent.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <sstream>

#include "fabric/shm/board.hpp"

namespace rma::shm {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{4} << 20;  // memory needed twice, for a moment

int threads_of_this_process() {
  int count = 0;
  if (DIR* const d = ::opendir("/proc/self/task")) {
    while (const dirent* e = ::readdir(d)) count += e->d_name[0] != '.' ? 1 : 0;
    ::closedir(d);
  }
  return count;
}

/// Signal handlers must not write to a page between its copy and its replacement.
class signals_blocked {
 public:
  signals_blocked() noexcept {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~signals_blocked() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  signals_blocked(const signals_blocked&) = delete;
  signals_blocked& operator=(const signals_blocked&) = delete;

 private:
  sigset_t before_{};
};

/// Whole pages hold the neighbours of the user's range, too; among them what the address sanitizer forbids to read.
[[gnu::no_sanitize_address]] void copy_pages(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  using any_word [[gnu::may_alias]] = std::uint64_t;
  for (std::size_t i = 0; i < bytes / sizeof(any_word); ++i) {
    reinterpret_cast<any_word*>(to)[i] = reinterpret_cast<const any_word*>(from)[i];
  }
}

/// One mapping of /proc/self/smaps.
struct mapping {
  std::uintptr_t first = 0, last = 0;
  std::string permissions, inode, name, flags;
};

/// Why this mapping cannot be promoted, or empty.
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
  if (const int n = threads_of_this_process(); n > 1) return fmt::format("{} threads run in this process", n);
  const auto first = reinterpret_cast<std::uintptr_t>(pages.at);
  const auto last = first + pages.bytes;
  std::ifstream smaps("/proc/self/smaps");
  std::uintptr_t covered = first;
  mapping m;
  bool inside = false;
  // The kernel counts pages while it is read: no further than needed.
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
  const signals_blocked guard;
  for (std::size_t done = 0; done < pages.bytes; done += chunk_bytes) {
    const std::size_t part = std::min(chunk_bytes, pages.bytes - done);
    std::byte* const copy = node.segment(node.me()) + offset + done;
    copy_pages(copy, pages.at + done, part);
    void* const at = ::mmap(pages.at + done, part, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                            node.descriptor(), static_cast<off_t>(node.file_offset(offset + done)));
    if (at == MAP_FAILED) {
      const int error = errno;
      demote(node, {pages.at, done}, offset);
      return fmt::format("the system refuses to replace its pages: {}", std::strerror(error));
    }
  }
  return {};
}

void demote(board& node, page_range pages, std::size_t offset) noexcept {
  const signals_blocked guard;
  for (std::size_t done = 0; done < pages.bytes; done += chunk_bytes) {
    const std::size_t part = std::min(chunk_bytes, pages.bytes - done);
    const std::byte* const copy = node.segment(node.me()) + offset + done;
    void* const at =
        ::mmap(pages.at + done, part, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    // Without memory for private pages the shared ones stay: the contents are right, only sharing remains.
    if (at != MAP_FAILED) copy_pages(static_cast<std::byte*>(at), copy, part);
  }
}

}  // namespace rma::shm
