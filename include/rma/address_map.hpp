// SPDX-License-Identifier: Apache-2.0
/// \file
/// From an address of another rank's memory to its window: for shims of interfaces that name remote memory by pointers
/// (ARMCI, SHMEM).
///
///   rma::AddressMap map(rt.world());
///   map.add(win, &array);
///   void* const theirs = map.address_of(win, 3);             // as rank 3 sees it; any rank may send it to another
///   const auto place = map.find(3, theirs + 40);             // {&array, 3, 40}
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "rma/team.hpp"
#include "rma/window_facts.hpp"

#pragma GCC visibility push(default)

namespace rma {

/// The addresses that the members of a team use for their parts of windows. Windows of library memory have their parts
/// at the same distance from the start of each rank's segment, so that one address of each rank, asked for once, is all
/// that there is to know: nothing is kept for each window and peer.
///
/// Units      bytes
/// Threads    any number of threads may find; add and remove are for one thread while nobody finds
class AddressMap {
 public:
  /// A window, and a place in it.
  struct Place {
    void* object = nullptr;  ///< what the window was added with
    int target = -1;         ///< number of the rank in the window's team
    std::size_t at = 0;      ///< bytes from the start of its part
    /// True if a window lies there.
    explicit operator bool() const noexcept { return target >= 0; }
  };

  /// Shape      collective over the team
  /// Cost       8 bytes for each member
  explicit AddressMap(const Team& team);
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;
  ~AddressMap();

  /// Makes a window of `allocate` or `allocate_shared` known, all of whose members must be members of the map's team.
  /// `object` is for the caller. Shape: local.
  /// Errors     not_supported for other windows; bad_argument if it is known, or has other members
  [[nodiscard]] status add(const window_facts& window, void* object);
  /// The opposite, before the window is freed.
  /// Errors     bad_argument if it is not known
  [[nodiscard]] status remove(const window_facts& window);

  /// The window whose part on `rank`, a number in the map's team, contains `address`, a pointer of that rank; or none.
  /// The last byte of a part is not looked for: the operation says out_of_window.
  /// Cost       a binary search among the windows
  [[nodiscard]] Place find(int rank, const void* address) const noexcept;
  /// Where that rank has the first byte of its part, in its own address space. Null if it is no member of the window's
  /// team, or the window's memory is not the library's.
  [[nodiscard]] void* address_of(const window_facts& window, int rank) const;
  [[nodiscard]] std::size_t size() const noexcept { return windows_.size(); }

 private:
  /// Ranks of the map's team -> ranks of a window's; of all windows with the same members.
  using translation = std::shared_ptr<const std::vector<int>>;
  struct known {
    std::uint64_t begin = 0;  ///< offsets in the segments
    std::uint64_t end = 0;
    std::uint64_t reach = 0;  ///< the greatest end up to here: nothing before reaches farther
    void* object = nullptr;
    const detail::team_core* team = nullptr;
    translation to_window{};  ///< null: the same numbers
  };
  [[nodiscard]] Place place_in(const known& one, int rank, std::uint64_t offset) const noexcept;
  [[nodiscard]] translation translation_to(const Team& team, bool& is_part) const;
  void update_reach() noexcept;

  Team team_;
  std::vector<std::uintptr_t> bases_;  ///< of the members' segments, where they are there
  std::vector<known> windows_;         ///< by `begin`
};

}  // namespace rma

#pragma GCC visibility pop
