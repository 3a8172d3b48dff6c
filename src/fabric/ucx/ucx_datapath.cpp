// SPDX-License-Identifier: Apache-2.0
/// \file
/// Posting of operations and arrival of messages. UCX calls back from inside its progress, and for messages to the own
/// rank from inside a send: events that cannot be reported at once wait for the next poll.
#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.hpp"
#include "fabric/ucx/ucx_fabric.hpp"

namespace rma::ucx {
namespace {

constexpr unsigned progress_rounds_max = 16;  // per poll

/// The status of one operation. A failed endpoint ends all its operations: the peer is unreachable then.
status status_of(ucs_status_t result) noexcept {
  switch (result) {
    case UCS_OK: return status::done;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_INVALID_PARAM:
    case UCS_ERR_INVALID_ADDR:
    case UCS_ERR_NO_MEMORY: return status::transfer_failed;
    default: return status::peer_failed;
  }
}

ucp_request_param_t request_param(ucp_send_nbx_callback_t call, void* with) noexcept {
  ucp_request_param_t how{};
  how.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  how.cb.send = call;
  how.user_data = with;
  return how;
}

}  // namespace

// ---- operations ---------------------------------------------------------------------------------------------

operation& ucx_fabric::new_operation(connection& c, std::uint64_t token) noexcept {
  if (free_operation_ == nullptr) {
    operations_.push_back(std::make_unique<operation>());
    free_operation_ = operations_.back().get();
    free_operation_->owner = this;
  }
  operation& o = *std::exchange(free_operation_, free_operation_->next_free);
  o.next_free = nullptr;
  o.to = &c;
  o.token = token;
  o.pieces = 1;
  o.flush = false;
  o.reported = false;
  o.old = nullptr;
  o.result = status::done;
  ++under_way_;
  ++c.under_way;
  return o;
}

void ucx_fabric::end_piece(operation& o, ucs_status_t result) noexcept {
  if (result != UCS_OK) o.result = status_of(result);
  if (--o.pieces == 0) end_operation(o);
}

void ucx_fabric::end_operation(operation& o) noexcept {
  if (o.old != nullptr && o.result == status::done && !o.reported) *o.old = o.reply;
  if (o.flush) {
    --o.to->flushes;
    const status worst = std::exchange(o.to->write_error, status::done);
    if (worst != status::done) o.result = worst;
  }
  tell(o, o.result);
  uncount(*o.to);
  o.next_free = std::exchange(free_operation_, &o);
}

// Reports the completion of an operation once, even if UCX has not completed its requests.
void ucx_fabric::tell(operation& o, status result) noexcept {
  if (std::exchange(o.reported, true)) return;
  const bool is_unresolved = result == status::peer_failed && o.to->state == messaged::connection_state::open;
  if (is_unresolved) suspect(*o.to);
  if (o.token != 0) o.written.push_back(o.token);
  for (const std::uint64_t token : o.written) {
    if (is_unresolved) {
      o.to->unresolved.push_back(token);
    } else {
      end(token, result);
    }
  }
  for (const std::uint32_t immediate : o.immediates) {
    if (result == status::done) tell_immediate(*o.to, immediate);
  }
  o.written.clear();
  o.immediates.clear();
}

void ucx_fabric::tell_immediate(connection& c, std::uint32_t immediate) noexcept {
  if (c.rank == rank_) {
    hand(rank_, static_cast<std::uint16_t>(own_kind::immediate), fabric::bytes_of(immediate));
  } else if (can_answer(c)) {
    transmit(c, own_kind::immediate, fabric::bytes_of(immediate), departure::soon);
  }
}

// Counts an ended request. Those of a dropped connection are not counted any more.
void ucx_fabric::uncount(connection& c) noexcept {
  if (c.under_way == 0) return;
  --c.under_way;
  --under_way_;
}

// Counts a request that UCX has not completed at once; false if the request failed.
bool ucx_fabric::posted(operation& o, ucs_status_ptr_t request) noexcept {
  if (UCS_PTR_IS_PTR(request)) {
    ++o.pieces;
    return true;
  }
  const ucs_status_t s = UCS_PTR_STATUS(request);
  if (s != UCS_OK) o.result = status_of(s);
  return s == UCS_OK;
}

void ucx_fabric::on_operation(void* request, ucs_status_t result, void* o) noexcept {
  auto& over = *static_cast<operation*>(o);
  RMA_ASSERT(over.owner != nullptr && over.to != nullptr && over.pieces != 0);
  ucx_fabric& me = *over.owner;
  me.end_piece(over, result);
  me.ucx_.ucp_request_free(request);
}

// ---- posting ------------------------------------------------------------------------------------------------

status ucx_fabric::ready(int peer, const fabric::region_key& region, connection*& c, ucp_rkey_h& key) noexcept {
  messaged::peer* p = nullptr;
  if (const status s = reach(peer, p); s != status::done) return s;
  c = &connection_of(*p);
  if (c->under_way >= under_way_max) return status::retry_queue_full;
  return key_of(*c, region, key);
}

// UCX guarantees no order: operations that must see earlier writes wait until these are placed.
status ucx_fabric::ready_behind_writes(int peer, const fabric::region_key& region, connection*& c,
                                       ucp_rkey_h& key) noexcept {
  if (const status s = ready(peer, region, c, key); s != status::done) return s;
  if (!c->unplaced()) return status::done;
  if (c->unflushed != 0) start_flush(*c);
  return c->unplaced() ? status::retry_queue_full : status::done;
}

void ucx_fabric::on_put(void* request, ucs_status_t result, void* to) noexcept {
  auto& c = *static_cast<connection*>(to);
  RMA_ASSERT(c.owner != nullptr && request != nullptr);
  if (result != UCS_OK) c.write_error = status_of(result);
  c.owner->ucx_.ucp_request_free(request);
}

// Posts one request for each piece: UCX has no gather lists for writes. A flush completes them.
status ucx_fabric::write(int peer, slices from, const fabric::region_key& region,
                         std::span<const fabric::remote_slice> to, std::uint64_t token,
                         fabric::write_flags how) noexcept {
  if (by_messages_) return messaged_fabric::write(peer, from, region, to, token, how);
  RMA_ASSERT(how.kind != fabric::write_kind::silent);
  connection* c = nullptr;
  ucp_rkey_h key = nullptr;
  if (const status s = ready(peer, region, c, key); s != status::done) return s;
  if (c->unflushed >= messaged::unflushed_max) {
    start_flush(*c);
    return status::retry_queue_full;
  }
  if (token != 0) c->written.push_back(token);
  if (how.kind == fabric::write_kind::immediate) c->immediates.push_back(how.immediate);
  list_unflushed(*c);
  std::uint64_t at = to[0].address;
  const ucp_request_param_t put_param = request_param(&ucx_fabric::on_put, c);
  for (const fabric::local_slice& each : from) {
    ucs_status_ptr_t const request = ucx_.ucp_put_nbx(c->endpoint, each.at, each.bytes, at, key, &put_param);
    if (UCS_PTR_IS_ERR(request)) c->write_error = status_of(UCS_PTR_STATUS(request));
    at += each.bytes;
    ++puts_;
  }
  return status::posted;
}

status ucx_fabric::read(int peer, slices to, const fabric::region_key& region,
                        std::span<const fabric::remote_slice> from, std::uint64_t token) noexcept {
  if (by_messages_) return messaged_fabric::read(peer, to, region, from, token);
  connection* c = nullptr;
  ucp_rkey_h key = nullptr;
  if (const status s = ready_behind_writes(peer, region, c, key); s != status::done) return s;
  operation& o = new_operation(*c, token);
  const ucp_request_param_t how = request_param(&ucx_fabric::on_operation, &o);
  std::uint64_t at = from[0].address;
  for (const fabric::local_slice& each : to) {
    if (!posted(o, ucx_.ucp_get_nbx(c->endpoint, each.at, each.bytes, at, key, &how))) break;
    at += each.bytes;
    ++gets_;
  }
  end_piece(o, UCS_OK);
  return status::posted;
}

status ucx_fabric::atomic(int peer, const fabric::region_key& region, std::uint64_t address, ucp_atomic_op_t what,
                          std::uint64_t operand, std::uint64_t& old, std::uint64_t token) noexcept {
  if (!caps_.atomics) return status::not_supported;
  connection* c = nullptr;
  ucp_rkey_h key = nullptr;
  if (const status s = ready_behind_writes(peer, region, c, key); s != status::done) return s;
  operation& o = new_operation(*c, token);
  o.operand = operand;
  o.reply = old;
  o.old = &old;
  ucp_request_param_t how = request_param(&ucx_fabric::on_operation, &o);
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_DATATYPE | UCP_OP_ATTR_FIELD_REPLY_BUFFER;
  how.datatype = ucp_dt_make_contig(sizeof operand);
  how.reply_buffer = &o.reply;
  (void)posted(o, ucx_.ucp_atomic_op_nbx(c->endpoint, what, &o.operand, 1, address, key, &how));
  ++atomics_;
  end_piece(o, UCS_OK);
  return status::posted;
}

status ucx_fabric::fetch_add(int peer, const fabric::region_key& region, std::uint64_t address, std::uint64_t operand,
                             std::uint64_t& old, std::uint64_t token, fabric::posting when) noexcept {
  if (by_messages_) return messaged_fabric::fetch_add(peer, region, address, operand, old, token, when);
  return atomic(peer, region, address, UCP_ATOMIC_OP_ADD, operand, old, token);
}

status ucx_fabric::compare_swap(int peer, const fabric::region_key& region, std::uint64_t address,
                                std::uint64_t expected, std::uint64_t desired, std::uint64_t& old, std::uint64_t token,
                                fabric::posting when) noexcept {
  if (by_messages_) return messaged_fabric::compare_swap(peer, region, address, expected, desired, old, token, when);
  old = desired;  // UCX reads the operand from the buffer of the result
  return atomic(peer, region, address, UCP_ATOMIC_OP_CSWAP, expected, old, token);
}

// ---- flushes ------------------------------------------------------------------------------------------------

void ucx_fabric::start_flush(messaged::peer& p) noexcept {
  if (by_messages_) return messaged_fabric::start_flush(p);
  connection& c = connection_of(p);
  operation& o = new_operation(c, 0);
  o.flush = true;
  o.written.swap(c.written);
  o.immediates.swap(c.immediates);
  c.unflushed = 0;
  ++c.flushes;
  ++flushes_;
  const ucp_request_param_t how = request_param(&ucx_fabric::on_operation, &o);
  if (c.endpoint == nullptr) {
    o.result = status::peer_failed;
  } else {
    (void)posted(o, ucx_.ucp_ep_flush_nbx(c.endpoint, &how));
  }
  end_piece(o, UCS_OK);
}

// ---- messages -----------------------------------------------------------------------------------------------

outgoing& ucx_fabric::new_batch(connection& c) noexcept {
  if (free_outgoing_ == nullptr) {
    outgoing_.push_back(std::make_unique_for_overwrite<outgoing>());
    free_outgoing_ = outgoing_.back().get();
    free_outgoing_->owner = this;
  }
  outgoing& m = *std::exchange(free_outgoing_, free_outgoing_->next_free);
  m.to = &c;
  m.filled = 0;
  ++under_way_;
  ++c.under_way;
  return m;
}

void ucx_fabric::on_sent(void* request, ucs_status_t, void* message) noexcept {
  auto& m = *static_cast<outgoing*>(message);
  RMA_ASSERT(m.owner != nullptr && m.to != nullptr && m.filled != 0);
  m.owner->uncount(*m.to);
  m.next_free = std::exchange(m.owner->free_outgoing_, &m);
  if (request != nullptr) m.owner->ucx_.ucp_request_free(request);
}

// True if there is room for an operation together with its message.
bool ucx_fabric::has_room(messaged::peer& p) noexcept {
  return connection_of(p).under_way + 2 <= under_way_max && p.questions < under_way_max;
}

std::byte* ucx_fabric::room_for(messaged::peer& p, std::uint16_t kind, std::size_t bytes) noexcept {
  connection& c = connection_of(p);
  const envelope front{static_cast<std::uint32_t>(rank_), kind, static_cast<std::uint16_t>(sizeof front + bytes)};
  if (c.batch != nullptr && front.bytes > batch_bytes - c.batch->filled) send_batch(c);
  if (c.batch == nullptr) c.batch = &new_batch(c);
  std::byte* const at = c.batch->bytes.data() + c.batch->filled;
  std::memcpy(at, &front, sizeof front);
  c.batch->filled += front.bytes;
  return at + sizeof front;
}

// Sends eagerly, in one fragment, so that messages stay in order.
void ucx_fabric::send_batch(messaged::peer& p) noexcept {
  connection& c = connection_of(p);
  c.batched = 0;
  outgoing* const m = std::exchange(c.batch, nullptr);
  if (m == nullptr) return;
  if (c.endpoint == nullptr) return on_sent(nullptr, UCS_OK, m);
  ++batches_sent_;
  ucp_request_param_t how = request_param(&ucx_fabric::on_sent, m);
  how.op_attr_mask |= UCP_OP_ATTR_FIELD_FLAGS;
  how.flags = UCP_AM_SEND_FLAG_EAGER;
  // The first message waits until both sides have an endpoint. Otherwise the peer might make its own after this process
  // has ended, and fail.
  if (!std::exchange(c.introduced, true)) how.flags |= UCP_AM_SEND_FLAG_REPLY;
  ucs_status_ptr_t const request =
      ucx_.ucp_am_send_nbx(c.endpoint, message_id, nullptr, 0, m->bytes.data(), m->filled, &how);
  if (!UCS_PTR_IS_PTR(request)) on_sent(nullptr, UCS_OK, m);  // the endpoint reports errors
}

ucs_status_t ucx_fabric::on_active_message(void* self, const void*, std::size_t, void* data, std::size_t bytes,
                                           const ucp_am_recv_param_t* how) noexcept {
  RMA_ASSERT(self != nullptr && how != nullptr && (data != nullptr || bytes == 0));
  if ((how->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV) != 0) return UCS_OK;  // not of this fabric
  static_cast<ucx_fabric*>(self)->take_messages({static_cast<const std::byte*>(data), bytes});
  return UCS_OK;
}

void ucx_fabric::take_messages(std::span<const std::byte> batch) noexcept {
  RMA_ASSERT(batch.data() != nullptr || batch.empty());
  envelope front{};
  while (batch.size() >= sizeof front) {
    std::memcpy(&front, batch.data(), sizeof front);
    if (front.source >= static_cast<std::uint32_t>(size_)) return;
    if (front.bytes < sizeof front || front.bytes > batch.size()) return;
    connection& c = connection_of(known(static_cast<int>(front.source)));
    RMA_ASSERT(c.rank == static_cast<int>(front.source));
    take_message(c, front.kind, batch.subspan(sizeof front, front.bytes - sizeof front));
    batch = batch.subspan(front.bytes);
  }
}

void ucx_fabric::take_message(connection& c, std::uint16_t kind, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(c.rank >= 0 && c.rank < size_);
  RMA_ASSERT(&known(c.rank) == &c);
  if (c.state == messaged::connection_state::dead) return;
  if (c.endpoint == nullptr && c.state == messaged::connection_state::open) [[unlikely]]
    strangers_.push_back(&c);
  if (kind < static_cast<std::uint16_t>(own_kind::count_)) {
    take_own(c, static_cast<own_kind>(kind), payload);
  } else if (kind >= fabric::first_kind) {
    hand(c.rank, kind, payload);
  } else {
    take_line_message(c, kind, payload);
  }
}

// ---- progress -----------------------------------------------------------------------------------------------

// Sends the replies that were made meanwhile together.
unsigned ucx_fabric::progress_worker() noexcept {
  const unsigned found = ucx_.ucp_worker_progress(library_.worker());
  send_batches();
  return found;
}

// Returns 1 if a round made progress, even if only in UCX's own work for others: the rank must not sleep yet. It stops
// when there is an event to report, since a round without progress costs a system call.
unsigned ucx_fabric::look() noexcept {
  unsigned rounds = 0;
  while (rounds < progress_rounds_max && !has_told() && progress_worker() != 0) ++rounds;
  if (!strangers_.empty()) [[unlikely]]
    answer_strangers();
  return std::min(rounds, 1U);
}

// Called before a sleep: from here on the descriptor reports events.
bool ucx_fabric::pending() noexcept {
  return messaged_fabric::pending() || ucx_.ucp_worker_arm(library_.worker()) != UCS_OK;
}

}  // namespace rma::ucx
