// SPDX-License-Identifier: Apache-2.0
/// \file
/// The core of a Runtime: all state of a rank.
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

/// The part of this rank's segment that both ends of a copy access, made at its first use (xfer/staging.hpp).
struct stage_memory {
  enum class state : std::uint8_t { unmade, free, held, refused };
  std::atomic<state> now = state::unmade;
  std::size_t offset = 0;
  std::uint32_t slots = 0;
  std::uint32_t next = 0;  ///< the next slot
  std::array<std::uint32_t, 32> used_bytes{};
};

/// Members are constructed in this order, and destroyed in reverse.
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
  std::unique_ptr<reclaimer> dropped;
  std::unique_ptr<engine> ops;
  std::unique_ptr<message_nodes> nodes;
  std::unique_ptr<messenger> messages;
  std::unique_ptr<synchronization> syncs;
  std::shared_ptr<coll::machine> collectives;
  std::unique_ptr<revocations> revoked;
  stage_memory stage;
  bool intranode = true;  ///< ranks of a node access each other's memory
  int exceptions = 0;     ///< exceptions in flight when the runtime was made

  /// The experience with large copies, from the first one on.
  [[nodiscard]] copy_records& copies() noexcept {
    copy_records* const made = copies_.load(std::memory_order_acquire);
    return made != nullptr ? *made : make_copies();
  }
  /// True in a forked child. The child must not change the memory and sockets that it shares with the rank, whose
  /// threads it does not have: the copy is left alone.
  [[nodiscard]] bool forked() const noexcept;
  void publish_segment();
  /// The key of a rank's segment on the wide fabric.
  status segment_of(int world_rank, fabric::region_key& key) noexcept;
  /// Ranks whose memory this rank accesses directly: those of its node, or only itself with RMA_INTRANODE=off and a
  /// fabric that reaches the others. Positions are indices on the board.
  [[nodiscard]] bool near(int world_rank) const noexcept;
  /// The region at `offset` of a rank's segment on the wide fabric. Reads that rank's table if necessary.
  status region_at(int world_rank, std::size_t offset, fabric::region_key& region) noexcept;
  /// The lowest free place of this rank's segment, see segment_map. Another thread may allocate it before the caller.
  [[nodiscard]] std::optional<std::size_t> propose(std::size_t bytes, std::size_t from,
                                                   std::size_t alignment) const noexcept;
  /// Allocate and free parts of the segment. `take` populates the pages, and registers them with the wide fabric: all,
  /// or `needed` bytes from the start, if it has no room for more. `not_yet`: some of it is in use.
  status take(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept;
  /// Allocates at any free place; nothing if there is none.
  [[nodiscard]] std::optional<std::size_t> take_any(std::size_t bytes, std::size_t alignment) noexcept;
  void give_back(std::size_t offset, std::size_t bytes) noexcept;
  /// Deregisters it from the wide fabric; it stays allocated.
  void withdraw(std::size_t offset) noexcept;
  [[nodiscard]] std::size_t segment_in_use() const noexcept;
  /// Calls `add` with each counter's name and value.
  void each_count(const std::function<void(std::string_view, std::uint64_t)>& add);
  /// Number of teams of this process set that were made here before: all its members count alike.
  [[nodiscard]] std::uint64_t count_team_of(std::string_view process_set);
  /// Frees the memory of objects that all members have dropped.
  void reap_dropped() noexcept;
  /// The region of the rank's part at `offset` on the wide fabric; bytes 0: none.
  [[nodiscard]] fabric::region_key own_region(std::size_t offset) noexcept;

 private:
  copy_records& make_copies() noexcept;
  status messages_leave() noexcept;
  void print_counters() noexcept;
  void log_start() const;
  status enroll(std::size_t offset, std::size_t bytes, std::size_t needed) noexcept;
  [[nodiscard]] std::span<extent> own_extents(std::size_t offset) noexcept;

  /// Guards the following members and the table of extents, which windows and teams of different threads share.
  mutable std::mutex books_;
  shm::segment_map segment_;
  std::unordered_map<std::string, std::uint64_t> teams_of_sets_;
  std::atomic<copy_records*> copies_ = nullptr;
  std::unordered_map<int, fabric::region_key> segment_keys_;  ///< keys of the ranks accessed by the wide fabric
};

}  // namespace rma::detail
