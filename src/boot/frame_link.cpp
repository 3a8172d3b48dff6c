// SPDX-License-Identifier: Apache-2.0
#include "boot/frame_link.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace rma::boot {

namespace {

/// False when the deadline has passed.
bool wait_for(int fd, short events, boot_clock::time_point deadline) {
  for (;;) {
    pollfd wait{fd, events, 0};
    const int ready = ::poll(&wait, 1, ms_until(deadline));
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) return true;  // let the following call say what is wrong
  }
}

}  // namespace

/// Reads what is there: `ready` if anything came, `timed_out` if nothing did.
frame_link::result frame_link::fill() {
  std::array<char, 2048> chunk;  // every wait comes here, on stacks of any size
  for (;;) {
    const ssize_t got = ::recv(fd_.get(), chunk.data(), chunk.size(), 0);
    if (got > 0) {
      reader_.feed({chunk.data(), static_cast<std::size_t>(got)});
      return result::ready;
    }
    if (got == 0) return result::closed;
    if (errno == EAGAIN) return result::timed_out;
    if (errno != EINTR) return result::closed;
  }
}

frame_link::result frame_link::send(std::string_view frame_bytes, boot_clock::time_point deadline) {
  while (!frame_bytes.empty()) {
    const ssize_t sent = ::send(fd_.get(), frame_bytes.data(), frame_bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) {
      frame_bytes.remove_prefix(static_cast<std::size_t>(sent));
      continue;
    }
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return result::closed;
    if (!wait_for(fd_.get(), POLLIN | POLLOUT, deadline)) return result::timed_out;
    if (fill() == result::closed) return result::closed;
  }
  return result::ready;
}

frame_link::result frame_link::next(frame& out, boot_clock::time_point deadline) {
  for (;;) {
    switch (reader_.next(out)) {
      case frame_reader::result::ready: return result::ready;
      case frame_reader::result::garbage: return result::garbage;
      case frame_reader::result::need_more: break;
    }
    const result filled = fill();
    if (filled == result::closed) return result::closed;
    if (filled == result::timed_out && !wait_for(fd_.get(), POLLIN, deadline)) return result::timed_out;
  }
}

}  // namespace rma::boot
