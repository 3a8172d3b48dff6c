// SPDX-License-Identifier: Apache-2.0
#include "xfer/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "channel/call_scope.hpp"
#include "datatype/copy.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/protocols.hpp"
#include "xfer/window_core.hpp"
#include "xfer/wire.hpp"

namespace rma::detail {
namespace {

/// done, not_yet or transfer_failed, from what has come by now; of an operation, not of a synchronisation.
status state_of_operation(const request_node& node) noexcept {
  if (node.posted != nullptr) return node.posted->over.load() != 0 ? node.posted->result : status::not_yet;
  if (node.peer->operations_done.load() < node.operation) return status::not_yet;
  if (node.ended != status::not_yet) return node.ended;
  return node.peer->protests.load() == node.protests ? status::done : status::transfer_failed;
}

}  // namespace

engine::engine(context& ctx) : ctx_(ctx) {
  ctx.set_handler(message::operation, &engine::on_operation, this);
  ctx.set_handler(message::reply, &engine::on_reply, this);
  ctx.set_handler(message::acknowledge, &engine::on_acknowledge, this);
  ctx.set_handler(message::share, &engine::on_share, this);
  ctx.set_handler(message::refuse, &engine::on_refuse, this);
  ctx.set_handler(message::lock, &engine::on_lock, this);
  ctx.add_duty(&engine::on_duty, this);
  ctx.add_describer(&engine::describe, this);
  ctx.set_handler(message::notify, &engine::on_notify, this);
  ctx.set_handler(message::fence, &engine::on_fence, this);
  ctx.set_handler(message::range, &engine::on_range, this);
  ctx.set_immediate(immediate_user::fence, &engine::on_immediate, this);
  if (ctx.config().is(knob::user_memory, "handler")) forced_ = user_memory::handler;
  if (ctx.config().is(knob::user_memory, "shared")) forced_ = user_memory::shared;
  if (ctx.config().is(knob::user_memory, "staged")) forced_ = user_memory::staged;
  if (ctx.config().is(knob::user_memory, "cma")) forced_ = user_memory::cma;
}

// Every window is gone, and with the windows whatever operations of theirs were under way.
engine::~engine() {
  for (request_node& node : *requests_) {
    if (node.owner == nullptr) continue;
    if (node.task != nullptr) {
      node.task->forget_window();
      node.task.reset();
    } else if (node.ended == status::not_yet) {
      node.ended = state_of_operation(node);
    }
    if (node.ended == status::not_yet) node.ended = status::window_freed;
    node.owner = nullptr;
    node.posted = nullptr;
    node.peer = nullptr;
    node.kept = requests_;
  }
}

// They come round after 2^28 windows, some of which may still be there.
std::uint32_t engine::new_slot() noexcept {
  do {
    last_slot_ = (last_slot_ + 1) & fence_slot_max;
  } while (slots_.contains(last_slot_));
  return last_slot_;
}

void engine::add(window_core& w) {
  windows_.emplace(w.id, &w);
  slots_.emplace(w.fences.slot, &w);
}

void engine::remove(window_core& w) {
  windows_.erase(w.id);
  slots_.erase(w.fences.slot);
  std::erase(busy_, &w);
  last_found_ = nullptr;
}

request_node* engine::take_request() {
  request_node* const node = free_requests_;
  if (node == nullptr) return &requests_->emplace_back();
  free_requests_ = node->next_free;
  return node;
}

request_node* engine::new_request(const window_core& w, int rank, std::uint64_t operation, std::uint64_t ticket) {
  request_node* const node = take_request();
  context::peer& peer = ctx_.peer_of(rank);
  *node = {this, &peer, rank, operation, nullptr, peer.protests.load(), w.id};
  node->ticket = ticket;
  return node;
}

request_node* engine::new_request(const window_core& w, int rank, posted_operation* posted) {
  request_node* const node = take_request();
  *node = {this, nullptr, rank, 0, posted, 0, w.id};
  return node;
}

request_node* engine::new_request(const window_core& w, std::unique_ptr<sync_task> task) {
  request_node* const node = take_request();
  *node = {this, nullptr, -1, 0, nullptr, 0, w.id};
  node->task = std::move(task);
  return node;
}

// A request that is dropped before its time leaves the operation to itself.
void engine::free_request(request_node* node) noexcept {
  node->peer = nullptr;
  if (node->last_owner) drop_ticket(node->ticket);
  if (posted_operation* const op = std::exchange(node->posted, nullptr); op != nullptr) {
    if (op->over.load() != 0) {
      free_posted(op);
    } else {
      op->detached = true;
    }
  }
  node->task.reset();
  node->owner = nullptr;
  node->next_free = free_requests_;
  free_requests_ = node;
}

posted_operation* engine::one_more_posted() {
  posted_operation& op = posted_.emplace_back();
  op.run = &engine::on_posted;
  op.owner = this;
  return &op;
}

void engine::end_piece(posted_operation& op, status result) noexcept {
  if (result != status::done) op.result = result;
  if (--op.pieces != 0) return;
  if (op.state != nullptr) {
    target_state& state = *op.state;
    if (op.result == status::done) {
      op.state = nullptr;
    } else {
      state.fail(op.result);
      if (op.immediate) --state.immediates;  // nobody waits for it
      op.reports = state.reports;
    }
    state.end_posted();
  }
  op.over.store(1);
  if (op.detached) free_posted(&op);
}

void engine::on_posted(fabric::completion& over, status result, std::uint64_t /*bytes*/) noexcept {
  auto& op = static_cast<posted_operation&>(over);
  op.owner->end_piece(op, result);
}

// What a flush has reported meanwhile is not counted any more.
void engine::told(const posted_operation& op) noexcept {
  if (op.state == nullptr || op.result == status::done || op.reports != op.state->reports) return;
  if (--op.state->failures == 0) op.state->fabric_failed.store(0);
}

void engine::forget(const target_state& state) noexcept {
  if (state.fabric_pending.load() == 0 && state.failures == 0 && state.reports == 0) return;
  for (posted_operation& op : posted_) {
    if (op.state == &state) op.state = nullptr;
  }
}

void engine::give_up_tasks(window_core& w) noexcept {
  std::vector<request_node*> left;
  {
    const std::lock_guard guard(ctx_.lock());
    for (request_node& node : *requests_) {
      const bool pending = node.window == w.id && node.task != nullptr && node.ended == status::not_yet;
      if (pending && node.task->may_be_dropped()) left.push_back(&node);
    }
  }
  const visit in(w);
  for (request_node* const node : left) {  // without the progress lock: they may need messages
    node->task->give_up(w, status::window_freed);
    node->ended = status::window_freed;
  }
}

status engine::wait_posted(std::unique_lock<small_lock>& guard, posted_operation& op) noexcept {
  const auto over = [&op]() noexcept { return op.over.load() != 0; };
  if (ctx_.ready_soon(over)) return op.result;
  guard.unlock();
  const status s = ctx_.wait_for_message(over, []() noexcept { return status::done; });
  guard.lock();
  return s == status::done ? op.result : s;
}

status engine::leave(std::unique_lock<small_lock>& guard, posted_operation& op, const window_core& w, int world_rank,
                     bool now, request_node** request) noexcept {
  end_piece(op, status::done);  // the one that stood for the posting
  status s = status::posted;
  if (now) {
    s = wait_posted(guard, op);
    if (!ok(s)) ctx_.blame(world_rank);
  }
  if (!now && request != nullptr) {
    *request = new_request(w, world_rank, &op);
  } else if (op.over.load() == 0) {
    op.detached = true;
  } else {
    if (now) told(op);
    free_posted(&op);
  }
  return s;
}

namespace {

constexpr std::uint64_t ticket_number(std::uint32_t generation, std::size_t index) noexcept {
  return (std::uint64_t{generation} << 32) | (index + 1);
}

}  // namespace

std::uint64_t engine::new_ticket(const window_core& w, int rank, void* at, std::uint64_t bytes, const Layout* shape) {
  if (free_ticket_ == 0) {
    tickets_.emplace_back();
    free_ticket_ = static_cast<std::uint32_t>(tickets_.size());
  }
  const std::uint32_t index = free_ticket_;
  result_ticket& t = tickets_[index - 1];
  free_ticket_ = t.next_free;
  t.at = static_cast<std::byte*>(at);
  t.contiguous = shape == nullptr;
  if (shape != nullptr) t.shape = *shape;
  t.bytes = bytes;
  t.arrived = 0;
  t.window = w.id;
  t.rank = rank;
  ++t.generation;
  return ticket_number(t.generation, index - 1);
}

void engine::refuse(int source, message kind, std::span<const std::byte> payload, nonsense why) noexcept {
  ctx_.refuse(source, static_cast<std::uint16_t>(kind), payload.size(), why);
}

void engine::on_operation(void* self, int source, std::span<const std::byte> payload) noexcept {
  serve_operation(*static_cast<engine*>(self), source, payload);
}

void engine::take_result(std::uint64_t ticket, std::span<const std::byte> data) noexcept {
  const auto index = static_cast<std::uint32_t>(ticket);
  if (index == 0 || index > tickets_.size()) return;
  result_ticket& t = tickets_[index - 1];
  if (t.generation != ticket >> 32 || data.size() > t.bytes - t.arrived) return;
  if (t.contiguous) {
    std::memcpy(t.at + t.arrived, data.data(), data.size());
  } else {
    unpack(t.at, data.data(), t.shape, t.arrived, data.size());
  }
  t.arrived += data.size();
  if (t.arrived == t.bytes) drop_ticket(ticket);
}

void engine::drop_ticket(std::uint64_t ticket) noexcept {
  const auto index = static_cast<std::uint32_t>(ticket);
  if (index == 0 || index > tickets_.size()) return;
  result_ticket& t = tickets_[index - 1];
  if (t.generation != ticket >> 32) return;
  if (!t.contiguous) t.shape = Layout();
  t.window = 0;
  ++t.generation;  // what else comes for it is not for its next user
  t.next_free = free_ticket_;
  free_ticket_ = index;
}

void engine::drop_results(std::uint64_t window, int rank) {
  std::vector<std::uint64_t> requested;
  for (request_node& node : *requests_) {
    if (node.peer == nullptr || node.ticket == 0 || node.window != window || (rank >= 0 && node.rank != rank)) continue;
    node.last_owner = true;
    requested.push_back(node.ticket);
  }
  for (std::size_t i = 0; i < tickets_.size(); ++i) {
    const result_ticket& t = tickets_[i];
    if (t.window != window || (rank >= 0 && t.rank != rank)) continue;
    const std::uint64_t ticket = ticket_number(t.generation, i);
    if (std::find(requested.begin(), requested.end(), ticket) == requested.end()) drop_ticket(ticket);
  }
}

void engine::on_reply(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  reply_header h{};
  if (payload.size() < sizeof h) return me.refuse(source, message::reply, payload, nonsense::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  me.take_result(h.ticket, payload.subspan(sizeof h));
  auto& peer = me.ctx_.peer_of(source);
  peer.operations_done.store(peer.operations_done.load(std::memory_order_relaxed) + h.done);
}

void engine::on_acknowledge(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  std::uint32_t count = 0;
  if (payload.size() != sizeof count) return me.refuse(source, message::acknowledge, payload, nonsense::wrong_length);
  std::memcpy(&count, payload.data(), sizeof count);
  auto& peer = me.ctx_.peer_of(source);
  peer.operations_done.store(peer.operations_done.load(std::memory_order_relaxed) + count);
}

void engine::on_lock(void* self, int source, std::span<const std::byte> payload) noexcept {
  serve_lock(*static_cast<engine*>(self), source, payload);
}

void engine::busy(window_core& w) {
  if (std::find(busy_.begin(), busy_.end(), &w) == busy_.end()) busy_.push_back(&w);
  ctx_.on_duty(this, true);
}

unsigned engine::on_duty(void* self) noexcept {
  auto& me = *static_cast<engine*>(self);
  unsigned done = 0;
  for (std::size_t i = 0; i < me.busy_.size(); ++i) done += serve_agent(*me.busy_[i]);
  std::erase_if(me.busy_, [](const window_core* w) { return !agent_is_busy(*w); });
  me.ctx_.on_duty(&me, !me.busy_.empty());
  return done;
}

std::string engine::describe(void* self) {
  std::string text;
  for (const auto& [id, w] : static_cast<engine*>(self)->windows_) {
    const std::string place = entry_scope::place_of(*w);
    if (!place.empty()) text += (text.empty() ? "" : "; ") + place;
  }
  return text;
}

void engine::on_share(void* self, int source, std::span<const std::byte> payload) noexcept {
  serve_share(*static_cast<engine*>(self), source, payload);
}

void engine::on_refuse(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  context::peer& peer = me.ctx_.peer_of(source);
  dropped_header h{};
  if (payload.empty()) {  // the half of a copy
    peer.refusals.store(peer.refusals.load(std::memory_order_relaxed) + 1);
  } else if (payload.size() == sizeof h) {
    std::memcpy(&h, payload.data(), sizeof h);
    me.fail_dropped(source, peer, h);
  } else {
    me.refuse(source, message::refuse, payload, nonsense::wrong_length);
  }
}

// Its own request says so, or the call that completes what is under way there, whichever comes first. No other
// operation is concerned.
void engine::fail_dropped(int source, context::peer& peer, const dropped_header& h) noexcept {
  const std::uint64_t operation = peer.operations_done.load(std::memory_order_relaxed) + h.done;
  drop_ticket(h.ticket);
  target_state* const state = asked_target(h.window, source);
  if (state != nullptr) state->fail(status::transfer_failed);
  for (request_node& node : *requests_) {
    if (node.peer != &peer || node.operation != operation) continue;
    node.ended = status::transfer_failed;
    node.reports = state != nullptr ? state->reports : 0;
  }
  if (window_core* const w = find(h.window)) w->dropped_by.store(source);
  peer.operations_done.store(operation);
}

target_state* engine::asked_target(std::uint64_t window, int rank) noexcept {
  const window_core* const w = find(window);
  if (w == nullptr) return nullptr;
  const auto at = w->handler_targets.find(rank);
  return at == w->handler_targets.end() ? nullptr : at->second;
}

void engine::told(const request_node& node) noexcept {
  if (node.task != nullptr || node.ended != status::transfer_failed) return;
  target_state* const state = asked_target(node.window, node.rank);
  if (state == nullptr || node.reports != state->reports) return;
  if (--state->failures == 0) state->fabric_failed.store(0);
}

void engine::on_notify(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  notify_header h{};
  if (payload.size() != sizeof h) return me.refuse(source, message::notify, payload, nonsense::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  window_core* const w = me.find(h.window);
  if (w == nullptr) return;
  window_block& mine = w->my_block();
  switch (static_cast<counter_kind>(h.kind)) {
    case counter_kind::signal:
      if (h.index < w->hints.signals) w->array<word64>(mine, w->layout.signals_at)[h.index].fetch_add(1);
      break;
    case counter_kind::completion: ++w->told_by_message[source].completions; break;
    case counter_kind::post: ++w->told_by_message[source].posts; break;
  }
}

void engine::on_fence(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  fence_header h{};
  if (payload.size() != sizeof h) return me.refuse(source, message::fence, payload, nonsense::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  if (h.news >= static_cast<std::uint32_t>(fence_news::count_))
    return me.refuse(source, message::fence, payload, nonsense::wrong_contents);
  const auto news = static_cast<fence_news>(h.news);
  if (window_core* const w = me.find(h.window)) {
    on_fence_news(*w, source, news, h.number);
  } else if (news == fence_news::ask) {  // the window was dropped here: nobody has to wait for it
    h.news = static_cast<std::uint32_t>(fence_news::answer);
    me.ctx_.send_record(source, message::fence, h);
  }
}

void engine::on_range(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<engine*>(self);
  range_header h{};
  if (payload.size() != sizeof h) return me.refuse(source, message::range, payload, nonsense::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  if (window_core* const w = me.find(h.window)) {
    if (!on_range_news(*w, source, h)) me.refuse(source, message::range, payload, nonsense::wrong_contents);
  } else if (h.news == static_cast<std::uint16_t>(range_news::request)) {
    h.news = static_cast<std::uint16_t>(range_news::failed);
    me.ctx_.send_record(source, message::range, h);
  }
}

void engine::on_immediate(void* self, int source, std::uint32_t value) noexcept {
  auto& me = *static_cast<engine*>(self);
  const auto found = me.slots_.find(slot_of_immediate(value));
  if (found != me.slots_.end()) on_fence_news(*found->second, source, fence_news::finish, value % 4);
}

// ---- requests --------------------------------------------------------------------------------------------------

namespace {

/// One step of a synchronisation.
status step(request_node& node) noexcept {
  if (node.ended != status::not_yet) return node.ended;
  context& ctx = node.owner->ctx();
  window_core* w = nullptr;
  {
    const std::lock_guard guard(ctx.lock());
    w = node.owner->find(node.window);
  }
  if (w == nullptr) {
    node.task->forget_window();
    return node.ended = status::window_freed;
  }
  const visit in(*w);
  node.ended = node.task->advance(*w);
  if (node.ended != status::not_yet) return node.ended;
  const status lost = node.task->failed(*w);
  if (lost == status::done) return status::not_yet;
  (void)ctx.progress();  // it may have come before the news did
  node.ended = node.task->advance(*w);
  if (node.ended != status::not_yet) return node.ended;
  node.task->give_up(*w, lost);
  return node.ended = lost;
}

/// Without the progress lock: what it gives up may need messages.
void end_task(request_node& node) noexcept {
  context& ctx = node.owner->ctx();
  std::unique_lock guard(ctx.lock());
  const window_core* const w = node.owner->find(node.window);
  guard.unlock();
  if (w == nullptr) {
    node.task->forget_window();
    return node.task.reset();
  }
  const visit in(*w);
  node.task.reset();
}

status wait_task(request_node& node) noexcept {
  const status s = node.owner->ctx().wait_heard([&]() noexcept { return node.task->silent(); },
                                                [&]() noexcept { return step(node) != status::not_yet; });
  return s == status::done ? node.ended : s;
}

}  // namespace

status request_state(request_node& node) noexcept {
  if (node.owner == nullptr) return node.ended;
  if (node.task != nullptr) return step(node);
  if (const status s = state_of_operation(node); s != status::not_yet || node.posted != nullptr) return s;
  context& ctx = node.owner->ctx();
  if (!ctx.gone(node.rank)) return status::not_yet;
  (void)ctx.progress();  // it may have answered before it went
  if (const status s = state_of_operation(node); s != status::not_yet) return s;
  ctx.blame(node.rank);
  return status::peer_failed;
}

namespace {

/// The last one deletes all.
void free_kept(request_node* node) noexcept { const auto nodes = std::move(node->kept); }

/// Its failure has been seen by whoever waits for it.
void release(request_node*& node) noexcept {
  if (node->owner == nullptr) return free_kept(std::exchange(node, nullptr));
  engine& owner = *node->owner;
  const std::lock_guard guard(owner.ctx().lock());
  if (node->posted != nullptr && node->posted->over.load() != 0) owner.told(*node->posted);
  owner.told(*node);
  owner.free_request(std::exchange(node, nullptr));
}

}  // namespace

status may_ask(const request_node& node) noexcept {
  return node.owner == nullptr ? status::done : node.owner->ctx().check_caller();
}

status test_request(request_node*& node) noexcept {
  if (const status may = may_ask(*node); may != status::done) return may;
  status s = request_state(*node);
  if (s == status::not_yet) {
    node->owner->ctx().progress();
    s = request_state(*node);
  }
  if (ok(s)) release(node);
  return s;
}

status wait_request(request_node*& node) noexcept {
  request_node& n = *node;
  status s = may_ask(n);
  if (s != status::done) return s;
  if (n.owner == nullptr) {
    s = n.ended;
    if (ok(s)) release(node);
    return s;
  }
  const named_wait in(n.owner->ctx(), "a wait for a request");
  if (n.task != nullptr) {
    s = wait_task(n);
    if (ok(s)) release(node);
    return s;
  }
  if (n.posted != nullptr) {
    std::unique_lock guard(n.owner->ctx().lock());
    s = n.owner->wait_posted(guard, *n.posted);
  } else {
    s = n.owner->ctx().wait_for_peer(n.rank, [&n]() noexcept { return n.peer->operations_done.load() >= n.operation; });
    if (s == status::done) s = state_of_operation(n);
  }
  if (s == status::peer_failed || s == status::transfer_failed) n.owner->ctx().blame(n.rank);
  if (ok(s)) release(node);
  return s;
}

void end_failed(request_node*& node, status failure) noexcept {
  if (failure == status::wrong_thread) return;
  node->last_owner = true;  // no result will be waited for, and its place may be gone
  release(node);
}

// Other ranks take part in a synchronisation, and a window has its epoch in it: it is brought to its end, or undone.
// What is undone takes no step more: that might be the one to its end, of which nobody would be told.
void drop_request(request_node* node) noexcept {
  if (node->owner == nullptr) return free_kept(node);
  engine& owner = *node->owner;
  const bool to_its_end = node->task != nullptr && !node->task->may_be_dropped();
  if (to_its_end && step(*node) == status::not_yet) (void)wait_task(*node);
  if (node->task != nullptr) end_task(*node);
  const std::lock_guard guard(owner.ctx().lock());
  owner.free_request(node);
}

}  // namespace rma::detail
