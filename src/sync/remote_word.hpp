// SPDX-License-Identifier: Apache-2.0
/// \file
/// One word of a target's window_block that locks of the network live in, and its atomics.
#pragma once

#include <cstddef>
#include <cstdint>

#include "sync/lock_network.hpp"
#include "window/window_core.hpp"

namespace rma::detail {

/// As the fabric reaches it. On the fabric between nodes the ranks of this node and this rank itself take the same way
/// as everybody: one owner of its atomicity.
class remote_word {
 public:
  /// `in_block`: where in the target's window_block.
  remote_word(window_core& w, int target, std::size_t in_block) noexcept;
  /// One remote atomic; `old` is what it found.
  status request(const network_request& r, std::uint64_t& old) noexcept;
  /// The same without waiting: begins it, or takes its answer. `posted`: that is not there yet, or there is no room;
  /// the same request is to be asked again. `must`: as `add`.
  status ask_soon(const network_request& r, bool must, std::uint64_t& old) noexcept;
  /// The request that ask_soon has begun is under way.
  [[nodiscard]] bool asks() const noexcept { return asked_ != nullptr; }
  /// Its answer has come.
  [[nodiscard]] bool is_answered() const noexcept { return asked_ != nullptr && asked_->over.load() != 0; }
  /// Waits for its answer.
  status await_answer(bool must, const network_request& r, std::uint64_t& old) noexcept;
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
  operation_record* asked_ = nullptr;
  unsigned failures_ = 0;
};

/// How long a contender pauses now that should do so for `time_ns`: uniform in [t/2, t]. Counts the pause.
std::int64_t pause_of_contender(window_core& w, std::int64_t time_ns) noexcept;

}  // namespace rma::detail
