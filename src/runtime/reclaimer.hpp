// SPDX-License-Identifier: Apache-2.0
/// \file
/// Memory of windows and teams whose handles were dropped. Other members may still use it: it is released when every
/// member has dropped its handle. The drops are counted along the binomial tree of the members' collectives:
///
///   dropped here and by all below        -- dropped -->    the member above
///   dropped by all: the first member     -- released -->   the members below, and so on
///
/// Destructors send nothing: drops are announced when this rank makes the next window or team, whose own messages use
/// the same tree. So the memory of a window is available for the next one, and a rank that ends sends nothing.
///
/// Members that are gone are not in the tree. A message carries a digest of those that its sender has left out, and
/// is valid only if it equals the receiver's; a rank that learns of another one starts again. If a member dies
/// during a release, the members below it keep the memory for as long as the job lasts.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "channel/context.hpp"

namespace rma::detail {

/// A part of this rank's segment; empty if it has no bytes.
struct segment_part {
  std::size_t offset = 0;
  std::size_t bytes = 0;
};

/// An object that this rank has dropped.
struct dropped_object {
  std::uint64_t id = 0;                    ///< the same on all members, used once
  std::shared_ptr<const int[]> members{};  ///< world ranks; null: the world itself
  int size = 0;
  int rank = 0;
  std::array<segment_part, 2> parts{};
};

class reclaimer {
 public:
  explicit reclaimer(context& ctx);

  /// Records a dropped handle. Sends nothing yet.
  void drop(dropped_object object);
  /// Announces the drops since the last call to other members.
  void announce() noexcept;
  /// Returns the objects that all members have dropped, each once.
  [[nodiscard]] std::vector<segment_part> take_released() noexcept;

 private:
  struct news;
  /// Handles a message of another member, with the digest of those that it has left out.
  struct report {
    int from;
    std::uint64_t without;
  };
  struct record {
    dropped_object object{};  ///< set when it is dropped here
    bool dropped = false;
    bool announced = false;     ///< announced to `above`
    bool is_old = false;        ///< not released by the next announcement
    std::uint64_t without = 0;  ///< digest of the members that are gone
    int above = -1;             ///< world rank; -1: none
    std::vector<int> below{};   ///< world ranks
    std::vector<report> reports{};
  };
  using records = std::unordered_map<std::uint64_t, record>;

  [[nodiscard]] std::vector<bool> gone_ranks() noexcept;
  /// Finds the record's place in the tree of those that are not gone (empty: all are there). False if nothing has
  /// changed.
  static bool move(record& r, const std::vector<bool>& gone);
  void advance(records::iterator at) noexcept;
  void release(records::iterator at) noexcept;
  static void on_news(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  // Guarded by the progress lock.
  std::vector<dropped_object> fresh_;  ///< not announced yet
  records records_;                    ///< records of objects that not all members have dropped
  std::vector<segment_part> released_;
};

}  // namespace rma::detail
