// SPDX-License-Identifier: Apache-2.0
/// \file
/// A read or write between a local buffer and memory that the other side has exposed, in as many pieces as the fabric
/// needs.
#pragma once

#include <boost/intrusive/list.hpp>
#include <cstddef>
#include <cstdint>
#include <list>

#include "core/assert.hpp"
#include "fabric/fabric.hpp"
#include "p2p/operation.hpp"

namespace rma::detail {

class messenger;

/// A transfer outlives its operation while the fabric may use its record. The buffer of an operation that has ended is
/// not accessed any more, since the other rank is dead then, and the fabric has dropped its operations.
struct transfer : fabric::completion {
  messenger* owner = nullptr;
  message_operation* op = nullptr;  ///< null: the operation has ended
  fabric::network* network = nullptr;
  int peer = -1;
  bool write = false;
  bool confirming = false;  ///< a read after the writes makes sure that they are in memory
  std::uint32_t pending = 0;
  status result = status::done;
  fabric::region_key remote{};
  std::byte* local = nullptr;
  std::size_t bytes = 0;
  std::size_t posted = 0;
  std::byte confirmed{};
  transfer* next_free = nullptr;
  bool in_a_line = false;
  unsigned attempts = 0;
  boost::intrusive::list_member_hook<boost::intrusive::link_mode<boost::intrusive::normal_link>> in_queue;

  using line =
      boost::intrusive::list<transfer, boost::intrusive::member_hook<transfer, decltype(in_queue), &transfer::in_queue>,
                             boost::intrusive::constant_time_size<false>>;

  /// Posts as much as there is room for. Returns true if all is posted, or nothing more will be.
  bool post() noexcept;
  [[nodiscard]] bool is_over() const noexcept { return pending == 0 && (posted == bytes || result != status::done); }
  /// Posts a read behind the writes where written data may not be in memory yet, so that a message sent now could
  /// overtake them. Returns true if the caller must wait for the read.
  bool confirm() noexcept;
};

/// A free list that grows to the largest number of transfers pending at once.
class transfer_pool {
 public:
  transfer& take() {
    if (free_ == nullptr) free_ = &all_.emplace_back();
    transfer& t = *free_;
    free_ = t.next_free;
    RMA_ASSERT(t.op == nullptr && !t.in_a_line);
    t.confirming = false;
    t.attempts = 0;
    t.pending = 0;
    t.result = status::done;
    t.posted = 0;
    return t;
  }
  void give_back(transfer& t) noexcept {
    RMA_ASSERT(t.op == nullptr && !t.in_a_line && t.pending == 0);
    t.next_free = free_;
    free_ = &t;
  }

 private:
  std::list<transfer> all_;
  transfer* free_ = nullptr;
};

}  // namespace rma::detail
