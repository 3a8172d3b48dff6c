// SPDX-License-Identifier: Apache-2.0
/// \file
/// Schedules: a collective as a value. Each rank has one of its own, a list of rounds; Team::start runs it.
///
///   rma::Schedule ring;                                      // one step of a ring, with what came added to what is
///   here ring.copy(input(), output(), 8); ring.send(output(), 8, right).recv(scratch(), 8, left);  // both are under
///   way ring.round();                                            // and over here ring.combine(scratch(), output(),
///   8); team.start(ring, std::span(in), std::span(out), rma::sum).wait();
///
/// Steps name places in an input, an output and a scratch buffer, not addresses: a schedule that has been built once
/// is started again and again, with whatever buffers. Messages between two ranks match in the order of their steps.
///
/// Shape      local: building, printing and checking need no other rank
/// Completes  when it returns
/// Memory     none
/// Units      bytes; ranks are those of the team that it is started on
/// Errors     none while it is built; `check` lists what is wrong with the schedules of all ranks, Team::start throws
/// Threads    a value: one thread at a time, or any number that only read
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

/// Rounds of steps that one member carries out. See the top of this file.
class Schedule {
 public:
  /// Memory that a schedule works on: what the call is given, what it returns, and memory of its own.
  enum class Buffer : std::uint8_t { input, output, scratch };

  /// A place in one of the buffers.
  struct Place {
    Buffer buffer = Buffer::input;  ///< which one
    std::size_t offset = 0;         ///< bytes from its beginning
    /// So many bytes further on.
    [[nodiscard]] constexpr Place operator+(std::size_t bytes) const noexcept { return {buffer, offset + bytes}; }
  };

  /// Kind of a step.
  enum class Action : std::uint8_t {
    send,            ///< `bytes` at `from` to `peer`
    recv,            ///< `bytes` from `peer` into `into`
    copy,            ///< `from` to `into`
    combine,         ///< into = into op from
    combine_before,  ///< into = from op into: what is at `from` belongs to ranks before those of `into`
    put,             ///< `bytes` at `from` into `into` of the peer's buffers
    put_signal,      ///< the same, and the peer's wait_signal for this rank ends when the bytes are there
    wait_signal,     ///< the round ends when `peer` has signalled
    round            ///< what is above ends before anything below starts
  };

  /// One step.
  struct Step {
    Action action = Action::round;       ///< what is done
    Buffer from_buffer = Buffer::input;  ///< where the data are
    Buffer into_buffer = Buffer::input;  ///< where they go
    std::int32_t peer = -1;              ///< the other member
    std::size_t bytes = 0;               ///< how many
    std::size_t from_offset = 0;         ///< in from_buffer
    std::size_t into_offset = 0;         ///< in into_buffer
    /// Where the data are.
    [[nodiscard]] constexpr Place from() const noexcept { return {from_buffer, from_offset}; }
    /// Where they go.
    [[nodiscard]] constexpr Place into() const noexcept { return {into_buffer, into_offset}; }
  };

  // Within a round steps begin in their order: a send sees what copies and combinations above it have written. What a
  // receive brings, and the end of a send (its bytes may be overwritten), come with the round's end.
  /// Sends to a member.
  Schedule& send(Place from, std::size_t bytes, int to) { return add(Action::send, from, {}, bytes, to); }
  /// Receives from a member.
  Schedule& recv(Place into, std::size_t bytes, int from) { return add(Action::recv, {}, into, bytes, from); }
  /// Copies here.
  Schedule& copy(Place from, Place into, std::size_t bytes) { return add(Action::copy, from, into, bytes, -1); }
  /// into = into op from, element by element.
  Schedule& combine(Place from, Place into, std::size_t bytes) { return add(Action::combine, from, into, bytes, -1); }
  /// into = from op into, element by element.
  Schedule& combine_before(Place from, Place into, std::size_t bytes) {
    return add(Action::combine_before, from, into, bytes, -1);
  }
  /// Writes to a place of a member's buffer.
  Schedule& put(Place from, Place at_peer, std::size_t bytes, int to) {
    return add(Action::put, from, at_peer, bytes, to);
  }
  /// As `put`, and the member can wait for it.
  Schedule& put_signal(Place from, Place at_peer, std::size_t bytes, int to) {
    return add(Action::put_signal, from, at_peer, bytes, to);
  }
  /// Waits for a put_signal of that member.
  Schedule& wait_signal(int from) { return add(Action::wait_signal, {}, {}, 0, from); }
  /// Ends a round: what follows begins when all before is complete.
  Schedule& round() {
    if (!steps_.empty() && steps_.back().action != Action::round) add(Action::round, {}, {}, 0, -1);
    return *this;
  }

  /// All steps, in the order in which they were added.
  [[nodiscard]] std::span<const Step> steps() const noexcept { return steps_; }
  /// How much of a buffer is touched here: what a caller has to bring, and how much scratch memory is taken.
  [[nodiscard]] std::size_t bytes_of(Buffer buffer) const noexcept {
    return extents_[static_cast<std::size_t>(buffer)];
  }
  /// Messages that this rank sends.
  [[nodiscard]] std::size_t messages() const noexcept;
  [[nodiscard]] std::size_t rounds() const noexcept;
  /// One line for each step, for people.
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

/// `check` demands this of each rank's output beside what holds for all schedules.
enum class Written : std::uint8_t {
  anyhow,         ///< nothing
  at_least_once,  ///< every byte
  once            ///< every byte, and none twice
};

/// Says what is wrong with the schedules of a team, rank 0's first; nothing if they are right. Found are sends without
/// a receive and the other way round, sizes that differ, ranks that are none, a round that waits for itself (sends end
/// when they are received: no schedule may count on buffers between ranks), bytes that are written while they are sent
/// or received, and outputs that are not written as `demand` says. `output_bytes`: of each rank; empty: as far as it is
/// touched.
[[nodiscard]] std::vector<std::string> check(std::span<const Schedule> ranks, Written demand = Written::anyhow,
                                             std::span<const std::size_t> output_bytes = {});

}  // namespace rma

#pragma GCC visibility pop
