// SPDX-License-Identifier: Apache-2.0
/// \file
/// The options on the command line of random_access.
#pragma once

#include <cstddef>
#include <optional>
#include <rma/rma.hpp>
#include <string>

#include "random_access_update.hpp"
#include "random_access_verify.hpp"

namespace random_access {

struct Options {
  Variant variant = Variant::acc;
  Epochs epochs = Epochs::batch;
  std::size_t stored = 0;
  unsigned log2_table = 0;  ///< 0: what fits into half of the memory
  word updates_per_word = 4;
  word updates = 0;  ///< 0: updates_per_word times the table
  rma::accumulate_mode mode = rma::accumulate_mode::automatic;
  Verification verification = Verification::replay;
  std::string json;
};

/// A value is the exit status to leave with.
std::optional<int> read_options(rma::Runtime& rt, int argc, char** argv, Options& options);

}  // namespace random_access
