// SPDX-License-Identifier: Apache-2.0
/// \file
/// The configuration of a runtime, for programs to which a launcher's environment is not enough.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "rma/version.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// A program's promise about its threads. Each level allows what the one before allows; docs/synchronization.md,
/// "Threads of a program", has the details.
enum class thread_level : std::uint8_t {
  single,      ///< the process has one thread beside the library's own
  funneled,    ///< only the thread that makes the Runtime calls
  serialized,  ///< any thread calls; a window, a team or a request is for one thread at a time
  multiple,    ///< any number of threads call at once, on one window as well; no call is inlined
};
/// The level's name in RMA_THREADS.
std::string_view name_of(thread_level level) noexcept;

/// Everything has a default: `Runtime(Config{})` is what `Runtime()` does.
struct Config {
  /// Version of the headers that the program was compiled with. Leave it unchanged.
  std::uint32_t headers = header_version;
  /// Whether RMA_* variables of the environment are read. Values given here override them. An RMA_* variable that names
  /// no setting is an error (bad_setting).
  bool environment = true;
  /// "local://NAME" (rmarun), "tcp://HOST:PORT" (rank 0 listens there), "pmix", "pmi2", "alone"; "": from_rank_0
  /// if that is given, PMIx if its launcher started the process, else alone. RMA_BOOT.
  std::string boot{};
  /// This rank and the number of ranks; -1: from RMA_RANK and RMA_SIZE, or from the launcher.
  int rank = -1;
  int size = -1;
  /// Job key of at least 16 characters: a secret that all ranks of the job share. RMA_KEY.
  std::string key{};
  /// A broadcast from rank 0, for processes that can communicate already, by MPI for example. The Runtime's constructor
  /// calls it once on each rank. No launcher is asked then: `rank` and `size` have to be given.
  std::function<std::string(const std::string& of_rank_0)> from_rank_0{};
  /// With from_rank_0: all ranks are on one machine, so that rank 0 listens on no network.
  bool one_machine = false;
  /// Name of a virtual node; ranks of different nodes do not share memory. RMA_NODE.
  std::string node{};
  /// The level of thread support that the program asks for. RMA_THREADS.
  std::optional<thread_level> threads{};
  /// Settings by their variable's name, e.g. {"RMA_PROGRESS_THREAD", "1"}. `rma-info` lists them all.
  std::map<std::string, std::string> settings{};
};

}  // namespace rma

#pragma GCC visibility pop
