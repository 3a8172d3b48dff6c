// SPDX-License-Identifier: Apache-2.0
/// \file
/// Mutexes: queues of waiting processes (Mellor-Crummey and Scott). A mutex is one word at its host, which contains the
/// last process of the queue. A process that locks the mutex swaps itself into the word and, if there was a
/// predecessor, writes its name to that one, which wakes it by a signal when it unlocks. So the order is first come,
/// first served; a process polls nothing of others, and a mutex needs no memory for each process.
///
///   host: tail of mutex m           0, or the last node of the queue
///   each process: next of node n    0, or the node after it; signal n: it is this node's turn
#pragma once

#include <array>
#include <cstdint>
#include <mutex>

#include "armci/state.hpp"

namespace rma::armci {

class mutex_set {
 public:
  /// Collective: creates `count` mutexes at this process.
  mutex_set(const char* call, Team team, int count);
  ~mutex_set();

  void lock(const char* call, int mutex, int rank);
  /// Returns false if another process holds it.
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
  /// Waits until no process will write to the node's word any more.
  void give_back(int node);
  [[nodiscard]] std::uint64_t name_of(int node) const noexcept;
  void require(const char* call, int mutex, int rank) const;

  Window<std::uint64_t> words_;  ///< next of each node, then the tails of the mutexes here
  std::vector<int> counts_;
  std::mutex threads_;  ///< several threads may take nodes at once
  std::array<hold, nodes_max> holds_{};
  int me_ = 0;
};

}  // namespace rma::armci
