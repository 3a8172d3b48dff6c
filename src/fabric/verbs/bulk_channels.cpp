// SPDX-License-Identifier: Apache-2.0
#include "fabric/verbs/bulk_channels.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/clock.hpp"

namespace rma::verbs {
namespace {

constexpr std::int64_t drain_ns = 2'000'000'000;  // time for a queue pair in error to return its entries
constexpr std::uint64_t bulk_mark = std::uint64_t{1} << 62;
constexpr std::uint64_t receive_mark = std::uint64_t{1} << 61;

std::uint64_t label_of(const connection& c, bool receive) noexcept {
  return bulk_mark | (receive ? receive_mark : 0) | c.index;
}

/// Adapters have a code of its own for a send that is longer than its receive; Linux's software reports general codes,
/// which have few other causes here, since all memory is registered.
status status_of(const ibv_wc& done) noexcept {
  switch (done.status) {
    case IBV_WC_SUCCESS: return status::done;
    case IBV_WC_LOC_LEN_ERR:
    case IBV_WC_LOC_QP_OP_ERR:
    case IBV_WC_REM_INV_REQ_ERR:
    case IBV_WC_REM_OP_ERR: return status::message_too_long;
    default: return status::transfer_failed;
  }
}

}  // namespace

// ---- posting ------------------------------------------------------------------------------------------------

status bulk_channels::send(int peer, slices from, std::uint64_t token) noexcept {
  return add(peer, from, token, false);
}

status bulk_channels::post_receive(int peer, slices to, std::uint64_t token) noexcept {
  return add(peer, to, token, true);
}

status bulk_channels::add(int peer, slices local, std::uint64_t token, bool receive) noexcept {
  const std::size_t bytes = bytes_of(local);
  if (local.size() > caps_.bulk_pieces_max || bytes > caps_.transfer_bytes_max) return status::bad_argument;
  connection* c = nullptr;
  if (const status s = reach(peer, c); s != status::done) return s;
  if (c->state.load(std::memory_order_acquire) == connection_state::dead) return status::peer_failed;
  bulk_line& line = receive ? c->bulk->receives : c->bulk->sends;
  if (line.full()) return status::retry_queue_full;
  bulk_entry& entry = line.room();
  entry.token = token;
  if (!describe(local, entry)) return status::not_supported;
  line.add();
  if (!receive) ++sends_;
  if (c->bulk->flowing) post(*c);
  list(*c);
  return status::posted;
}

// The first end to need the connection asks for it; both ends use it.
status bulk_channels::reach(int peer, connection*& c) noexcept {
  connection*& known = by_peer_[peer];
  if (known == nullptr) {
    if (const status s = all_.look_for(peer, channel::bulk, known); s != status::done) return s;
    known->bulk = std::make_unique<bulk_channel>();
    all_.list(*known);
  }
  c = known;
  return status::done;
}

// Returns false if a piece cannot be registered. Empty pieces are left out: adapters take 0 bytes for 2 GiB.
bool bulk_channels::describe(slices local, bulk_entry& entry) noexcept {
  std::array<fabric::local_slice, bulk_pieces_max> strange;
  std::array<std::uint32_t, bulk_pieces_max> places{};
  entry.piece_count = entry.lease_count = 0;
  for (const fabric::local_slice& each : local) {
    if (each.bytes == 0) continue;
    const ibv_mr* const region = memory_.regions().find(each.at, each.bytes);
    if (region == nullptr) {
      places[entry.lease_count] = entry.piece_count;
      strange[entry.lease_count++] = each;
    }
    entry.pieces[entry.piece_count++] = {reinterpret_cast<std::uint64_t>(each.at),
                                         static_cast<std::uint32_t>(each.bytes), region == nullptr ? 0 : region->lkey};
  }
  const auto wanted = std::span(strange).first(entry.lease_count);
  if (wanted.empty()) return true;
  if (!memory_.cache().acquire(wanted, std::span(entry.leases).first(entry.lease_count))) {
    entry.lease_count = 0;
    memory_.regions().complain(wanted[0].bytes);
    return false;
  }
  for (std::size_t i = 0; i < entry.lease_count; ++i) entry.pieces[places[i]].lkey = entry.leases[i]->keys().local_key;
  return true;
}

void bulk_channels::list(connection& c) noexcept {
  const bulk_channel& b = *c.bulk;
  const bool waits = !b.flowing || !b.sends.all_posted() || !b.receives.all_posted();
  if (waits && std::find(waiting_.begin(), waiting_.end(), &c) == waiting_.end()) waiting_.push_back(&c);
}

// Posts receives first: a peer that finds one need not retry. Each has a completion, like a send.
void bulk_channels::post(connection& c) noexcept {
  bulk_channel& b = *c.bulk;
  while (!b.receives.all_posted() && budget_.has_room()) {
    bulk_entry& each = b.receives.next();
    ibv_recv_wr request{};
    request.wr_id = label_of(c, true);
    request.sg_list = each.pieces.data();
    request.num_sge = static_cast<int>(each.piece_count);
    ibv_recv_wr* refused = nullptr;
    if (::ibv_post_recv(c.queue_pair, &request, &refused) != 0) break;
    b.receives.posted();
    --budget_.max;
  }
  while (!b.sends.all_posted() && budget_.has_room()) {
    bulk_entry& each = b.sends.next();
    ibv_send_wr request{};
    request.wr_id = label_of(c, false);
    request.sg_list = each.pieces.data();
    request.num_sge = static_cast<int>(each.piece_count);
    request.opcode = IBV_WR_SEND;
    request.send_flags = IBV_SEND_SIGNALED;
    ibv_send_wr* refused = nullptr;
    if (::ibv_post_send(c.queue_pair, &request, &refused) != 0) break;
    b.sends.posted();
    ++budget_.under_way;
    ++posted_;
  }
}

// ---- completions --------------------------------------------------------------------------------------------

bool bulk_channels::is_bulk(std::uint64_t label) noexcept { return (label & bulk_mark) != 0; }

// Entries that a queue pair in error flushes stay in their line.
void bulk_channels::take(const ibv_wc& done, fabric::sink& to) noexcept {
  connection& c = all_.at(done.wr_id & ~(bulk_mark | receive_mark));
  const connection_state state = c.state.load(std::memory_order_acquire);
  if (c.abandoned || connections::is_over(c, state, done)) return;
  const bool receive = (done.wr_id & receive_mark) != 0;
  bulk_line& line = receive ? c.bulk->receives : c.bulk->sends;
  line.given_back();
  if (receive) {
    ++budget_.max;
  } else {
    --budget_.under_way;
  }
  if (done.status == IBV_WC_WR_FLUSH_ERR) return;
  if (done.status == IBV_WC_RETRY_EXC_ERR) return all_.lose(c, to);
  bulk_entry& entry = line.take_first();
  entry.result = status_of(done);
  if (!receive) --sends_;
  if (entry.result == status::done) return end(entry, status::done, to, receive ? done.byte_len : 0);
  c.bulk->unresolved.push_back(entry);
  if (state == connection_state::ready) all_.manager().give_up(c);
}

void bulk_channels::end(const bulk_entry& entry, status result, fabric::sink& to, std::uint64_t bytes) noexcept {
  release(entry);
  if (entry.token != 0) to.on_completion(entry.token, result, bytes);
}

void bulk_channels::release(const bulk_entry& entry) noexcept {
  for (std::size_t i = 0; i < entry.lease_count; ++i) memory_.cache().release(entry.leases[i]);
}

void bulk_channels::drop(bulk_channel& b) noexcept {
  for (const bulk_entry& each : b.unresolved) release(each);
  for (bulk_line* line : {&b.sends, &b.receives}) {
    while (!line->empty()) release(line->take_first());
  }
}

void bulk_channels::end_unresolved(connection& c, bool dead, fabric::sink& to) noexcept {
  for (const bulk_entry& each : std::exchange(c.bulk->unresolved, {}))
    end(each, dead ? status::peer_failed : each.result, to);
}

// Called when the connection is broken, or its peer is dead.
void bulk_channels::abandon(connection& c, fabric::sink& to) noexcept {
  const bool dead = c.state.load(std::memory_order_acquire) == connection_state::dead;
  if (c.bulk == nullptr) {
    if (!dead) all_.manager().mend(c);  // only the peer has used the channel
    return;
  }
  bulk_channel& b = *c.bulk;
  if (dead && std::exchange(c.abandoned, true)) return;
  if (!dead && b.draining) return;
  b.flowing = false;
  b.draining = !dead;
  b.broken_ns = detail::clock_ns();
  if (dead) return end_all(c, to);
  all_.manager().stop(c);
  list(c);
}

void bulk_channels::end_all(connection& c, fabric::sink& to) noexcept {
  forget_queue(*c.bulk);
  end_unresolved(c, true, to);
  for (bulk_line* line : {&c.bulk->sends, &c.bulk->receives}) {
    while (!line->empty()) {
      if (line == &c.bulk->sends) --sends_;
      end(line->take_first(), status::peer_failed, to);
    }
    line->start_again();
  }
}

void bulk_channels::forget_queue(bulk_channel& b) noexcept {
  budget_.under_way -= b.sends.in_queue();
  budget_.max += b.receives.in_queue();
  b.sends.start_again();
  b.receives.start_again();
}

// Serves channels that wait for their connection, or for room. The handler of a completion may post, and so add some.
void bulk_channels::go_on(fabric::sink& to) noexcept {
  for (std::size_t i = 0; i < waiting_.size();) {
    if (needs_no_more(*waiting_[i], to)) {
      waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// True if all entries of the channel are posted, or its peer is dead.
bool bulk_channels::needs_no_more(connection& c, fabric::sink& to) noexcept {
  bulk_channel& b = *c.bulk;
  const connection_state state = c.state.load(std::memory_order_acquire);
  if (state == connection_state::dead) return true;
  const bool drained = b.sends.in_queue() + b.receives.in_queue() == 0;
  if (b.draining && state == connection_state::broken && (drained || detail::clock_ns() - b.broken_ns > drain_ns)) {
    b.draining = false;
    forget_queue(b);
    all_.manager().mend(c, b.receives.over());
    return false;
  }
  if (!b.unresolved.empty()) resolve_doubts(c, to);
  if (state != connection_state::ready || b.draining) return false;
  if (!b.flowing) flow_again(c, to);
  post(c);
  return b.sends.all_posted() && b.receives.all_posted();
}

// As with other operations: see broken_connections::resolve_doubts.
void bulk_channels::resolve_doubts(connection& c, fabric::sink& to) noexcept {
  const std::int64_t broken_ns = c.bulk->broken_ns;
  if (c.heard_ns.load(std::memory_order_relaxed) > broken_ns) {
    end_unresolved(c, false, to);
  } else if (detail::clock_ns() - broken_ns > drain_ns + doubt_ns) {
    all_.lose(c, to);
  }
}

// Called on a new connection: entries that the peer had received before are complete, even if the acknowledgement was
// lost.
void bulk_channels::flow_again(connection& c, fabric::sink& to) noexcept {
  bulk_channel& b = *c.bulk;
  for (std::uint32_t n = b.sends.had_by_peer(c.peers_over); n != 0; --n) {
    --sends_;
    end(b.sends.take_first(), status::done, to);
  }
  b.sends.start_again();
  b.flowing = true;
}

}  // namespace rma::verbs
