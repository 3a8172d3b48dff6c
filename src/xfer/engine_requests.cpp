// SPDX-License-Identifier: Apache-2.0
/// \file
/// Requests of operations, synchronizations and other awaited events.
#include "xfer/engine.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "channel/call_scope.hpp"
#include "core/assert.hpp"
#include "window/window_core.hpp"
#include "xfer/bulk_streams.hpp"
#include "xfer/entry_scope.hpp"
#include "xfer/wait_heard.hpp"

namespace rma::detail {

namespace {

/// The result of a request of an operation, or not_yet.
status state_of_operation(const request_node& node) noexcept {
  return node.operation->over.load() != 0 ? node.operation->result : status::not_yet;
}

}  // namespace

// All windows have been freed, and with them their pending operations.
engine::~engine() {
  for (request_node& node : *requests_) {
    if (node.owner == nullptr) continue;
    if (node.task != nullptr) {
      node.task->forget_window();
      node.task.reset();
    } else if (node.ended == status::not_yet) {
      node.ended = node.outside != nullptr ? node.outside->state() : state_of_operation(node);
    }
    if (node.ended == status::not_yet) node.ended = status::window_freed;
    node.owner = nullptr;
    node.operation = nullptr;
    node.outside = nullptr;
    node.kept = requests_;
  }
}

request_node* engine::take_request() {
  request_node* node = free_requests_;
  if (node == nullptr) {
    node = &requests_->emplace_back();
  } else {
    free_requests_ = node->next_free;
  }
  RMA_ASSERT(node->owner == nullptr && node->operation == nullptr);
  RMA_ASSERT(node->task == nullptr && node->outside == nullptr);
  node->owner = this;
  node->ended = status::not_yet;
  return node;
}

request_node* engine::new_request(const window_core& w, int rank, operation_record& op) {
  request_node* const node = take_request();
  node->operation = &op;
  node->window = w.id;
  node->rank = rank;
  op.detached = false;
  return node;
}

request_node* engine::new_request(const window_core& w, std::unique_ptr<sync_task> task) {
  request_node* const node = take_request();
  node->window = w.id;
  node->rank = -1;
  node->reached = status::not_yet;
  node->silent = task->silent();
  node->task = std::move(task);
  tasks_.push_back(node);
  ctx_.has_steps(true);
  pace_tasks(true);
  if (node->silent) {  // the progress thread may sleep longer than until the next test of this task
    full_fence();
    ctx_.around().ring(ctx_.rank());
  }
  return node;
}

request_node* engine::new_request(awaited& what) {
  request_node* const node = take_request();
  node->outside = &what;
  node->window = 0;
  node->rank = -1;
  return node;
}

// If a request is dropped before its end, the operation continues without it.
std::shared_ptr<void> engine::free_request(request_node* node) noexcept {
  RMA_ASSERT(ctx_.lock().is_taken());
  RMA_ASSERT(node->owner == this && node->step == task_step::none);
  if (operation_record* const op = std::exchange(node->operation, nullptr); op != nullptr) {
    if (op->request_owns_result) op->into = nullptr;
    if (op->over.load() != 0) {
      free_operation(*op);
    } else {
      op->detached = true;
    }
  }
  std::shared_ptr<void> last;
  if (awaited* const left = std::exchange(node->outside, nullptr); left != nullptr) last = left->release();
  node->task.reset();
  node->owner = nullptr;
  node->next_free = free_requests_;
  free_requests_ = node;
  return last;
}

namespace {

/// Takes one step, while no other thread is in one. True if another thread waits for its end.
bool advance(request_node& node, window_core& w) noexcept {
  RMA_ASSERT(node.task != nullptr && node.step == task_step::none);
  RMA_ASSERT(node.reached == status::not_yet && node.ended == status::not_yet);
  node.step = task_step::under_way;
  node.reached = node.task->advance(w);
  node.silent.store(node.reached == status::not_yet && node.task->silent(), std::memory_order_relaxed);
  return std::exchange(node.step, task_step::none) == task_step::awaited;
}

/// Called by a thread that is alone in the window: a pending step of another thread has let it in, and must end first.
void await_step(request_node& node, window_core& w) noexcept {
  while (node.step != task_step::none) {
    node.step = task_step::awaited;
    const window_unlock_guard out(w);
    const auto over = [&]() noexcept {
      const window_guard in(w);
      return node.step == task_step::none;
    };
    (void)w.ctx->wait({.until = over, .woken_by = wakes::memory});
  }
}

}  // namespace

void engine::give_up_tasks(window_core& w) noexcept {
  std::vector<request_node*> left;
  {
    const std::lock_guard guard(ctx_.lock());
    for (request_node& node : *requests_) {
      if (node.window == w.id && node.task != nullptr && node.ended == status::not_yet) left.push_back(&node);
    }
  }
  const window_guard in(w);
  for (request_node* const node : left) {  // not under the progress lock, since they may need messages
    await_step(*node, w);
    if (node->task->may_be_dropped()) {
      node->task->give_up(w, status::window_freed);
      (void)end_task(*node, w, status::window_freed);
    } else {
      const std::lock_guard guard(ctx_.lock());
      stop_advancing(*node);
    }
  }
}

status engine::end_task(request_node& node, window_core& w, status s) noexcept {
  if (node.ended != status::not_yet) return node.ended;
  RMA_ASSERT(s != status::not_yet && node.owner == this);
  node.ended = s;
  const std::lock_guard guard(ctx_.lock());
  stop_advancing(node);
  w.count_task(false);
  return s;
}

void engine::stop_advancing(const request_node& node) noexcept {
  std::erase(tasks_, &node);
  if (tasks_.empty()) ctx_.has_steps(false);
}

/// The i-th synchronization, if it may take a step, with this thread alone in its window; else null. `more` is false if
/// there is no i-th one.
request_node* engine::enter_task(std::size_t i, window_core*& w, bool& more) noexcept {
  const std::lock_guard guard(ctx_.lock());
  more = i < tasks_.size();
  if (!more) return nullptr;
  request_node* const node = tasks_[i];
  w = find(node->window);
  return w != nullptr && w->mutex.try_enter(ctx_.around()) ? node : nullptr;
}

// Only one thread at a time runs this: a step may make progress itself.
unsigned engine::advance_tasks(void* self) noexcept {
  auto& me = *static_cast<engine*>(self);
  if (me.advancing_.exchange(true)) return 0;
  unsigned ended = 0;
  bool more = true;
  for (std::size_t i = 0; more; ++i) {
    window_core* w = nullptr;
    request_node* const node = me.enter_task(i, w, more);
    if (node == nullptr) continue;
    RMA_ASSERT(w != nullptr && node->owner == &me);
    RMA_ASSERT(node->task != nullptr && node->window == w->id);
    if (node->reached == status::not_yet && node->step == task_step::none) {
      const bool awaited = advance(*node, *w);
      if (awaited || node->reached != status::not_yet) ++ended;
    }
    w->mutex.exit();
  }
  {
    const std::lock_guard guard(me.ctx_.lock());
    me.pace_tasks(ended != 0);
  }
  me.advancing_.store(false);
  return ended;
}

// Sets the pause between tests of silent synchronizations, for which no doorbell rings.
void engine::pace_tasks(bool came_further) noexcept {
  constexpr std::int64_t pause_first_ns = 1'000, pause_max_ns = 1'000'000;
  const bool silent = std::any_of(tasks_.begin(), tasks_.end(), [](const request_node* n) { return n->silent.load(); });
  task_pause_ns_ = !silent        ? 0
                   : came_further ? pause_first_ns
                                  : std::clamp(2 * task_pause_ns_, pause_first_ns, pause_max_ns);
  if (silent) ctx_.on_duty(this, true);
}

namespace {

/// The window of a synchronization; null if it was freed, and its task has forgotten it.
window_core* window_of(request_node& node) noexcept {
  engine& owner = *node.owner;
  window_core* w = nullptr;
  {
    const std::lock_guard guard(owner.ctx().lock());
    w = owner.find(node.window);
    if (w == nullptr) owner.stop_advancing(node);
  }
  if (w == nullptr) node.task->forget_window();
  return w;
}

/// Takes one step of a synchronization, and concludes it after the last one. Does nothing while another thread is in a
/// step.
status step(request_node& node) noexcept {
  if (node.ended != status::not_yet) return node.ended;
  RMA_ASSERT(node.owner != nullptr && node.task != nullptr);
  engine& owner = *node.owner;
  window_core* const w = window_of(node);
  if (w == nullptr) return node.ended = status::window_freed;
  const window_guard in(*w);
  if (node.step != task_step::none) return status::not_yet;
  if (node.reached == status::not_yet) (void)advance(node, *w);
  if (node.reached == status::not_yet) {
    const status failure = node.task->failed(*w);
    if (failure == status::done) return status::not_yet;
    (void)owner.ctx().progress();  // an event may have arrived before the report of the death
    if (node.step != task_step::none) return status::not_yet;
    if (node.reached == status::not_yet) (void)advance(node, *w);
    if (node.reached == status::not_yet) {
      node.task->give_up(*w, failure);
      return owner.end_task(node, *w, failure);
    }
  }
  RMA_ASSERT(node.step == task_step::none);
  return owner.end_task(node, *w, node.task->conclude(*w, node.reached));
}

/// Called without the progress lock: to give the task up may need messages.
void discard_task(request_node& node) noexcept {
  if (window_core* const w = window_of(node)) {
    const window_guard in(*w);
    await_step(node, *w);
    (void)node.owner->end_task(node, *w, status::window_freed);
  }
  node.task.reset();
}

status wait_task(request_node& node) noexcept {
  const status s = wait_heard(
      node.owner->ctx(), [&]() noexcept { return node.silent.load(std::memory_order_relaxed); },
      [&]() noexcept { return step(node) != status::not_yet; });
  return s == status::done ? node.ended : s;
}

}  // namespace

namespace {

/// The state of a request of a message or a collective. Events that arrived before the report of a death count.
status state_outside(request_node& node) noexcept {
  status s = node.outside->state();
  if (s != status::not_yet) return s;
  const status failure = node.outside->failed();
  if (failure == status::done) return status::not_yet;
  (void)node.owner->ctx().progress();
  s = node.outside->state();
  if (s != status::not_yet) return s;
  node.outside->give_up(failure);
  return node.outside->state();
}

status wait_outside(request_node& node) noexcept {
  awaited& what = *node.outside;
  if (const status now = what.state(); now != status::not_yet) return now;
  const status s = node.owner->ctx().wait({.until = [&]() noexcept { return what.state() != status::not_yet; },
                                           .fails_if = [&]() noexcept { return what.failed(); }});
  return s == status::done ? what.state() : state_outside(node);
}

}  // namespace

status request_state(request_node& node) noexcept {
  if (node.owner == nullptr) return node.ended;
  if (node.outside != nullptr) return state_outside(node);
  if (node.task == nullptr && node.operation == nullptr) return node.ended;  // its window was freed
  if (node.task != nullptr) return step(node);
  if (const status s = state_of_operation(node); s != status::not_yet) return s;
  if (!node.operation->by_message) return status::not_yet;  // the fabric ends it, by an error if necessary
  context& ctx = node.owner->ctx();
  if (!ctx.gone(node.rank)) return status::not_yet;
  (void)ctx.progress();  // it may have replied before its end
  if (const status s = state_of_operation(node); s != status::not_yet) return s;
  ctx.set_last_failed(node.rank);
  return status::peer_failed;
}

namespace {

/// The last node deletes all.
void free_kept(request_node* node) noexcept { const auto nodes = std::move(node->kept); }

/// Frees a request whose result has been reported.
void release(request_node*& node) noexcept {
  if (node->owner == nullptr) return free_kept(std::exchange(node, nullptr));
  engine& owner = *node->owner;
  std::shared_ptr<void> last;
  const std::lock_guard guard(owner.ctx().lock());
  if (node->operation != nullptr && node->operation->over.load() != 0) owner.mark_failure_reported(*node->operation);
  last = owner.free_request(std::exchange(node, nullptr));
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
  if (n.outside != nullptr) {
    s = wait_outside(n);
    if (ok(s)) release(node);
    return s;
  }
  if (n.task == nullptr && n.operation == nullptr) {  // its window was freed
    s = n.ended;
    if (ok(s)) release(node);
    return s;
  }
  if (n.task != nullptr) {
    s = wait_task(n);
    if (ok(s)) release(node);
    return s;
  }
  operation_record& op = *n.operation;
  if (op.by_message) {
    s = n.owner->ctx().wait({.until = [&op]() noexcept { return op.over.load() != 0; }, .peer = n.rank});
    if (s == status::done) s = op.result;
  } else {
    std::unique_lock guard(n.owner->ctx().lock());
    s = n.owner->wait_posted(guard, op, n.rank);
  }
  if (s == status::peer_failed || s == status::transfer_failed) n.owner->ctx().set_last_failed(n.rank);
  if (ok(s)) release(node);
  return s;
}

void end_failed(request_node*& node, status failure) noexcept {
  if (failure == status::wrong_thread) return;
  if (node->operation != nullptr) node->operation->request_owns_result = true;  // the result's buffer may be gone
  release(node);
}

// A synchronization involves other ranks and the window's epoch: it is completed, or undone. A request that is undone
// takes no further step: this might be its last, whose result would not be reported.
void drop_request(request_node* node) noexcept {
  if (node->owner == nullptr) return free_kept(node);
  engine& owner = *node->owner;
  const bool to_its_end = node->task != nullptr && !node->task->may_be_dropped();
  if (to_its_end && step(*node) == status::not_yet) (void)wait_task(*node);
  if (node->task != nullptr) discard_task(*node);
  std::shared_ptr<void> last;
  const std::lock_guard guard(owner.ctx().lock());
  last = owner.free_request(node);
}

}  // namespace rma::detail
