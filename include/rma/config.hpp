// SPDX-License-Identifier: Apache-2.0
/// \file
/// How a runtime is started, when the environment that a launcher sets is not enough.
#pragma once

#include <map>
#include <string>

namespace rma {

/// Everything has a default: `Runtime(Config{})` is what `Runtime()` does.
struct Config {
  /// Read RMA_* variables of the environment. Values given here win over them.
  bool environment = true;
  /// "" alone, "local://NAME" (rmarun), "tcp://HOST:PORT" (rank 0 listens there). RMA_BOOT.
  std::string boot{};
  /// This rank and the number of ranks; -1: from RMA_RANK and RMA_SIZE.
  int rank = -1;
  int size = -1;
  /// Job key: all ranks of a job have the same, strangers do not know it. RMA_KEY.
  std::string key{};
  /// Virtual node; ranks of different nodes do not share memory. RMA_NODE.
  std::string node{};
  /// Settings by their variable's name, e.g. {"RMA_PROGRESS_THREAD", "1"}. `rma-info` lists them all.
  std::map<std::string, std::string> settings{};
};

}  // namespace rma
