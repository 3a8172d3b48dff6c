// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a Runtime is made of.
#pragma once

#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "boot/boot.hpp"
#include "channel/context.hpp"
#include "channel/mailbox.hpp"
#include "core/settings.hpp"
#include "core/trace.hpp"
#include "fabric/shm/board.hpp"
#include "fabric/shm/node_surroundings.hpp"
#include "fabric/shm/segment.hpp"
#include "fabric/shm/shm.hpp"
#include "rma/config.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

/// What is left of a window whose handle is gone here but perhaps not everywhere.
struct dropped_window {
  word32* dropped;  ///< at member 0: how many have dropped it, and how many of the others have given it back
  std::uint32_t members;
  bool at_home;  ///< this rank is member 0: its memory, and with it the word, goes last
  std::size_t block_offset, block_bytes;
  std::size_t table_offset, table_bytes;
};

/// Members in order of construction; destroyed the other way round.
struct runtime_core {
  explicit runtime_core(const Config& config);
  ~runtime_core();

  settings config;
  std::unique_ptr<trace_file> trace;  ///< null without RMA_TRACE
  std::unique_ptr<boot::client> boot;
  std::unique_ptr<shm::board> board;
  std::unique_ptr<shm::node_surroundings> around;
  std::unique_ptr<shm::shm_fabric> network;
  std::unique_ptr<context> ctx;
  std::unique_ptr<mailbox> mail;
  std::unique_ptr<engine> ops;
  shm::segment_map segment;
  bool intranode = true;  ///< ranks of a node use each other's memory
  int exceptions = 0;     ///< under way when the runtime was made
  std::vector<dropped_window> dropped;

  /// Takes and gives back parts of this rank's segment. `take` populates the pages.
  status take(std::size_t offset, std::size_t bytes) noexcept;
  void give_back(std::size_t offset, std::size_t bytes) noexcept;
};

}  // namespace rma::detail
