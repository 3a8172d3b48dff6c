// SPDX-License-Identifier: Apache-2.0
/// \file
/// The collectives of a runtime: what all teams share.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "channel/notifications.hpp"
#include "coll/algorithm.hpp"
#include "coll/memory.hpp"
#include "coll/put_channels.hpp"
#include "coll/running.hpp"
#include "fabric/fabric.hpp"
#include "fabric/memory_costs.hpp"
#include "p2p/messenger.hpp"

namespace rma::detail::coll {

class team_state;

/// The progress that the start of a non-blocking collective makes in addition.
enum class start_progress : std::uint8_t { none, test_on_init, wait_on_send, start_all };

class machine {
 public:
  machine(context& ctx, messenger& messages);
  machine(const machine&) = delete;
  machine& operator=(const machine&) = delete;
  ~machine() { ctx_.remove_before_sleep(this); }

  [[nodiscard]] context& ctx() noexcept { return ctx_; }
  [[nodiscard]] messenger& messages() noexcept { return messages_; }
  [[nodiscard]] put_channels& puts() noexcept { return puts_; }
  [[nodiscard]] notifications& notices() noexcept { return notices_; }
  /// The algorithm that a setting forces, or null.
  [[nodiscard]] const algorithm* forced(call what) const noexcept { return forced_[static_cast<std::size_t>(what)]; }
  /// The name that its setting gives; empty for auto.
  [[nodiscard]] std::string name_set(call what) const;
  /// True if blocking calls of teams that share memory use it; `memory_way` is the variant.
  [[nodiscard]] bool memory_allowed(call what) const noexcept { return memory_[static_cast<std::size_t>(what)]; }
  [[nodiscard]] memory_collectives::way memory_way(call what) const noexcept {
    return memory_ways_[static_cast<std::size_t>(what)];
  }
  /// The default of teams, see Team::set_reproducible.
  [[nodiscard]] bool reproducible() const noexcept { return reproducible_; }
  [[nodiscard]] start_progress progress_of_start() const noexcept { return progress_of_start_; }
  [[nodiscard]] machine_costs costs(bool one_node) const noexcept;
  /// The costs of messages where all ranks share memory.
  [[nodiscard]] const fabric::memory_costs& costs_in_memory() const noexcept { return memory_costs_; }
  /// Called at the start of the job, with the same figures by all ranks.
  void use_costs(const fabric::memory_costs& measured) noexcept {
    memory_costs_ = measured;
    memory_is_measured_ = true;
  }
  /// The same, between nodes.
  void use_costs(const fabric::transfer_costs& measured) noexcept { network_costs_ = measured; }
  [[nodiscard]] bool network_is_measured() const noexcept { return network_costs_.has_value(); }
  [[nodiscard]] bool memory_is_measured() const noexcept { return memory_is_measured_; }

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  void add(std::uint64_t team_id, team_state& t);
  void remove(std::uint64_t team_id) noexcept { teams_.erase(team_id); }
  /// Null if this member does not have the team.
  [[nodiscard]] team_state* team(std::uint64_t team_id) const noexcept {
    const auto at = teams_.find(team_id);
    return at == teams_.end() ? nullptr : at->second;
  }
  /// Rank 0 prints a line, once for each call, if puts were asked for and the fabric does not have them.
  void note_replaced(call what, const algorithm& chosen) noexcept;
  /// Adds a run that has local work left, which the next rounds of progress continue.
  void add_work(running& r) noexcept;
  void remove_work(running& r) noexcept;
  /// If `why` is done, the text is the place where member `other`, which is this one, has made a different call.
  void send_failure(int to, std::uint64_t team_id, std::uint64_t turn, status why, std::string_view text,
                    int other) noexcept;

 private:
  static unsigned on_duty(void* self) noexcept;
  static void before_sleep(void* self) noexcept;
  static void on_failure(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  messenger& messages_;
  std::array<const algorithm*, call_count> forced_{};
  std::unordered_map<std::uint64_t, team_state*> teams_;
  struct failure {
    std::uint64_t team, turn;
    status why;
    std::string text;
    int other;
  };
  static constexpr std::size_t early_max = 64;
  static void take(team_state& t, failure&& f) noexcept;
  std::vector<failure> early_;  ///< failures on teams that this member does not know yet
  running_list<&running::in_work> work_;
  put_channels puts_;
  notifications notices_;
  std::uint32_t replaced_noted_ = 0;  ///< a bit for each call
  fabric::memory_costs memory_costs_;
  std::optional<fabric::transfer_costs> network_costs_{};
  bool memory_is_measured_ = false;
  bool reproducible_ = false;
  start_progress progress_of_start_ = start_progress::none;  ///< none for `thread`, too: a progress thread exists
  std::array<bool, call_count> memory_{};
  std::array<memory_collectives::way, call_count> memory_ways_{};
};

}  // namespace rma::detail::coll
