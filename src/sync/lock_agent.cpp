// SPDX-License-Identifier: Apache-2.0
#include "sync/lock_agent.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "sync/lock_hybrid.hpp"
#include "sync/lock_network.hpp"
#include "sync/lock_protocol.hpp"
#include "sync/locking.hpp"
#include "sync/synchronization.hpp"
#include "xfer/protocols.hpp"

namespace rma::detail {

// ---- target's side -----------------------------------------------------------------------------------------------

manager_duty lock_agent::duty() const noexcept { return w_.lock_row->duty; }

bool lock_agent::takes_cpu_lock() const noexcept {
  return duty() == manager_duty::takes_for_far || duty() == manager_duty::migrates;
}

lock_agent::lock_agent(window_core& w) : w_(w) {
  RMA_ASSERT(duty() != manager_duty::none);
  if (duty() == manager_duty::counts_readers) readers_.emplace(w);
}

bool lock_agent::take_message(int source, const lock_header& h, std::span<const std::byte> body) noexcept {
  RMA_ASSERT(w_.ctx->is_guarded());
  RMA_ASSERT(source >= 0 && source < w_.ctx->size());
  if (h.kind != static_cast<std::uint8_t>(lock_kind::shared) &&
      h.kind != static_cast<std::uint8_t>(lock_kind::exclusive))
    return false;
  if (readers_ && h.word == lock_word::request && h.kind != static_cast<std::uint8_t>(lock_kind::shared)) return false;
  switch (h.word) {
    case lock_word::request:
      enqueue({source, h.number, h.target, static_cast<lock_kind>(h.kind), false, false, false, h.late, {}});
      return true;
    case lock_word::epoch: return take_piece(source, h, body);
    case lock_word::release: release(source, h.number); return true;
    case lock_word::migrate_request: {
      lock_header reply = h;
      reply.word = lock_word::migrate_reply;
      reply.result = may_come(source) ? lock_answer::granted : lock_answer::moved;
      w_.ctx->send_record(source, message::lock, reply);
      return true;
    }
    case lock_word::migrated: comes(source); return true;
    case lock_word::migrate_cancel: stays(source); return true;
    case lock_word::answer:
    case lock_word::migrate_reply: break;
  }
  return false;
}

void lock_agent::enqueue(queued_request&& c) noexcept {
  c.since_ns = w_.ctx->around().now_ns();
  turns_.enqueue(std::move(c));
  (void)serve();
  if (busy()) w_.team->rt->syncs->busy(w_);
}

bool lock_agent::take_piece(int source, const lock_header& h, std::span<const std::byte> body) noexcept {
  RMA_ASSERT(w_.ctx->is_guarded() && h.word == lock_word::epoch);
  if (!w_.defers && !w_.defers_far) return false;
  queued_request& c = arriving_[source];
  if (c.source < 0) c = {source, h.number, h.target, static_cast<lock_kind>(h.kind), true, false, false, h.late, {}};
  RMA_ASSERT(c.source == source && c.is_epoch);
  c.messages.insert(c.messages.end(), body.begin(), body.end());
  if (h.last == 0) return true;
  queued_request whole = std::move(c);
  arriving_.erase(source);
  enqueue(std::move(whole));
  return true;
}

void lock_agent::ask_own(std::uint32_t number, lock_kind kind) noexcept {
  enqueue({w_.ctx->rank(), number, w_.team->rank, kind, false, false, false, 0, {}});
}

void lock_agent::release(int source, std::uint32_t number) noexcept {
  if (!turns_.release(*this, source, number)) {
    if (!granted_ || granted_->source != source || granted_->number != number) return;  // released before
    take_back_grant();  // an ilock that was dropped before it learnt of the grant
  }
  (void)serve();
}

void lock_agent::take_back_grant() noexcept {
  RMA_ASSERT(w_.ctx->is_guarded());
  RMA_ASSERT(granted_ && duty() == manager_duty::migrates);
  window_block& block = w_.my_block();
  std::uint64_t state = block.lock.state.load();
  for (;;) {
    const std::uint64_t wanted = grant_withdrawn(state, block.network_lock.load(), granted_->source);
    if (wanted == state) break;
    if (!block.lock.state.compare_exchange(state, wanted)) continue;
    wake_all(w_, w_.team->rank);
    break;
  }
  granted_.reset();
}

unsigned lock_agent::advance() noexcept {
  RMA_ASSERT(w_.ctx->is_guarded());
  RMA_ASSERT(readers_.has_value() == (duty() == manager_duty::counts_readers));
  const bool changed = readers_ && readers_->advance(!turns_.holders().empty(), !turns_.waiting().empty());
  return serve() + (changed ? 1 : 0);
}

unsigned lock_agent::serve() noexcept {
  const unsigned answered = remove_dead();
  return answered + turns_.serve(*this);
}

lock_turn lock_agent::take(queued_request& c) noexcept {
  if (duty() == manager_duty::migrates) return take_hybrid(c);
  if (takes_cpu_lock()) return wait_for_cpu(c, c.kind, proxy_of(c));
  return (readers_ ? readers_->enter() : turns_.admits(c.kind)) ? lock_turn::holds : lock_turn::waits;
}

bool lock_agent::take_beside(const queued_request& c) noexcept {
  RMA_ASSERT(c.kind == lock_kind::shared && duty() != manager_duty::counts_readers);
  if (duty() == manager_duty::is_the_lock) return turns_.admits(c.kind);
  return cpu_wait(w_, w_.team->rank, c.kind, proxy_of(c)).ready();
}

lock_turn lock_agent::wait_for_cpu(const queued_request& c, lock_kind kind, std::uint64_t tag) noexcept {
  if (!wait_) {
    wait_.emplace(w_, w_.team->rank, kind, tag);
    deaths_seen_ = ~std::uint32_t{0};  // the wait must also learn of known deaths
  }
  if (!wait_->ready()) {
    if (wait_->is_out()) w_.ctx->call_duty_at(wait_->out_until_ns());
    return lock_turn::waits;
  }
  wait_->leave_list();
  wait_.reset();
  return c.migrates ? lock_turn::brings : lock_turn::holds;
}

/// Requests of ranks of other nodes make the lock migrate only here.
lock_turn lock_agent::take_hybrid(queued_request& c) noexcept {
  RMA_ASSERT(w_.ctx->is_guarded() && duty() == manager_duty::migrates);
  const int me = w_.team->rank;
  (void)mend(w_, me);
  if (!wait_ && (w_.my_block().lock.state.load() & lock_away) != 0) return lock_turn::elsewhere;
  if (!std::exchange(c.is_noted, true)) c.migrates = note_request(w_, w_.my_block(), c.kind, false, c.late);
  if (!c.migrates) return wait_for_cpu(c, c.kind, proxy_of(c));
  const lock_turn t = wait_for_cpu(c, lock_kind::exclusive, granted_tag(c.source));
  if (t == lock_turn::waits && c.kind == lock_kind::shared) {  // it must not wait for others that hold it shared
    end_wait();
    c.migrates = false;
    return wait_for_cpu(c, c.kind, proxy_of(c));
  }
  RMA_ASSERT((t == lock_turn::waits) == wait_.has_value());
  if (t == lock_turn::brings) {
    granted_ = {c.source, c.number};
    wake_all(w_, me);
  }
  return t;
}

bool lock_agent::may_come(int source) noexcept {
  word64& word = w_.my_block().lock.state;
  std::uint64_t state = word.load();
  const std::uint64_t wanted = migration_offered(state, w_.my_block().network_lock.load(), source);
  return wanted != state && word.compare_exchange(state, wanted);
}

void lock_agent::comes(int source) noexcept {
  window_block& block = w_.my_block();
  std::uint64_t state = block.lock.state.load();
  for (;;) {
    const std::uint64_t wanted = migration_finished(state, block.network_lock.load(), source);
    if (wanted == state) return;
    if (!block.lock.state.compare_exchange(state, wanted)) continue;
    block.migration.benefit.store(0);
    block.migration.local_streak.store(0);
    wake_all(w_, w_.team->rank);
    (void)serve();
    return;
  }
}

void lock_agent::stays(int source) noexcept {
  word64& word = w_.my_block().lock.state;
  std::uint64_t state = word.load();
  for (;;) {
    const std::uint64_t wanted = migration_cancelled(state, source);
    if (wanted == state || word.compare_exchange(state, wanted)) return;
  }
}

void lock_agent::give_back(const queued_request& c) noexcept {
  if (takes_cpu_lock()) release_proxy(w_, c.kind, proxy_of(c));
}

void lock_agent::run(const queued_request& c) noexcept {
  engine& e = *w_.team->rt->ops;
  for (std::size_t at = 0; c.messages.size() - at > sizeof(std::uint32_t);) {
    std::uint32_t bytes = 0;
    std::memcpy(&bytes, c.messages.data() + at, sizeof bytes);
    at += sizeof bytes;
    if (bytes > c.messages.size() - at)
      return e.reject_malformed(c.source, message::lock, c.messages, malformed_reason::wrong_contents);
    run_operation(e, c.source, std::span(c.messages).subspan(at, bytes));
    at += bytes;
  }
}

void lock_agent::answer(const queued_request& c, lock_answer result, int blamed) noexcept {
  RMA_ASSERT(blamed < 0 || result == lock_answer::failed);
  lock_header h{w_.id, c.number, c.target, blamed, lock_word::answer, static_cast<std::uint8_t>(c.kind), 1, result};
  const std::int64_t waited_ns = w_.ctx->around().now_ns() - c.since_ns;
  h.waited_ns = static_cast<std::uint32_t>(std::clamp<std::int64_t>(waited_ns, 0, ~std::uint32_t{0}));
  h.alone = w_.alone ? 1 : 0;
  if (c.source == w_.ctx->rank()) {
    take_answer(w_, c.target, h);
  } else {
    w_.ctx->send_record(c.source, message::lock, h);
  }
}

void lock_agent::lose([[maybe_unused]] const queued_request& c) noexcept {
  RMA_ASSERT(dead(c.source) && recovers());
  if (readers_) readers_->bereave();
  if (duty() != manager_duty::is_the_lock) w_.my_block().lock.recoveries.fetch_add(1);  // first, see cpu_wait::missed
}

/// Handles dead holders and waiters. A rank that leaves regularly releases its locks before.
unsigned lock_agent::remove_dead() noexcept {
  unsigned answered = turns_.remove_dead_holders(*this) + remove_dead_writer();
  if (w_.ctx->deaths() != deaths_seen_ && wait_) {
    if (wait_->failed() != status::done) answered += turns_.fail_waiting(*this, w_.ctx->last_failed());
  }
  deaths_seen_ = w_.ctx->deaths();
  settle_grant();
  turns_.remove_dead_waiters(*this);
  std::erase_if(arriving_, [this](const auto& each) { return dead(each.first); });
  return answered;
}

/// The writer that keeps readers out of the network word.
unsigned lock_agent::remove_dead_writer() noexcept {
  if (!readers_ || readers_->writer() < 0 || !dead(readers_->writer())) return 0;
  const int writer = readers_->writer();
  if (recovers()) readers_->remove_writer();
  return turns_.fail_waiting(*this, writer);
}

/// Clears the grant when its rank has brought the lock to the network word, or is dead.
void lock_agent::settle_grant() noexcept {
  if (!granted_) return;
  (void)mend(w_, w_.team->rank);
  const bool brought = (w_.my_block().network_lock.load() & network_away) == 0;
  if (brought || (w_.my_block().lock.state.load() & lock_away) == 0) granted_.reset();
}

/// Ends the wait of the first in the queue.
void lock_agent::end_wait() noexcept {
  if (!wait_) return;
  wait_->leave_list();
  if (wait_->has_word()) wait_->withdraw();
  wait_.reset();
}

void lock_agent::close() noexcept {
  turns_.close(*this, w_.ctx->last_failed());  // perhaps the reason why this rank gives its window up
  arriving_.clear();
}

void quiesce_agent(window_core& w) noexcept {
  if (w.agent == nullptr) return;
  const auto stopped = [&w]() noexcept {
    const std::lock_guard guard(w.ctx->lock());
    return w.agent->stop();
  };
  (void)w.ctx->wait({.until = stopped});
}

unsigned serve_agent(window_core& w) noexcept { return w.agent->advance(); }
bool agent_is_busy(const window_core& w) noexcept { return w.agent->busy(); }

void serve_lock(engine& e, int source, std::span<const std::byte> payload) noexcept {
  RMA_ASSERT(e.ctx().is_guarded());
  lock_header h{};
  if (payload.size() < sizeof h)
    return e.reject_malformed(source, message::lock, payload, malformed_reason::wrong_length);
  std::memcpy(&h, payload.data(), sizeof h);
  window_core* const w = e.find(h.window);
  if (h.word == lock_word::answer || h.word == lock_word::migrate_reply) {
    if (w == nullptr) return;
    const bool ours =
        h.result < lock_answer::count_ && h.target >= 0 && h.target < w->size() && w->world_rank(h.target) == source;
    if (!ours) return e.reject_malformed(source, message::lock, payload, malformed_reason::wrong_contents);
    if (h.word == lock_word::answer) {
      take_answer(*w, h.target, h);
    } else {
      take_migrate_reply(*w, h.target, h.result == lock_answer::granted);
    }
    return;
  }
  if (w != nullptr && w->agent != nullptr) {
    if (!w->agent->take_message(source, h, payload.subspan(sizeof h)))
      e.reject_malformed(source, message::lock, payload, malformed_reason::wrong_contents);
    return;
  }
  if (h.word != lock_word::request && h.word != lock_word::epoch) return;  // the window was dropped here
  h.word = lock_word::answer;
  // If this rank gave its window up because another one had failed, the reply names that one.
  h.blamed = e.ctx().last_failed();
  h.result = lock_answer::failed;
  e.ctx().send_record(source, message::lock, h);
}

// ---- origin's side -----------------------------------------------------------------------------------------------

lock_request& request_to(window_core& w, int target) {
  auto& found = w.news[w.world_rank(target)].request;
  if (found == nullptr) found = std::make_unique<lock_request>();
  return *found;
}

void take_migrate_reply(window_core& w, int target, bool may_migrate) noexcept {
  lock_request& r = request_to(w, target);
  r.may_migrate = may_migrate;
  r.migrate_replied_ns = w.ctx->around().now_ns();
}

void take_answer(window_core& w, int target, const lock_header& h) noexcept {
  lock_request& r = request_to(w, target);
  if (r.number != h.number) return;
  r.result = h.result;
  r.blamed = h.blamed;
  r.waited_ns = h.waited_ns;
  r.alone = h.alone != 0;
  r.answered.store(h.number);
}

lock_request& begin_request(window_core& w, int target) {
  lock_request& r = request_to(w, target);
  ++r.number;
  return r;
}

status agent_machine::failed() noexcept {
  const int peer = w_.world_rank(target_);
  return peer != w_.ctx->rank() && w_.ctx->gone(peer) ? status::peer_failed : w_.revocation();
}

lock_step agent_machine::go_on() noexcept {
  if (!may_advance()) return lock_step::not_yet;
  const lock_answer answer = request_.result;
  RMA_ASSERT(answer < lock_answer::count_);
  switch (answer) {
    case lock_answer::granted: return lock_step::held;
    case lock_answer::migrates: return lock_step::migrates;
    case lock_answer::moved: return lock_step::moved;
    default: break;
  }
  RMA_ASSERT(answer == lock_answer::failed);
  if (request_.blamed < 0) return fail(status::window_freed);
  await_news_of_death(w_);
  w_.ctx->set_last_failed(request_.blamed);
  return fail(status::peer_failed);
}

/// Takes the request back, even if the manager has granted it meanwhile.
void agent_machine::take_back() noexcept {
  if (why() == status::peer_failed) return w_.ctx->set_last_failed(w_.world_rank(target_));
  if (why() != status::job_aborted) release_by_agent(w_, target_);
}

void tell_agent(window_core& w, int target, lock_word word, std::uint32_t number, lock_kind kind, bool last,
                std::span<const std::byte> body, std::uint32_t late) noexcept {
  lock_header h{w.id,
                number,
                target,
                -1,
                word,
                static_cast<std::uint8_t>(kind),
                last ? std::uint8_t{1} : std::uint8_t{0},
                lock_answer::granted};
  h.late = static_cast<std::uint8_t>(late);
  w.ctx->send_record(w.world_rank(target), message::lock, h, body);
}

lock_request& ask_agent(window_core& w, int target, lock_kind kind, std::uint32_t late) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  lock_request& request = begin_request(w, target);
  if (target == w.team->rank) {
    w.agent->ask_own(request.number, kind);
  } else {
    tell_agent(w, target, lock_word::request, request.number, kind, true, {}, late);
  }
  return request;
}

lock_header leave_message(window_core& w, int target) {
  const std::lock_guard guard(w.ctx->lock());
  const std::uint32_t number = request_to(w, target).number;
  return {w.id,
          number,
          target,
          -1,
          lock_word::release,
          static_cast<std::uint8_t>(lock_kind::shared),
          1,
          lock_answer::granted};
}

void release_by_agent(window_core& w, int target) noexcept {
  const std::lock_guard guard(w.ctx->lock());
  const std::uint32_t number = request_to(w, target).number;
  if (target == w.team->rank) {
    w.agent->release_own(number);
  } else {
    tell_agent(w, target, lock_word::release, number, lock_kind::shared, true, {});
  }
}

}  // namespace rma::detail
