// SPDX-License-Identifier: Apache-2.0
/// \file
/// From the arguments of a public call to the record of a message, and back.
#pragma once

#include <string>

#include "p2p/messenger.hpp"
#include "rma/detail/message_ops.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail {

inline status check_peer(const team_core& team, int rank) noexcept {
  if (const status s = team.rt->ctx->check_caller(); s != status::done) return s;
  if (const status s = team.revocation(); s != status::done) return s;
  return rank >= team.size || rank < no_rank ? status::bad_rank : status::done;
}
inline status check_send(const team_core& team, int to, int tag) noexcept {
  if (const status s = check_peer(team, to); s != status::done) return s;
  if (to == any_source) return status::bad_rank;
  return tag < 0 ? status::bad_argument : status::done;
}
inline status check_receive(const team_core& team, int from, int tag) noexcept {
  if (const status s = check_peer(team, from); s != status::done) return s;
  return tag < any_tag ? status::bad_argument : status::done;
}

/// The lines of short messages with a member, if they are known, the team is not revoked, and any thread may call; else
/// null. Needs no call.
inline shm::line_pair* lines_of_any_thread(const team_core& team, int r, int tag) noexcept {
  const auto i = static_cast<std::uint32_t>(r - team.first);  // a rank that is no member is beyond all
  if (i >= static_cast<std::uint32_t>(team.mapped) || team.message_lines == nullptr || tag < any_tag ||
      team.revoked.load(std::memory_order_relaxed) || team.messages->ctx().is_single_threaded())
    return nullptr;
  return team.message_lines[i].load(std::memory_order_relaxed);
}

/// The lines of short messages with a member, if they are known and it may be called at all; else null.
inline shm::line_pair* lines_of(const team_core& team, int r, int tag) noexcept {
  const auto i = static_cast<std::uint32_t>(r - team.first);  // a rank that is no member is beyond all
  if (i >= static_cast<std::uint32_t>(team.mapped) || team.message_lines == nullptr || tag < any_tag) return nullptr;
  shm::line_pair* const found = team.message_lines[i].load(std::memory_order_relaxed);
  const bool may = !team.revoked.load(std::memory_order_relaxed) && team.messages->ctx().check_caller() == status::done;
  return may ? found : nullptr;
}
/// For the next call.
inline void find_lines(team_core& team, int r) noexcept {
  if (team.message_lines == nullptr || team.node_index(r) < 0) return;
  auto& known = team.message_lines[static_cast<std::size_t>(r - team.first)];
  if (known.load(std::memory_order_relaxed) == nullptr) known.store(team.messages->lines_with(team.world_rank(r)));
}

inline void fill_buffer(message_operation& op, const team_core& team, const message_buffer& data, int tag) noexcept {
  op.context = team.user_context;
  op.tag = tag;
  op.at = data.at;
  op.bytes = data.bytes;
  op.layout = data.layout;
  if (op.layout == nullptr || !op.layout->is_contiguous()) return;
  op.at = static_cast<std::byte*>(op.at) + op.layout->lower();
  op.layout = nullptr;
}
inline void fill_send(send_operation& op, const team_core& team, send_kind kind, const message_buffer& data, int to,
                      int tag) noexcept {
  fill_buffer(op, team, data, tag);
  op.peer = team.world_rank(to);
  op.mode = kind == send_kind::synchronous ? send_mode::synchronous : send_mode::standard;
}
inline void fill_receive(receive_operation& op, const team_core& team, const message_buffer& into, int from,
                         int tag) noexcept {
  fill_buffer(op, team, into, tag);
  op.peer = from == any_source ? any_source : team.world_rank(from);
}

/// Number in the team of a world rank that is a member.
inline int member_of(const team_core& team, int world_rank) noexcept {
  if (team.members == nullptr) return world_rank;
  int r = 0;
  while (r < team.size && team.world_rank(r) != world_rank) ++r;
  return r;
}
/// A receive has got this.
inline Received received_of(const team_core& team, const receive_operation& op) noexcept {
  Received what;
  what.room = op.bytes;
  what.call_rank = op.peer;
  if (op.source == any_source) return what;
  what.source = member_of(team, op.source);
  what.tag = op.message_tag;
  what.bytes = op.message_bytes;
  return what;
}

/// Whether an operation with that world rank can still end. The messenger ends those with a rank that is gone itself.
inline status failed_with(team_core& team, int world_rank) noexcept {
  return world_rank == any_source ? team.nobody_left() : team.revocation();
}
inline status wait_operation(team_core& team, message_operation& op) noexcept {
  return team.rt->messages->wait(op, [&]() noexcept { return failed_with(team, op.peer); });
}

/// Why a message has failed, for people: ": ..." or nothing.
std::string reason_of_message(status code, const Received& what);

/// bsend: on its way, or a copy of it.
status send_copy(team_core& team, const message_buffer& data, int to, int tag) noexcept;

}  // namespace rma::detail
