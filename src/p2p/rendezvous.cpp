// SPDX-License-Identifier: Apache-2.0
/// \file
/// Carries out the actions of rendezvous steps (p2p/rendezvous).
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <utility>

#include "core/assert.hpp"
#include "p2p/messenger.hpp"
#include "p2p/peer.hpp"
#include "p2p/rendezvous/table.hpp"

namespace rma::detail {

// ---- which one -------------------------------------------------------------------------------------------------

// The sender proposes a protocol when it announces a message, and the receiver decides when it has found the receive.
// If it cannot use the proposal, it requests a stream.
//
//   who came first    between nodes                             in the memory of one node
//   the receive       put, where a write's end can be polled:   (a message is announced all the same)
//                     it has requested it already
//   the message       getcqe: the receiver reads; rput for a    the sender's buffer is mapped: getcqe, one copy
//                     collective, whose members send at once    the receive's is: rput, one copy
//                                                               else stream, two copies at the same time, or getcqe,
//                                                               one by the kernel: what has been faster so far, at this
//                                                               size; getcqe where cores are short
//
// Memory that the sender cannot expose is streamed (try_announce). Noncontiguous data are sent in lists (sgrs) where
// the fabric has a bulk channel and that is expected to cost less than copies, else as a stream.
void messenger::choose(const peer& p, send_operation& op) noexcept {
  using enum rendezvous_reason;
  const fabric::capabilities& caps = ctx_.network_of(p.rank).caps();
  if (op.layout != nullptr || op.bytes == 0 || p.kind == rendezvous_kind::sgrs) {
    const std::size_t part = part_bytes(op, ~std::size_t{0});
    op.reset(part != 0 ? rendezvous_kind::sgrs : rendezvous_kind::stream);
    op.part_bytes = part;
    op.reason = op.bytes == 0 ? no_bytes : part != 0 ? in_lists : rendezvous_reason::layout;
    return;
  }
  if (!automatic_) {
    op.reset(possible(p.kind, caps, op.bytes));
    op.reason = op.kind == kind_ ? asked_for : fallback;
    note_replaced(p.rank);
    return;
  }
  if (!caps.copies_by_cpu || p.rank == ctx_.rank()) {
    // If two ranks exchange data, each read would use the link on which the other's reply is sent.
    const bool exchanged = !caps.copies_by_cpu && user_of(op.context) == message_user::collectives;
    op.reset(possible(exchanged ? rendezvous_kind::rput : rendezvous_kind::getcqe, caps, op.bytes));
    op.reason = caps.copies_by_cpu ? own_memory : exchanged ? collective : sender_first;
    return;
  }
  const bool mapped = is_mapped(op);
  op.reset(mapped || caps.one_sided ? rendezvous_kind::getcqe : rendezvous_kind::stream);
  op.reason = mapped ? mapped_source : !caps.one_sided ? both_private : ctx_.waits_spin() ? experience : short_of_cores;
}

// One line in a job: rank 0 prints it when it sends or receives its first long message over such a fabric.
void messenger::note_replaced(int with) noexcept {
  if (with == ctx_.rank()) return;  // whatever the networks can do, one rank's messages to itself go by memory
  const fabric::capabilities& caps = ctx_.network_of(with).caps();
  const rendezvous_kind taken = possible(kind_, caps);
  if (automatic_ || taken == kind_ || ctx_.rank() != 0 || ctx_.config().is(knob::log, "error")) return;
  if (std::exchange(replaced_noted_, true)) return;
  const rendezvous_protocol& wanted = rendezvous_of(kind_);
  const std::string text =
      fmt::format("rma: rank 0: RMA_RENDEZVOUS={} does not apply to messages by {} ({}): {} is used there\n",
                  wanted.name, caps.name, wanted.refuses(caps), rendezvous_of(taken).name);
  (void)std::fputs(text.c_str(), stderr);
}

// The receiver reads from mapped memory, and from its own; otherwise it has the choice.
bool messenger::is_read_from_map(const message_operation& op, const fabric::capabilities& caps) const noexcept {
  if (op.kind == rendezvous_kind::stream) return false;
  return op.kind != rendezvous_kind::getcqe || !caps.copies_by_cpu || op.remote.key != 0 || op.with == ctx_.rank();
}

// As for copies of windows (datatype/copy_experience.hpp): the kernel copies once, a stream twice at the same time;
// which is faster depends on the processor.
void messenger::choose_copy(receive_operation& op) noexcept {
  if (copies_ == nullptr) copies_ = std::make_unique<copy_experiences>();
  copy_experience& known = (*copies_)[static_cast<std::size_t>(copy_class(op.total))];
  known.ways = 2;
  const copy_choice next = next_copy(known);
  ++known.copies;
  if (next.way == copy_way::staged) op.kind = rendezvous_kind::stream;
  op.reason = rendezvous_reason::experience;
  if (next.measured) op.copy_since_ns = ctx_.around().now_ns();
}

void messenger::note_copy(const message_operation& op) noexcept {
  copy_experience& known = (*copies_)[static_cast<std::size_t>(copy_class(op.total))];
  const copy_way way = op.kind == rendezvous_kind::stream ? copy_way::staged : copy_way::fabric;
  known = after_copy(known, way, copy_cost_ns(op.total, ctx_.around().now_ns() - op.copy_since_ns));
}

/// True if the other side's processor can access the buffer directly.
bool messenger::is_mapped(const message_operation& op) const noexcept {
  fabric::network& network = ctx_.network_of(op.with);
  if (!network.caps().maps_memory) return false;
  fabric::region_key key;
  if (!ok(network.register_region(op.at, op.total, key))) return false;
  network.deregister_region(key);
  return key.key != 0;
}

std::string_view messenger::describe_choice(const fabric::capabilities& caps) noexcept {
  if (caps.copies_by_cpu) return "auto (one copy where a buffer is mapped, else stream)";
  return put_protocol.refuses(caps) == nullptr ? "auto (put where the receive was first, else getcqe)"
                                               : "auto (getcqe)";
}

// ---- both sides ------------------------------------------------------------------------------------------------

bool messenger::expose(message_operation& op) noexcept {
  if (op.is_exposed) return true;
  op.is_exposed = ok(ctx_.network_of(op.with).register_region(op.at, op.bytes, op.exposed));
  return op.is_exposed;
}

void messenger::conceal(message_operation& op) noexcept {
  if (std::exchange(op.is_exposed, false)) ctx_.network_of(op.with).deregister_region(op.exposed);
}

void messenger::sender_event(send_operation& op, rendezvous_event event) noexcept {
  RMA_ASSERT(op.is_send && op.id != 0 && op.step != rendezvous_state::over);
  const auto step = rendezvous_of(op.kind).sender(op.step, event);
  RMA_ASSERT(is_sound(op.step, step));
  op.step = step.next;
  report_step();
  carry_out(op, step.actions);
  report_step();
}

void messenger::receiver_event(receive_operation& op, rendezvous_event event) noexcept {
  RMA_ASSERT(!op.is_send && op.id != 0 && op.step != rendezvous_state::over);
  const auto step = rendezvous_of(op.kind).receiver(op.step, event);
  RMA_ASSERT(is_sound(op.step, step));
  op.step = step.next;
  report_step();
  carry_out(op, step.actions);
  report_step();
}

// `op` may be gone after `end`, and after a transfer that completes at once.
void messenger::carry_out(message_operation& op, std::uint32_t actions) noexcept {
  using namespace rendezvous_action;
  const auto is = [actions](std::uint32_t action) { return (actions & action) != 0; };
  if (is(prepare)) prepare_last_byte(static_cast<receive_operation&>(op));
  if (is(request)) return request_data(static_cast<receive_operation&>(op), is(poll));
  if (is(poll)) begin_polling(static_cast<receive_operation&>(op));
  if (is(gather)) return begin_pieces(op, true);
  if (is(scatter)) return begin_pieces(op, false);
  if (is(read)) return move_data(op, false);
  if (is(write)) return move_data(op, true);
  if (is(rendezvous_action::stream)) return begin_stream(static_cast<send_operation&>(op));
  const bool unseen = is(finish_if_unseen) && !is_end_seen(op);
  report_step();
  if (is(rendezvous_action::finish) || unseen) tell(op.with, op.peer_id, op.id, rendezvous_step::finished, op.total);
  if (is(end)) finish_rendezvous(op);
}

void messenger::finish_rendezvous(message_operation& op) noexcept {
  RMA_ASSERT(op.step == rendezvous_state::over && op.pieces == nullptr);
  detach(op);
  const status wanted = op.withdrawn;
  finish(op, wanted != status::done ? wanted : status::done);
}

// Sends the data as a stream of messages, whatever was tried before.
void messenger::fall_back(message_operation& op, bool is_send) noexcept {
  RMA_ASSERT(op.id != 0 && op.kind != rendezvous_kind::stream);
  RMA_ASSERT(op.moving == nullptr && op.pieces == nullptr);
  stop_polling(op);
  if (std::exchange(op.copy_since_ns, 0) != 0) {  // the kernel has refused the copy
    copy_experience& known = (*copies_)[static_cast<std::size_t>(copy_class(op.total))];
    known = after_refusal(known, copy_way::fabric);
  }
  op.kind = rendezvous_kind::stream;
  op.moved = 0;
  if (is_send) {
    op.step = rendezvous_state::announced;
    return sender_event(static_cast<send_operation&>(op), rendezvous_event::requested);
  }
  op.step = rendezvous_state::begin;
  receiver_event(static_cast<receive_operation&>(op), rendezvous_event::announced);
}

// ---- the data --------------------------------------------------------------------------------------------------

void messenger::move_data(message_operation& op, bool write) noexcept {
  RMA_ASSERT(write == op.is_send && op.step == rendezvous_state::moving);
  RMA_ASSERT(op.moving == nullptr && op.pieces == nullptr);
  ctx_.count(counter::rendezvous_transfers);
  transfer& t = transfers_.take();
  t.run = &messenger::on_piece_over;
  t.owner = this;
  t.op = &op;
  t.network = &ctx_.network_of(op.with);
  t.peer = op.with;
  t.write = write;
  t.remote = op.remote;
  t.local = static_cast<std::byte*>(op.at);
  t.bytes = op.total;
  op.moving = &t;
  op.is_write = write;
  if (!t.post()) {
    return wait_in_line(t);
  }
  if (t.is_over()) end_transfer(t);
}

void messenger::on_piece_over(fabric::completion& self, status result, std::uint64_t) noexcept {
  auto& t = static_cast<transfer&>(self);
  RMA_ASSERT(t.pending != 0 && t.posted <= t.bytes);
  --t.pending;
  if (result != status::done && t.result == status::done) t.result = result;
  if (t.is_over()) t.owner->end_transfer(t);
}

void messenger::end_transfer(transfer& t) noexcept {
  RMA_ASSERT(t.is_over());
  RMA_ASSERT(t.op == nullptr || t.op->moving == &t);
  if (t.confirm()) {
    if (t.pending == 0) wait_in_line(t);
    return;
  }
  leave_line(t);
  message_operation* const op = t.op;
  // A receiver that has detected the end conceals its buffer; a write that fails for this reason has succeeded.
  const bool not_there = t.result == status::out_of_window || t.result == status::peer_failed;
  if (not_there && op != nullptr && op->is_write && rendezvous_of(op->kind).polls && !ctx_.gone(op->with))
    t.result = status::done;
  constexpr unsigned attempts_max = 100;
  const bool resend = op != nullptr && op->is_write && op->solicited && t.result == status::transfer_failed;
  if (resend && ++t.attempts < attempts_max) {  // its receive waits for this write only
    t.result = status::done;
    t.posted = 0;
    t.write = true;
    t.confirming = false;
    return wait_in_line(t);
  }
  const status result = t.result;
  const bool write = op != nullptr && op->is_write;
  t.op = nullptr;
  transfers_.give_back(t);
  if (op == nullptr) return;
  op->moving = nullptr;
  if (result == status::peer_failed && ctx_.gone(op->with)) return;  // the handling of its death ends the operation
  // The data of a send that is withdrawn do not come another way: its receiver must not take them for complete.
  const bool is_withdrawn = write && op->withdrawn != status::done;
  if (result != status::done && (op->solicited || is_withdrawn)) {
    tell(op->with, op->peer_id, 0, rendezvous_step::gone);
    detach(*op);
    return finish(*op, is_withdrawn ? op->withdrawn : result);
  }
  if (result != status::done && op->withdrawn == status::done) return fall_back(*op, write);
  if (write) return sender_event(static_cast<send_operation&>(*op), rendezvous_event::moved);
  receiver_event(static_cast<receive_operation&>(*op), rendezvous_event::moved);
}

void messenger::wait_in_line(transfer& t) noexcept {
  if (!std::exchange(t.in_a_line, true)) line_.push_back(t);
  ctx_.on_duty(this, true);
}

void messenger::leave_line(transfer& t) noexcept {
  if (std::exchange(t.in_a_line, false)) line_.erase(transfer::line::s_iterator_to(t));
}

// Continues transfers that found no room, and long copies. Each has one turn.
unsigned messenger::move_on() noexcept {
  unsigned moved = 0;
  for (std::size_t left = line_.size(); left > 0 && !line_.empty(); --left) {
    transfer& t = line_.front();
    RMA_ASSERT(t.in_a_line);
    line_.pop_front();
    t.in_a_line = false;
    const std::size_t before = t.posted;
    const bool all = t.post();
    if (t.posted != before) ++moved;
    if (!all) {
      wait_in_line(t);
    } else if (t.is_over()) {
      end_transfer(t);
    }
  }
  return moved;
}

void messenger::begin_stream(send_operation& op) noexcept {
  RMA_ASSERT(op.state == message_state::announced && op.moving == nullptr && op.pieces == nullptr);
  peer& p = peer_of(op.with);
  op.state = message_state::streaming;
  op.moved = 0;
  p.streams.push_back(op);
  busy(p);
  stream(p);
}

// ---- the receiver's request, and ends detected by polling -------------------------------------------------------

void messenger::request_data(receive_operation& op, bool polls) noexcept {
  RMA_ASSERT(op.state == message_state::receiving && op.step == rendezvous_state::asked);
  const bool writes = rendezvous_of(op.kind).writes;
  if (writes && !expose(op)) {
    op.step = rendezvous_state::begin;
    op.kind = rendezvous_kind::stream;
    return receiver_event(op, rendezvous_event::announced);
  }
  if (polls) begin_polling(op);
  report_step();
  ctx_.count(counter::rendezvous_messages);
  ctx_.send_record(
      op.with, message::request,
      transfer_request{op.peer_id, op.id, writes ? op.exposed.address : 0, writes ? op.exposed.key : 0, op.total,
                       static_cast<std::uint32_t>(op.kind), static_cast<std::uint32_t>(op.last)});
}

std::byte* messenger::last_byte(const message_operation& op) noexcept {
  return static_cast<std::byte*>(op.at) + op.total - 1;
}

// The end of a message that ends elsewhere, or with the same value, is reported by a message.
void messenger::prepare_last_byte(receive_operation& op) noexcept {
  RMA_ASSERT(op.total != 0 && op.total <= op.bytes);
  switch (op.kind) {
    case rendezvous_kind::get: op.last = before_get(op.last); break;
    case rendezvous_kind::putnr: op.last = putnr_byte; break;
    default:
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      op.last = static_cast<std::byte>(random_ >> 56);
      break;
  }
  if (std::exchange(op.marked, last_byte(op)) == nullptr) op.unmarked = *op.marked;
  std::atomic_ref(*op.marked).store(op.last, std::memory_order_relaxed);
}

// Memory behind a message that is shorter than its receive must stay unchanged.
void messenger::restore_last_byte(receive_operation& op, status result) noexcept {
  std::byte* const marked = std::exchange(op.marked, nullptr);
  const std::size_t received_bytes = result == status::done ? op.message_bytes : 0;
  const bool untouched = result == status::done || result == status::message_too_long;
  if (untouched && marked >= static_cast<std::byte*>(op.at) + received_bytes) *marked = op.unmarked;
}

bool messenger::is_end_seen(const message_operation& op) const noexcept {
  return op.total == op.peer_room && *last_byte(op) != op.last && !op.wants_word;
}

void messenger::begin_polling(receive_operation& op) noexcept {
  RMA_ASSERT(!op.polls && op.marked == last_byte(op));
  op.polls_since_ns = ctx_.around().now_ns();
  op.polls = true;
  polled_.push_back(&op);
  ctx_.on_duty(this, true);
}

void messenger::stop_polling(message_operation& op) noexcept {
  if (std::exchange(op.polls, false)) std::erase(polled_, &op);
}

// Called when a round has polled for messages.
unsigned messenger::poll_ends() noexcept {
  unsigned seen = 0;
  for (std::size_t i = polled_.size(); i-- > 0;) {
    if (i >= polled_.size()) continue;  // an end may have ended others
    receive_operation& op = *polled_[i];
    RMA_ASSERT(op.polls && op.id != 0);
    if (std::atomic_ref(*last_byte(op)).load(std::memory_order_acquire) == op.last) continue;
    ++seen;
    if (op.state == message_state::posted) {
      // The data may belong to an announcement that came before the write, which must be handled first.
      const bool drained = ctx_.drained() && peer_of(op.peer).delayed.empty();
      if (!std::exchange(op.changed, true) || !drained) continue;
    }
    stop_polling(op);
    if (op.state == message_state::posted) {
      end_early(op, op.total);
    } else {
      receiver_event(op, rendezvous_event::changed);
    }
  }
  return seen;
}

}  // namespace rma::detail
