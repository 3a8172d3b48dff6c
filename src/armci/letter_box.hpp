// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages between processes that have no MPI: each has a ring of slots in a window, which all others put into.
///
///   sender     ticket = fetch_and_add(tail); waits until its slot is free; puts the piece; says full, by a signal
///   receiver   takes full slots in the order of their tickets, keeps what it does not want yet, says free
///
/// A sender that waits takes what has come for itself meanwhile, so that two that send to each other go on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <vector>

#include "armci/job.hpp"

namespace rma::armci {

class letter_box {
 public:
  explicit letter_box(const Team& world);
  ~letter_box();
  void send(Runtime& runtime, int tag, const void* data, std::size_t bytes, int to);
  job::received receive(int tag, void* data, std::size_t room, int from);

 private:
  static constexpr std::uint64_t slots = 64;
  static constexpr std::size_t piece_bytes = 2016;
  struct slot {
    std::uint64_t state = 0;  ///< ticket: free for that one; ticket + 1: full
    std::uint64_t bytes = 0;  ///< of the whole message
    std::int32_t from = 0;
    std::int32_t tag = 0;
    std::uint32_t offset = 0;  ///< in pieces
    std::uint32_t length = 0;
    std::byte data[piece_bytes];
  };
  struct message {
    int from = -1;
    int tag = 0;
    std::size_t bytes = 0;
    std::vector<std::byte> data{};
  };
  static_assert(sizeof(slot) == 2048);

  static std::size_t place_of(std::uint64_t ticket) noexcept { return 64 + (ticket % slots) * sizeof(slot); }
  /// Takes the slot at the head if it is full.
  bool take();
  void await_piece(int from);

  Window<std::byte> ring_;  ///< the tail, then the slots
  int me_;
  std::uint64_t head_ = 0;
  std::uint64_t signals_ahead_ = 0;      ///< taken before their slots
  std::list<message> here_{};            ///< complete, in the order in which they came
  std::map<int, message> incomplete_{};  ///< by sender
};

}  // namespace rma::armci
