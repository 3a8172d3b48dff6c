// SPDX-License-Identifier: Apache-2.0
/// \file
/// The ranks of a job tell each other when it starts where each runs, and what it could reach others by.
#pragma once

#include <string>
#include <vector>

#include "boot/boot.hpp"
#include "fabric/node_map.hpp"
#include "fabric/shm/node_platform.hpp"
#include "fabric/verbs/abilities.hpp"

namespace rma::fabric {

/// Why fabrics between nodes cannot be used, by this rank or by all; empty if they can.
struct obstacles {
  std::string verbs;
  std::string ucx;
  std::string tcp;
};

/// How the job's ranks lie on nodes, and what leads from one to another.
struct surveyed {
  std::vector<int> members;   ///< world ranks that share this rank's node, ascending
  node_map nodes;             ///< the same on all ranks
  obstacles none;             ///< for all ranks
  verbs::abilities devices;   ///< abilities that all of them have, where each rank has one
  shm::node_load load{1, 1};  ///< load of this rank's machine, which may be several nodes
  std::string costs{};        ///< as rank 0 has introduced them
};

/// One rank says this of itself.
struct introduced {
  std::string node;     ///< ranks with the same text share memory
  std::string machine;  ///< ranks with the same text share processors
  std::string cores;    ///< processors of these that this rank may use
  obstacles has;
  verbs::abilities device;
  std::string costs{};  ///< text of rank 0: the costs of networks that it has measured, see tuning.hpp
};

/// Rank 0 gathers what each rank has and publishes the outcome once: each rank asks two keys, not one of everybody.
/// Throws rma::Error: the job ended meanwhile, or a rank says what this library does not know.
surveyed survey(boot::client& boot, const introduced& mine);

}  // namespace rma::fabric
