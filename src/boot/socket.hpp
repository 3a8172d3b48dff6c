// SPDX-License-Identifier: Apache-2.0
/// \file
/// Descriptors, boot addresses, and sockets that listen at or connect to them. All close-on-exec.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

namespace rma::boot {

using boot_clock = std::chrono::steady_clock;

/// Milliseconds until `deadline` for poll(): rounded up, 0 if it has passed.
int ms_until(boot_clock::time_point deadline);

/// Owner of a file descriptor.
class unique_fd {
 public:
  unique_fd() = default;
  explicit unique_fd(int fd) noexcept : fd_(fd) {}
  unique_fd(unique_fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  unique_fd& operator=(unique_fd&& other) noexcept {
    if (this != &other) reset(std::exchange(other.fd_, -1));
    return *this;
  }
  unique_fd(const unique_fd&) = delete;
  unique_fd& operator=(const unique_fd&) = delete;
  ~unique_fd() { reset(); }

  [[nodiscard]] int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  void reset(int fd = -1) noexcept;

 private:
  int fd_ = -1;
};

/// A boot address taken apart.
struct boot_address {
  bool local = true;  ///< an abstract Unix socket; otherwise TCP
  std::string host;   ///< the socket's name, or the host
  std::string port;   ///< TCP only
};

/// Takes `local://NAME`, `tcp://HOST:PORT` or `tcp://[V6]:PORT` apart. Throws rma::Error(bad_boot) on anything else.
boot_address parse_address(std::string_view text);

/// The inverse of parse_address.
std::string to_text(const boot_address& where);

/// A non-blocking listener. An empty local name becomes a random one and TCP port 0 a free one: `where` is updated.
/// Throws rma::Error(bad_boot).
unique_fd listen_at(boot_address& where);

/// An attempt to connect ended so.
struct connect_outcome {
  unique_fd fd;            ///< non-blocking; none if it failed
  std::string why;         ///< the system's words
  bool try_again = false;  ///< a listener may yet appear
};

/// One attempt, not longer than `deadline` (but for the name service).
connect_outcome connect_to(const boot_address& where, boot_clock::time_point deadline);

/// Begins to connect to a TCP address given in numbers, and waits for nothing: the socket is writable when it is over.
/// None, and errno says why, if that fails at once.
unique_fd begin_connect(const boot_address& where) noexcept;

/// The address, in numbers, that this end of a TCP connection has; empty for other sockets.
std::string own_address_of(int fd);

/// True if the other end of the Unix socket `fd` belongs to this user.
bool peer_is_same_user(int fd) noexcept;

/// For TCP: no delays, and an end that is silent for so long is given up (at the latest a third of that later).
void tune(int fd, int peer_timeout_ms) noexcept;

/// After `tune`: data may wait for ever for an end that answers, but takes nothing. Whether it answers while data wait
/// is for the caller to watch; the kernel asks every half of the time-out if it can (Linux 6.15), else ever less often.
void let_data_wait(int fd, int peer_timeout_ms) noexcept;

/// strerror without its shared buffer.
std::string error_text(int error);

}  // namespace rma::boot
