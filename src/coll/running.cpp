// SPDX-License-Identifier: Apache-2.0
#include "coll/running.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

#include "coll/elements.hpp"
#include "coll/machine.hpp"
#include "coll/put_channels.hpp"
#include "coll/signature.hpp"
#include "coll/team_state.hpp"
#include "core/assert.hpp"
#include "core/names.hpp"
#include "datatype/copy.hpp"
#include "runtime/team_core.hpp"

namespace rma::detail::coll {
namespace {

using Action = Schedule::Action;
using Buffer = Schedule::Buffer;

constexpr std::size_t turn_bytes = 64 << 10;  ///< limit of the local work under the progress lock at once

/// A context of its own for each collective, so that its receives match every message sent for it, and check the tag.
std::uint64_t context_of(std::uint64_t team_id, std::uint64_t turn) noexcept {
  const std::uint64_t mixed = (team_id ^ turn * 0x9e3779b97f4a7c15ULL) * 0xd6e8feb86659fd93ULL;
  return message_context(mixed ^ mixed >> 32, message_user::collectives);
}

void own(collective_shape& shape, std::vector<Layout>& layouts, std::vector<std::ptrdiff_t>& offsets) {
  if (shape.one != nullptr) {
    layouts.assign(1, *shape.one);
    shape.one = layouts.data();
  } else if (!shape.several.empty()) {
    layouts.assign(shape.several.begin(), shape.several.end());
    offsets.assign(shape.offsets.begin(), shape.offsets.end());
    shape.several = layouts;
    shape.offsets = offsets;
  }
}

std::size_t packed_bytes(const collective_shape& s) noexcept {
  std::size_t bytes = s.one != nullptr ? s.one->bytes() * s.count : 0;
  for (const Layout& each : s.several) bytes += each.bytes();
  return bytes;
}

std::size_t whole_lines(std::size_t bytes) noexcept { return (bytes + 63) / 64 * 64; }

}  // namespace

void running::prepare(team_state& team, const collective_call& call, const std::source_location& where) {
  RMA_ASSERT(over() && open_ == 0);
  RMA_ASSERT(!working && !posting_);
  team_ = &team;
  where_ = where;
  signature_ = plan_.signature;
  call_ = call;  // blocks and neighbors are in the plan
  const bool shaped = call.in_shape.given() || call.out_shape.given();
  if (shaped || shaped_ != nullptr) [[unlikely]]
    own_shapes(call);
  const std::size_t scratch = whole_lines(plan_.schedule.bytes_of(Buffer::scratch));
  const std::size_t in = shaped ? whole_lines(packed_bytes(shaped_->in)) : 0;
  const std::size_t needed = scratch + in + (shaped ? packed_bytes(shaped_->out) : 0);
  if (needed > memory_bytes_) {
    memory_.reset(new std::byte[needed]);
    memory_bytes_ = needed;
  }
  base_[0] = static_cast<std::byte*>(const_cast<void*>(call.in));
  base_[1] = static_cast<std::byte*>(call.out);
  base_[2] = memory_.get();
  if (call.in_shape.given()) base_[0] = memory_.get() + scratch;
  if (call.out_shape.given()) base_[1] = memory_.get() + scratch + in;
  if (plan_.what == collective::broadcast && call.in_shape.given()) base_[1] = base_[0];
}

void running::own_shapes(const collective_call& call) {
  if (shaped_ == nullptr) shaped_ = std::make_unique<shaped_buffers>();
  shaped_->in = call.in_shape;
  shaped_->out = call.out_shape;
  own(shaped_->in, shaped_->layouts[0], shaped_->offsets[0]);
  own(shaped_->out, shaped_->layouts[1], shaped_->offsets[1]);
}

void running::start(std::uint64_t turn) noexcept {
  RMA_ASSERT(team_ != nullptr && turn != 0);
  RMA_ASSERT(over() && open_ == 0 && !working && !posting_);
  turn_ = turn;
  context_ = context_of(team_->id(), turn);
  next_ = step_done_ = piece_ = 0;
  sends_used_ = receives_used_ = open_ = 0;
  result_ = status::done;
  state_.store(status::not_yet, std::memory_order_relaxed);
  phase_ = shaped_ != nullptr && shaped_->in.given() ? phase::packing : phase::steps;
  if (call_.wrong != status::done) [[unlikely]]
    return fail_refused();
  if (plan_.by_puts) [[unlikely]]
    return start_by_puts();
  run(turn_bytes);
}

// These two are not inlined: what they need would cost every start registers.
[[gnu::noinline]] void running::start_by_puts() noexcept {
  if (team_->puts().enter(*this)) run(turn_bytes);
}
[[gnu::noinline]] void running::end_puts() noexcept { team_->puts().remove(*this); }

// This is not inlined: formatting the text would cost every start registers and stack.
[[gnu::noinline, gnu::cold]] void running::fail_refused() noexcept {
  fail_everywhere(call_.wrong,
                  fmt::format("{}, with arguments that were refused: {}", text_of_call(), rma::name_of(call_.wrong)));
}

bool running::sends_over() const noexcept {
  return std::all_of(sends_.get(), sends_.get() + sends_used_, [](const sent& m) { return m.ended.load() != 0; });
}

void running::run(std::size_t budget) noexcept {
  RMA_ASSERT(!over() && !posting_ && !working);
  posting_ = true;
  for (bool goes_on = true; goes_on && phase_ != phase::over;) {
    switch (phase_) {
      case phase::packing:
        if (!(goes_on = move_layout(budget, true))) break;
        phase_ = phase::steps;
        break;
      case phase::steps:
        if (!(goes_on = run_round(budget))) break;
        if (next_ != plan_.schedule.steps().size()) break;
        phase_ = shaped_ != nullptr && shaped_->out.given() ? phase::unpacking : phase::over;
        step_done_ = piece_ = 0;
        break;
      case phase::unpacking:
        if (!(goes_on = move_layout(budget, false))) break;
        phase_ = phase::over;
        break;
      case phase::over: break;
    }
  }
  posting_ = false;
  if (result_ != status::done) {
    if (!over()) fail(result_);
  } else if (phase_ == phase::over) {
    finish(status::done);
  }
  RMA_ASSERT(over() || open_ != 0 || working);  // a message or local work continues it
}

/// Returns true when all steps of the round are complete; `next_` is the first step of the next round then.
bool running::run_round(std::size_t& budget) noexcept {
  const auto steps = plan_.schedule.steps();
  RMA_ASSERT(next_ <= steps.size());
  for (; next_ != steps.size(); ++next_) {
    const Schedule::Step& s = steps[next_];
    switch (s.action) {
      case Action::send: send(s); break;
      case Action::recv: receive(s); break;
      case Action::put:
      case Action::put_signal: put(s); break;
      case Action::wait_signal: await_signal(s); break;
      case Action::copy:
      case Action::combine:
      case Action::combine_before:
        if (!run_local(s, budget)) {
          team_->all().add_work(*this);
          return false;
        }
        break;
      case Action::round:
        if (open_ != 0) return false;
        sends_used_ = receives_used_ = 0;
        break;
    }
    if (result_ != status::done) [[unlikely]]
      return false;
  }
  return open_ == 0;
}

void running::send(const Schedule::Step& s) noexcept { send_bytes(at(s.from()), s.bytes, s.peer, signature_); }

void running::send_bytes(const std::byte* from, std::size_t bytes, int peer, std::int32_t tag) noexcept {
  RMA_ASSERT(sends_used_ < plan_.sends_max);
  RMA_ASSERT(sends_[sends_used_].ended.load(std::memory_order_relaxed) != 0);  // a slot belongs to one send
  sent& m = sends_[sends_used_++];
  m.of = this;
  m.context = context_;
  m.peer = team_->team().world_rank(peer);
  m.tag = tag;
  m.at = const_cast<std::byte*>(from);
  m.bytes = bytes;
  m.over = [](message_operation& self) noexcept {
    const auto& each = static_cast<sent&>(self);
    each.of->message_over(each);
  };
  status result = status::done;
  if (plan_.by_puts) [[unlikely]] {
    m.context = turn_;
    result = team_->puts().send(m, peer);
  } else {
    result = team_->all().messages().send(m);
  }
  if (result == status::posted) {
    ++open_;
  } else if (!ok(result)) {
    take_failed_send(m, result);
  }
}

// A put that the network refuses is this member's failure: the others do not see it.
void running::take_failed_send(const message_operation& m, status s) noexcept {
  RMA_ASSERT(!ok(s));
  RMA_ASSERT(!over() && sends_used_ != 0);
  if (!plan_.by_puts || s == status::peer_failed) return take_failure(s, m.peer);
  fail_everywhere(s,
                  fmt::format("{}, whose puts to world rank {} failed: {}", text_of_call(), m.peer, rma::name_of(s)));
}

void running::receive(const Schedule::Step& s) noexcept {
  RMA_ASSERT(receives_used_ < plan_.receives_max);
  received& m = receives_[receives_used_++];
  m.of = this;
  m.step = &s;
  m.tag = any_tag;
  post(m, at(s.into()), s.bytes);
}

void running::post(received& m, std::byte* into, std::size_t bytes) noexcept {
  RMA_ASSERT(m.ended.load(std::memory_order_relaxed) != 0);  // a slot belongs to one receive
  RMA_ASSERT(m.of == this && m.step != nullptr);
  m.context = context_;
  m.peer = team_->team().world_rank(m.step->peer);
  m.at = into;
  m.bytes = bytes;
  m.over = [](message_operation& self) noexcept {
    auto& each = static_cast<received&>(self);
    RMA_ASSERT(each.of->open_ != 0);
    --each.of->open_;  // counted again if it is posted again
    each.of->take(each);
    each.of->went_on();
  };
  status result = status::done;
  if (plan_.by_puts) [[unlikely]] {
    m.context = turn_;
    result = team_->puts().receive(m, m.step->peer);
  } else {
    result = team_->all().messages().receive(m);
  }
  ++open_;
  if (result == status::posted) return;
  --open_;
  take(m);
}

/// A message has arrived: it must be the one that this member's call expects.
void running::take(received& m) noexcept {
  status s = m.result;
  const bool came = s == status::done || s == status::message_too_long;
  if (came && m.tag == any_tag && (m.message_tag != signature_ || m.message_bytes != m.step->bytes)) [[unlikely]] {
    const bool other_call = m.message_tag != signature_;
    s = other_call ? status::bad_argument : status::bad_size;
    fail_everywhere(s,
                    fmt::format("{}, which takes {} bytes of member {}; it called {} and sent {}", text_of_call(),
                                m.step->bytes, m.step->peer, text_of_signature(m.message_tag), m.message_bytes),
                    m.step->peer);
    return;
  }
  if (ok(s) && m.step->action == Action::wait_signal) return take_put(m);
  if (!ok(s)) take_failure(s, m.peer);
}

void running::message_over(const message_operation& m) noexcept {
  RMA_ASSERT(open_ != 0 && !over());
  --open_;
  if (!ok(m.result)) take_failed_send(m, m.result);
  went_on();
}

/// Keeps the first failure: later ones come from operations that were withdrawn because of it.
void running::take_failure(status s, int world_rank) noexcept {
  if (!ok(result_)) return;
  result_ = s;
  if (s == status::peer_failed) team_->all().ctx().set_last_failed(world_rank);
}

void running::went_on() noexcept {
  if (posting_ || over()) return;
  if (!ok(result_)) return fail(result_);
  if (open_ == 0 && !working) run(turn_bytes);
}

// ---- notifications: signals without data; both members are in the same round ---------------------------------------

void running::use_notifications(notifications::slots& of) noexcept {
  RMA_ASSERT(over() && notified_by_ == nullptr);
  notified_by_ = &of;
  of.self = this;
  of.over = [](void* self) noexcept {
    auto& me = *static_cast<running*>(self);
    RMA_ASSERT(me.open_ == 1);
    me.open_ = 0;
    me.went_on();
  };
}

void running::drop_notifications() noexcept {
  RMA_ASSERT(over() && notified_by_ != nullptr);
  team_->all().notices().drop(*std::exchange(notified_by_, nullptr));
}

void running::begin_turn() noexcept {
  RMA_ASSERT(over() && notified_by_ != nullptr);
  ++notified_by_->turn;
  round_ = 0;
  start(1);  // it is not one of the team's numbered collectives
}

void running::notify(const Schedule::Step& s) noexcept {
  RMA_ASSERT(s.bytes == 0 && open_ == 0);
  team_->all().notices().notify(*notified_by_, round_, team_->team().world_rank(s.peer));
}

void running::await_notification(const Schedule::Step& s) noexcept {
  RMA_ASSERT(open_ == 0);
  if (!team_->all().notices().await(*notified_by_, round_++, team_->team().world_rank(s.peer))) open_ = 1;
}

// ---- puts: a header says where the bytes behind it belong; the member that waits for the signal posts for both
// --------------------

void running::put(const Schedule::Step& s) noexcept {
  if (notified_by_ != nullptr) return notify(s);
  put_header& h = sends_[sends_used_].header;
  h = {s.bytes, s.into_offset, static_cast<std::uint32_t>(s.into_buffer), s.action == Action::put_signal ? 1U : 0U};
  send_bytes(reinterpret_cast<const std::byte*>(&h), sizeof h, s.peer, put_tag);
  if (ok(result_)) send_bytes(at(s.from()), s.bytes, s.peer, put_data_tag);
}

void running::await_signal(const Schedule::Step& s) noexcept {
  if (notified_by_ != nullptr) return await_notification(s);
  RMA_ASSERT(receives_used_ < plan_.receives_max);
  received& m = receives_[receives_used_++];
  m.of = this;
  m.step = &s;
  m.tag = put_tag;
  post(m, reinterpret_cast<std::byte*>(&m.header), sizeof m.header);
}

void running::take_put(received& m) noexcept {
  RMA_ASSERT(m.of == this && m.step->action == Action::wait_signal);
  RMA_ASSERT(m.ended.load(std::memory_order_relaxed) != 0 && (m.tag == put_tag || m.tag == put_data_tag));
  if (m.tag == put_tag) {
    const put_header& h = m.header;
    const bool fits = h.buffer <= 2 && (h.buffer != static_cast<std::uint32_t>(Buffer::scratch) ||
                                        h.offset + h.bytes <= plan_.schedule.bytes_of(Buffer::scratch));
    if (!fits)
      return fail_everywhere(status::bad_size, fmt::format("a put of member {} leaves its buffer", m.step->peer));
    m.tag = put_data_tag;
    post(m, at({static_cast<Buffer>(h.buffer), h.offset}), h.bytes);
  } else if (m.header.signals == 0) {
    m.tag = put_tag;
    post(m, reinterpret_cast<std::byte*>(&m.header), sizeof m.header);
  }
}

// ---- local steps ---------------------------------------------------------------------------------------------------

bool running::run_local(const Schedule::Step& s, std::size_t& budget) noexcept {
  if (s.bytes == 0) return true;  // there may be no buffer
  std::byte* const into = at(s.into());
  const std::byte* const from = at(s.from());
  if (s.action == Action::copy && into == from) return true;
  if (step_done_ == 0 && s.bytes <= budget) {
    budget -= s.bytes;
    if (s.action == Action::copy) {
      std::memcpy(into, from, s.bytes);
    } else {
      combine_elements(call_, into, from, s.bytes, s.action == Action::combine_before);
    }
    return true;
  }
  RMA_ASSERT(step_done_ <= s.bytes);
  while (step_done_ < s.bytes) {
    if (budget == 0) return false;
    const std::size_t unit = s.action == Action::copy ? 1 : plan_.element_bytes;
    const std::size_t room = std::max(budget / unit * unit, unit);
    const std::size_t bytes = std::min(s.bytes - step_done_, room);
    if (s.action == Action::copy) {
      std::memcpy(into + step_done_, from + step_done_, bytes);
    } else {
      combine_elements(call_, into + step_done_, from + step_done_, bytes, s.action == Action::combine_before);
    }
    step_done_ += bytes;
    budget -= std::min(bytes, budget);
  }
  step_done_ = 0;
  return true;
}

/// Copies between layouts and contiguous memory. Returns true when all is done.
bool running::move_layout(std::size_t& budget, bool pack_it) noexcept {
  RMA_ASSERT(shaped_ != nullptr);
  const collective_shape& shape = pack_it ? shaped_->in : shaped_->out;
  std::byte* const user =
      pack_it ? static_cast<std::byte*>(const_cast<void*>(call_.in)) : static_cast<std::byte*>(call_.out);
  const std::size_t pieces = shape.one != nullptr ? shape.count : shape.several.size();
  std::byte* packed = base_[pack_it ? 0 : 1];
  for (std::size_t i = 0; i < piece_; ++i) packed += (shape.one != nullptr ? *shape.one : shape.several[i]).bytes();
  for (; piece_ < pieces; ++piece_) {
    const Layout& layout = shape.one != nullptr ? *shape.one : shape.several[piece_];
    const std::ptrdiff_t offset = shape.one != nullptr    ? static_cast<std::ptrdiff_t>(piece_ * layout.extent())
                                  : shape.offsets.empty() ? 0
                                                          : shape.offsets[piece_];
    while (step_done_ < layout.bytes()) {
      if (budget == 0) {
        team_->all().add_work(*this);
        return false;
      }
      const std::size_t bytes = std::min(layout.bytes() - step_done_, budget);
      if (pack_it) {
        pack(packed + step_done_, user + offset, layout, step_done_, bytes);
      } else {
        unpack(user + offset, packed + step_done_, layout, step_done_, bytes);
      }
      step_done_ += bytes;
      budget -= bytes;
    }
    packed += layout.bytes();
    step_done_ = 0;
  }
  return true;
}

bool running::do_local_work() noexcept {
  run(turn_bytes);
  return working;
}

// ---- the end
// ---------------------------------------------------------------------------------------------------------

void running::finish(status result) noexcept {
  if (over()) return;
  RMA_ASSERT(open_ == 0 && result != status::not_yet);
  team_state& team = *team_;
  phase_ = phase::over;
  if (working) team.all().remove_work(*this);
  if (laned) [[unlikely]]
    end_puts();
  team.ended(*this);
  state_.store(result, std::memory_order_release);
  if (!awaited_ && node_ == nullptr) team.give_back(*this);
}

std::set<int> running::pending_with() const {
  std::set<int> ranks;
  const auto add = [&](const message_operation& m) {
    if (m.ended.load(std::memory_order_relaxed) == 0) ranks.insert(m.peer);
  };
  for (std::uint32_t i = 0; i < sends_used_; ++i) add(sends_[i]);
  for (std::uint32_t i = 0; i < receives_used_; ++i) add(receives_[i]);
  return ranks;
}

void running::fail(status why) noexcept {
  if (over()) return;
  RMA_ASSERT(!ok(why));
  result_ = why;
  phase_ = phase::over;
  if (working) team_->all().remove_work(*this);
  const auto call_back = [&](message_operation& m) {
    if (m.ended.load(std::memory_order_relaxed) != 0) return;
    if (plan_.by_puts) {
      team_->puts().withdraw(m, why);
    } else if (!team_->all().messages().withdraw(m, why)) {
      return;
    }
    RMA_ASSERT(open_ != 0);
    --open_;
  };
  posting_ = true;  // operations that end meanwhile are only counted
  for (std::uint32_t i = 0; i < sends_used_; ++i) call_back(sends_[i]);
  for (std::uint32_t i = 0; i < receives_used_; ++i) call_back(receives_[i]);
  posting_ = false;
  if (notified_by_ != nullptr) {
    team_->all().notices().give_up(*notified_by_);
    open_ = 0;
  }
  if (open_ == 0) finish(why);
}

std::string running::text_of_call() const {
  return fmt::format("member {} called {} at {}", team_->team().rank, text_of_signature(signature_),
                     text_of_place(where_));
}

void running::fail_everywhere(status why, const std::string& text, int other) noexcept {
  result_ = why;
  team_->tell(turn_, why, text, other);
  if (!posting_) fail(why);
}

void running::meets_memory(int member, std::int32_t signature) noexcept {
  const bool same = signature == signature_;
  fail_everywhere(same ? status::bad_size : status::bad_argument,
                  fmt::format("{}, by messages; member {} is in {}, in memory", text_of_call(), member,
                              same ? "a call of another size" : "another call"),
                  member);
}

void running::look_at_team() noexcept { team_->look_for_mismatches(); }

/// A message of this turn that no step receives comes from a member that has made a different call, or from one that
/// uses another algorithm since its size differs.
void running::look_for_mismatch() noexcept {
  if (plan_.what == collective::schedule) return;
  if (put_head stray; team_->has_puts()) {
    if (const int member = team_->puts().find_stray(*this, stray); member >= 0) return fail_for_stray(member, stray);
  }
  match_key odd;
  std::size_t bytes = 0;
  team_->all().messages().for_each_unexpected([&](const match_key& key, std::size_t message_bytes) {
    const bool taken = !plan_.by_puts && key.tag == signature_ && takes_from(member_of(key.source));
    if (key.context != context_ || taken) return;
    odd = key;
    bytes = message_bytes;
  });
  if (odd.context == 0) return;
  put_head head{};
  head.signature = odd.tag;
  head.bytes = bytes;
  fail_for_stray(member_of(odd.source), head);
}

void running::fail_for_stray(int member, const put_head& head) noexcept {
  fail_everywhere(head.signature == signature_ ? status::bad_size : status::bad_argument,
                  fmt::format("{}; member {} called {} and sent {} bytes", text_of_call(), member,
                              text_of_signature(head.signature), head.bytes),
                  member);
}

int running::member_of(int world_rank) const noexcept {
  int member = 0;
  while (member < team_->team().size - 1 && team_->team().world_rank(member) != world_rank) ++member;
  return member;
}

bool running::takes_from(int member) const noexcept {
  const auto steps = plan_.schedule.steps();
  return std::any_of(steps.begin(), steps.end(), [member](const Schedule::Step& each) {
    return each.peer == member && (each.action == Action::recv || each.action == Action::wait_signal);
  });
}

status running::failed() noexcept { return team_->team().lost_member(); }

void running::give_up(status why) noexcept {
  context& ctx = team_->all().ctx();
  {
    const std::lock_guard guard(ctx.lock());
    fail(why);
  }
  (void)ctx.wait({.until = [this]() noexcept { return over(); }});
}

std::shared_ptr<void> running::release() noexcept {
  node_ = nullptr;
  awaited_ = false;
  if (over()) team_->give_back(*this);
  return nullptr;
}

void running::wait_for_place() const noexcept { team_->wait_for_place(turn_); }

std::string running::why() const { return team_->why(turn_); }

std::string running::describe(status ended, std::string& reason) const {
  if (!ok(ended)) team_->wait_for_place(turn_);
  if (ended == status::peer_failed) team_->give_up_all(ended);
  const std::lock_guard guard(team_->all().ctx().lock());
  reason = team_->why(turn_);
  return fmt::format("{} (team of {} ranks)", call_.name, team_->team().size);
}

}  // namespace rma::detail::coll
