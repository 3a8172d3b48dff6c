// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedules: a collective as a value. Each rank has a schedule of its own, a list of rounds; Team::start runs it.
///
///   rma::Schedule ring;                      // one step of a ring: sends a value, adds the received one
///   ring.copy(input(), output(), 8).send(output(), 8, right).recv(scratch(), 8, left).round();
///   ring.combine(scratch(), output(), 8);
///   team.start(ring, std::span(in), std::span(out), rma::sum).wait();
///
/// Steps name places in an input, an output and a scratch buffer, not addresses, so that a schedule can be started any
/// number of times, with any buffers. Messages between two ranks match in the order of their steps.
///
/// Shape      local: building, printing and checking need no other rank
/// Completes  when it returns
/// Memory     none
/// Units      bytes; ranks are those of the team on which it is started
/// Errors     none while it is built; `check` lists the errors in the schedules of all ranks, Team::start throws
/// Threads    a value: one thread at a time, or any number of readers
/// Cost       32 bytes a step
/// Source     Hoefler and Lumsdaine, Optimizing non-blocking collective operations for InfiniBand, 2008
/// See        src/coll/schedule.cpp · src/coll/check.cpp · tests/coll/schedule_test.cpp
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#pragma GCC visibility push(default)

namespace rma {

/// The rounds of steps of one member. See the top of this file.
class Schedule {
 public:
  /// The buffers of a schedule: the call's input, its output, and scratch memory.
  enum class Buffer : std::uint8_t { input, output, scratch };

  /// A place in one of the buffers.
  struct Place {
    Buffer buffer = Buffer::input;  ///< the buffer
    std::size_t offset = 0;         ///< bytes from its beginning
    /// The place `bytes` further in the same buffer.
    [[nodiscard]] constexpr Place operator+(std::size_t bytes) const noexcept { return {buffer, offset + bytes}; }
  };

  /// Kind of a step.
  enum class Action : std::uint8_t {
    send,            ///< `bytes` at `from` to `peer`
    recv,            ///< `bytes` from `peer` into `into`
    copy,            ///< `from` to `into`
    combine,         ///< into = into op from
    combine_before,  ///< into = from op into: `from` combines data of ranks before those of `into`
    put,             ///< `bytes` at `from` into `into` of the peer's buffers
    put_signal,      ///< as put; then the peer's wait_signal for this rank ends
    wait_signal,     ///< the round ends when the put_signal of `peer` has arrived
    round            ///< all steps before it end before any step after it starts
  };

  /// One step.
  struct Step {
    Action action = Action::round;       ///< kind of the step
    Buffer from_buffer = Buffer::input;  ///< buffer of the source
    Buffer into_buffer = Buffer::input;  ///< buffer of the destination
    std::int32_t peer = -1;              ///< the other member
    std::size_t bytes = 0;               ///< length of the data
    std::size_t from_offset = 0;         ///< offset in from_buffer
    std::size_t into_offset = 0;         ///< offset in into_buffer
    /// The source of the data.
    [[nodiscard]] constexpr Place from() const noexcept { return {from_buffer, from_offset}; }
    /// The destination of the data.
    [[nodiscard]] constexpr Place into() const noexcept { return {into_buffer, into_offset}; }
  };

  // Within a round steps begin in order: a send sees the results of the copies and combinations before it. A receive's
  // data are available, and a send's bytes may be overwritten, only at the end of the round.
  /// Sends to a member.
  Schedule& send(Place from, std::size_t bytes, int to) { return add(Action::send, from, {}, bytes, to); }
  /// Receives from a member.
  Schedule& recv(Place into, std::size_t bytes, int from) { return add(Action::recv, {}, into, bytes, from); }
  /// Copies between buffers of this member.
  Schedule& copy(Place from, Place into, std::size_t bytes) { return add(Action::copy, from, into, bytes, -1); }
  /// into = into op from, element by element.
  Schedule& combine(Place from, Place into, std::size_t bytes) { return add(Action::combine, from, into, bytes, -1); }
  /// into = from op into, element by element.
  Schedule& combine_before(Place from, Place into, std::size_t bytes) {
    return add(Action::combine_before, from, into, bytes, -1);
  }
  /// Writes to a place in a member's buffer.
  Schedule& put(Place from, Place at_peer, std::size_t bytes, int to) {
    return add(Action::put, from, at_peer, bytes, to);
  }
  /// As `put`, and the member can wait for the data.
  Schedule& put_signal(Place from, Place at_peer, std::size_t bytes, int to) {
    return add(Action::put_signal, from, at_peer, bytes, to);
  }
  /// Waits for a put_signal from that member.
  Schedule& wait_signal(int from) { return add(Action::wait_signal, {}, {}, 0, from); }
  /// Ends a round: later steps begin when all earlier ones are complete.
  Schedule& round() {
    if (!steps_.empty() && steps_.back().action != Action::round) add(Action::round, {}, {}, 0, -1);
    return *this;
  }

  /// All steps, in the order in which they were added.
  [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
  /// Bytes of a buffer that this member uses: the size that a caller has to give, or that of the scratch memory.
  [[nodiscard]] std::size_t bytes_of(Buffer buffer) const noexcept {
    return extents_[static_cast<std::size_t>(buffer)];
  }
  /// Number of messages that this rank sends.
  [[nodiscard]] std::size_t messages() const noexcept;
  [[nodiscard]] std::size_t rounds() const noexcept;
  /// A readable text of one line for each step.
  [[nodiscard]] std::string text() const;
  void clear() noexcept {
    steps_.clear();
    extents_[0] = extents_[1] = extents_[2] = 0;
  }

 private:
  Schedule& add(Action action, Place from, Place into, std::size_t bytes, int peer);

  std::vector<Step> steps_;
  std::size_t extents_[3] = {};
};
static_assert(sizeof(Schedule::Step) == 32);

/// Places in a schedule's buffers.
[[nodiscard]] constexpr Schedule::Place input(std::size_t offset = 0) noexcept {
  return {Schedule::Buffer::input, offset};
}
[[nodiscard]] constexpr Schedule::Place output(std::size_t offset = 0) noexcept {
  return {Schedule::Buffer::output, offset};
}
[[nodiscard]] constexpr Schedule::Place scratch(std::size_t offset = 0) noexcept {
  return {Schedule::Buffer::scratch, offset};
}

/// The condition that `check` also tests for each rank's output.
enum class Written : std::uint8_t {
  anyhow,         ///< nothing
  at_least_once,  ///< every byte is written
  once            ///< every byte is written exactly once
};

/// Lists the errors in the schedules of a team's ranks, rank 0's first; empty if they are correct. It finds sends
/// without a receive and receives without a send, sizes that differ, invalid ranks, rounds that wait for each other in
/// a cycle (a send ends when it is received: no schedule may rely on buffers between ranks), bytes that are written
/// while they are sent or received, and outputs that are not written as `demand` requires. `output_bytes` gives the
/// size of each rank's output; empty: the bytes that its schedule uses.
[[nodiscard]] std::vector<std::string> check(std::span<const Schedule> ranks, Written demand = Written::anyhow,
                                             std::span<const std::size_t> output_bytes = {});

}  // namespace rma

#pragma GCC visibility pop
