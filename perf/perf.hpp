// SPDX-License-Identifier: Apache-2.0
/// \file
/// The base of every benchmark, ours and the peers': options, samples, a session that times points and reports them.
///
/// One line per point: metric, fabric, ranks, bytes, median, MAD, min, max, unit, runs. Nothing here knows the
/// library that is measured; it is reached through `job`, outside the timed parts only.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace perf {

/// The command line.
struct options {
  std::vector<std::size_t> bytes{};  ///< sizes to measure; empty: all that the program has
  std::uint64_t iterations = 0;      ///< per run; 0: as many as fill run_ms
  double run_ms = 10;
  int runs = 9;
  std::string json{};
  std::string metric{};  ///< regular expression; empty: all
  std::string fabric{};  ///< name to report; empty: what the job says
  bool pin = true;
  bool typical = false;  ///< a run's value is the median of its iterations, each timed by itself, not their mean
  bool in_turn = false;  ///< rank 0 says so before each run and waits for a line of its input: another job has its turn
};

/// Thrown where a program should end with this status and no further word.
struct exit_now {
  int status;
};

/// Reads the command line. `quiet`: another rank prints help and complaints.
/// Errors     throws exit_now for --help and for what it does not understand
options parse(int argc, char** argv, const char* summary, bool quiet);

/// Numbers, and what is said about them.
class samples {
 public:
  void add(double value) { values_.push_back(value); }
  [[nodiscard]] double median() const;
  /// Median of the absolute deviations from the median.
  [[nodiscard]] double mad() const;
  [[nodiscard]] double min() const;
  [[nodiscard]] double max() const;
  [[nodiscard]] std::size_t size() const noexcept { return values_.size(); }
  [[nodiscard]] const std::vector<double>& all() const noexcept { return values_; }

 private:
  std::vector<double> values_{};
};

/// ns per operation; million operations, 10^9 bytes, 10^9 updates per second.
enum class unit : std::uint8_t { ns, mops, gbs, gups };

/// A quantity to be measured.
struct point {
  std::string metric;
  std::size_t bytes = 0;
  unit in = unit::ns;
  double per_iteration = 1;  ///< operations (of all ranks) in one iteration of the body
};

/// How the harness reaches the library under test.
struct job {
  int rank = 0;
  int size = 1;
  std::string fabric{};
  std::function<void()> barrier{};
  std::function<std::uint64_t(std::uint64_t)> from_first{};  ///< everyone gets rank 0's value
  std::function<double(double)> highest{};                   ///< everyone gets the highest value
  std::function<std::chrono::nanoseconds()> now{};
  bool virtual_time = false;      ///< a simulated job: only `now` tells its time
  std::uint64_t* line = nullptr;  ///< a word that ranks 0 and 1 map, alone on its cache line; null: no such thing
};

/// The results of a probe of the machine; 0 where it could not look.
struct machine_state {
  double line_ns = 0;     ///< a cache line from rank 0's core to rank 1's
  double memcpy_gbs = 0;  ///< 64 KiB, private to private
};

/// Runs `iterations` iterations of what is measured.
using body = std::function<void(std::uint64_t iterations)>;

/// Times points and reports them. Every rank makes the same calls in the same order.
class session {
 public:
  session(options chosen, job with, std::string program);
  session(const session&) = delete;
  session& operator=(const session&) = delete;

  /// True if the command line asks for this point; the measuring calls below ask it themselves.
  [[nodiscard]] bool wants(std::string_view metric, std::size_t bytes = 0) const;

  /// Rank 0 runs the body, the others sit in a barrier meanwhile.
  void origin(const point& what, const body& run) { origin(what, run, {}, {}); }
  /// The same, but the others run `meanwhile`, which must return after rank 0 has called `release`.
  void origin(const point& what, const body& run, const std::function<void()>& meanwhile,
              const std::function<void()>& release);
  /// All ranks run the body; rank 0's time counts.
  void everyone(const point& what, const body& run);

  /// The last words: state of the machine, the JSON file.
  void finish();

  [[nodiscard]] const options& chosen() const noexcept { return options_; }
  [[nodiscard]] const job& with() const noexcept { return job_; }

 private:
  struct result {
    point what;
    samples values;
    std::uint64_t iterations;
    double line_ns_before, line_ns_after;
    std::vector<double> paces_ns{};  ///< pace of each run: the slower of before and after it, on its slowest core
  };
  double time(const body& run, std::uint64_t iterations) const;
  double time_each(const body& run, std::uint64_t iterations) const;
  std::uint64_t calibrate(const body& run, bool together) const;
  std::uint64_t raised(std::uint64_t iterations, double took_ns, bool together) const;
  void take(result& into, const body& run, bool together) const;
  void await_turn(const point& what) const;
  [[nodiscard]] machine_state probe() const;
  [[nodiscard]] double probe_line() const;
  [[nodiscard]] double probe_pace(bool together) const;
  void report(const result& of);
  void write_json(const machine_state& after) const;

  options options_;
  job job_;
  std::string program_;
  std::regex metric_;
  machine_state before_;
  std::vector<result> results_{};
};

/// Checks a payload, outside timed parts; stays in release builds.
/// Errors     throws std::runtime_error
void require(bool holds, std::string_view what);

/// Binds this process to the `rank`-th of the cores that it may use, so that ranks do not share or change them. Does
/// nothing where there are fewer cores than ranks: that is for the scheduler.
void pin(int rank, int ranks);

/// The compiler must take `value` for used, and memory for changed.
template <class T>
inline void keep(const T& value) noexcept {
  __asm__ __volatile__("" : : "r,m"(value) : "memory");
}

std::string_view name_of(unit in) noexcept;

}  // namespace perf
