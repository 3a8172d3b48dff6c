// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages with tags: the blocking calls, and what a look at them says.
#include "rma/messages.hpp"

#include <fmt/format.h>

#include <mutex>

#include "api/message_checks.hpp"
#include "channel/call_scope.hpp"
#include "core/names.hpp"
#include "p2p/quick.hpp"
#include "runtime/message_node.hpp"

namespace rma::detail {

// ---- blocking -----------------------------------------------------------------------------------------------------

namespace {

[[gnu::noinline]] status send_any(team_core& team, const void* at, std::size_t bytes, int to, int tag) noexcept {
  shm::line_pair* const lines = lines_of(team, to, tag);
  if (lines != nullptr && tag >= 0 && team.messages->send_quickly(*lines, team.user_context, tag, at, bytes))
    return status::done;
  return send_message(team, send_kind::standard, {const_cast<void*>(at), bytes, nullptr}, to, tag);
}

[[gnu::noinline]] status receive_any(team_core& team, void* at, std::size_t bytes, int from, int tag,
                                     Received& what) noexcept {
  shm::line_pair* const lines = lines_of(team, from, tag);
  if (lines == nullptr) return receive_message(team, {at, bytes, nullptr}, from, tag, what);
  messenger& messages = *team.messages;
  what.source = from;
  what.bytes = bytes;
  what.tag = tag;
  messenger::quick_result found{};
  // A longer message comes by other memory than the line, where a receive does not wait that may get one again.
  const bool takes_long = bytes > short_message_max;
  for (unsigned left = takes_long && messages.last_was_long() ? 0 : messages.ctx().first_spins();; --left) {
    found = messages.receive_quickly(*lines, team.user_context, what.tag, at, what.bytes);
    if (found != messenger::quick_result::not_yet || left == 0) break;
    spin_pause();
  }
  if (found != messenger::quick_result::done) {
    const status s = receive_message(team, {at, bytes, nullptr}, from, tag, what);
    if (takes_long) messages.note_length(what.bytes > short_message_max);
    return s;
  }
  if (takes_long) messages.note_length(false);
  messages.ctx().poll_occasionally();
  return status::done;
}

[[gnu::noinline]] status end_receive(messenger& messages, const shm::line_pair& from) noexcept {
  messages.tell_received(from);
  messages.ctx().poll_occasionally();
  return status::done;
}

}  // namespace

// The usual path of 8 bytes within a node has no call but at its end, so that it saves no registers.
status send_plain(team_core& team, const void* at, std::size_t bytes, int to, int tag) noexcept {
  shm::line_pair* const lines =
      bytes == sizeof(std::uint64_t) && tag >= 0 ? lines_of_any_thread(team, to, tag) : nullptr;
  if (lines == nullptr) return send_any(team, at, bytes, to, tag);
  const messenger::quick_result sent = team.messages->send_word(*lines, team.user_context, tag, at);
  if (sent == messenger::quick_result::no) return send_any(team, at, bytes, to, tag);
  if (sent == messenger::quick_result::done_and_tell) [[unlikely]]
    team.messages->tell_sent(*lines);
  return status::done;
}

status receive_plain(team_core& team, void* at, std::size_t bytes, int from, int tag, Received& what) noexcept {
  shm::line_pair* const lines = bytes == sizeof(std::uint64_t) ? lines_of_any_thread(team, from, tag) : nullptr;
  if (lines == nullptr) return receive_any(team, at, bytes, from, tag, what);
  int found_tag = tag;
  const messenger::quick_result found = team.messages->receive_word(*lines, team.user_context, found_tag, at);
  if (found == messenger::quick_result::no) return receive_any(team, at, bytes, from, tag, what);
  what.source = from;
  what.bytes = bytes;
  what.tag = found_tag;
  if (found == messenger::quick_result::done_and_tell) [[unlikely]]
    return end_receive(*team.messages, *lines);
  team.messages->ctx().poll_occasionally();
  return status::done;
}

namespace {

/// The call need not wait for the receive: RMA_SEND_COPY_BYTES.
bool leaves_from_copy(const team_core& team, const message_buffer& data) noexcept {
  constexpr std::size_t copies_max = 64;
  const std::size_t bytes_max = team.rt->nodes->copied_bytes_max;
  return data.bytes <= bytes_max && bytes_max != 0 && team.rt->nodes->detached_sends < copies_max;
}

}  // namespace

// A message in a buffer of the user's; a copy is made where he may go on before it has left.
status send_message(team_core& team, send_kind kind, const message_buffer& data, int to, int tag) noexcept {
  context& ctx = *team.rt->ctx;
  if (const status s = check_send(team, to, tag); s != status::done) return s;
  if (to == no_rank) return status::done;
  const call_scope in(ctx, "send", to);
  find_lines(team, to);
  const bool from_copy =
      kind == send_kind::buffered || (kind != send_kind::synchronous && leaves_from_copy(team, data));
  if (from_copy) return send_copy(team, data, to, tag);
  send_operation op;
  fill_send(op, team, kind, data, to, tag);
  status s = status::done;
  {
    const std::lock_guard guard(ctx.lock());
    s = team.rt->messages->send(op);
  }
  if (s == status::posted) s = wait_operation(team, op);
  if (s == status::peer_failed) ctx.set_last_failed(op.peer);
  return s;
}

status receive_message(team_core& team, const message_buffer& into, int from, int tag, Received& what) noexcept {
  context& ctx = *team.rt->ctx;
  if (const status s = check_receive(team, from, tag); s != status::done) return s;
  if (from == no_rank) return what = {}, status::done;
  const call_scope in(ctx, "recv", from);
  find_lines(team, from);
  receive_operation op;
  fill_receive(op, team, into, from, tag);
  status s = status::done;
  {
    const std::lock_guard guard(ctx.lock());
    s = team.rt->messages->receive(op);
  }
  if (s == status::posted) s = wait_operation(team, op);
  what = received_of(team, op);
  if (s == status::peer_failed && from != any_source) ctx.set_last_failed(op.peer);
  return s;
}

status exchange_messages(team_core& team, const message_buffer& data, int to, int send_tag, const message_buffer& into,
                         int from, int receive_tag, Received& what) noexcept {
  context& ctx = *team.rt->ctx;
  if (const status s = check_send(team, to, send_tag); s != status::done) return s;
  if (const status s = check_receive(team, from, receive_tag); s != status::done) return s;
  const call_scope in(ctx, "sendrecv", to);
  what = {};
  send_operation out;
  receive_operation back;
  status sent = status::done, came = status::done;
  {
    const std::lock_guard guard(ctx.lock());
    if (from != no_rank) {
      fill_receive(back, team, into, from, receive_tag);
      came = team.rt->messages->receive(back);
    }
    if (to != no_rank) {
      fill_send(out, team, send_kind::standard, data, to, send_tag);
      sent = team.rt->messages->send(out);
    }
  }
  if (sent == status::posted) sent = wait_operation(team, out);
  if (sent == status::peer_failed) ctx.set_last_failed(out.peer);
  if (came == status::posted && sent != status::done) {  // its message may never come
    const std::lock_guard guard(ctx.lock());
    if (back.ended.load() == 0 && team.rt->messages->withdraw(back, sent)) came = sent;
  }
  if (came == status::posted) came = wait_operation(team, back);
  if (from != no_rank) what = received_of(team, back);
  if (came == status::peer_failed && sent == status::done && from != any_source) ctx.set_last_failed(back.peer);
  return sent != status::done ? sent : came;
}

// ---- looking ------------------------------------------------------------------------------------------------------

namespace {

/// Called under the lock. True if there is one.
bool look(team_core& team, const match_key& key, Received& what, held_message* take) noexcept {
  messenger& messages = *team.rt->messages;
  unexpected_message* const found = messages.peek(key);
  if (found == nullptr) return false;
  what = {};
  what.source = member_of(team, found->key.source);
  what.tag = found->key.tag;
  what.bytes = found->bytes;
  if (take != nullptr) {
    messages.hold(*found);
    take->what = found;
  }
  return true;
}

}  // namespace

status probe_message(team_core& team, int from, int tag, bool wait, Received& what, held_message* take) noexcept {
  context& ctx = *team.rt->ctx;
  if (const status s = check_receive(team, from, tag); s != status::done) return s;
  if (from == no_rank) return what = {}, status::done;
  const call_scope in(ctx, "probe", from);
  const int source = from == any_source ? any_source : team.world_rank(from);
  const match_key key{team.user_context, source, tag};
  const auto there = [&]() noexcept {
    const std::lock_guard guard(ctx.lock());
    return look(team, key, what, take);
  };
  status s = status::done;
  if (wait) {
    const auto failed = [&]() noexcept {
      const status of_all = failed_with(team, source);
      return of_all == status::done && source != any_source && ctx.gone(source) ? status::peer_failed : of_all;
    };
    s = ctx.wait({.until = there, .fails_if = failed});
    if (s == status::peer_failed && source != any_source) ctx.set_last_failed(source);
  } else if (!there()) {
    (void)ctx.progress();
    if (!there()) s = team.revocation() != status::done ? team.revocation() : status::not_yet;
  }
  if (s == status::done && take != nullptr) take->team = team.shared_from_this();
  return s;
}

held_message::~held_message() {
  if (what == nullptr) return;
  const std::lock_guard guard(team->rt->ctx->lock());
  team->rt->messages->discard(*what);
}

status receive_held(held_message& held, const message_buffer& into, Received& what) noexcept {
  if (held.what == nullptr) return status::bad_argument;
  team_core& team = *held.team;
  if (const status s = team.rt->ctx->check_caller(); s != status::done) return s;
  const call_scope in(*team.rt->ctx, "Message::recv");
  receive_operation op;
  fill_receive(op, team, into, any_source, any_tag);
  status s = status::done;
  {
    const std::lock_guard guard(team.rt->ctx->lock());
    s = team.rt->messages->receive_held(op, *std::exchange(held.what, nullptr));
  }
  if (s == status::posted) s = wait_operation(team, op);
  what = received_of(team, op);
  what.room = into.bytes;
  if (s == status::peer_failed) team.rt->ctx->set_last_failed(op.source);
  return s;
}

// ---- errors -------------------------------------------------------------------------------------------------------

std::string reason_of_message(status code, const Received& what) {
  switch (code) {
    case status::message_too_long:
      return fmt::format(
          "the message from rank {} with tag {} has {} bytes, and the receive takes {}; probe() says before",
          what.source, what.tag, what.bytes, what.room);
    case status::bad_argument:
      return fmt::format("tag {}; tags are 0 to 2147483647, and for receives any_tag", what.call_tag);
    case status::revoked: return "a member has revoked the team; go on with team.shrink()";
    case status::wrong_thread: return fmt::format("{}", wrong_thread_remedy);
    case status::job_aborted: return "the job is being ended";
    case status::transfer_failed:
      return "the other side has given the message up, or the transfer ended with an error; what was to be received "
             "is undefined";
    case status::out_of_memory: return "no memory for the request";
    default: return {};
  }
}

void raise_on_team(team_core& team, const char* call, status code, const Received& what,
                   const std::source_location& where) {
  context& ctx = *team.rt->ctx;
  const int dead = code == status::peer_failed ? ctx.last_failed() : -1;
  std::string why;
  if (code == status::bad_rank) {
    why = fmt::format("rank {} is not in the team; its ranks are 0 to {}", what.call_rank, team.size - 1);
  } else if (code == status::peer_failed) {
    why = ctx.why_failed(dead);
  } else {
    why = reason_of_message(code, what);
  }
  throw Error(code, fmt::format("[rank {}] {} (team of {} ranks)", ctx.rank(), call, team.size), why,
              code == status::peer_failed ? dead : what.call_rank, where);
}

void raise_message(const char* call, status code, const Received& what, const std::source_location& where) {
  std::string why;
  if (code == status::peer_failed && what.call_rank >= 0) {
    why = fmt::format("world rank {} is dead or has left the job", what.call_rank);
  } else if (code == status::bad_argument) {
    why = "there is none, or it is under way";
  } else {
    why = reason_of_message(code, what);
  }
  throw Error(code, fmt::format("{} (message)", call), why, what.call_rank >= 0 ? what.call_rank : -1, where);
}

}  // namespace rma::detail
