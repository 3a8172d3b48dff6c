// SPDX-License-Identifier: Apache-2.0
/// \file
/// Mutexes: queues of waiting processes (Mellor-Crummey and Scott). A mutex is one word at its host, which names the
/// last in the queue. Whoever comes exchanges itself into it and, if there was somebody, leaves its name with that one,
/// who wakes it by a signal when it has done. So they are first come, first served; a process polls nothing of others,
/// and a mutex needs no memory for each process.
///
///   host: tail of mutex m           0, or the last node of the queue
///   each process: next of node n    0, or the node behind it; signal n: it is this node's turn
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "armci/state.hpp"

namespace rma::armci {

class mutex_set {
 public:
  /// Collective: `count` mutexes here.
  mutex_set(const char* call, Team team, int count);
  ~mutex_set();

  void lock(const char* call, int mutex, int rank);
  /// False if another process holds it.
  bool try_lock(const char* call, int mutex, int rank);
  void unlock(const char* call, int mutex, int rank);
  /// Collective. Ends the job if this process still holds one.
  void destroy(const char* call);
  [[nodiscard]] Team team() const { return words_.team(); }

 private:
  static constexpr int nodes_max = 64;  ///< mutexes that a process holds or waits for at once

  struct hold {
    int mutex = -1;
    int rank = -1;
  };
  int take_node(const char* call, int mutex, int rank);
  int node_of(const char* call, int mutex, int rank);
  /// Waits until no process puts into its word any more.
  void give_back(int node);
  [[nodiscard]] std::uint64_t name_of(int node) const noexcept;
  void require(const char* call, int mutex, int rank) const;

  Window<std::uint64_t> words_;  ///< next of each node, then the tails of the mutexes here
  std::vector<int> counts_;
  std::mutex threads_;  ///< several may take nodes at once
  std::array<hold, nodes_max> holds_{};
  int me_ = 0;
};

}  // namespace rma::armci
