// SPDX-License-Identifier: Apache-2.0
/// \file
/// The bulk channel transfers data from the gather list of a send into the receive that the target has posted, in
/// order. A send that finds no receive waits at the target; its origin retries every `receiver_not_ready_ps`.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fabric/sim/sim_fabric.hpp"
#include "fabric/sim/wire.hpp"

namespace rma::sim {
namespace {

void scatter(const std::vector<fabric::local_slice>& to, const std::byte* from, std::uint64_t bytes) noexcept {
  for (const fabric::local_slice& piece : to) {
    const std::uint64_t n = std::min<std::uint64_t>(piece.bytes, bytes);
    if (n != 0) std::memcpy(piece.at, from, n);
    from += n;
    bytes -= n;
  }
}

}  // namespace

status wire::post_receive(int rank, int origin, std::span<const fabric::local_slice> to, std::uint64_t token) {
  const std::uint64_t pair = pair_of(origin, rank);
  connection& c = connections_[pair];
  if (c.receives.size() >= faults_.receive_queue) return status::retry_queue_full;
  bulk_pairs_.insert(pair);
  const auto entries = static_cast<time_ps>(std::max<std::size_t>(to.size(), 1) - 1);
  const parameters& with = model_.constants();
  job_.charge(rank, with.post_time_ps + entries * with.list_entry_time_ps, activity::post);
  std::uint64_t bytes = 0;
  for (const auto& each : to) bytes += each.bytes;
  if (spare_receives_.empty()) spare_receives_.emplace_back();
  c.receives.splice(c.receives.end(), spare_receives_, spare_receives_.begin());
  bulk_receive& posted = c.receives.back();
  posted.to.assign(to.begin(), to.end());
  posted.bytes = bytes;
  posted.token = token;
  if (!job_.alive(origin)) end_bulk_of_dead(rank);
  offer_again(pair, c);
  return status::posted;
}

// Schedules the delivery at the origin's next retry.
void wire::offer_again(std::uint64_t pair, connection& c) {
  if (c.refused_ps == never_ps || c.bulk_retrying || c.receives.empty()) return;
  c.bulk_retrying = true;
  const time_ps every_ps = std::max<time_ps>(faults_.receiver_not_ready_ps, 1);
  const time_ps now_ps = job_.local_time_ps(static_cast<int>(static_cast<std::uint32_t>(pair)));
  const time_ps tries = (std::max(now_ps - c.refused_ps, time_ps{1}) + every_ps - 1) / every_ps;
  job_.events().at(c.refused_ps + tries * every_ps, &wire::on_bulk_due, this, pair);
}

void wire::on_bulk_due(void* self, std::uint64_t pair) noexcept {
  auto& me = *static_cast<wire*>(self);
  connection& c = me.connections_.at(pair);
  c.bulk_retrying = false;
  c.refused_ps = never_ps;
  me.serve(c, c.bulk);
}

// Returns false if the send cannot be delivered yet.
bool wire::deliver_bulk(connection& c, std::uint32_t index) {
  flight& f = at(index);
  sim_fabric* const owner = fabrics_[static_cast<std::size_t>(f.target)];
  const bool nobody = owner == nullptr || !job_.alive(f.target);
  if (!nobody && f.result == status::done && job_.alive(f.origin)) {
    if (c.receives.empty()) {
      if (c.refused_ps == never_ps) c.refused_ps = job_.events().now_ps();
      return false;
    }
    const bulk_receive& into = c.receives.front();
    if (f.bytes > into.bytes) f.result = status::message_too_long;
    if (f.result == status::done) scatter(into.to, f.data.data(), std::min(f.bytes, f.fails_at));
    if (f.result == status::done && f.fails) f.result = status::transfer_failed;
    owner->put_completion(
        {.peer = f.origin, .token = into.token, .result = f.result, .bytes = f.result == status::done ? f.bytes : 0});
    spare_receives_.splice(spare_receives_.begin(), c.receives, c.receives.begin());
  }
  if (nobody) f.result = status::peer_failed;
  ++f.holds;  // until the reply has arrived
  answer(index);
  return true;
}

void wire::end_bulk_of_dead(int rank) {
  for (const std::uint64_t pair : bulk_pairs_) {
    const auto origin = static_cast<int>(pair >> 32);
    const auto target = static_cast<int>(static_cast<std::uint32_t>(pair));
    connection& c = connections_.at(pair);
    if (origin == rank && !job_.alive(target)) serve(c, c.bulk);
    if (target != rank || job_.alive(origin)) continue;
    sim_fabric* const mine = fabrics_[static_cast<std::size_t>(rank)];
    for (const bulk_receive& each : std::exchange(c.receives, {}))
      mine->put_completion({.peer = origin, .token = each.token, .result = status::peer_failed});
  }
}

}  // namespace rma::sim
