// SPDX-License-Identifier: Apache-2.0
/// \file
/// The node behind a user's MessageRequest: a send or a receive, in memory that is reused.
#pragma once

#include <atomic>
#include <cstddef>
#include <list>
#include <memory>
#include <string>

#include "core/assert.hpp"
#include "p2p/operation.hpp"
#include "rma/detail/message_ops.hpp"
#include "rma/layout.hpp"
#include "xfer/awaited.hpp"

namespace rma::detail {

struct team_core;

class message_nodes;

/// Also the object behind a Request that was made of a MessageRequest.
struct message_node final : awaited {
  struct send_part : send_operation {
    message_node* node = nullptr;
  };
  struct receive_part : receive_operation {
    message_node* node = nullptr;
  };

  send_part send;
  receive_part receive;  ///< one of the two is in use
  message_nodes* of = nullptr;
  bool is_send = false;
  bool detached = false;   ///< dropped by its user: freed at its end
  bool buffered = false;   ///< its data are in `copy`
  bool under_way = false;  ///< persistent: started, and its end has not been reported
  std::shared_ptr<team_core> team{};
  Layout layout{};                      ///< layout of the user's buffer
  std::unique_ptr<std::byte[]> copy{};  ///< kept for the next message
  std::size_t copy_bytes = 0;
  message_node* next_free = nullptr;
  Received* outcome_to = nullptr;  ///< result of a Request: receives source, tag and size

  [[nodiscard]] status state() noexcept override;
  [[nodiscard]] status failed() noexcept override;
  void give_up(status why) noexcept override;
  std::shared_ptr<void> release() noexcept override;
  [[nodiscard]] std::string describe(status ended, std::string& reason) const override;

  [[nodiscard]] message_operation& operation() noexcept {
    return is_send ? static_cast<message_operation&>(send) : receive;
  }
  [[nodiscard]] const message_operation& operation() const noexcept {
    return is_send ? static_cast<const message_operation&>(send) : receive;
  }
};

/// Guarded by the progress lock. Grows to the most that were in use at once.
class message_nodes {
 public:
  message_node& take() {
    if (free_ == nullptr) {
      free_ = &all_.emplace_back();
      free_->of = this;
      free_->send.node = free_->receive.node = free_;
    }
    message_node& n = *free_;
    free_ = n.next_free;
    RMA_ASSERT(n.of == this && n.send.id == 0 && n.receive.id == 0);
    return n;
  }
  void give_back(message_node& n) noexcept {
    RMA_ASSERT(n.of == this && free_ != &n);
    RMA_ASSERT(n.operation().ended.load() != 0);
    n.next_free = free_;
    free_ = &n;
  }
  std::size_t copied_bytes_max = 0;             ///< limit of sends that are copied, so that the call does not wait
  std::atomic<std::size_t> detached_sends = 0;  ///< pending ones, for which the end of the runtime waits

 private:
  std::list<message_node> all_;
  message_node* free_ = nullptr;
};

}  // namespace rma::detail
