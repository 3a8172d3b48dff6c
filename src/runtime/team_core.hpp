// SPDX-License-Identifier: Apache-2.0
/// \file
/// The core of a Team, with the small collectives that make teams and windows. The collectives for users are in
/// src/coll.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "channel/node_barrier.hpp"
#include "rma/operation.hpp"
#include "rma/team.hpp"
#include "runtime/memory_lines.hpp"
#include "runtime/message_barrier.hpp"
#include "runtime/runtime_core.hpp"

namespace rma::detail {

namespace coll {
class team_state;
}

/// A team and its descendants by shrink(). A death during a shrink may leave some survivors with the new team and
/// others without it: they agree again, since all count the dead members of the first team.
struct descent {
  std::uint64_t id = 0;
  std::vector<int> members{};                      ///< world ranks of the first team's members
  std::map<std::size_t, std::uint64_t> shrinks{};  ///< number of teams made, by the number of dead members
};

struct team_core : std::enable_shared_from_this<team_core> {
  std::shared_ptr<runtime_core> rt;
  std::uint64_t id = 0;
  int rank = 0;
  int size = 0;
  std::optional<int> refused_root{};     ///< root of the collective that was refused last with bad_rank, if it has one
  std::shared_ptr<const int[]> members;  ///< world ranks; null: the world itself
  /// Members on this node lie in [first, first + mapped) of the team; `places[i]` is the index on the node of
  /// member first + i, or -1 if that one is elsewhere.
  int first = 0;
  int mapped = 0;
  std::vector<std::int32_t> places;
  /// The lines of its short messages, by the same index; null where they were not requested (api/message_checks.hpp).
  std::unique_ptr<std::atomic<shm::line_pair*>[]> message_lines{};
  std::uint64_t user_context = 0;  ///< context of user messages
  messenger* messages = nullptr;
  bool one_node = false;
  std::uint64_t sequence = 0;       ///< number of collectives so far
  std::uint64_t children = 0;       ///< number of windows and teams made so far, without those by shrink()
  std::shared_ptr<descent> line{};  ///< null before the first shrink()
  node_barrier fast;                ///< valid if one_node
  message_barrier far_barrier;      ///< the barrier otherwise
  std::size_t lines_offset = 0;     ///< offset of the barrier's and collectives' lines in every member's segment
  bool has_lines = false;
  std::atomic<bool> revoked = false;  ///< see revocations.hpp
  int maker_watch = -1;               ///< during construction: a world rank whose death may keep members from joining

  /// An empty list of ranks means the world.
  team_core(std::shared_ptr<runtime_core> runtime, std::uint64_t team_id, const std::vector<int>& world_ranks,
            int my_rank, int team_size);
  ~team_core();

  /// The state of its collectives, made at the first use.
  [[nodiscard]] coll::team_state& collectives() noexcept {
    coll::team_state* const made = collectives_.load(std::memory_order_acquire);
    return made != nullptr ? *made : make_collectives();
  }
  [[nodiscard]] bool has_collectives() const noexcept { return collectives_.load() != nullptr; }
  [[nodiscard]] int world_rank(int r) const noexcept { return members == nullptr ? r : members[r]; }
  /// Index on this node of a member, or -1.
  [[nodiscard]] int node_index(int r) const noexcept {
    return r >= first && r < first + mapped ? places[static_cast<std::size_t>(r - first)] : -1;
  }
  /// The node of each member, named by its lowest member; empty on one node. No communication: all ranks know it since
  /// the start of the job.
  [[nodiscard]] std::vector<int> nodes_of_members() const;
  /// The lines of members that share memory; null where a team has none.
  [[nodiscard]] memory_lines* memory_lines_of(int r) const noexcept {
    if (!has_lines || !rt->intranode || size > memory_lines::members_max) return nullptr;
    std::byte* const segment = rt->board->segment(static_cast<std::size_t>(node_index(r)));
    return reinterpret_cast<memory_lines*>(segment + lines_offset + sizeof(barrier_lines));
  }
  /// `revoked` if the team is.
  [[nodiscard]] status revocation() const noexcept {
    return revoked.load(std::memory_order_relaxed) ? status::revoked : status::done;
  }
  /// `revoked`; `peer_failed` if a member is dead, with its rank.
  status lost_member() noexcept;
  /// For conditions that any member may cause: fails if all others have left, and no other thread can cause it.
  status nobody_left() noexcept;
  /// As lost_member, also for members that have left the job: for waits that need every member.
  status gone_member() noexcept;
  void ring_all() noexcept;
  /// Rings members whose program may wait for a store, not those that only serve others.
  void ring_waiters() noexcept;

  // Collectives that make teams and windows, see setup.cpp.
  status allreduce(void* data, std::size_t count, element type, operation op) noexcept;
  status allgather(std::span<const std::byte> mine, std::byte* all) noexcept;
  /// An allgather with the same outcome on all survivors, unless member 0 dies during it.
  status allgather_alike(std::span<const std::byte> mine, std::byte* all) noexcept;
  status barrier() noexcept;
  template <class T>
  status allreduce_one(T& value, operation op) noexcept {
    return allreduce(&value, 1, element_of<T>, op);
  }

  /// Agrees on an offset that is free for `bytes` in every member's segment and takes `mine` bytes of it.
  /// The same result on every member.
  struct placement {
    status result = status::done;
    std::size_t offset = 0;
  };
  placement allocate(std::size_t bytes, std::size_t mine, std::size_t needed, std::size_t alignment) noexcept;
  /// `where`: the public call that makes the team.
  void make_lines(const std::source_location& where);
  /// The memory of this team, or of a window on it, to be freed when every member has dropped it.
  void drop(std::uint64_t object_id, const std::array<segment_part, 2>& parts) const;

 private:
  coll::team_state& make_collectives() noexcept;
  std::once_flag collectives_once_;
  std::atomic<coll::team_state*> collectives_ = nullptr;

  /// The two sides of allgather_alike, at member 0 and elsewhere.
  status answer_all(std::uint64_t turn, std::span<const std::byte> mine, std::span<std::byte> answer) noexcept;
  status await_answer(std::uint64_t turn, std::span<const std::byte> mine, std::span<std::byte> answer) noexcept;
  placement allocate_from(std::size_t from, std::size_t bytes, std::size_t mine, std::size_t needed,
                          std::size_t alignment) noexcept;
};

inline constexpr const char* wrong_thread_remedy =
    "only the thread that made the Runtime may call; RMA_THREADS=serialized lets others, and multiple several at once";

/// Throws rma::Error for a failed team call.
/// `why`: the reason, in addition to the code.
[[noreturn]] void raise_team(const team_core& team, const char* call, status code, const std::source_location& where,
                             const std::string& why = {});

}  // namespace rma::detail
