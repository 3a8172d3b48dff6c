// SPDX-License-Identifier: Apache-2.0
/// \file
/// Revocation of teams and windows: after one member has revoked one, no rank waits on it any more: every wait on it
/// ends.
///
/// A rank that learns of it first marks the object and passes the message on, along distances of 1, 2, 4, ... to both
/// sides: all living members get it while fewer of them die than each has neighbors. Waits ask their object whenever a
/// revocation has come (context::note_revocation). Source: Bosilca, Bouteiller, Herault, et al., A Failure Detector for
/// HPC Platforms, 2018; MPI ULFM, MPI_Comm_revoke.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>

#include "channel/context.hpp"

namespace rma::detail {

class engine;
struct team_core;
struct window_core;

class revocations {
 public:
  revocations(context& ctx, engine& ops);

  /// A team that may be revoked from now on, by its id.
  void add(team_core& team);
  void remove(const team_core& team) noexcept;
  /// A window that was just made known to the engine; the caller holds the progress lock.
  void add(window_core& w) noexcept;

  void revoke(team_core& team) noexcept;
  void revoke(window_core& w) noexcept;

 private:
  struct news;
  void mark(std::atomic<bool>& flag, const team_core& members, const news& n) noexcept;
  void spread(const team_core& members, const news& n) noexcept;
  [[nodiscard]] bool came_early(std::uint64_t id) const noexcept;
  static void on_news(void* self, int source, std::span<const std::byte> payload) noexcept;

  context& ctx_;
  engine& ops_;
  // Guarded by the progress lock.
  std::unordered_map<std::uint64_t, team_core*> teams_;
  std::array<std::uint64_t, 64> early_{};  ///< the last that were not known here: not made yet, or dropped already
  std::size_t next_early_ = 0;
};

}  // namespace rma::detail
