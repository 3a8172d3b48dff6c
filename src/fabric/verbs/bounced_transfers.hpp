// SPDX-License-Identifier: Apache-2.0
/// \file
/// Transfers larger than a buffer whose memory is not registered: they are copied through buffers, piece by piece.
/// Nothing else is posted to a connection that has one (connection::stages).
#pragma once

#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "fabric/verbs/local_memory.hpp"
#include "fabric/verbs/send_queues.hpp"

namespace rma::verbs {

class bounced_transfers {
 public:
  bounced_transfers(send_queues& queues, local_memory& memory) noexcept : queues_(queues), memory_(memory) {}

  [[nodiscard]] bool empty() const noexcept { return all_.empty(); }
  void add(connection& c, slices local, const send_request& o) noexcept;
  /// Posts as many pieces as there is room for.
  void go_on() noexcept;
  /// Called when the connection is broken: a transfer with pieces still to be posted ends like one with outstanding
  /// pieces, even if it has none.
  void stop(connection& c) noexcept;
  /// Completes an operation, or a piece of one of these transfers.
  void end(const completion_action& w, status result, fabric::sink& to) noexcept;

 private:
  struct bounced {
    connection* to;
    bool write;
    std::vector<fabric::local_slice> local;
    std::size_t slice = 0, offset = 0;  ///< start of the next piece
    std::uint64_t address;
    std::uint32_t key;
    std::uint64_t token;
    std::uint32_t under_way = 0;
    status result = status::done;
    [[nodiscard]] bool all_posted() const noexcept { return slice == local.size(); }
  };
  bool post_piece(std::uint64_t id, bounced& s) noexcept;
  void end_piece(std::uint64_t id, status result, fabric::sink& to) noexcept;

  send_queues& queues_;
  local_memory& memory_;
  std::unordered_map<std::uint64_t, bounced> all_;
  std::uint64_t next_ = 1;
};

}  // namespace rma::verbs
