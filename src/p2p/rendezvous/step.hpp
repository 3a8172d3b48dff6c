// SPDX-License-Identifier: Apache-2.0
/// \file
/// The steps of rendezvous protocols. Each protocol (a file of its own) is two pure functions, of the sender and of the
/// receiver, from a state and an event to the next state and the actions; p2p/rendezvous.cpp carries them out.
#pragma once

#include <cstdint>
#include <string_view>

#include "core/assert.hpp"
#include "fabric/fabric.hpp"

namespace rma::detail {

enum class rendezvous_state : std::uint8_t {
  begin,
  announced,  ///< sender: the message is announced to the receiver
  asked,      ///< receiver: the buffer is known to the sender
  moving,     ///< the data are being transferred, by an operation of this side
  over,
  count_
};

enum class rendezvous_event : std::uint8_t {
  start,  ///< sender: no receive has requested it yet. Receiver: it is posted, and its message has not been announced
  announced,  ///< receiver: it matches this message
  requested,  ///< sender: the receiver has sent the address of its buffer
  moved,      ///< the transfer that this side posted is complete, and the data are in place
  changed,    ///< receiver: the last byte of the buffer has changed
  finished,   ///< the other side has completed its part
  count_
};

/// The actions of a step are carried out in this order.
namespace rendezvous_action {
inline constexpr std::uint32_t announce = 1;  ///< announce the message to the receiver, with its address
inline constexpr std::uint32_t prepare = 2;   ///< give the last byte of the buffer a value by which the end is detected
inline constexpr std::uint32_t request = 4;   ///< send the address of the buffer to the sender
inline constexpr std::uint32_t read = 8;      ///< post a read of the sender's memory
inline constexpr std::uint32_t write = 16;    ///< post a write to the receiver's memory
inline constexpr std::uint32_t stream = 32;   ///< send the data in messages
inline constexpr std::uint32_t poll = 64;     ///< poll the last byte from now on
inline constexpr std::uint32_t finish = 128;  ///< send a finished message to the other side, behind the posted transfer
inline constexpr std::uint32_t finish_if_unseen = 256;  ///< the same, if the last byte cannot show the end
inline constexpr std::uint32_t end = 512;               ///< the operation is complete
inline constexpr std::uint32_t gather =
    1024;  ///< send lists of the buffer's pieces, as many as the receiver has posted
inline constexpr std::uint32_t scatter = 2048;  ///< post receives for the buffer's pieces, and send their number
}  // namespace rendezvous_action

struct rendezvous_step_result {
  rendezvous_state next;
  std::uint32_t actions;
};

/// The numbers of the protocols in messages.
enum class rendezvous_kind : std::uint8_t { stream, rput, getcqe, get, putnr, put, sgrs, count_ };

struct rendezvous_protocol {
  rendezvous_kind kind;
  std::string_view name;    ///< in settings, traces and documents
  bool reads;               ///< the receiver reads the sender's memory, which is exposed for it
  bool writes;              ///< the sender writes to the receiver's memory
  bool receiver_initiates;  ///< a receive with one source sends a request before the message is announced
  bool polls;               ///< the receiver polls the last byte of its buffer
  /// The reason why a fabric does not support the protocol; null if it does.
  const char* (*refuses)(const fabric::capabilities& of) noexcept;
  rendezvous_step_result (*sender)(rendezvous_state now, rendezvous_event event) noexcept;
  rendezvous_step_result (*receiver)(rendezvous_state now, rendezvous_event event) noexcept;
};

/// The step of an event that the state does not handle: nothing happens.
constexpr rendezvous_step_result unchanged(rendezvous_state now) noexcept { return {now, 0}; }

/// An invariant of every protocol: a step leads to a later state, ends the operation exactly when it reaches `over`,
/// and posts at most one transfer.
constexpr bool is_sound(rendezvous_state now, const rendezvous_step_result& step) noexcept {
  using namespace rendezvous_action;
  if (step.next == now) return step.actions == 0;
  const std::uint32_t posted = step.actions & (read | write | stream | gather | scatter);
  return now < step.next && (step.next == rendezvous_state::over) == ((step.actions & end) != 0) &&
         (posted & (posted - 1)) == 0;
}

}  // namespace rma::detail
