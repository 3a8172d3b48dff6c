// SPDX-License-Identifier: Apache-2.0
/// \file
/// rma-sim report: text and pictures of a run, from the file that it wrote.
#pragma once

#include <string>

#include "rma/sim.hpp"

namespace rma::simulator {

/// Virtual time, where the ranks' time went, and what the network did.
std::string report_text(const sim::Outcome& of);

/// The command line without its first two words, "rma-sim report". Returns the exit status.
int report_main(int argc, char** argv);

}  // namespace rma::simulator
