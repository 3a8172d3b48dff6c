// SPDX-License-Identifier: Apache-2.0
#include "boot/round.hpp"

#include <cassert>

namespace rma::boot {

round::round(int size, send_function send) : members_(index(size)), send_(std::move(send)) { assert(size > 0); }

void round::broadcast(const std::string& frame_bytes) {
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].state == rank_state::joined) send_(static_cast<int>(rank), frame_bytes);
  }
}

void round::join(int rank) {
  assert(state(rank) == rank_state::absent);
  members_[index(rank)].state = rank_state::joined;
  members_[index(rank)].step = "has joined the job";
  for (const int dead : deaths_) {
    send_(rank, frame_writer(message::died).u32(static_cast<std::uint32_t>(dead)).finish());
  }
  if (++came_ == members_.size()) broadcast(bare_frame(message::ready));
}

bool round::handle(int rank, const frame& received) {
  assert(state(rank) == rank_state::joined);
  if (received.type == message::ask_late) {
    send_(rank, frame_writer(message::late).text(late()).finish());
    return received.body.empty();
  }
  // One question at a time: a rank that waits cannot have sent anything else.
  if (members_[index(rank)].now != doing::running) return false;
  switch (received.type) {
    case message::put: return put(body_reader(received.body));
    case message::get: return get(rank, body_reader(received.body));
    case message::fence: fence(rank); break;
    case message::finalize: finalize(rank); break;
    case message::step: return begin_step(rank, body_reader(received.body));
    default: return false;
  }
  return received.body.empty();
}

bool round::put(body_reader body) {
  const std::string key(body.text());
  const std::string_view value = body.text();
  if (!body.complete() || key.size() > key_bytes_max || value.size() > value_bytes_max) return false;
  values_[key] = value;
  if (in_get_ == 0) return true;
  const std::string answer = frame_writer(message::value).text(value).finish();
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    const member& waiter = members_[rank];
    if (waiter.now != doing::in_get || waiter.wanted != key) continue;
    wake(static_cast<int>(rank));
    send_(static_cast<int>(rank), answer);
  }
  return true;
}

bool round::get(int rank, body_reader body) {
  const std::size_t deaths_told = body.u32();
  const std::string key(body.text());
  if (!body.complete() || key.size() > key_bytes_max) return false;
  if (const auto found = values_.find(key); found != values_.end()) {
    send_(rank, frame_writer(message::value).text(found->second).finish());
    return true;
  }
  // A death that the caller has not taken notice of may be the reason why the key is missing.
  if (deaths_.size() > deaths_told) {
    send_(rank, frame_writer(message::no_value).u8(1).finish());
    return true;
  }
  members_[index(rank)].now = doing::in_get;
  members_[index(rank)].wanted = key;
  ++in_get_;
  fail_hopeless_gets();
  return true;
}

void round::fence(int rank) {
  if (gone_ > 0) {
    send_(rank, bare_frame(message::fence_failed));
    return;
  }
  members_[index(rank)].now = doing::in_fence;
  if (++in_fence_ < members_.size()) return fail_hopeless_gets();
  started_ = true;
  for (std::size_t each = 0; each < members_.size(); ++each) wake(static_cast<int>(each));
  broadcast(bare_frame(message::fence_done));
}

void round::finalize(int rank) {
  members_[index(rank)].state = rank_state::left;
  ++gone_;
  departures_.push_back(rank);
  send_(rank, bare_frame(message::bye));
  fail_fence();
  fail_hopeless_gets();
}

void round::tell_departures() {
  for (const int rank : departures_) {
    broadcast(frame_writer(message::left).u32(static_cast<std::uint32_t>(rank)).finish());
  }
  departures_.clear();
}

void round::die(int rank) {
  member& dead = members_[index(rank)];
  if (dead.state == rank_state::left || dead.state == rank_state::dead) return;
  wake(rank);
  const bool was_here = dead.state == rank_state::joined;
  dead.state = rank_state::dead;
  ++gone_;
  deaths_.push_back(rank);
  const std::string news = frame_writer(message::died).u32(static_cast<std::uint32_t>(rank)).finish();
  broadcast(news);
  if (was_here) send_(rank, news);  // it may be alive and wrongly reported: then it learns why it is cut off
  fail_fence();
  fail_gets(true);
}

bool round::begin_step(int rank, body_reader body) {
  const bool waits = body.u8() != 0;
  const std::string_view step = body.text();
  if (!body.complete() || step.size() > step_bytes_max) return false;
  members_[index(rank)].step = one_line(step);
  members_[index(rank)].step_waits = waits;
  return true;
}

/// The ranks that hold up the start: numbers of those that have not joined; else those that are not waiting, and what
/// they were last doing.
std::string round::late() const {
  const auto list_of = [this](auto is_late, auto text_of) {
    std::string list;
    for (std::size_t each = 0; each < members_.size() && list.size() < text_bytes_max / 2; ++each) {
      if (is_late(members_[each])) list += (list.empty() ? "" : ", ") + text_of(each);
    }
    return list;
  };
  const std::string absent = list_of([](const member& m) { return m.state == rank_state::absent; },
                                     [](std::size_t each) { return std::to_string(each); });
  if (!absent.empty()) return absent;
  return list_of(
      [](const member& m) { return m.state == rank_state::joined && m.now == doing::running && !m.step_waits; },
      [this](std::size_t each) { return "rank " + std::to_string(each) + " (" + members_[each].step + ")"; });
}

std::string round::where(int rank) const {
  const member& m = members_[index(rank)];
  switch (m.state) {
    case rank_state::absent: return "has not joined the job";
    case rank_state::left: return "has left the job";
    case rank_state::dead: return "is dead";
    case rank_state::joined: break;
  }
  if (started_) return "has started, and is in the program";
  const std::string step = "in the start of the job: " + m.step;
  if (m.now == doing::in_get) return step + "; waits until some rank has put '" + one_line(m.wanted) + "'";
  return m.now == doing::in_fence ? step + "; waits for all ranks" : step;
}

void round::wake(int rank) {
  member& waiter = members_[index(rank)];
  if (waiter.now == doing::in_get) --in_get_;
  if (waiter.now == doing::in_fence) --in_fence_;
  waiter.now = doing::running;
  waiter.wanted.clear();
}

void round::fail_gets(bool because_of_a_death) {
  if (in_get_ == 0) return;
  const std::string answer = frame_writer(message::no_value).u8(because_of_a_death ? 1 : 0).finish();
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].now != doing::in_get) continue;
    wake(static_cast<int>(rank));
    send_(static_cast<int>(rank), answer);
  }
}

void round::fail_fence() {
  if (in_fence_ == 0) return;
  for (std::size_t rank = 0; rank < members_.size(); ++rank) {
    if (members_[rank].now != doing::in_fence) continue;
    wake(static_cast<int>(rank));
    send_(static_cast<int>(rank), bare_frame(message::fence_failed));
  }
}

/// When all ranks wait or have left, none can put a key: further waiting would be a silent hang.
void round::fail_hopeless_gets() {
  if (in_get_ > 0 && in_get_ + in_fence_ + gone_ == members_.size()) fail_gets(gone_ > 0);
}

}  // namespace rma::boot
