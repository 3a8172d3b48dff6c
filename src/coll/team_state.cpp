// SPDX-License-Identifier: Apache-2.0
#include "coll/team_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "coll/algorithms/builders.hpp"
#include "coll/elements.hpp"
#include "coll/machine.hpp"
#include "coll/put_channels.hpp"
#include "coll/signature.hpp"
#include "core/assert.hpp"
#include "core/names.hpp"
#include "runtime/team_core.hpp"
#include "xfer/engine.hpp"

namespace rma::detail::coll {
namespace {

constexpr std::size_t plans_max = 64;  ///< limit of the kept plans that are not in use
constexpr std::size_t failures_max = 64;

}  // namespace

team_state::team_state(machine& all, team_core& team, std::uint64_t id)
    : all_(all), team_(team), id_(id), reproducible_(all.reproducible()) {
  if (id == team.id && team.memory_lines_of(team.rank) != nullptr) {
    memory_ = std::make_unique<memory_collectives>(team);
    records_ = std::make_unique<call_records>();
  }
  const std::lock_guard guard(all_.ctx().lock());
  all_.add(id_, *this);
}

// Requests outlive the team: they keep the results of their collectives.
team_state::~team_state() {
  const std::lock_guard guard(all_.ctx().lock());
  all_.remove(id_);
  while (!active_.empty()) {
    running& r = active_.front();
    r.fail(status::window_freed);
  }
  const auto detach = [](const plan& p) {
    for (const auto& r : p.records) {
      if (request_node* const node = r->request(); node != nullptr) {
        node->ended = r->state();
        node->outside = nullptr;
      }
    }
  };
  for (const auto& p : plans_) detach(*p);
  if (refused_ != nullptr) detach(*refused_);
  puts_.reset();  // under the lock
}

team_puts& team_state::puts() {
  if (puts_ == nullptr) puts_ = std::make_unique<team_puts>(all_.puts(), *this);
  return *puts_;
}

// Plans in use serve no other call from now on; make() removes them like all that are not used any more.
void team_state::set_reproducible(bool on) noexcept {
  RMA_ASSERT(all_.ctx().is_guarded());
  if (on == reproducible_) return;
  reproducible_ = on;
  std::erase_if(plans_, [](const auto& p) { return p->in_use == 0; });
  for (const auto& p : plans_) p->signature = plan::no_signature;
}

// A rejected call has a plan without steps, whatever it is.
plan& team_state::find(const collective_call& c) {
  if (c.wrong != status::done) [[unlikely]] {
    if (refused_ == nullptr)
      refused_ = std::make_unique<plan>(collective_call{}, 0, 0, 1, false, std::span<const int>{});
    refused_->signature = signature_of(c);
    return *refused_;
  }
  const std::int32_t signature = signature_of(c);
  if (!plans_.empty() && plans_.front()->serves(c, signature) && c.what != call::schedule) return *plans_.front();
  const auto at = c.what == call::schedule ? plans_.end()
                                           : std::find_if(plans_.begin(), plans_.end(),
                                                          [&](const auto& p) { return p->serves(c, signature); });
  if (at == plans_.end()) return make(c, signature);
  std::rotate(plans_.begin(), at, at + 1);
  return *plans_.front();
}

bool team_state::in_memory(const collective_call& c) const noexcept {
  constexpr std::size_t element_bytes_max = 512;
  if (memory_ == nullptr || !all_.memory_allowed(c.what)) return false;
  if (moves_blocks(c.what))
    return !c.varied && (all_.memory_way(c.what) != memory_collectives::way::automatic || memory_->fits_slot(c));
  const bool has_way = c.what == call::broadcast || c.what == call::reduce || c.what == call::allreduce;
  return has_way && element_bytes_of(c) <= element_bytes_max;
}

std::string team_state::reason_in_memory(const collective_call& c) const {
  return memory_->reason(c, all_.name_set(c.what));
}

status team_state::run_in_memory(const collective_call& c, const std::source_location& where,
                                 std::string* why) noexcept {
  const std::uint64_t number = ++turns_;
  record(signature_of(c), number, where);
  status s = c.wrong;
  memory_turn_.store(number);
  told_.store(false);  // earlier failures are in the list
  if (failures_known_.load()) [[unlikely]] {
    const std::lock_guard guard(all_.ctx().lock());
    if (const auto at = failures_.find(number); at != failures_.end()) s = at->second.why;
  }
  if (s == status::done) {
    s = memory_->run(c, number, all_.memory_way(c.what), told_);
    if (s == status::done) return s;
  }
  return fail_in_memory(c, number, s, where, why);
}

// A member that has seen a failure in another one's line has not found it: that member has reported the reason to all.
status team_state::fail_in_memory(const collective_call& c, std::uint64_t number, status s,
                                  const std::source_location& where, std::string* why) noexcept {
  const bool mistake =
      s == status::bad_argument || s == status::bad_size || s == status::bad_type || s == status::bad_rank;
  const bool found_here = c.wrong != status::done || memory_->failed_at() < 0;
  std::string text =
      fmt::format("member {} called {} at {}", team_.rank, text_of_signature(signature_of(c)), text_of_place(where));
  text += c.wrong == status::done ? memory_->mismatch()
                                  : fmt::format(", with arguments that were refused: {}", rma::name_of(c.wrong));
  if (mistake && !found_here && why != nullptr) wait_for_failure(number);
  std::unique_lock guard(all_.ctx().lock());
  told_.store(false);
  if (const auto at = failures_.find(number); at != failures_.end()) s = at->second.why;
  if (mistake && found_here) {
    tell(number, s, text, c.wrong == status::done ? memory_->other() : -1);
  } else {
    mark_failed(number, s);
  }
  if (why == nullptr) return s;
  guard.unlock();
  wait_for_place(number);
  guard.lock();
  *why = mistake && !failures_.contains(number) ? text : this->why(number);
  return s;
}

// Does not check all of many: a wrong one keeps the others waiting, and will be checked later.
void team_state::look_for_mismatches() noexcept {
  if (memory_ != nullptr && !active_.empty()) memory_->wake_members();
  unsigned looks_left = 8;
  for (auto at = active_.begin(); at != active_.end() && looks_left > 0; --looks_left) {
    running& r = *at++;
    const int member = memory_ == nullptr ? -1 : memory_->member_in(r.turn());
    if (member >= 0) {
      r.meets_memory(member, memory_->signature_at(member, r.turn()));
    } else {
      r.look_for_mismatch();
    }
  }
}

plan& team_state::make(const collective_call& c, std::int32_t signature) {
  if (plans_.size() >= plans_max) {
    const auto unused = std::find_if(plans_.rbegin(), plans_.rend(), [](const auto& p) { return p->in_use == 0; });
    if (unused != plans_.rend()) plans_.erase(std::next(unused).base());
  }
  if (nodes_.empty() && c.schedule == nullptr) nodes_ = team_.nodes_of_members();
  auto made = std::make_unique<plan>(c, signature, team_.rank, team_.size, reproducible_, nodes_);
  if (c.schedule != nullptr) {
    made->use(*c.schedule);
  } else {
    made->of.puts = all_.puts().possible();
    made->build(c, all_.costs(team_.one_node), all_.forced(c.what), all_.name_set(c.what));
    all_.note_replaced(c.what, *made->chosen);
  }
  plans_.insert(plans_.begin(), std::move(made));
  return *plans_.front();
}

running& team_state::start(const collective_call& c, const std::source_location& where) noexcept {
  return start(find(c), c, where);
}

running& team_state::take(plan& p, const collective_call& c, const std::source_location& where) {
  if (records_ == nullptr && &p != barrier_.get()) records_ = std::make_unique<call_records>();
  if (p.idle.empty()) {
    p.records.push_back(std::make_unique<running>(p));
    p.idle.reserve(p.records.size());
    p.idle.push_back(p.records.back().get());
  }
  running& r = *p.idle.back();
  RMA_ASSERT(r.over() && &r.of() == &p);
  p.idle.pop_back();
  ++p.in_use;
  r.prepare(*this, c, where);
  return r;
}

running& team_state::start(plan& p, const collective_call& c, const std::source_location& where) noexcept {
  running& r = take(p, c, where);
  start(r);
  return r;
}

void team_state::start(running& r) noexcept {
  RMA_ASSERT(all_.ctx().is_guarded());
  RMA_ASSERT(r.over() && r.of().in_use != 0);
  ++turns_;
  if (memory_ != nullptr) memory_->pass(turns_, r.signature());
  record(r.signature(), turns_, r.where());
  active_.push_back(r);
  r.set_awaited(true);
  if (!failures_.empty()) [[unlikely]] {
    if (const auto at = failures_.find(turns_); at != failures_.end()) r.call().wrong = at->second.why;
  }
  r.start(turns_);
}

running& team_state::keep(const collective_call& c, const std::source_location& where) {
  running& r = take(find(c), c, where);
  r.set_kept(true);
  return r;
}

running& team_state::keep_barrier(std::uint64_t id) {
  RMA_ASSERT(all_.ctx().is_guarded());
  collective_call c;
  c.what = call::schedule;
  c.name = "barrier";
  if (barrier_ == nullptr) {
    barrier_ = std::make_unique<plan>(c, signature_of(c), team_.rank, team_.size, false, std::span<const int>{});
    shape s;
    s.rank = team_.rank;
    s.size = team_.size;
    Schedule steps;
    dissemination::signals(s, steps);
    barrier_->use(steps, true);
  }
  running& r = take(*barrier_, c, {});
  r.set_kept(true);
  r.use_notifications(all_.notices().find(id));
  return r;
}

void team_state::start_barrier(running& r) noexcept {
  RMA_ASSERT(all_.ctx().is_guarded());
  RMA_ASSERT(r.kept());
  r.begin_turn();
}

void team_state::drop_barrier(running& r) noexcept {
  RMA_ASSERT(r.kept());
  r.fail(status::window_freed);
  r.drop_notifications();
  r.set_kept(false);
  give_back(r);
}

void team_state::ended(running& r) noexcept {
  if (r.notified_by() != nullptr) return;  // a barrier is not numbered among them
  RMA_ASSERT(!active_.empty() && !r.over());
  active_.erase(active_.iterator_to(r));
}

void team_state::give_back(running& r) noexcept {
  if (r.kept()) return;
  plan& p = r.of();
  RMA_ASSERT(p.in_use != 0 && p.idle.size() < p.records.size());
  RMA_ASSERT(r.over());
  --p.in_use;
  p.idle.push_back(&r);
}

void team_state::send_to_all(std::uint64_t turn, status why, const std::string& text, int other) noexcept {
  for (int r = 0; r < team_.size; ++r) {
    if (r != team_.rank) all_.send_failure(team_.world_rank(r), id_, turn, why, text, other);
  }
}

void team_state::tell(std::uint64_t turn, status why, const std::string& text, int other) noexcept {
  mark_failed(turn, why);
  if (failures_.contains(turn)) return;  // another member has reported it already
  if (failures_.size() >= failures_max) failures_.erase(failures_.begin());
  failures_[turn] = {why, text, other};
  failures_known_.store(true);
  send_to_all(turn, why, text, other);
}

void team_state::on_failure(std::uint64_t turn, status why, std::string text, int other) noexcept {
  RMA_ASSERT(all_.ctx().is_guarded() && why != status::done);
  if (other == team_.rank) {
    on_place(turn, place_of(turn));
    send_to_all(turn, status::done, place_of(turn), other);
  }
  if (failures_.contains(turn)) return;
  if (failures_.size() >= failures_max) failures_.erase(failures_.begin());
  failures_[turn] = {why, std::move(text), other};
  failures_known_.store(true);
  RMA_ASSERT(failures_.size() <= failures_max && failures_.contains(turn));
  if (turn == memory_turn_.load()) told_.store(true);
  const auto at = std::find_if(active_.begin(), active_.end(), [&](const running& r) { return r.turn() == turn; });
  if (at == active_.end()) return;
  // The withdrawal of a message fails it at its other end, which must have heard of the reason by then.
  const failure known = failures_[turn];
  mark_failed(turn, known.why);
  for (const int rank : at->pending_with()) all_.send_failure(rank, id_, turn, why, known.text, known.other);
  at->fail(why);
}

void team_state::give_up_all(status why) noexcept {
  context& ctx = all_.ctx();
  {
    const std::lock_guard guard(ctx.lock());
    for (auto at = active_.begin(); at != active_.end();) {
      running& r = *at++;
      r.fail(why);
    }
  }
  const auto are_over = [&]() noexcept {
    const std::lock_guard guard(ctx.lock());
    return active_.empty();
  };
  (void)ctx.wait({.until = are_over});
}

void team_state::on_place(std::uint64_t turn, std::string text) noexcept {
  RMA_ASSERT(all_.ctx().is_guarded());
  if (places_.size() >= failures_max) places_.erase(places_.begin());
  places_[turn] = std::move(text);
  RMA_ASSERT(places_.size() <= failures_max);
}

std::string team_state::place_of(std::uint64_t turn) const {
  const call_record c = records_ == nullptr ? call_record{} : (*records_)[turn % records_max];
  if (c.turn != turn) return fmt::format("member {} has been out of it for long", team_.rank);
  return fmt::format("member {} called {} at {}", team_.rank, text_of_signature(c.signature), text_of_place(c.where));
}

// The other member replies as soon as it makes progress; the wait for one that computes for long is limited.
void team_state::wait_for_place(std::uint64_t turn) noexcept {
  wait_to_hear([this, turn]() noexcept {
    const auto at = failures_.find(turn);
    return at == failures_.end() || at->second.other < 0 || places_.contains(turn);
  });
}

void team_state::wait_for_failure(std::uint64_t turn) noexcept {
  wait_to_hear([this, turn]() noexcept { return failures_.contains(turn); });
}

template <class Heard>
void team_state::wait_to_hear(Heard&& heard) noexcept {
  constexpr std::int64_t patience_ns = 1'000'000'000;
  const auto known = [&]() noexcept {
    const std::lock_guard guard(all_.ctx().lock());
    return heard();
  };
  (void)all_.ctx().wait({.until = known,
                         .fails_if = [this]() noexcept { return team_.gone_member(); },
                         .deadline_ns = all_.ctx().after_ns(patience_ns)});
}

std::string team_state::why(std::uint64_t turn) const {
  const auto at = failures_.find(turn);
  if (at == failures_.end()) return {};
  const failure& f = at->second;
  const auto found = places_.find(turn);
  return found == places_.end() ? f.text : f.text + "; " + found->second;
}

}  // namespace rma::detail::coll
