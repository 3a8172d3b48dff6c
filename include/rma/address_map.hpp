// SPDX-License-Identifier: Apache-2.0
/// \file
/// Finds the window that contains an address of another rank's memory: for shims of interfaces that name remote memory
/// by pointers (ARMCI, SHMEM).
///
///   rma::AddressMap map(rt.world());
///   map.add(win, &array);
///   void* const theirs = map.address_of(win, 3);             // in rank 3's address space; any rank may send it on
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

/// Maps the addresses of the members' parts of windows to the windows. A window of library memory has its parts at the
/// same offset from the start of each rank's segment, so that one base address of each rank, gathered once, suffices:
/// no state is kept for each window and peer.
///
/// Units      bytes
/// Threads    any number of threads may find; add and remove are for one thread while no other thread finds
class AddressMap {
 public:
  /// A location in a window.
  struct Place {
    void* object = nullptr;  ///< the object that the window was added with
    int target = -1;         ///< the rank's number in the window's team
    std::size_t at = 0;      ///< bytes from the start of its part
    /// True if a window contains the address.
    explicit operator bool() const noexcept { return target >= 0; }
  };

  /// Shape      collective over the team
  /// Cost       8 bytes for each member
  explicit AddressMap(const Team& team);
  AddressMap(const AddressMap&) = delete;
  AddressMap& operator=(const AddressMap&) = delete;
  ~AddressMap();

  /// Adds a window of `allocate` or `allocate_shared`, all of whose members must be members of the map's team. `find`
  /// returns `object` for it. Shape: local.
  /// Errors     not_supported for other windows; bad_argument if it has been added, or has other members
  [[nodiscard]] status add(const window_facts& window, void* object);
  /// Removes a window; to be called before the window is freed.
  /// Errors     bad_argument if it has not been added
  [[nodiscard]] status remove(const window_facts& window);

  /// The window whose part on `rank` of the map's team contains `address`, a pointer in that rank's address space; or
  /// none. The length of the range is not checked here: the operation reports out_of_window.
  /// Cost       a binary search among the windows
  [[nodiscard]] Place find(int rank, const void* address) const noexcept;
  /// The address of the first byte of that rank's part, in its own address space. Null if the rank is no member of the
  /// window's team, or the window's memory is not the library's.
  [[nodiscard]] void* address_of(const window_facts& window, int rank) const;
  [[nodiscard]] std::size_t size() const noexcept { return windows_.size(); }

 private:
  /// Translates ranks of the map's team to ranks of a window's; windows with the same members share it.
  using translation = std::shared_ptr<const std::vector<int>>;
  struct known {
    std::uint64_t begin = 0;  ///< offsets in the segments
    std::uint64_t end = 0;
    std::uint64_t reach = 0;  ///< the greatest `end` of this and all earlier entries
    void* object = nullptr;
    const detail::team_core* team = nullptr;
    translation to_window{};  ///< null: the same numbers
  };
  [[nodiscard]] Place place_in(const known& one, int rank, std::uint64_t offset) const noexcept;
  [[nodiscard]] translation translation_to(const Team& team, bool& is_part) const;
  void update_reach() noexcept;

  Team team_;
  std::vector<std::uintptr_t> bases_;  ///< start addresses of the members' segments
  std::vector<known> windows_;         ///< sorted by `begin`
};

}  // namespace rma

#pragma GCC visibility pop
