// SPDX-License-Identifier: Apache-2.0
#include "rma/address_map.hpp"

#include <algorithm>

#include "rma/detail/window_ops.hpp"
#include "runtime/team_core.hpp"

namespace rma {
namespace {

std::uintptr_t segment_base(const Team& team) noexcept {
  const shm::board& board = *team.core().rt->board;
  return reinterpret_cast<std::uintptr_t>(board.segment(board.me()));
}

}  // namespace

AddressMap::AddressMap(const Team& team) : team_(team), bases_(Team(team).allgather(segment_base(team))) {}

AddressMap::~AddressMap() = default;

AddressMap::translation AddressMap::translation_to(const Team& team, bool& is_part) const {
  is_part = true;
  if (&team.core() == &team_.core()) return nullptr;
  for (const known& one : windows_) {
    if (one.team == &team.core()) return one.to_window;
  }
  std::vector<int> numbers(static_cast<std::size_t>(team_.size()), -1);
  for (int r = 0; r < team.size(); ++r) {
    const int here = team_.rank_of(team.world_rank(r));
    if (here < 0) {
      is_part = false;
      return nullptr;
    }
    numbers[static_cast<std::size_t>(here)] = r;
  }
  return std::make_shared<const std::vector<int>>(std::move(numbers));
}

void AddressMap::update_reach() noexcept {
  std::uint64_t reach = 0;
  for (known& one : windows_) {
    reach = std::max(reach, one.end);
    one.reach = reach;
  }
}

status AddressMap::add(const window_facts& window, void* object) {
  known one;
  std::uint64_t bytes = 0;
  if (!window.place_in_segment(one.begin, bytes)) return status::not_supported;
  const Team team = window.team();
  one.end = one.begin + bytes;
  one.object = object;
  one.team = &team.core();
  bool is_part = false;
  one.to_window = translation_to(team, is_part);
  if (!is_part) return status::bad_argument;
  const auto at = std::upper_bound(windows_.begin(), windows_.end(), one.begin,
                                   [](std::uint64_t begin, const known& each) { return begin < each.begin; });
  windows_.insert(at, std::move(one));
  update_reach();
  return status::done;
}

status AddressMap::remove(const window_facts& window) {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  if (!window.place_in_segment(begin, bytes)) return status::bad_argument;
  const detail::team_core* const team = &window.team().core();
  const auto at = std::find_if(windows_.begin(), windows_.end(),
                               [&](const known& one) { return one.begin == begin && one.team == team; });
  if (at == windows_.end()) return status::bad_argument;
  windows_.erase(at);
  update_reach();
  return status::done;
}

AddressMap::Place AddressMap::place_in(const known& one, int rank, std::uint64_t offset) const noexcept {
  if (offset < one.begin || offset >= one.end) return {};
  const int target = one.to_window == nullptr ? rank : (*one.to_window)[static_cast<std::size_t>(rank)];
  return {one.object, target, static_cast<std::size_t>(offset - one.begin)};
}

// Parts of windows with different members may lie at the same offset of different segments, where one is shorter on
// some ranks: a rank that is no member there belongs to another window.
AddressMap::Place AddressMap::find(int rank, const void* address) const noexcept {
  if (rank < 0 || static_cast<std::size_t>(rank) >= bases_.size()) return {};
  const std::uint64_t offset = reinterpret_cast<std::uintptr_t>(address) - bases_[static_cast<std::size_t>(rank)];
  const auto begin = windows_.begin();
  auto at = std::upper_bound(begin, windows_.end(), offset,
                             [](std::uint64_t wanted, const known& each) { return wanted < each.begin; });
  while (at != begin && (--at)->reach > offset) {
    if (const Place found = place_in(*at, rank, offset)) return found;
  }
  return {};
}

void* AddressMap::address_of(const window_facts& window, int rank) const {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  if (rank < 0 || rank >= team_.size() || !window.place_in_segment(offset, bytes)) return nullptr;
  if (window.team().rank_of(team_.world_rank(rank)) < 0) return nullptr;
  return reinterpret_cast<void*>(bases_[static_cast<std::size_t>(rank)] + offset);
}

}  // namespace rma
