// SPDX-License-Identifier: Apache-2.0
#include "random_access_options.hpp"

#include <map>
#include <vector>

#include "command_line.hpp"
#include "random_access_update.hpp"

namespace random_access {

namespace {

template <class Enum, std::size_t N>
std::map<std::string, Enum> by_name(const std::string_view (&names)[N]) {
  std::map<std::string, Enum> values;
  for (std::size_t i = 0; i < N; ++i) values.emplace(names[i], static_cast<Enum>(i));
  return values;
}

/// An option that takes one of some words. CLI11's own enum support shows numbers in messages; this one shows words.
template <class Value>
void add_choice(CLI::App& app, const std::string& name, Value& value, const std::map<std::string, Value>& choices,
                const std::string& help) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : choices) words.push_back(word);
  app.add_option_function<std::string>(
         name, [&value, choices](const std::string& chosen) { value = choices.at(chosen); }, help)
      ->check(CLI::IsMember(words));
}

void describe(CLI::App& app, Options& options) {
  using rma::accumulate_mode;
  app.set_help_flag("-h,--help", "This text");
  add_choice(app, "--variant", options.variant, by_name<Variant>(variant_names),
             "How an update is made (default acc):\n"
             "gmp: lock, get, unlock, modify, lock, put, unlock; may lose 1 %\n"
             "gmp-excl: get, modify and put inside one exclusive epoch\n"
             "acc: one accumulate(bxor) per update\n"
             "acc_agg: one accumulate(bxor) with an indexed layout per target and batch\n"
             "acc_mod: as acc, with sum\n"
             "direct: 8-byte sums by the network device, if there is one that can\n"
             "shared: processor atomics on shared memory; all ranks on one node\n"
             "routed: bxor by rma::Aggregator, which stores more updates than HPCC's rule allows");
  add_choice(app, "--epoch", options.epochs, by_name<Epochs>(epoch_names),
             "update: lock and unlock for each operation\n"
             "no-check: the same with rma::no_check, so that no lock is taken\n"
             "batch: one epoch for the run, a flush for each batch (default)\n"
             "gmp and gmp-excl always lock, shared and routed never do");
  app.add_option("--aggregate", options.stored, "Updates stored before they are sent (default and most 1024)")
      ->check(CLI::Range(std::size_t{1}, stored_updates_max));
  app.add_option("--log2-table", options.log2_table, "Table of 2^L words of 8 bytes (default: half of free memory)")
      ->type_name("L")
      ->check(CLI::Range(1, 48));
  auto* const per_word =
      app.add_option("--updates-per-word", options.updates_per_word, "Updates, in table sizes (default 4)")
          ->check(CLI::Range(word{1}, word{1} << 16));
  app.add_option("--updates", options.updates, "Updates of all ranks together")
      ->check(CLI::Range(word{1}, word{1} << 60))
      ->excludes(per_word);
  add_choice(app, "--atomicity", options.mode,
             {{"element", accumulate_mode::element},
              {"striped", accumulate_mode::striped},
              {"handler", accumulate_mode::handler},
              {"direct", accumulate_mode::direct},
              {"lock-get-modify-put", accumulate_mode::lock_get_modify_put}},
             "Who makes accumulates atomic (default: direct for variant direct,\n"
             "else element, where the window can have it)");
  add_choice(app, "--verify", options.verification, by_name<Verification>(verification_names),
             "replay: every rank makes its updates again, atomically (default)\n"
             "local: every rank makes those of all ranks again that hit its part\n"
             "none");
  app.add_option("--json", options.json, "Write the result to this file, too")->type_name("FILE");
}

}  // namespace

std::optional<int> read_options(rma::Runtime& rt, int argc, char** argv, Options& options) {
  CLI::App app(
      "HPCC RandomAccess with one-sided updates: random words of a table that is shared out over all ranks.\n"
      "Start it with rmarun: rmarun -n 4 random_access --variant acc --log2-table 20",
      "random_access");
  describe(app, options);
  if (const auto leave = example::parse(app, rt, argc, argv)) return leave;
  if (options.stored == 0) options.stored = stored_updates_max;
  if (options.log2_table > 0 && (word{1} << options.log2_table) < static_cast<word>(rt.size())) {
    return example::reject(rt, "random_access", "--log2-table: fewer words than ranks");
  }
  if (options.variant == Variant::shared && !rt.world().one_node()) {
    return example::reject(rt, "random_access", "--variant shared: the ranks are on several nodes");
  }
  return std::nullopt;
}

}  // namespace random_access
