// SPDX-License-Identifier: Apache-2.0
/// \file
/// HPCC RandomAccess (GUPS) with one-sided updates, in the variants of the dissertation's chapter 7.
///
/// \code
/// rmarun -n 4 random_access --variant acc --log2-table 20
/// \endcode
/// The exit status is 1 if the table is more wrong afterwards than the variant allows.

#include <cstdio>
#include <fstream>

#include "command_line.hpp"
#include "random_access_options.hpp"
#include "random_access_run.hpp"

namespace random_access {

namespace {

struct Result {
  word updates = 0;
  std::chrono::nanoseconds time{};
  Verdict verdict;
};

std::string_view name_of(rma::accumulate_mode mode) {
  constexpr std::string_view names[] = {"automatic", "element", "striped", "handler", "direct", "lock-get-modify-put"};
  return names[static_cast<std::size_t>(mode)];
}

double seconds(std::chrono::nanoseconds time) { return std::chrono::duration<double>(time).count(); }

double gups(const Result& result) { return static_cast<double>(result.updates) * 1e-9 / seconds(result.time); }

double error_percent(const Result& result, const Table& table) {
  return 100.0 * static_cast<double>(result.verdict.wrong) / static_cast<double>(table.parts().total());
}

/// The default size is a guess about memory: if the machine says no, half of it will do.
Table make_table(rma::Runtime& rt, Options& options) {
  rma::Team world = rt.world();
  const bool chosen_here = options.log2_table == 0;
  if (chosen_here) options.log2_table = log2_of_half_the_memory(world);
  for (;;) {
    try {
      return Table(world, options.log2_table, options.variant, options.mode);
    } catch (const rma::Error& refusal) {
      if (!chosen_here || refusal.code() != rma::status::out_of_memory || options.log2_table <= 20) throw;
      --options.log2_table;
    }
  }
}

void print_plan(const rma::Runtime& rt, const Options& options, bool size_chosen, Table& table, word updates) {
  const word words = table.parts().total();
  const bool power_of_two = (rt.size() & (rt.size() - 1)) == 0;
  fmt::print("RandomAccess, variant {}, {}, at most {} updates stored, atomicity {}\n",
             variant_names[static_cast<std::size_t>(options.variant)],
             options.epochs == Epochs::batch ? "a flush per batch" : "an epoch per operation", options.stored,
             name_of(table.window().atomicity()));
  fmt::print("Running on {} processors{}\n", rt.size(), power_of_two ? " (PowerofTwo)" : "");
  fmt::print("Total Main table size = 2^{} = {} words{}\n", options.log2_table, words,
             size_chosen ? " (up to half of free memory; --log2-table L changes it)" : "");
  fmt::print("PE Main table size = {} words/PE{}\n", table.parts().count(0), power_of_two ? "" : " or one less");
  fmt::print("Default number of updates (RECOMMENDED) = {}\n", 4 * words);
  fmt::print("Number of updates EXECUTED = {}\n", updates);
  std::fflush(stdout);
}

Result measure(rma::Runtime& rt, const Options& options, Table& table, const Partition& updates) {
  rma::Team world = rt.world();
  table.fill(world);
  const Progress progress(rt, updates.count(0), "updating");
  Result result;
  result.updates = updates.total();

  world.barrier();
  const auto begin = rt.now();
  const auto updater = make_updater(table, options.variant, options.epochs);
  make_updates(rt, *updater, Stream(updates.first(rt.rank()), updates.count(rt.rank())), options.stored, progress);
  world.barrier();
  result.time = std::chrono::nanoseconds(world.allreduce((rt.now() - begin).count(), rma::max));

  result.verdict = verify(rt, table, options.variant, updates, options.verification);
  return result;
}

void print_result(const rma::Runtime& rt, const Options& options, const Table& table, const Result& result) {
  const double rate = gups(result);
  fmt::print("Real time used = {:.6f} seconds\n", seconds(result.time));
  fmt::print("{:.9f} Billion(10^9) Updates    per second [GUP/s]\n", rate);
  fmt::print("{:.9f} Billion(10^9) Updates/PE per second [GUP/s]\n", rate / rt.size());
  if (options.verification == Verification::none) {
    fmt::print("Verification: not asked for\n");
  } else {
    const Verdict& verdict = result.verdict;
    fmt::print("Verification:  Real time used = {:.6f} seconds\n", seconds(verdict.time));
    fmt::print("Found {} errors in {} locations ({}).\n", verdict.wrong, table.parts().total(),
               verdict.passed() ? "passed" : "failed");
    fmt::print("errors: {} ({:.4f} %), allowed: {}\n", verdict.wrong, error_percent(result, table), verdict.allowed);
  }
  fmt::print("GUPS: {:.6f} (variant {}, ranks {}, table 2^{} words, updates {}, time {:.6f} s)\n", rate,
             variant_names[static_cast<std::size_t>(options.variant)], rt.size(), options.log2_table, result.updates,
             seconds(result.time));
  std::fflush(stdout);
}

bool write_json(const rma::Runtime& rt, const Options& options, Table& table, const Result& result) {
  std::ofstream file(options.json);
  file << fmt::format(
      R"({{"benchmark": "random_access", "variant": "{}", "epoch": "{}", "stored": {}, "atomicity": "{}", )"
      R"("ranks": {}, "log2_table": {}, "updates": {}, "time_s": {:.9f}, "gups": {:.9f}, "verification": "{}", )"
      R"("errors": {}, "errors_allowed": {}, "error_percent": {:.6f}, "passed": {}}})"
      "\n",
      variant_names[static_cast<std::size_t>(options.variant)], epoch_names[static_cast<std::size_t>(options.epochs)],
      options.stored, name_of(table.window().atomicity()), rt.size(), options.log2_table, result.updates,
      seconds(result.time), gups(result), verification_names[static_cast<std::size_t>(options.verification)],
      result.verdict.wrong, result.verdict.allowed, error_percent(result, table), result.verdict.passed());
  file.close();
  if (!file) fmt::print(stderr, "random_access: --json: cannot write {}\n", options.json);
  return static_cast<bool>(file);
}

int run(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  Options options;
  if (const auto leave = read_options(rt, argc, argv, options)) return *leave;

  const bool size_chosen = options.log2_table == 0;
  Table table = make_table(rt, options);
  const word words = table.parts().total();
  const Partition updates(options.updates > 0 ? options.updates : options.updates_per_word * words, rt.size());
  if (rt.rank() == 0) print_plan(rt, options, size_chosen, table, updates.total());
  const Result result = measure(rt, options, table, updates);
  bool written = true;
  if (rt.rank() == 0) {
    print_result(rt, options, table, result);
    written = options.json.empty() || write_json(rt, options, table, result);
  }
  rt.world().barrier();  // rank 0's report comes before anybody's exit status
  return written && result.verdict.passed() ? 0 : 1;
}

}  // namespace

}  // namespace random_access

int main(int argc, char** argv) {
  return example::run("random_access", [&] { return random_access::run(argc, argv); });
}
