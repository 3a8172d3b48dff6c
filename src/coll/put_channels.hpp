// SPDX-License-Identifier: Apache-2.0
/// \file
/// The transport of one-sided collectives: messages are puts with a signal into the receiver's landing memory. There is
/// no tag, no matching and no rendezvous, and the receiver's processor takes no part in the transfer.
///
///   sender                                        receiver
///   first message of the channel   -- ask -->     landing memory: registered, kept for this sender
///                                  <-- grant --   its address and key, once for each pair of a team
///   head and data into a free slot == put ==>     the immediate is the signal: it names the channel and the slot
///                                                 copies the data to where the schedule wants them
///   may fill the slot again        <-- freed --   in the heads of puts in the other direction, or a message for many
///
/// Where the fabric does not register the memory, the slots of that channel are filled by messages.
///
/// A channel has lanes of a few slots each. A collective uses the lane of its number on the team, and begins when the
/// one before it in that lane has ended at this member: so the puts of a lane arrive in the order in which the receiver
/// waits for them, collectives in different lanes are in flight at the same time, and no put waits for a slot that only
/// a later collective would free. A message longer than a slot is several puts. Landing memory is never a user's: a
/// collective that has failed needs no care for writes that are still in flight.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"
#include "coll/running.hpp"
#include "fabric/fabric.hpp"
#include "p2p/operation.hpp"

namespace rma::detail {
struct team_core;
}

namespace rma::detail::coll {

class machine;
class put_channels;
class team_puts;
class team_state;

inline constexpr std::size_t put_lanes = 4;
inline constexpr std::size_t put_slots = 4;
[[nodiscard]] constexpr std::size_t lane_of(std::uint64_t turn) noexcept { return turn % put_lanes; }
/// The slot of a lane's put of that number.
[[nodiscard]] constexpr std::size_t slot_of(std::size_t lane, std::uint16_t number) noexcept {
  return lane * put_slots + number % put_slots;
}

/// In front of the data in a slot.
struct put_head {
  std::uint64_t team;
  std::uint64_t turn;   ///< number of the collective
  std::uint64_t bytes;  ///< length of the message
  std::int32_t signature;
  std::uint32_t piece_bytes;                   ///< bytes of the message in this slot
  std::array<std::uint16_t, put_lanes> freed;  ///< total of slots that the sender has freed, of the other direction
};
static_assert(sizeof(put_head) == 40);

/// How the slots of a channel are filled: by which network, or by messages.
enum class put_way : std::uint64_t { node, wide, messages };

/// Landing memory for the puts of one sender. It is reused for the same sender only, whose puts arrive in order.
struct landing {
  std::uint32_t index = 0;  ///< names the channel in immediates
  std::byte* at = nullptr;
  fabric::region_key region;
  put_way way = put_way::node;
  std::size_t slot_bytes = 0;
};

/// Both directions between this member of a team and another one.
struct put_channel {
  struct write : fabric::completion {
    enum class state : std::uint8_t { idle, filled, posted };
    put_channel* of = nullptr;
    std::uint16_t number = 0;  ///< number of the put in its lane
    std::uint8_t lane = 0;
    state now = state::idle;
    std::size_t bytes = 0;
  };
  struct lane_out {
    std::array<write, put_slots> writes;
    message_operation::list waiting;  ///< sends that wait for slots
    std::uint16_t filled = 0;         ///< totals, of slots
    std::uint16_t freed = 0;
  };
  struct lane_in {
    message_operation::list awaited;  ///< receives
    std::uint16_t taken = 0;          ///< totals, of slots
    std::uint16_t reported = 0;       ///< ... as the sender knows
    std::array<bool, put_slots> arrived{};
  };

  put_channels* all = nullptr;
  team_puts* of = nullptr;  ///< null when the team has been dropped
  std::uint64_t team = 0;
  int member = 0;
  int world_rank = 0;
  // Sending.
  bool asked = false;
  bool granted = false;
  status refused = status::done;       ///< why the network has refused a write: there will be no further ones
  fabric::network* network = nullptr;  ///< null: by messages
  fabric::region_key region;
  std::uint32_t index = 0;
  std::size_t slot_bytes = 0;
  std::size_t piece_bytes_max = 0;
  std::byte* copies = nullptr;  ///< copies of the slots, registered as well: a write that fails is repeated
  std::array<lane_out, put_lanes> out;
  // Receiving.
  landing in_memory;
  std::uint16_t unreported = 0;
  std::array<lane_in, put_lanes> in;

  [[nodiscard]] bool writes_pending() const noexcept;
};

/// The channels of a team.
class team_puts {
 public:
  team_puts(put_channels& all, team_state& team);
  team_puts(const team_puts&) = delete;
  team_puts& operator=(const team_puts&) = delete;
  ~team_puts();

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  /// Sends to a member. `context` is the number of the collective, `tag` its signature; the rest is as in the
  /// messenger: `posted`, and `over` is called later, or the result. The data have been copied at the end.
  status send(send_operation& op, int to) noexcept;
  status receive(receive_operation& op, int from) noexcept;
  /// Ends a pending operation without calling `over`.
  void withdraw(message_operation& op, status why) noexcept;
  /// True if the collective may begin; else it does when those before it in its lane have ended.
  [[nodiscard]] bool enter(running& r) noexcept;
  void remove(running& r) noexcept;
  /// Finds a put of that collective which no receive waits for: because the member that sent it has made another call.
  /// Returns the member, or -1.
  [[nodiscard]] int find_stray(running& r, put_head& found) const noexcept;

 private:
  friend class put_channels;
  using lane_list = running_list<&running::in_lane>;
  put_channel& channel(int member);

  put_channels& all_;
  team_state& state_;
  team_core& team_;
  std::vector<std::unique_ptr<put_channel>> channels_;  ///< by member; null where nothing was sent
  std::array<lane_list, put_lanes> lanes_;              ///< the first one runs, the others wait
};

/// The state that all teams share: immediates, notices, landing memory.
class put_channels {
 public:
  put_channels(context& ctx, machine& owner);
  put_channels(const put_channels&) = delete;
  put_channels& operator=(const put_channels&) = delete;
  ~put_channels();

  /// Why there are none: empty if puts with a signal do not need the target's processor. The same on all ranks.
  [[nodiscard]] std::string why_not() const;
  [[nodiscard]] bool possible() const noexcept;

  // ---- the caller holds the progress lock ---------------------------------------------------------------------------
  /// Takes the notices that came before this member had the team.
  void take_early(std::uint64_t team_id) noexcept;

 private:
  friend class team_puts;
  struct notice;
  struct chunk {
    std::unique_ptr<std::byte[]> memory;
    fabric::region_key region;
    fabric::network* network = nullptr;  ///< null: it is not registered
    std::size_t used_bytes = 0;
    std::size_t bytes = 0;
  };
  struct early_notice;
  struct copies {
    fabric::network* network;
    std::size_t bytes;
    std::byte* at;
  };

  // Sending.
  status advance(put_channel& c, std::size_t lane, send_operation& op) noexcept;
  void advance_lane(put_channel& c, std::size_t lane) noexcept;
  void fill(put_channel& c, std::size_t lane, send_operation& op) noexcept;
  status post(put_channel& c, put_channel::write& w) noexcept;
  void request(put_channel& c) noexcept;
  void take_credits(put_channel& c, const std::array<std::uint16_t, put_lanes>& freed) noexcept;
  static void on_write(fabric::completion& self, status result, std::uint64_t bytes) noexcept;
  static unsigned on_duty(void* self) noexcept;
  void add_duty(put_channel& c) noexcept;
  // Receiving.
  bool take(put_channel& c, std::size_t lane, receive_operation& op) noexcept;
  void free_slot(put_channel& c, std::size_t lane) noexcept;
  void send_credits(put_channel& c) noexcept;
  static void on_immediate(void* self, int source, std::uint32_t value) noexcept;
  void arrive(put_channel& c, std::size_t lane, std::uint8_t number) noexcept;
  // Notices.
  static void on_notice(void* self, int source, std::span<const std::byte> payload) noexcept;
  void take_notice(team_state& team, int source, const notice& n, std::span<const std::byte> data) noexcept;
  void grant(put_channel& c, int members) noexcept;
  void take_grant(put_channel& c, const notice& n) noexcept;
  void take_data(put_channel& c, const notice& n, std::span<const std::byte> data) noexcept;
  void send_notice(const put_channel& c, notice& n, std::span<const std::byte> data = {}) noexcept;
  // Memory.
  void make_landing(put_channel& c, std::size_t slot_bytes) noexcept;
  [[nodiscard]] landing take_memory(const put_channel& c, std::size_t slot_bytes) noexcept;
  /// Null if it cannot be registered.
  chunk* chunk_with(fabric::network* network, std::size_t bytes) noexcept;
  /// Takes memory for the copies of the slots. False if it cannot be registered.
  bool take_copies(put_channel& c) noexcept;
  void retire(std::unique_ptr<put_channel> c) noexcept;
  void drop(put_channel& c) noexcept;

  context& ctx_;
  machine& owner_;
  std::vector<put_channel*> by_index_;  ///< channels by the number of their landing memory; null: not in use
  std::unordered_map<int, std::vector<landing>> unused_;  ///< by sender
  std::vector<chunk> chunks_;
  std::vector<copies> unused_copies_;
  std::vector<put_channel*> due_;                      ///< with writes to be posted again
  std::vector<std::unique_ptr<put_channel>> retired_;  ///< channels of dropped teams, with writes in flight
  std::vector<early_notice> early_;
};

}  // namespace rma::detail::coll
