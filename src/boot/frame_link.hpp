// SPDX-License-Identifier: Apache-2.0
/// \file
/// The client's end of a boot connection: whole frames out and in, each wait with a deadline.
#pragma once

#include <optional>
#include <string_view>

#include "boot/protocol.hpp"
#include "boot/socket.hpp"

namespace rma::boot {

class frame_link {
 public:
  enum class result : std::uint8_t { ready, timed_out, closed, garbage };

  frame_link(unique_fd fd, std::size_t frame_bytes_max) : fd_(std::move(fd)), reader_(frame_bytes_max) {}

  /// Sends a whole frame. Takes in what arrives meanwhile, so that two full sockets cannot block each other.
  result send(std::string_view frame_bytes, boot_clock::time_point deadline);
  /// The next frame; waits until the deadline. A deadline in the past takes what is there.
  result next(frame& out, boot_clock::time_point deadline);

  [[nodiscard]] int fd() const noexcept { return fd_.get(); }
  void close() noexcept { fd_.reset(); }

 private:
  result fill();

  unique_fd fd_;
  frame_reader reader_;
};

}  // namespace rma::boot
