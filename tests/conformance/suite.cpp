// SPDX-License-Identifier: Apache-2.0
#include "suite.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <thread>

#include "cases.hpp"

namespace conformance {
namespace {

constexpr std::size_t sanitizer_divisor = thread_sanitizer ? 50 : address_sanitizer ? 20 : 1;

constexpr std::size_t failures_kept = 5;

constexpr unsigned enough_percent = 10;  // effort from which nothing is left out

enum class outcome : std::uint8_t { passed = 0, skipped = 1, failed = 2 };

/// A case with one kind of window.
struct instance {
  const test_case* what;
  window_kind kind;
  [[nodiscard]] std::string name() const {
    std::string text(what->name);
    return kind == window_kind::none ? text : text + "[" + std::string(name_of(kind)) + "]";
  }
};

/// FNV-1a, so that a case has the same seed whichever others are run.
std::uint64_t mix(std::uint64_t seed, std::string_view name) {
  std::uint64_t value = 14695981039346656037U ^ seed;
  for (const char c : name) value = (value ^ static_cast<unsigned char>(c)) * 1099511628211U;
  return value;
}

std::vector<instance> selected(const options& how) {
  const std::regex wanted(how.pattern, std::regex::ECMAScript | std::regex::optimize);
  std::vector<instance> all;
  for (const std::span<const test_case> topic : all_topics()) {
    for (const test_case& c : topic) {
      std::vector<instance> of_case;
      for (std::size_t k = 0; k < window_kind_count; ++k) {
        const instance one{&c, static_cast<window_kind>(k)};
        if ((c.kinds & only(one.kind)) == 0) continue;
        if (how.pattern.empty() || std::regex_search(one.name(), wanted)) of_case.push_back(one);
      }
      if (how.one_kind && !of_case.empty()) of_case = {of_case[mix(how.seed, c.name) % of_case.size()]};
      all.insert(all.end(), of_case.begin(), of_case.end());
    }
  }
  return all;
}

std::string escaped(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (std::string_view("[].").find(c) != std::string_view::npos) text += '\\';
    text += c;
  }
  return text;
}

/// The command that runs this case again, with the settings that are not defaults.
std::string replay_command(const rma::Runtime& runtime, const options& how, const std::string& name,
                           std::uint64_t seed) {
  std::ostringstream text;
  constexpr std::string_view launchers[] = {"RMA_BOOT",        "RMA_RANK",         "RMA_SIZE",
                                            "RMA_KEY",         "RMA_NODE",         "RMA_JOB",
                                            "RMA_LOCAL_RANKS", "RMA_PROCESS_SETS", "RMA_CORE_GROUP"};
  for (const rma::Setting& s : runtime.settings()) {
    if (s.origin == "default" || std::ranges::find(launchers, s.name) != std::end(launchers)) continue;
    if (how.threads == 0) text << s.name << "=" << s.value << " ";
  }
  if (how.threads == 0) {
    text << "rmarun -n " << runtime.size() << " conformance";
  } else {
    text << "conformance --threads " << how.threads;
    for (const auto& [key, value] : how.settings) text << " --set " << key << "=" << value;
  }
  text << " --case '^" << escaped(name) << "$' --seed " << seed;
  if (how.effort_percent != 100) text << " --effort " << how.effort_percent;
  if (how.long_cases) text << " --long";
  return text.str();
}

/// The outcome of one case on this rank.
struct verdict {
  outcome mine = outcome::passed;
  std::string text;  ///< failures, or the reason of a skip
};

verdict of_context(const context& ctx) {
  verdict v;
  for (const std::string& failure : ctx.failures()) v.text += "    " + failure + "\n";
  const std::size_t left_out = ctx.failure_count() - ctx.failures().size();
  if (left_out > 0) v.text += "    and " + std::to_string(left_out) + " more\n";
  if (ctx.failure_count() > 0) v.mine = outcome::failed;
  return v;
}

/// Runs the case on this rank. The text of an exception is printed at once: the others may never end.
verdict run_here(context& ctx, const instance& one, std::shared_ptr<void>& waiting, const watchdog& guard) {
  try {
    one.what->run(ctx);
  } catch (const skipped& s) {
    if (ctx.failure_count() == 0) return {outcome::skipped, s.reason};
  } catch (const std::exception& e) {
    ctx.fail(std::string("exception: ") + e.what());
    std::fprintf(stderr, "%s: rank %d left the case by an exception: %s\n", one.name().c_str(), ctx.rank(), e.what());
    waiting = guard(ctx.runtime(), one.name());
  }
  return of_context(ctx);
}

/// Texts of the ranks whose outcome is `wanted`, one after the other, on rank 0.
std::string gather(rma::Team& team, const std::vector<outcome>& outcomes, outcome wanted, std::string mine) {
  std::string all;
  int told = 0;
  for (int r = 0; r < team.size() && told < 3; ++r) {
    if (outcomes[static_cast<std::size_t>(r)] != wanted) continue;
    std::string text = mine;
    std::uint64_t length = text.size();
    team.broadcast(std::span(&length, 1), r);
    text.resize(length);
    if (length > 0) team.broadcast(std::span(text.data(), length), r);
    if (wanted == outcome::skipped) return text;
    all += "  rank " + std::to_string(r) + ":\n" + text;
    ++told;
  }
  return all;
}

struct counts {
  int passed = 0;
  int failed = 0;
  int skipped = 0;
  std::string failures;  ///< said again at the end, where a shortened log still has them
};

std::string text_of_failure(const rma::Runtime& runtime, const options& how, const std::string& name,
                            const std::string& text) {
  return "FAILED " + name + " (seed " + std::to_string(how.seed) + ")\n" + text +
         "  replay: " + replay_command(runtime, how, name, how.seed) + "\n";
}

/// Combines the ranks' verdicts; rank 0 prints.
void conclude(rma::Runtime& runtime, rma::Team& team, const options& how, const std::string& name, const verdict& v,
              counts& total) {
  const std::vector<outcome> outcomes = team.allgather(v.mine);
  const outcome worst = *std::ranges::max_element(outcomes);
  const outcome best = *std::ranges::min_element(outcomes);
  std::string text = worst == outcome::passed ? std::string() : gather(team, outcomes, worst, v.text);
  const bool torn = worst == outcome::skipped && best != outcome::skipped;
  if (torn) text = "    skipped on some ranks only: " + text + "\n";
  const bool failed = worst == outcome::failed || torn;
  total.passed += worst == outcome::passed ? 1 : 0;
  total.failed += failed ? 1 : 0;
  total.skipped += !failed && worst == outcome::skipped ? 1 : 0;
  if (team.rank() != 0) return;
  if (failed) {
    const std::string failure = text_of_failure(runtime, how, name, text);
    std::fputs(failure.c_str(), stdout);
    total.failures += failure;
  } else if (worst == outcome::skipped) {
    std::printf("skipped %s (%s)\n", name.c_str(), text.c_str());
  }
}

void run_one(rma::Runtime& runtime, rma::Team& team, const options& how, const instance& one, const watchdog& guard,
             counts& total) {
  const std::string name = one.name();
  const auto begin = runtime.now();
  std::shared_ptr<void> waiting;
  verdict v;
  if (team.size() < one.what->ranks_min) {
    v = {outcome::skipped, "needs " + std::to_string(one.what->ranks_min) + " ranks"};
  } else if (one.what->long_only && !how.long_cases) {
    v = {outcome::skipped, "needs --long"};
  } else {
    context ctx(runtime, runtime.world(), how, one.kind, mix(how.seed, name));
    v = run_here(ctx, one, waiting, guard);
  }
  const int passed_before = total.passed;
  conclude(runtime, team, how, name, v, total);
  if (team.rank() == 0 && total.passed > passed_before) {
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(runtime.now() - begin).count();
    std::printf("ok %s (%lld ms)\n", name.c_str(), static_cast<long long>(ms));
  }
  if (team.rank() == 0) std::fflush(stdout);
}

}  // namespace

std::string_view name_of(window_kind kind) noexcept {
  constexpr std::string_view names[window_kind_count] = {"none", "allocated", "created", "promoted", "dynamic"};
  return names[static_cast<std::size_t>(kind)];
}

context::context(rma::Runtime& runtime, const rma::Team& team, const options& how, window_kind kind, std::uint64_t seed)
    : runtime_(&runtime),
      world_(team),
      kind_(kind),
      seed_(seed),
      effort_percent_(how.effort_percent),
      threads_(how.threads > 0),
      random_(seed * 31 + static_cast<std::uint64_t>(team.rank()) + 1),
      common_random_(seed) {}

bool context::processor_for_each() const noexcept {
  return static_cast<unsigned>(size()) <= std::thread::hardware_concurrency();
}

std::size_t context::rounds(std::size_t normal) const noexcept {
  const std::size_t slowdown = processor_for_each() ? 1 : 4;
  return std::max<std::size_t>(1, normal * effort_percent_ / 100 / slowdown / sanitizer_divisor);
}

std::size_t context::rounds(std::size_t normal, std::size_t least) const noexcept {
  const std::size_t scaled = least * std::min(effort_percent_, enough_percent) / enough_percent;
  return std::max({std::size_t{1}, rounds(normal), scaled});
}

bool context::thorough() const noexcept { return effort_percent_ >= enough_percent; }

bool context::sampled() noexcept { return thorough() || common_random_() % enough_percent < effort_percent_; }

void context::pause(unsigned tries) {
  runtime_->progress();
  if (tries <= 64) return;
  std::this_thread::yield();
  runtime_->compute(std::chrono::microseconds(1));  // a simulated rank that polls for long takes fewer turns
}

void context::fail(std::string what, std::source_location where) {
  ++failure_count_;
  if (failures_.size() >= failures_kept) return;
  std::string_view file(where.file_name());
  file.remove_prefix(std::min(file.size(), file.rfind('/') + 1));
  failures_.push_back(std::string(file) + ":" + std::to_string(where.line()) + ": " + std::move(what));
}

void context::check(bool holds, std::string_view what, std::source_location where) {
  if (!holds) fail(std::string(what), where);
}

void context::expect(rma::status found, rma::status wanted, std::string_view what, std::source_location where) {
  if (found == wanted) return;
  fail(describe(what, rma::name_of(found), rma::name_of(wanted)), where);
}

void context::throws(rma::status wanted, std::initializer_list<std::string_view> words,
                     const std::function<void()>& call, std::source_location where) {
  try {
    call();
  } catch (const rma::Error& e) {
    const std::string_view message = e.what();
    expect(e.code(), wanted, std::string("code of \"") + e.what() + "\"", where);
    for (const std::string_view word : words) {
      if (message.find(word) == std::string_view::npos) {
        fail("the message does not name '" + std::string(word) + "': \"" + e.what() + "\"", where);
      }
    }
    return;
  }
  fail("nothing was thrown, wanted " + std::string(rma::name_of(wanted)), where);
}

int run_suite(rma::Runtime& runtime, const options& how, const watchdog& guard) {
  rma::Team team = runtime.world().split(0, runtime.rank());
  options mine = how;
  if (mine.seed == 0)
    mine.seed = (std::uint64_t{std::random_device{}()} << 16 | std::random_device{}()) % 1000000000 + 1;
  team.broadcast(std::span(&mine.seed, 1), 0);
  const std::vector<instance> cases = selected(mine);
  if (team.rank() == 0) {
    std::printf("conformance: %zu cases, %d ranks%s, seed %llu\n", cases.size(), team.size(),
                mine.threads > 0 ? " as threads" : "", static_cast<unsigned long long>(mine.seed));
    std::fflush(stdout);
  }
  counts total;
  for (const instance& one : cases) run_one(runtime, team, mine, one, guard, total);
  if (team.rank() == 0) {
    std::fputs(total.failures.c_str(), stdout);
    std::printf("%d passed, %d failed, %d skipped\n", total.passed, total.failed, total.skipped);
    std::fflush(stdout);
  }
  team.barrier();
  return total.failed > 0 || cases.empty() ? 1 : 0;
}

void list_cases(const options& how) {
  for (const instance& one : selected(how)) std::printf("%s\n", one.name().c_str());
}

}  // namespace conformance
