// SPDX-License-Identifier: Apache-2.0
/// \file
/// Where a rank runs: the job it belongs to, the memory of its node, what its waits stand on, and the fabrics that
/// reach the others. The one function that knows which kinds of these there are.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "boot/boot.hpp"
#include "core/settings.hpp"
#include "fabric/fabric.hpp"
#include "fabric/node_map.hpp"
#include "fabric/platform.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/shm.hpp"

namespace rma::fabric {

/// The fabrics ask a relay how a peer is reached: made before them, while who answers is made after them.
class directory_relay final : public directory {
 public:
  void answered_by(directory& other) noexcept { answers_ = &other; }
  status look_up(int peer, std::string_view key, std::string& value) noexcept override {
    return answers_->look_up(peer, key, value);
  }

 private:
  directory* answers_ = nullptr;
};

/// Members in order of construction; destroyed the other way round.
struct job_context {
  std::unique_ptr<boot::client> boot;
  std::unique_ptr<shm::board> board;
  std::unique_ptr<detail::platform> around;
  std::unique_ptr<directory_relay> directory = std::make_unique<directory_relay>();
  std::unique_ptr<shm::shm_fabric> node;  ///< the ranks of this node
  std::unique_ptr<network> wide;          ///< all ranks; null if the job has one node or nothing leads to the others
  node_map nodes{};                       ///< the same on all ranks
  std::optional<transfer_costs> costs{};  ///< costs of `wide`, measured by rank 0, for choices that all ranks share
};

/// Reads what a launcher that starts no processes says in a reserved argument, which is taken out of the command line.
Config started_as(int& argc, char** argv, const Config& wanted);

/// Joins the job that the settings name. Throws rma::Error.
job_context find_place(const detail::settings& settings);

}  // namespace rma::fabric
