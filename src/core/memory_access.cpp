// SPDX-License-Identifier: Apache-2.0
#include "core/memory_access.hpp"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>

namespace rma::detail {
namespace {

constexpr std::uintptr_t page_bytes = 4096;  // size of the smallest pages: larger ones are tried more than once

/// The kernel compares the word with another, and moves none of its sleepers.
bool is_word_readable(std::uintptr_t at) noexcept {
  std::uint32_t nobody = 0;
  return ::syscall(SYS_futex, at, FUTEX_CMP_REQUEUE_PRIVATE, 0, 0, &nobody, 0) != -1 || errno != EFAULT;
}

/// The kernel adds 0 to the word by an atomic operation, so that no store of another thread is lost.
bool is_word_writable(std::uintptr_t at) noexcept {
  std::uint32_t nobody = 0;
  constexpr unsigned add_nothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  return ::syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, 0, at, add_nothing) != -1 || errno != EFAULT;
}

template <class Try>
bool for_each_page(const void* at, std::size_t bytes, Try can) noexcept {
  const auto first = reinterpret_cast<std::uintptr_t>(at);
  for (std::uintptr_t word = first / 4 * 4; word < first + bytes; word = (word / page_bytes + 1) * page_bytes) {
    if (!can(word)) return false;
  }
  return true;
}

struct close_file {
  void operator()(std::FILE* f) const noexcept { std::fclose(f); }
};

}  // namespace

bool can_read(const void* at, std::size_t bytes) noexcept { return for_each_page(at, bytes, is_word_readable); }

bool can_write(void* at, std::size_t bytes) noexcept { return for_each_page(at, bytes, is_word_writable); }

bool is_mapped_for_writing(const void* at, std::size_t bytes) noexcept {
  const std::unique_ptr<std::FILE, close_file> maps(std::fopen("/proc/self/maps", "re"));
  if (maps == nullptr) return true;
  std::uintptr_t next = reinterpret_cast<std::uintptr_t>(at);
  const std::uintptr_t end = next + bytes;
  char line[256];
  for (bool starts = true; next < end && std::fgets(line, sizeof line, maps.get()) != nullptr;) {
    std::uintptr_t first = 0, last = 0;
    char allowed[5] = {};
    const bool is_mapping = starts && std::sscanf(line, "%lx-%lx %4s", &first, &last, allowed) == 3;
    starts = std::char_traits<char>::find(line, std::char_traits<char>::length(line), '\n') != nullptr;
    if (!is_mapping || last <= next) continue;
    if (first > next || allowed[0] != 'r' || allowed[1] != 'w') return false;
    next = last;
  }
  return next >= end;
}

}  // namespace rma::detail
