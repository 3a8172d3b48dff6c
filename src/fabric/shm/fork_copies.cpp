// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/fork_copies.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string_view>

namespace rma::shm {
namespace {

constexpr std::size_t nodes_max = 16;  // runtimes of this process with separate node memory

/// An entry of the kernel's list of mappings.
struct mapped_range {
  std::uintptr_t first = 0, last = 0;
  std::uint64_t file_offset = 0;
  unsigned long inode = 0;
  bool shared = false;
  bool of_node = false;        ///< it maps the memory of a node
  std::uintptr_t copy_of = 0;  ///< not 0: it is this thread's copy of the mapping at this address
};

/// Calls `use` with each mapping of a node's memory and each copy. It allocates no memory: pages of the heap may be
/// promoted.
template <class Use>
void for_each_mapping(Use use) noexcept {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return;
  std::array<char, 1024> text;
  std::size_t filled = 0;
  for (ssize_t got = 0; (got = ::read(fd, text.data() + filled, text.size() - 1 - filled)) > 0;) {
    filled += static_cast<std::size_t>(got);
    std::size_t at = 0;
    for (;;) {
      char* const line = text.data() + at;
      auto* const end = static_cast<char*>(std::memchr(line, '\n', filled - at));
      if (end == nullptr) break;
      *end = '\0';
      at = static_cast<std::size_t>(end - text.data()) + 1;
      const char* const name = std::strstr(line, "/memfd:rma-");
      mapped_range m;
      std::array<char, 5> allowed{};
      if (name == nullptr || std::sscanf(line, "%lx-%lx %4s %lx %*s %lu", &m.first, &m.last, allowed.data(),
                                         &m.file_offset, &m.inode) != 5)
        continue;
      m.shared = allowed[3] == 's';
      m.of_node = std::string_view(name).starts_with("/memfd:rma-node");
      unsigned long thread = 0;
      if (std::sscanf(name, "/memfd:rma-fork-%lx-%lx", &thread, &m.copy_of) != 2 || thread != ::pthread_self() ||
          m.copy_of == m.first - m.file_offset)
        m.copy_of = 0;
      use(m);
    }
    filled = at == 0 && filled == text.size() - 1 ? 0 : filled - at;  // a line that does not fit is irrelevant
    std::memmove(text.data(), text.data() + at, filled);
  }
  ::close(fd);
}

[[gnu::no_sanitize_address]] void copy_words(void* to, std::uintptr_t from, std::size_t bytes) noexcept {
  using any_word [[gnu::may_alias]] = std::uint64_t;
  for (std::size_t i = 0; i < bytes / sizeof(any_word); ++i)
    static_cast<any_word*>(to)[i] = reinterpret_cast<const any_word*>(from)[i];
}

/// Makes private memory with a name by which the child finds it: that of an empty file, each page of which is copied
/// when it is written.
void copy(const mapped_range& m) noexcept {
  std::array<char, 64> name{};
  std::snprintf(name.data(), name.size(), "rma-fork-%lx-%lx", static_cast<unsigned long>(::pthread_self()), m.first);
  const std::size_t bytes = m.last - m.first;
  const int fd = ::memfd_create(name.data(), MFD_CLOEXEC);
  if (fd < 0) return;
  if (::ftruncate(fd, static_cast<off_t>(bytes)) == 0) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    if (at != MAP_FAILED) copy_words(at, m.first, bytes);
  }
  ::close(fd);
}

/// A node's memory is mapped in one piece, from its start on; further mappings of it are promoted pages.
void before_fork() noexcept {
  std::array<mapped_range, nodes_max> nodes;
  std::size_t count = 0;
  for_each_mapping([&](const mapped_range& m) noexcept {
    if (m.of_node && m.shared && m.file_offset == 0 && count < nodes.size()) nodes[count++] = m;
  });
  for_each_mapping([&](const mapped_range& m) noexcept {
    if (!m.of_node || !m.shared) return;
    for (std::size_t i = 0; i < count; ++i) {
      if (nodes[i].inode == m.inode && nodes[i].first + m.file_offset == m.first) return;
    }
    copy(m);
  });
}

void after_fork_in_parent() noexcept {
  for_each_mapping([](const mapped_range& m) noexcept {
    if (m.copy_of != 0) ::munmap(reinterpret_cast<void*>(m.first), m.last - m.first);
  });
}

// Moves the copies with the system call itself, for the reason given in promote.cpp.
void after_fork_in_child() noexcept {
  for_each_mapping([](const mapped_range& m) noexcept {
    const std::size_t bytes = m.last - m.first;
    if (m.copy_of != 0) ::syscall(SYS_mremap, m.first, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, m.copy_of);
  });
}

}  // namespace

// Registers the handlers once: a process has one list of them, from which none can be removed, and they get no
// argument.
void copy_promoted_at_forks() {
  static const int registered = ::pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
  (void)registered;
}

}  // namespace rma::shm
