// SPDX-License-Identifier: Apache-2.0
#include "sync/rounds.hpp"

#include <algorithm>
#include <bit>

#include "core/assert.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t tag_sums = 3;

std::uint32_t tag_of(std::uint32_t distance) noexcept { return distance << 2 | tag_sums; }

}  // namespace

void rounds::begin_barrier(team_core& team, dissemination::barrier_state& barrier_state) noexcept {
  circle_ = &barrier_state;
  ++barrier_state.turn;
  distance_ = 1;
  sent_ = false;
  over_ = team.size == 1;
}

void rounds::begin_reduce_scatter(team_core& team, std::uint64_t id, std::uint64_t turn,
                                  std::span<std::uint32_t> sums) noexcept {
  circle_ = nullptr;
  id_ = id;
  turn_ = turn;
  over_ = team.size == 1;
  distance_ = over_ ? 1 : std::bit_floor(static_cast<std::uint32_t>(team.size) - 1);
  sent_ = false;
  sums_ = sums;
}

/// The sums of this round for the ranks `first` and more ahead.
std::span<std::uint32_t> rounds::part(std::uint32_t first) const noexcept {
  const std::size_t end = std::min<std::size_t>(sums_.size(), 2 * std::size_t{distance_});
  return sums_.subspan(first, end - distance_);
}

void rounds::send(team_core& team) noexcept {
  const int to =
      static_cast<int>((static_cast<std::uint32_t>(team.rank) + distance_) % static_cast<unsigned>(team.size));
  if (circle_ != nullptr) {
    team.rt->barriers->tell(*circle_, round(), team.world_rank(to));
  } else {
    team.rt->mail->send(team.world_rank(to), id_, turn_, tag_of(distance_), std::as_bytes(part(distance_)));
  }
  sent_ = true;
}

int rounds::from(const team_core& team) const noexcept {
  const auto size = static_cast<unsigned>(team.size);
  return static_cast<int>((static_cast<unsigned>(team.rank) + size - distance_ % size) % size);
}

status rounds::advance(team_core& team) noexcept {
  while (!over_) {
    if (!sent_) send(team);
    if (circle_ != nullptr) {
      if (!dissemination::heard(*circle_, round())) return status::not_yet;
      distance_ *= 2;
      over_ = distance_ >= static_cast<std::uint32_t>(team.size);
    } else {
      other_.resize(part(distance_).size());
      const mailbox::address source{id_, turn_, tag_of(distance_), team.world_rank(from(team))};
      const status came = team.rt->mail->try_receive(source, std::as_writable_bytes(std::span(other_)));
      if (came == status::not_yet) return came;
      RMA_ASSERT(came == status::done);
      for (std::size_t i = 0; i < other_.size(); ++i) sums_[i] += other_[i];
      over_ = distance_ == 1;
      distance_ /= 2;
    }
    sent_ = false;
  }
  return status::done;
}

}  // namespace rma::detail
