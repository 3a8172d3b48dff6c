// SPDX-License-Identifier: Apache-2.0
/// \file
/// For tests of what a process says on its standard error stream.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <string>

namespace rma::test {

/// Collects in memory the text that this process writes to stderr.
class heard_errors {
 public:
  heard_errors() : before_(::dup(STDERR_FILENO)), memory_(::memfd_create("stderr", MFD_CLOEXEC)) {
    ::dup2(memory_, STDERR_FILENO);
  }
  heard_errors(const heard_errors&) = delete;
  heard_errors& operator=(const heard_errors&) = delete;
  ~heard_errors() {
    ::dup2(before_, STDERR_FILENO);
    ::close(before_);
    ::close(memory_);
  }
  [[nodiscard]] std::string text() const {
    std::array<char, 4096> room{};
    const ssize_t got = ::pread(memory_, room.data(), room.size(), 0);
    return {room.data(), got < 0 ? 0 : static_cast<std::size_t>(got)};
  }

 private:
  int before_;
  int memory_;
};

}  // namespace rma::test
