// SPDX-License-Identifier: Apache-2.0
/// \file
/// The server keeps these per connection and per round. Private to server*.cpp.
#pragma once

#include <string>
#include <vector>

#include "boot/digest.hpp"
#include "boot/protocol.hpp"
#include "boot/server.hpp"

namespace rma::boot {

struct server::connection {
  enum class phase : std::uint8_t {
    expects_hello,  ///< a stranger
    expects_proof,  ///< a stranger
    member,         ///< takes part in a round
    parting,        ///< left or refused: what is queued still goes out, nothing more is read
  };

  explicit connection(unique_fd socket, boot_clock::time_point until)
      : fd(std::move(socket)), in(stranger_frame_bytes_max), deadline(until) {}

  [[nodiscard]] bool stranger() const noexcept { return now == phase::expects_hello || now == phase::expects_proof; }
  [[nodiscard]] bool has_output() const noexcept { return out_at < out.size(); }

  unique_fd fd;
  frame_reader in;
  std::string out;
  std::size_t out_at = 0;
  phase now = phase::expects_hello;
  bool doomed = false;              ///< to be closed at the end of this turn
  boot_clock::time_point deadline;  ///< for all but members
  transcript seen;
  int rank = -1;
  std::size_t round_number = 0;
};

struct server::seated_round {
  explicit seated_round(int size)
      : members(static_cast<std::size_t>(size), nullptr), logic(size, [this](int rank, const std::string& bytes) {
          if (connection* at = members[static_cast<std::size_t>(rank)]; at != nullptr) at->out += bytes;
        }) {}
  seated_round(const seated_round&) = delete;
  seated_round& operator=(const seated_round&) = delete;

  std::vector<connection*> members;  ///< by rank; null if it is not here
  round logic;
  boot_clock::time_point tell_at = boot_clock::time_point::max();  ///< when it has departures
};

}  // namespace rma::boot
