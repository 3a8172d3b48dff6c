// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory that a test may take apart.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <new>
#include <vector>

#include "fabric/verbs/mappings.hpp"

namespace rma::verbs::test {

inline const std::size_t page = static_cast<std::size_t>(::getpagesize());

/// Pages of the test's own.
class own_pages {
 public:
  explicit own_pages(std::size_t count, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1)
      : mine_(count, true), at_(::mmap(nullptr, count * page, PROT_READ | PROT_WRITE, flags, fd, 0)) {
    if (at_ == MAP_FAILED) throw std::bad_alloc();
  }
  ~own_pages() {
    for (std::size_t i = 0; i < mine_.size(); ++i) {
      if (mine_[i]) ::munmap(at(i), page);
    }
  }
  own_pages(const own_pages&) = delete;
  own_pages& operator=(const own_pages&) = delete;

  [[nodiscard]] std::byte* at(std::size_t index = 0) const { return static_cast<std::byte*>(at_) + index * page; }
  [[nodiscard]] std::size_t bytes() const { return mine_.size() * page; }
  [[nodiscard]] page_range range(std::size_t index, std::size_t count) const {
    const auto first = reinterpret_cast<std::uintptr_t>(at(index));
    return {first, first + count * page};
  }
  [[nodiscard]] page_range range() const { return range(0, mine_.size()); }

  bool unmap(std::size_t index, std::size_t count) {
    give_up(index, count);
    return ::munmap(at(index), count * page) == 0;
  }
  /// The addresses are free from now on: whatever is mapped there next is somebody else's.
  void give_up(std::size_t index, std::size_t count) {
    std::fill_n(mine_.begin() + static_cast<std::ptrdiff_t>(index), count, false);
  }

 private:
  std::vector<bool> mine_;
  void* at_;
};

}  // namespace rma::verbs::test
