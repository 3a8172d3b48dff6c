// SPDX-License-Identifier: Apache-2.0
/// \file
/// Messages that are started, and waited for later.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <string>
#include <utility>

#include "api/message_checks.hpp"
#include "channel/call_scope.hpp"
#include "core/names.hpp"
#include "datatype/copy.hpp"
#include "p2p/quick.hpp"
#include "rma/messages.hpp"
#include "runtime/message_node.hpp"
#include "xfer/engine.hpp"

namespace rma {
namespace detail {
namespace {

void free_node(message_node& n) noexcept {
  constexpr std::size_t kept_bytes_max = 65536;
  n.detached = n.under_way = false;
  n.send.over = n.receive.over = nullptr;
  if (n.copy_bytes > kept_bytes_max) n.copy.reset(), n.copy_bytes = 0;
  n.of->give_back(n);
}

/// Its user waits for it no longer: its end frees it. Called under the lock.
void detach_node(message_node& n) noexcept {
  n.detached = true;
  if (!n.is_send) {
    n.receive.over = [](message_operation& op) noexcept {
      free_node(*static_cast<message_node::receive_part&>(op).node);
    };
    return;
  }
  ++n.of->detached_sends;
  n.send.over = [](message_operation& op) noexcept {
    message_node& over = *static_cast<message_node::send_part&>(op).node;
    --over.of->detached_sends;
    free_node(over);
  };
}

/// A node for one operation.
message_node& take_node(const std::shared_ptr<team_core>& team, bool is_send) {
  message_node& n = team->rt->nodes->take();
  n.is_send = is_send;
  n.buffered = false;  // the node may have been a persistent send in buffered mode
  n.team = team;
  return n;
}

/// The caller's layout may go.
void keep_layout(message_node& n) {
  message_operation& op = n.operation();
  if (op.layout == nullptr) return;
  n.layout = *op.layout;
  op.layout = &n.layout;
}

status start(message_node& n) noexcept {
  messenger& messages = *n.team->rt->messages;
  return n.is_send ? messages.send(n.send) : messages.receive(n.receive);
}

/// Under the lock. A send that is over needs no request, and what failed has none.
status begin(message_node& n, message_node*& node) noexcept {
  const status s = start(n);
  if (s == status::posted || (!n.is_send && (s == status::done || s == status::message_too_long))) {
    node = &n;
    return status::done;
  }
  if (s == status::peer_failed) n.team->rt->ctx->set_last_failed(n.operation().peer);
  n.team.reset();  // the caller has it
  free_node(n);
  return s;
}

/// The send leaves from a copy.
void copy_data(message_node& n) {
  send_operation& op = n.send;
  if (n.copy_bytes < op.bytes || n.copy == nullptr) {
    n.copy_bytes = std::max<std::size_t>(op.bytes, 1);
    n.copy.reset(new std::byte[n.copy_bytes]);
  }
  if (op.layout != nullptr) {
    pack(n.copy.get(), op.at, *op.layout, 0, op.bytes);
  } else if (op.bytes != 0) {
    std::memcpy(n.copy.get(), op.at, op.bytes);
  }
  op.at = n.copy.get();
  op.layout = nullptr;
}

Received outcome(const message_node& n) noexcept {
  if (!n.is_send) return received_of(*n.team, n.receive);
  Received what;
  what.call_rank = n.send.peer;
  return what;
}

/// Reports the end to the waiting thread. Without the lock, since a team may be destroyed.
status release(message_node*& node, Received& what) noexcept {
  message_node& n = *std::exchange(node, nullptr);
  what = outcome(n);
  const status s = n.operation().result;
  const std::shared_ptr<team_core> team = std::move(n.team);
  if (s == status::peer_failed && n.operation().peer != any_source) team->rt->ctx->set_last_failed(n.operation().peer);
  const quick_turn turn(*team->rt->ctx);
  free_node(n);
  return s;
}

/// True if the operation is complete; makes no progress.
bool is_over(const message_node& node) noexcept { return node.operation().ended.load(std::memory_order_acquire) != 0; }

/// True if it has ended without a message. A source that has the request of a receive must take that back first, so
/// that it does not write to the buffer any more: waits for its answer, or for the message.
bool cancel_operation(message_node& n) noexcept {
  context& ctx = *n.team->rt->ctx;
  {
    const std::lock_guard guard(ctx.lock());
    if (is_over(n)) return false;
    const messenger::cancel_result result = n.team->rt->messages->cancel(n.operation());
    if (result != messenger::cancel_result::asked) return result == messenger::cancel_result::canceled;
  }
  const named_wait in(ctx, "cancel");
  return wait_operation(*n.team, n.receive) == status::done && n.receive.source == any_source;
}

/// done if it is over, by `result`; else not_yet.
status look_at(message_node& n) noexcept {
  team_core& team = *n.team;
  message_operation& op = n.operation();
  if (is_over(n)) return status::done;
  (void)team.rt->ctx->progress();
  if (is_over(n)) return status::done;
  const status failure = failed_with(team, op.peer);
  if (failure == status::done) return status::not_yet;
  const std::lock_guard guard(team.rt->ctx->lock());
  return is_over(n) || team.rt->messages->withdraw(op, failure) ? status::done : status::not_yet;
}

}  // namespace

status start_send(const std::shared_ptr<team_core>& team, send_kind kind, const message_buffer& data, int to, int tag,
                  message_node*& node) noexcept {
  context& ctx = *team->rt->ctx;
  if (const status s = check_send(*team, to, tag); s != status::done) return s;
  shm::line_pair* const lines = lines_of(*team, to, tag);
  if (lines != nullptr && kind != send_kind::synchronous && data.layout == nullptr &&
      team->messages->send_quickly(*lines, team->user_context, tag, data.at, data.bytes))
    return status::done;
  if (to == no_rank) return status::done;
  const call_scope in(ctx, "isend", to);
  find_lines(*team, to);
  if (kind == send_kind::buffered) return send_copy(*team, data, to, tag);
  const std::lock_guard guard(ctx.lock());
  message_node& n = take_node(team, true);
  fill_send(n.send, *team, kind, data, to, tag);
  keep_layout(n);
  return begin(n, node);
}

status start_receive(const std::shared_ptr<team_core>& team, const message_buffer& into, int from, int tag,
                     message_node*& node) noexcept {
  context& ctx = *team->rt->ctx;
  if (const status s = check_receive(*team, from, tag); s != status::done) return s;
  if (from == no_rank) return status::done;
  const call_scope in(ctx, "irecv", from);
  find_lines(*team, from);
  const quick_turn turn(ctx);
  message_node& n = take_node(team, false);
  fill_receive(n.receive, *team, into, from, tag);
  keep_layout(n);
  return begin(n, node);
}

// The user's buffer may be used when this returns: what cannot leave at once leaves from a copy.
status send_copy(team_core& team, const message_buffer& data, int to, int tag) noexcept {
  const std::lock_guard guard(team.rt->ctx->lock());
  messenger& messages = *team.rt->messages;
  message_node& n = take_node(team.shared_from_this(), true);
  fill_send(n.send, team, send_kind::standard, data, to, tag);
  const bool at_once = messages.is_eager(n.send);
  if (!at_once) copy_data(n);
  const status s = start(n);
  if (s == status::posted && at_once) copy_data(n);  // it waits for room
  n.team.reset();                                    // the caller has it
  if (s == status::posted) {
    detach_node(n);
    return status::done;
  }
  free_node(n);
  if (s == status::peer_failed) team.rt->ctx->set_last_failed(team.world_rank(to));
  return s;
}

// ---- as a Request -------------------------------------------------------------------------------------------------

request_node* request_of(message_node*& node, Received* what) {
  message_node& n = *node;
  const std::lock_guard guard(n.team->rt->ctx->lock());
  request_node* const made = n.team->rt->ops->new_request(n);
  n.outcome_to = what;
  node = nullptr;
  return made;
}

status message_node::state() noexcept {
  if (!is_over(*this)) return status::not_yet;
  const message_operation& op = operation();
  if (op.result == status::peer_failed && op.peer != any_source) team->rt->ctx->set_last_failed(op.peer);
  return op.result;
}

status message_node::failed() noexcept { return failed_with(*team, operation().peer); }

void message_node::give_up(status why) noexcept {
  context& ctx = *team->rt->ctx;
  {
    const std::lock_guard guard(ctx.lock());
    if (is_over(*this) || team->rt->messages->withdraw(operation(), why)) return;
  }
  (void)ctx.wait({.until = [this]() noexcept { return is_over(*this); }});
}

std::shared_ptr<void> message_node::release() noexcept {
  const bool over = is_over(*this);
  if (over && outcome_to != nullptr) *outcome_to = outcome(*this);
  outcome_to = nullptr;
  std::shared_ptr<void> last = std::move(team);
  if (over) {
    free_node(*this);
  } else {
    detach_node(*this);
  }
  return last;
}

std::string message_node::describe(status ended, std::string& reason) const {
  reason = reason_of_message(ended, outcome(*this));
  return fmt::format("a {} (team of {} ranks)", is_send ? "send" : "receive", team->size);
}

// ---- one ----------------------------------------------------------------------------------------------------------

status wait_message(message_node*& node, Received& what) noexcept {
  message_node& n = *node;
  context& ctx = *n.team->rt->ctx;
  if (const status s = ctx.check_caller(); s != status::done) return s;
  const named_wait in(ctx, "a wait for a message");
  if (!is_over(n)) (void)wait_operation(*n.team, n.operation());
  return release(node, what);
}

status test_message(message_node*& node, Received& what) noexcept {
  if (const status s = node->team->rt->ctx->check_caller(); s != status::done) return s;
  return look_at(*node) == status::not_yet ? status::not_yet : release(node, what);
}

bool cancel_message(message_node*& node) noexcept {
  message_node& n = *node;
  const std::shared_ptr<team_core> team = n.team;
  if (team->rt->ctx->check_caller() != status::done) return false;
  if (!cancel_operation(n)) return false;
  const std::lock_guard guard(team->rt->ctx->lock());
  n.team.reset();
  free_node(n);
  node = nullptr;
  return true;
}

void drop_message(message_node* node) noexcept {
  message_node& n = *node;
  const std::shared_ptr<team_core> team = std::move(n.team);
  const std::lock_guard guard(team->rt->ctx->lock());
  if (is_over(n)) return free_node(n);
  detach_node(n);
}

// ---- again and again ----------------------------------------------------------------------------------------------

status make_persistent(const std::shared_ptr<team_core>& team, send_kind kind, const message_buffer& data, int to,
                       int tag, message_node*& node) noexcept {
  if (const status s = check_send(*team, to, tag); s != status::done) return s;
  const std::lock_guard guard(team->rt->ctx->lock());
  message_node& n = take_node(team, true);
  fill_buffer(n.send, *team, data, tag);
  n.send.peer = to == no_rank ? no_rank : team->world_rank(to);
  n.send.mode = kind == send_kind::synchronous ? send_mode::synchronous : send_mode::standard;
  n.buffered = kind == send_kind::buffered;
  keep_layout(n);
  node = &n;
  return status::done;
}

status make_persistent(const std::shared_ptr<team_core>& team, const message_buffer& into, int from, int tag,
                       message_node*& node) noexcept {
  if (const status s = check_receive(*team, from, tag); s != status::done) return s;
  const std::lock_guard guard(team->rt->ctx->lock());
  message_node& n = take_node(team, false);
  fill_buffer(n.receive, *team, into, tag);
  n.receive.peer = from < 0 ? from : team->world_rank(from);
  if (from >= 0) team->rt->messages->expect_many(n.receive.peer);
  keep_layout(n);
  node = &n;
  return status::done;
}

status start_persistent(message_node& node) noexcept {
  team_core& team = *node.team;
  context& ctx = *team.rt->ctx;
  if (const status s = ctx.check_caller(); s != status::done) return s;
  if (node.under_way) return status::bad_argument;
  if (const status s = team.revocation(); s != status::done) return s;
  const call_scope in(ctx, "start", node.operation().peer);
  node.under_way = true;
  if (node.operation().peer == no_rank) return status::done;
  if (node.buffered) {
    const message_operation& op = node.send;
    node.under_way = false;
    return send_copy(team, {op.at, op.bytes, op.layout}, member_of(team, op.peer), op.tag);
  }
  const std::lock_guard guard(ctx.lock());
  const status s = start(node);
  return s == status::peer_failed ? s : status::done;
}

status wait_persistent(message_node& node, Received& what) noexcept {
  context& ctx = *node.team->rt->ctx;
  what = {};
  if (const status s = ctx.check_caller(); s != status::done) return s;
  if (!node.under_way) return status::done;
  const named_wait in(ctx, "a wait for a message");
  if (!is_over(node)) (void)wait_operation(*node.team, node.operation());
  node.under_way = false;
  if (node.operation().peer == no_rank) return status::done;
  what = outcome(node);
  return node.operation().result;
}

status test_persistent(message_node& node, Received& what) noexcept {
  if (const status s = node.team->rt->ctx->check_caller(); s != status::done) return s;
  if (node.under_way && look_at(node) == status::not_yet) return status::not_yet;
  return wait_persistent(node, what);
}

void end_persistent(message_node* node) noexcept {
  message_node& n = *node;
  const bool waits = !is_over(n) && (n.is_send || !cancel_operation(n));
  Received what;
  if (waits) (void)wait_operation(*n.team, n.operation());
  (void)release(node, what);
}

// ---- many ---------------------------------------------------------------------------------------------------------

status wait_all_messages_nothrow(std::span<MessageRequest> requests) noexcept {
  status first = status::done;
  for (MessageRequest& r : requests) {
    const status s = r.wait_nothrow();
    if (ok(first)) first = s;
  }
  return first;
}

void wait_all_messages(std::span<MessageRequest> requests, const std::source_location& where) {
  status first = status::done;
  Received failed;
  for (MessageRequest& r : requests) {
    Received what;
    const status s = r.wait_nothrow(what);
    if (ok(s) || !ok(first)) continue;
    first = s;
    failed = what;
  }
  if (!ok(first)) detail::raise_message("wait_all", first, failed, where);
}

status wait_any_message_nothrow(std::span<MessageRequest> requests, std::size_t& which, Received& what) noexcept {
  which = requests.size();
  what = {};
  const auto first = std::ranges::find_if(requests, [](const MessageRequest& r) { return r.pending(); });
  if (first == requests.end()) return status::done;
  detail::context& ctx = *first->node_->team->rt->ctx;
  if (const status s = ctx.check_caller(); s != status::done) return s;
  const detail::named_wait in(ctx, "wait_any");
  const auto is_over = [](const MessageRequest& r) { return r.pending() && detail::is_over(*r.node_); };
  const auto any = [&]() noexcept { return std::ranges::any_of(requests, is_over); };
  const auto failed = [&]() noexcept {
    for (const MessageRequest& r : requests) {
      if (!r.pending()) continue;
      const status s = detail::failed_with(*r.node_->team, r.node_->operation().peer);
      if (s != status::done) return s;
    }
    return status::done;
  };
  const status s = ctx.wait({.until = any, .fails_if = failed});
  if (s == status::done) {
    which = static_cast<std::size_t>(std::ranges::find_if(requests, is_over) - requests.begin());
    return requests[which].wait_nothrow(what);
  }
  for (which = 0; which < requests.size(); ++which) {
    MessageRequest& r = requests[which];
    if (r.pending() && detail::failed_with(*r.node_->team, r.node_->operation().peer) != status::done)
      return r.wait_nothrow(what);
  }
  return s;
}

std::size_t wait_any_message(std::span<MessageRequest> requests, Received& what, const std::source_location& where) {
  std::size_t which = 0;
  if (const status s = wait_any_message_nothrow(requests, which, what); !ok(s))
    detail::raise_message("wait_any", s, what, where);
  return which;
}

bool test_all_messages(std::span<MessageRequest> requests, const std::source_location& where) {
  bool all = true;
  for (MessageRequest& r : requests) {
    if (r.pending() && !r.test(where)) all = false;
  }
  return all;
}

}  // namespace detail
}  // namespace rma
