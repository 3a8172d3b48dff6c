// SPDX-License-Identifier: Apache-2.0
/// \file
/// The boot service that the runtimes of a simulated job share: a key-value store, fences and the memory of each node.
/// The n-th runtimes of all ranks share the n-th service.
#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "fabric/sim/world.hpp"
#include "rma/error.hpp"

namespace rma::sim {

class wire;

class sim_boot {
 public:
  explicit sim_boot(world& job);
  ~sim_boot();
  sim_boot(const sim_boot&) = delete;
  sim_boot& operator=(const sim_boot&) = delete;

  /// Waits until all ranks have joined. `peer_failed` if one cannot join any more.
  status join(int rank);
  void put(std::string_view key, std::string_view value);
  /// Waits for the key; `peer_failed` if more ranks have died than the caller knows of.
  status get(int rank, std::string_view key, std::string& value, std::size_t deaths_known);
  /// Waits for all ranks. `peer_failed` if one is dead or has left.
  status fence(int rank);
  void finalize(int rank);
  [[nodiscard]] bool has_left(int rank) const noexcept { return left_[static_cast<std::size_t>(rank)] != 0; }

  /// The network between the nodes, made at the first call. Throws Error(bad_setting, bad_argument).
  wire& network();
  [[nodiscard]] bool has_network() const noexcept { return network_ != nullptr; }
  /// The memory of a node, initially zero. Throws Error(out_of_memory, bad_boot).
  std::byte* memory(int node, std::size_t bytes);
  /// Called when a rank of the node does not need the memory any more.
  void give_back(int node) noexcept;

 private:
  struct mapping {
    std::byte* at = nullptr;
    std::size_t bytes = 0;
    int users = 0;
  };
  /// Parks the rank until `ready()` or `failed()`.
  status wait(int rank, std::string_view call, const std::function<bool()>& ready, const std::function<bool()>& failed);
  void wake_all(std::vector<int>& ranks) noexcept;

  world& job_;
  std::map<std::string, std::string, std::less<>> values_;
  std::map<std::string, std::vector<int>, std::less<>> askers_;
  int joined_ = 0;
  std::vector<char> came_;
  std::vector<char> left_;
  int any_left_ = 0;
  int arrived_ = 0;
  std::size_t fences_ = 0;
  std::vector<int> waiting_;  ///< ranks that wait in join or fence
  std::vector<mapping> nodes_;
  std::unique_ptr<wire> network_;
};

}  // namespace rma::sim
