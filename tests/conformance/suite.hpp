// SPDX-License-Identifier: Apache-2.0
/// \file
/// The conformance suite's runner. A case is a function that every rank of a runtime runs; it uses the public API
/// only and keeps nothing in globals, so that the same case runs as a process per rank, as a thread per rank, and as
/// one of thousands of simulated ranks.
///
/// A case says what is wrong by `check`, `equal`, `expect` and `throws`, or by letting an exception out. After each
/// case the ranks combine what they found, so that all of them agree, and rank 0 prints one line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <random>
#include <regex>
#include <source_location>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include <rma/rma.hpp>

#include "../sanitizers.hpp"

namespace conformance {

/// The thread sanitizer does not know fences, so programs that are ordered by a flush and a word that is read again and
/// again look racy to it; the address sanitizer keeps freed memory for a while, so that a process grows.
using rma::test::address_sanitizer;
using rma::test::thread_sanitizer;

/// Ways to get a window; what holds for one must hold for all.
enum class window_kind : std::uint8_t { none, allocated, created, promoted, dynamic };
inline constexpr std::size_t window_kind_count = 5;
std::string_view name_of(window_kind kind) noexcept;

class context;

/// Kinds of windows that a case is run with, as a set of bits.
using kind_set = std::uint8_t;
constexpr kind_set only(window_kind kind) noexcept { return static_cast<kind_set>(1U << static_cast<unsigned>(kind)); }
inline constexpr kind_set no_kind = only(window_kind::none);
inline constexpr kind_set each_kind = only(window_kind::allocated) | only(window_kind::created) |
                                      only(window_kind::promoted) | only(window_kind::dynamic);

struct test_case {
  std::string_view name;
  void (*run)(context&);
  kind_set kinds = no_kind;  ///< once for each, with the kind behind the name: `put.value[created]`
  int ranks_min = 1;
  bool long_only = false;  ///< only with --long
};

struct options {
  std::string pattern = "";  ///< regular expression of the cases to run; empty: all
  std::uint64_t seed = 0;    ///< 0: rank 0 draws one
  unsigned effort_percent = 100;
  bool long_cases = false;
  bool one_kind = false;  ///< each case with one kind of window, which the seed chooses
  bool list = false;
  bool help = false;
  int threads = 0;  ///< ranks as threads of this process; 0: one rank, the launcher's
  std::vector<std::pair<std::string, std::string>> settings{};  ///< --set NAME=VALUE: for rma::Config
};

/// Thrown by context::skip.
struct skipped {
  std::string reason;
};

/// The arguments of a case.
class context {
 public:
  context(rma::Runtime& runtime, const rma::Team& team, const options& how, window_kind kind, std::uint64_t seed);

  [[nodiscard]] rma::Runtime& runtime() const noexcept { return *runtime_; }
  /// All ranks; a case's own handle, the runner uses another team.
  [[nodiscard]] rma::Team& world() noexcept { return world_; }
  [[nodiscard]] int rank() const noexcept { return world_.rank(); }
  [[nodiscard]] int size() const noexcept { return world_.size(); }
  [[nodiscard]] int right() const noexcept { return (rank() + 1) % size(); }
  [[nodiscard]] int left() const noexcept { return (rank() + size() - 1) % size(); }
  /// The kind that this run of a case is for.
  [[nodiscard]] window_kind kind() const noexcept { return kind_; }
  [[nodiscard]] std::uint64_t seed() const noexcept { return seed_; }
  /// Random numbers of this rank, and the same ones on all ranks.
  [[nodiscard]] std::mt19937_64& random() noexcept { return random_; }
  [[nodiscard]] std::mt19937_64& common_random() noexcept { return common_random_; }
  /// How often to repeat what is worth `normal` repetitions: fewer under sanitizers, with --effort, and when there
  /// are more ranks than processors.
  [[nodiscard]] std::size_t rounds(std::size_t normal) const noexcept;
  /// The same, but `least` of them: fewer only with an effort below 10 percent, in proportion.
  [[nodiscard]] std::size_t rounds(std::size_t normal, std::size_t least) const noexcept;
  /// For each entry of a table that a case goes through: whether to take it. All of them, but with an effort below 10
  /// percent a sample, in proportion, of the seed's. Every rank asks, and gets the same answer.
  [[nodiscard]] bool sampled() noexcept;
  /// False with an effort below 10 percent: a case may choose from its table itself.
  [[nodiscard]] bool thorough() const noexcept;
  /// True if ranks need not take turns on the processors.
  [[nodiscard]] bool processor_for_each() const noexcept;
  /// True if ranks are threads of one process: what belongs to a process (memory use) is then everybody's.
  [[nodiscard]] bool threads() const noexcept { return threads_; }

  /// Repeats `holds` with progress until it is true; lets other ranks run if it takes long.
  template <class Predicate>
  void wait_until(Predicate holds) {
    for (unsigned tries = 0; !holds(); ++tries) pause(tries);
  }

  void check(bool holds, std::string_view what, std::source_location where = std::source_location::current());
  template <class A, class B>
  void equal(const A& found, const B& wanted, std::string_view what,
             std::source_location where = std::source_location::current()) {
    if (!(found == wanted)) fail(describe(what, found, wanted), where);
  }
  void expect(rma::status found, rma::status wanted, std::string_view what,
              std::source_location where = std::source_location::current());
  /// `call` must throw rma::Error with this code, and its message must contain every one of `words`.
  void throws(rma::status wanted, std::initializer_list<std::string_view> words, const std::function<void()>& call,
              std::source_location where = std::source_location::current());
  void fail(std::string what, std::source_location where = std::source_location::current());

  /// Ends the case as skipped. All ranks must come to the same decision.
  [[noreturn]] static void skip(std::string reason) { throw skipped{std::move(reason)}; }

  [[nodiscard]] const std::vector<std::string>& failures() const noexcept { return failures_; }
  [[nodiscard]] std::size_t failure_count() const noexcept { return failure_count_; }

 private:
  template <class A, class B>
  static std::string describe(std::string_view what, const A& found, const B& wanted) {
    std::ostringstream text;
    text << what << ": found " << found << ", wanted " << wanted;
    return text.str();
  }
  void pause(unsigned tries);

  rma::Runtime* runtime_;
  rma::Team world_;
  window_kind kind_;
  std::uint64_t seed_;
  unsigned effort_percent_;
  bool threads_;
  std::mt19937_64 random_;
  std::mt19937_64 common_random_;
  std::vector<std::string> failures_;
  std::size_t failure_count_ = 0;
};

/// Makes something whose life says that a failed case is waiting for the others; it ends the job if they never come.
using watchdog = std::function<std::shared_ptr<void>(rma::Runtime&, const std::string& case_name)>;

/// Runs the cases that `how` selects; called by every rank. Returns the process's exit status, the same on all.
int run_suite(rma::Runtime& runtime, const options& how, const watchdog& guard);

/// Prints the names of the selected cases.
void list_cases(const options& how);

}  // namespace conformance
