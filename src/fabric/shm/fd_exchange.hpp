// SPDX-License-Identifier: Apache-2.0
/// \file
/// Passes one file descriptor from one rank of a node to the others, over a Unix socket without a name in the file
/// system. A receiver must have the same user and the token, which only members of the job can read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "boot/boot.hpp"

namespace rma::shm {

/// The owner's mapping of the descriptor, for ranks that are threads of the same process.
struct mapping_owner {
  std::uint64_t pid = 0;
  std::uint64_t base = 0;
  std::uint64_t total_bytes = 0;
};
static_assert(std::has_unique_object_representations_v<mapping_owner>, "padding would be sent uninitialized");

/// The sending side.
class fd_offer {
 public:
  fd_offer(int fd, mapping_owner owner);
  ~fd_offer();
  fd_offer(const fd_offer&) = delete;
  fd_offer& operator=(const fd_offer&) = delete;

  /// The text that the others need: socket name and token.
  [[nodiscard]] const std::string& invitation() const noexcept { return invitation_; }
  /// Serves until `count` ranks have the descriptor. Strangers and silent callers do not delay it. Throws Error on
  /// death or time-out.
  void serve(std::size_t count, boot::client& boot, int timeout_ms);

 private:
  int fd_;
  int listener_ = -1;
  mapping_owner owner_;
  std::string token_;
  std::string invitation_;
};

struct accepted_fd {
  int fd = -1;
  mapping_owner owner;
};

/// The receiving side; rank `giver` has sent the invitation. Throws Error.
accepted_fd accept_fd(const std::string& invitation, boot::client& boot, int giver, int timeout_ms);

}  // namespace rma::shm
