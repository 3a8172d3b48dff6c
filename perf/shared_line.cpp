// SPDX-License-Identifier: Apache-2.0
#include "shared_line.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <string>

namespace perf {
namespace {

constexpr std::size_t mark_at = 64;  // a word far from the one that is bounced

/// The same on every process of a machine since it was started, and nowhere else.
std::uint64_t machine_mark() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return std::hash<std::string>()(id);
}

std::uint64_t* map(int file, std::size_t bytes) {
  struct stat found {};
  if (file < 0 || fstat(file, &found) != 0 || static_cast<std::size_t>(found.st_size) != bytes) return nullptr;
  void* const page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  return page == MAP_FAILED ? nullptr : static_cast<std::uint64_t*>(page);
}

}  // namespace

shared_line::shared_line(const job& with) {
  const bool first = with.rank == 0;
  int file = first ? memfd_create("line", MFD_CLOEXEC) : -1;
  if (file >= 0 && ftruncate(file, bytes) == 0) page_ = map(file, bytes);
  const std::uint64_t machine = machine_mark();
  const std::uint64_t mark = machine ^ static_cast<std::uint64_t>(getpid());
  if (first && page_ != nullptr) page_[mark_at] = mark;
  const bool here = with.from_first(machine) == machine;
  const std::uint64_t pid = with.from_first(static_cast<std::uint64_t>(getpid()));
  const std::uint64_t number = with.from_first(static_cast<std::uint64_t>(file));
  if (!first && here &&
      pid != static_cast<std::uint64_t>(getpid())) {  // simulated ranks take turns: they cannot bounce
    file = open(fmt::format("/proc/{}/fd/{}", pid, static_cast<int>(number)).c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
    page_ = map(file, bytes);
  }
  const bool mine = page_ != nullptr && page_[mark_at] == (machine ^ pid);
  usable_ = with.highest(mine ? 0 : 1) == 0;
  if (file >= 0) close(file);
}

shared_line::~shared_line() {
  if (page_ != nullptr) munmap(page_, bytes);
}

}  // namespace perf
