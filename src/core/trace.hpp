// SPDX-License-Identifier: Apache-2.0
/// \file
/// The trace of one rank: a file in Chrome's and Perfetto's JSON format. One complete event per public call; and for
/// each operation that is pending when its call returns a pair of asynchronous events, from its issue to its end.
///
/// Times are those of the runtime's clock, so that the files of a node's ranks have a common time axis. If the process
/// is killed, at most the calls of its last 0.1 s in the library are missing, and the closing bracket, which the
/// viewers allow.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <string_view>

namespace rma::detail {

/// The event of one call.
struct trace_event {
  std::string_view call;
  std::string_view window;
  int target = -1;  ///< rank in the window's team; -1: the call has none
  std::uint64_t bytes = 0;
  std::string_view protocol;
  std::string_view why;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
};

/// The name with %r replaced by the rank; without %r the rank is appended: trace.json.3. Numbers from 2 on follow the
/// rank: trace.json.3.2.
std::string trace_file_name(std::string_view pattern, int rank, int number = 1);

/// All calls are safe from any thread.
class trace_file {
 public:
  /// Makes the first file of that name that this process has not written yet. Throws Error(bad_setting) if it cannot be
  /// made. `bytes_max`: what it may take; then it ends, and one line says so. `only`: names of calls, separated by
  /// commas; empty: all.
  trace_file(const std::string& pattern, int rank, std::uint64_t bytes_max = UINT64_MAX, std::string only = {});
  trace_file(const trace_file&) = delete;
  trace_file& operator=(const trace_file&) = delete;
  ~trace_file();

  void add(const trace_event& event) noexcept;
  /// An operation that may have overlapped others. `peer` is its target's rank in the world.
  void add_operation(const trace_event& operation, int peer) noexcept;
  /// A region that the program has named.
  void add_region(std::string_view name, std::int64_t begin_ns, std::int64_t end_ns) noexcept;
  /// One end of an arrow from a message's sender to its receiver; the other end is in the trace of another rank.
  struct arrow {
    int from = -1;
    int to = -1;
    std::uint64_t number = 0;  ///< number of the message between this pair
  };
  void add_arrow(const arrow& a, std::int64_t at_ns) noexcept;
  /// Signals from one rank of the world to another: raised by this rank, or taken by it.
  struct signals {
    std::uint64_t window = 0;
    int from = -1;
    int to = -1;
    unsigned signal = 0;
    auto operator<=>(const signals&) const = default;
  };
  /// The arrow's begin, from the call that raises it; the arrows of these signals are numbered from 1.
  void add_raise(const signals& s, std::int64_t at_ns) noexcept;
  /// The end of the arrow of the last of `count` signals that a wait takes.
  void add_take(const signals& s, std::uint64_t count, std::int64_t at_ns) noexcept;

 private:
  [[nodiscard]] bool leaves_out(std::string_view call) const noexcept;
  void add_signal_end(const signals& s, std::uint64_t number, bool begins, std::int64_t at_ns) noexcept;
  void write_if_due(std::int64_t end_ns) noexcept;
  void write() noexcept;

  std::mutex lock_;
  std::string buffer_;
  std::string name_;
  int rank_;
  int fd_;
  std::uint64_t bytes_left_;
  std::string only_;
  std::uint64_t operations_ = 0;             ///< number of operations in the trace
  std::map<signals, std::uint64_t> raised_;  ///< how many so far
  std::map<signals, std::uint64_t> taken_;   ///< the same
  std::int64_t written_ns_ = 0;              ///< end of the newest event in the file
};

}  // namespace rma::detail
