// SPDX-License-Identifier: Apache-2.0
/// \file
/// One word of a target's window_block that locks of the network live in, and its atomics, each waited for.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sync/lock_network.hpp"
#include "xfer/window_core.hpp"

namespace rma::detail {

/// As the fabric reaches it. On the fabric between nodes the ranks of this node and this rank itself take the same way
/// as everybody: one owner of its atomicity.
class remote_word {
 public:
  /// `in_block`: where in the target's window_block.
  remote_word(window_core& w, int target, std::size_t in_block) noexcept;
  /// One remote atomic; `old` is what it found.
  status ask(const network_request& r, std::uint64_t& old) noexcept;
  /// An add that must be done, or the others would wait for ever.
  status add(std::uint64_t operand, std::uint64_t& old) noexcept;
  /// The same in two halves, so that several targets' are under way at once. Null: nothing happened.
  operation_record* start_add(std::uint64_t operand) noexcept;
  status finish_add(operation_record* op, std::uint64_t operand, std::uint64_t& old) noexcept;

 private:
  window_core& w_;
  int rank_;
  fabric::network* wide_ = nullptr;
  fabric::region_key region_;
  std::uint64_t address_ = 0;
  status result_ = status::done;
};

}  // namespace rma::detail
