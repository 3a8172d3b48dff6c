// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages with tags between two ranks: what the public calls, and the schedules of collectives, post sends and
/// receives to.
///
/// Nothing here waits or, in steady state, allocates. Callers hold the progress lock and own the records:
///
///   struct round : receive_operation { schedule* of; };
///   r.context = message_context(team.id, message_user::collectives);
///   r.peer = team.world_rank(left), r.tag = turn, r.at = buffer, r.bytes = size;
///   r.over = [](message_operation& self) noexcept { static_cast<round&>(self).of->go_on(); };
///   if (messages.receive(r) != status::posted) go_on();    // it was there, or its source is dead: see r.result
///
/// Messages from one rank to another with the same context are received in the order in which their sends were started,
/// by the first of the receives that match. A message shorter than the receive is all right. Of a longer one nothing is
/// written: the receive ends with `message_too_long`, and the send as if it had been taken. What is under way with a
/// rank that dies or leaves the job ends with `peer_failed`; receives of any source do not, since another rank may
/// still send.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/context.hpp"
#include "p2p/match_table.hpp"
#include "p2p/operation.hpp"
#include "p2p/operation_ids.hpp"
#include "p2p/unexpected.hpp"
#include "p2p/wire.hpp"

namespace rma::detail {

class messenger {
 public:
  explicit messenger(context& ctx);
  messenger(const messenger&) = delete;
  messenger& operator=(const messenger&) = delete;
  ~messenger();

  [[nodiscard]] context& ctx() noexcept { return ctx_; }

  // ---- the caller holds the progress lock -------------------------------------------------------------------------
  /// Starts a send. `posted`: it will be over later, and `op.over` is called then. Else it is over, with this result,
  /// and `op.over` is not called.
  status send(send_operation& op) noexcept;
  /// The same of a receive.
  status receive(receive_operation& op) noexcept;
  /// Takes a receive back that no message has matched yet, or a send that has not left; true if it was one. It is over
  /// then, and `op.over` is not called.
  bool cancel(message_operation& op) noexcept;
  /// Ends an operation whose end nobody wants any more, since its team is revoked or a member of it is dead. True: it
  /// is over with this result, nothing of its buffer is touched any more, and `op.over` is not called. False: something
  /// is on its way that cannot be called back, and ends it soon; `op.over` is called then. The other side's operation
  /// ends with `transfer_failed` if it has begun.
  bool withdraw(message_operation& op, status result) noexcept;

  /// Memory that messages take which no receive has asked for yet, and the most that all other ranks together may make
  /// it.
  [[nodiscard]] std::size_t unexpected_bytes() const noexcept { return unexpected_.reserved_bytes(); }
  [[nodiscard]] std::size_t unexpected_bytes_max() const noexcept {
    return static_cast<std::size_t>(ctx_.size()) * units_max_ * unexpected_messages::unit_bytes;
  }

  // ---- the caller does not hold it --------------------------------------------------------------------------------
  /// Blocks until it is over; its result. `failed` as in context::wait_until: when it says that what the operation
  /// waits for cannot happen any more, the operation is withdrawn.
  template <class Failed>
  status wait(message_operation& op, Failed&& failed) noexcept {
    const auto over = [&op]() noexcept { return op.ended.load(std::memory_order_acquire) != 0; };
    const status s = ctx_.wait_for_message(over, failed);
    if (s == status::done) return op.result;
    {
      const std::lock_guard guard(ctx_.lock());
      if (over() || withdraw(op, s)) return op.result;
    }
    (void)ctx_.wait_for_message(over, []() noexcept { return status::done; });
    return op.result;
  }

 private:
  struct peer;
  peer& peer_of(int rank);
  peer& find_peer(int rank);

  // Sends.
  status depart(peer& p, send_operation& op) noexcept;
  status try_eager(peer& p, send_operation& op) noexcept;
  status try_announce(peer& p, send_operation& op) noexcept;
  void queue(peer& p, send_operation& op) noexcept;
  void send_queued(peer& p) noexcept;
  void stream(peer& p) noexcept;
  [[nodiscard]] std::span<const std::byte> data_of(const message_operation& op, std::size_t from,
                                                   std::size_t bytes) noexcept;

  // Receives.
  [[nodiscard]] receive_operation* find_posted(const match_key& key) noexcept;
  void post(receive_operation& op) noexcept;
  void unpost(receive_operation& op) noexcept;
  status take(receive_operation& op, unexpected_message& m) noexcept;
  status accept_data(receive_operation& op, const match_key& from, std::span<const std::byte> data) noexcept;
  status accept_announced(receive_operation& op, const match_key& from, std::uint64_t bytes,
                          std::uint64_t send) noexcept;
  void give_back(peer& p, std::uint32_t units) noexcept;
  void tell(int to, std::uint64_t id, std::uint64_t from, rendezvous_step step) noexcept;

  void finish(message_operation& op, status result) noexcept;
  static status end_now(message_operation& op, status result) noexcept;
  void detach(message_operation& op) noexcept;
  void busy(peer& p) noexcept;
  void fail_all_of(peer& p) noexcept;
  void look_at_peers() noexcept;

  static void on_eager(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_announce(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_rendezvous(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_stream(void* self, int source, std::span<const std::byte> payload) noexcept;
  static void on_credit(void* self, int source, std::span<const std::byte> payload) noexcept;
  static unsigned on_duty(void* self) noexcept;
  static void on_news(void* self) noexcept;
  static void on_clear_to_send(messenger& me, int source, const rendezvous_message& m) noexcept;

  context& ctx_;
  std::uint32_t units_max_;  ///< of memory that one peer's unexpected messages may take
  std::size_t eager_max_;    ///< bytes of an eager message
  std::unordered_map<int, std::unique_ptr<peer>> peers_;
  int last_rank_ = -1;
  peer* last_peer_ = nullptr;
  std::vector<peer*> busy_;  ///< those with something queued or streaming
  match_table posted_;       ///< receives
  std::uint64_t next_number_ = 0;
  std::array<std::uint32_t, match_classes> posted_count_{};
  unexpected_messages unexpected_;
  operation_ids ids_;
  std::vector<std::byte> scratch_;
};

}  // namespace rma::detail
