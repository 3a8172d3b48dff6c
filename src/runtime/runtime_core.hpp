// SPDX-License-Identifier: Apache-2.0
/// \file
/// A Runtime is made of a core.
#pragma once

#include <array>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <sys/types.h>

#include "channel/context.hpp"
#include "channel/dissemination.hpp"
#include "channel/mailbox.hpp"
#include "core/settings.hpp"
#include "core/trace.hpp"
#include "fabric/place.hpp"
#include "fabric/shm/segment.hpp"
#include "rma/config.hpp"
#include "runtime/extents.hpp"
#include "runtime/reclaimer.hpp"
#include "runtime/revocations.hpp"
#include "xfer/copy_records.hpp"
#include "xfer/engine.hpp"

namespace rma::detail {

class messenger;
class message_nodes;
class synchronization;
namespace coll {
class machine;
}

/// Part of this rank's segment that both ends of a copy reach, made when it is first held (xfer/staging.hpp).
struct stage_memory {
  enum class state : std::uint8_t { unmade, free, held, refused };
  std::atomic<state> now = state::unmade;
  std::size_t offset = 0;
  std::size_t slots = 0;
  std::size_t next = 0;  ///< slot
  std::array<std::size_t, 32> used_bytes{};
};

/// Members in order of construction; destroyed the other way round.
struct runtime_core {
  explicit runtime_core(const Config& config);
  ~runtime_core();

  const pid_t process;
  settings config;
  std::unique_ptr<trace_file> trace;  ///< null without RMA_TRACE
  fabric::job_context where;
  boot::client* boot;
  shm::board* board;
  platform* around;
  std::unique_ptr<context> ctx;
  std::unique_ptr<mailbox> mail;
  std::unique_ptr<dissemination> barriers;
  std::unique_ptr<reclaimer> dropped;
  std::unique_ptr<engine> ops;
  std::unique_ptr<message_nodes> nodes;
  std::unique_ptr<messenger> messages;
  std::unique_ptr<synchronization> syncs;
  std::shared_ptr<coll::machine> collectives;
  std::unique_ptr<revocations> revoked;
  stage_memory stage;
  copy_records copies;
  bool intranode = true;  ///< ranks of a node use each other's memory
  int exceptions = 0;     ///< under way when the runtime was made

  /// This is a copy in a forked child. What it shares with the rank, memory and sockets, is not the child's to change,
  /// and its threads are not here: it is left as it is.
  [[nodiscard]] bool forked() const noexcept;
  void publish_segment();
  /// The key that reaches the segment of a rank through the wide fabric.
  status segment_of(int world_rank, fabric::region_key& key) noexcept;
  /// Ranks whose memory this rank uses directly: those of its node, or itself alone with RMA_INTRANODE=off and a
  /// fabric that does it instead. Positions are indices on the board.
  [[nodiscard]] bool near(int world_rank) const noexcept;
  /// The region of the wide fabric that begins at `offset` of a rank's segment. Asks that rank's segment if need be.
  status region_at(int world_rank, std::size_t offset, fabric::region_key& region) noexcept;
  /// The lowest free place of this rank's segment, see segment_map. Another thread may take it before the caller does.
  [[nodiscard]] std::optional<std::size_t> propose(std::size_t bytes, std::size_t from,
                                                   std::size_t alignment) const noexcept;
  /// Takes and gives back parts of the segment. `take` populates the pages, and lets the wide fabric reach them: all,
  /// or `needed` bytes from the start, if it has no room for more. `not_yet`: some of it is in use.
  status take(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept;
  /// Wherever there is room; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> take_any(std::size_t bytes, std::size_t alignment) noexcept;
  void give_back(std::size_t offset, std::size_t bytes) noexcept;
  /// The wide fabric reaches it no longer; it stays taken.
  void withdraw(std::size_t offset) noexcept;
  [[nodiscard]] std::size_t segment_in_use() const noexcept;
  /// Calls `add` with each counter's name and value.
  void each_count(const std::function<void(std::string_view, std::uint64_t)>& add);
  /// How many teams of this process set were made here before this one: its members count alike.
  [[nodiscard]] std::uint64_t count_team_of(std::string_view process_set);
  /// Gives back what all have dropped.
  void reap_dropped() noexcept;
  /// The wide fabric reaches this of the rank's part at `offset`; bytes 0: nothing.
  [[nodiscard]] fabric::region_key own_region(std::size_t offset) noexcept;

 private:
  status messages_leave() noexcept;
  void print_counters() noexcept;
  void log_start() const;
  status enroll(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept;
  [[nodiscard]] std::span<extent> own_extents(std::size_t offset) noexcept;

  /// Of what follows, and of the table of extents. Windows and teams of different threads share them.
  mutable std::mutex books_;
  shm::segment_map segment_;
  std::unordered_map<std::string, std::uint64_t> teams_of_sets_;
  std::unordered_map<int, fabric::region_key> segment_keys_;  ///< of ranks that were reached through the wide fabric
};

}  // namespace rma::detail
