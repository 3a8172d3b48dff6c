// SPDX-License-Identifier: Apache-2.0
/// \file
/// A rendezvous is made of steps. Each protocol (a file of its own) is two pure functions, of the sender and of the
/// receiver, from a state and an event to the next state and what to do; p2p/rendezvous.cpp carries it out.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/assert.hpp"
#include "fabric/fabric.hpp"

namespace rma::detail {

enum class rendezvous_state : std::uint8_t {
  begin,
  announced,  ///< sender: the receiver knows of the message
  asked,      ///< receiver: the sender knows of the buffer
  moving,     ///< the data are on their way, and this side has sent for them
  over,
  count_
};

enum class rendezvous_event : std::uint8_t {
  start,  ///< sender: no receive has asked for it yet. Receiver: it is posted, and its message has not been announced
  announced,  ///< receiver: it takes this message
  requested,  ///< sender: the receiver says where the data go
  moved,      ///< what this side has posted is over, and in its place
  changed,    ///< receiver: the last byte of the buffer is another one
  finished,   ///< the other side has made its part
  count_
};

/// A step's actions are done in this order.
namespace rendezvous_action {
inline constexpr std::uint32_t announce = 1;  ///< tell the receiver of the message, and where it is
inline constexpr std::uint32_t prepare = 2;   ///< give the last byte of the buffer a value by which its end is seen
inline constexpr std::uint32_t request = 4;   ///< tell the sender where the data go
inline constexpr std::uint32_t read = 8;      ///< post a read of the sender's memory
inline constexpr std::uint32_t write = 16;    ///< post a write to the receiver's memory
inline constexpr std::uint32_t stream = 32;   ///< send the data in messages
inline constexpr std::uint32_t poll = 64;     ///< look at the last byte from now on
inline constexpr std::uint32_t finish = 128;  ///< tell the other side, behind what was posted
inline constexpr std::uint32_t finish_if_unseen = 256;  ///< the same, if the last byte cannot tell it
inline constexpr std::uint32_t end = 512;               ///< the operation is over
inline constexpr std::uint32_t gather =
    1024;  ///< send lists of the buffer's pieces, as many as the receiver has posted
inline constexpr std::uint32_t scatter = 2048;  ///< post receives for the buffer's pieces, and tell the sender how many
}  // namespace rendezvous_action

struct rendezvous_step_result {
  rendezvous_state next;
  std::uint32_t actions;
};

/// Messages name a protocol by number.
enum class rendezvous_kind : std::uint8_t { stream, rput, getcqe, get, putnr, put, sgrs, count_ };

struct rendezvous_protocol {
  rendezvous_kind kind;
  std::string_view name;    ///< in settings, traces and documents
  bool reads;               ///< the receiver reads the sender's memory, which is exposed for that
  bool writes;              ///< the sender writes to the receiver's
  bool receiver_initiates;  ///< a receive with one source asks before the message is announced
  bool polls;               ///< the receiver looks at the last byte of its buffer
  /// Why it cannot be had on a fabric; null if it can.
  const char* (*refuses)(const fabric::capabilities& of) noexcept;
  rendezvous_step_result (*sender)(rendezvous_state now, rendezvous_event event) noexcept;
  rendezvous_step_result (*receiver)(rendezvous_state now, rendezvous_event event) noexcept;
};

/// An event that the state does not know: nothing happens.
constexpr rendezvous_step_result stay(rendezvous_state now) noexcept { return {now, 0}; }

/// Every protocol keeps to this: a step leads to a later state, ends the operation exactly where it comes to `over`,
/// and posts one thing at most.
constexpr bool is_sound(rendezvous_state now, const rendezvous_step_result& step) noexcept {
  using namespace rendezvous_action;
  if (step.next == now) return step.actions == 0;
  const std::uint32_t posted = step.actions & (read | write | stream | gather | scatter);
  return now < step.next && (step.next == rendezvous_state::over) == ((step.actions & end) != 0) &&
         (posted & (posted - 1)) == 0;
}

}  // namespace rma::detail
