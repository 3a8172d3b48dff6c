// SPDX-License-Identifier: Apache-2.0
#include "channel/notifications.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t enough_at_first = 16;
constexpr std::uint32_t enough_at_most = 4096;  // a recall costs two messages: at most a thousandth of all

}  // namespace

struct notifications::news {
  std::uint64_t id;
  std::uint32_t turn;
  std::uint32_t round;
};

/// An invitation to write, its recall, or the reply to the recall.
struct notifications::word_grant {
  enum class step : std::uint32_t { invite, recall, answer, count_ };
  std::uint64_t id;
  std::uint64_t address;
  std::uint64_t key;
  std::uint32_t round;
  std::uint32_t tag;
  std::uint32_t turn;
  step what;
};

notifications::notifications(context& ctx) : ctx_(ctx) {
  ctx.set_handler(message::notification, &notifications::on_news, this);
  ctx.set_handler(message::notification_word, &notifications::on_word_grant, this);
  const bool always = ctx.config().is(knob::barrier, "words");
  if (ctx.wide() == nullptr || !ctx.wide()->caps().words || ctx.config().is(knob::barrier, "messages")) return;
  if (!always && !ctx.waits_spin()) return;  // the grant would be recalled at every wait
  enough_ = always ? 0 : enough_at_first;
  board_ = std::make_unique<word_board>(*ctx.wide());
  ctx.add_duty(&notifications::on_duty, this);
  ctx.add_before_sleep(&notifications::on_sleep, this);
}

notifications::slots& notifications::find(std::uint64_t id) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  slots& s = known(id);
  if (board_ != nullptr && s.written == nullptr) {
    s.written = std::make_unique<writing>();
    for (incoming_word& each : s.written->in) each.enough = enough_;
  }
  return s;
}

void notifications::drop(slots& s) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(waiting_ != &s && s.awaited == no_round);
  last_ = nullptr;
  if (s.written != nullptr) {
    for (const incoming_word& i : s.written->in) {
      if (i.word != nullptr) board_->give_back(i.word);
    }
  }
  objects_.erase(s.id);
}

// Others may notify before this rank has made the object.
notifications::slots& notifications::known(std::uint64_t id) noexcept {
  if (last_ == nullptr || last_->id != id) {
    last_ = &objects_[id];
    last_->id = id;
  }
  return *last_;
}

bool notifications::is_heard(const slots& s, unsigned round) noexcept {
  return static_cast<std::int32_t>(s.heard[round] - s.turn) >= 0 ||
         (s.written != nullptr && s.written->in[round].shows(s.turn));
}

void notifications::notify(slots& s, unsigned round, int to) noexcept {
  RMA_ASSERT(ctx_.is_guarded() && round < rounds_max);
  if (s.written != nullptr && write(s, round, to)) return;
  ctx_.send_record(to, message::notification, news{s.id, s.turn, round});
}

bool notifications::await(slots& s, unsigned round, int from) noexcept {
  RMA_ASSERT(round < rounds_max && s.awaited == no_round && s.over != nullptr);
  s.from = from;
  s.slept = waiting_ != &s || &ctx_.network_of(from) != ctx_.wide();
  if (is_heard(s, round)) {
    if (s.written != nullptr) note_awake(s, round);
    return true;
  }
  s.awaited = round;
  if (s.written == nullptr) return false;
  if (s.slept) {
    recall(s, round);  // no wait polls the word
  } else if (s.written->in[round].tag != 0) {
    ctx_.on_duty(this, true);
  }
  return false;
}

void notifications::give_up(slots& s) noexcept { s.awaited = no_round; }

void notifications::hear_awaited(slots& s) noexcept {
  const unsigned round = std::exchange(s.awaited, no_round);
  RMA_ASSERT(round < rounds_max && s.over != nullptr);
  if (s.written != nullptr) note_awake(s, round);
  s.over(s.self);
}

// A round without room for a write may be sent as a message, and the next write may overtake it.
void notifications::on_news(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<notifications*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  constexpr auto kind = static_cast<std::uint16_t>(message::notification);
  news n{};
  if (payload.size() != sizeof n)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.round >= rounds_max)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  slots& s = me.known(n.id);
  RMA_ASSERT(s.id == n.id && (s.awaited == no_round || s.awaited < rounds_max));
  s.heard[n.round] = n.turn;
  if (s.awaited == n.round && is_heard(s, n.round)) me.hear_awaited(s);
}

// ---- rounds by writes: the receiver -------------------------------------------------------------------------

// Writes serve one blocking call at a time, which suffices for all thread levels but multiple; further calls use
// messages.
void notifications::begin_wait(slots& s) noexcept {
  RMA_ASSERT(s.awaited == no_round);
  if (board_ != nullptr && waiting_ == nullptr) waiting_ = &s;
}

void notifications::end_wait(slots& s) noexcept {
  RMA_ASSERT(ctx_.is_guarded() && s.awaited == no_round);
  if (waiting_ != &s) return;
  waiting_ = nullptr;
  ctx_.on_duty(this, false);
}

void notifications::look(slots& s) noexcept {
  if (s.written != nullptr && s.awaited != no_round && is_heard(s, s.awaited)) hear_awaited(s);
}

unsigned notifications::on_duty(void* self) noexcept {
  auto& me = *static_cast<notifications*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(me.board_ != nullptr && (me.waiting_ == nullptr || me.waiting_->written != nullptr));
  if (me.waiting_ == nullptr || me.waiting_->awaited == no_round || !is_heard(*me.waiting_, me.waiting_->awaited))
    return 0;
  me.hear_awaited(*me.waiting_);
  return 1;
}

/// Notes that the wait for this round has ended before a sleep, if it has.
void notifications::note_awake(slots& s, unsigned round) noexcept {
  if (waiting_ != &s || (s.slept && enough_ != 0) || &ctx_.network_of(s.from) != ctx_.wide()) return;
  incoming_word& in = s.written->in[round];
  if (!in.open && ++in.awake >= in.enough) invite(s, round);
}

void notifications::invite(slots& s, unsigned round) noexcept {
  incoming_word& in = s.written->in[round];
  RMA_ASSERT(!in.open && board_ != nullptr);
  if (in.word == nullptr) in.word = board_->take();
  if (in.word == nullptr) return;
  in.tag = ++last_tag_ != 0 ? last_tag_ : ++last_tag_;
  in.open = true;
  ctx_.send_record(s.from, message::notification_word,
                   word_grant{s.id, reinterpret_cast<std::uint64_t>(in.word), board_->region().key, round, in.tag,
                              s.turn, word_grant::step::invite});
}

// A round that has been written already still counts.
void notifications::recall(slots& s, unsigned round) noexcept {
  RMA_ASSERT(s.written != nullptr && round < rounds_max);
  incoming_word& in = s.written->in[round];
  in.awake = 0;
  if (!in.open) return;
  in.open = false;
  in.enough = std::min(2 * in.enough, enough_at_most);
  ctx_.send_record(s.from, message::notification_word,
                   word_grant{s.id, 0, 0, round, in.tag, s.turn, word_grant::step::recall});
}

void notifications::on_sleep(void* self) noexcept {
  auto& me = *static_cast<notifications*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  if (me.waiting_ == nullptr || me.waiting_->awaited == no_round) return;
  me.waiting_->slept = true;
  me.recall(*me.waiting_, me.waiting_->awaited);
  RMA_ASSERT(!me.waiting_->written->in[me.waiting_->awaited].open);  // a write would not wake this rank
}

// ---- the sender ---------------------------------------------------------------------------------------------

bool notifications::write(slots& s, unsigned round, int to) noexcept {
  outgoing_word& out = s.written->out[round];
  if (out.tag == 0 || out.rank != to) return false;
  RMA_ASSERT(ctx_.wide() != nullptr && round < rounds_max);
  std::uint64_t word = std::uint64_t{out.tag} << 32 | s.turn;
  const fabric::local_slice here{&word, sizeof word};
  const fabric::remote_slice there{out.address, sizeof word};
  if (ctx_.wide()->write(to, {&here, 1}, out.region, {&there, 1}, 0, fabric::silent_write) != status::done)
    return false;
  out.turn = s.turn;
  ctx_.count(counter::barrier_words);
  return true;
}

// An invitation that arrives after the last run is ignored.
void notifications::on_invitation(int source, const word_grant& o) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(o.round < rounds_max && o.what == word_grant::step::invite);
  const auto at = objects_.find(o.id);
  if (at == objects_.end() || at->second.written == nullptr) return;
  at->second.written->out[o.round] = {source, o.tag, o.turn, o.address, {o.address, sizeof(word64), o.key}};
}

// A rank that has dropped the object has left its last run.
void notifications::on_recall(int source, const word_grant& o) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(o.round < rounds_max && o.what == word_grant::step::recall);
  word_grant answer = o;
  answer.what = word_grant::step::answer;
  const auto at = objects_.find(o.id);
  if (at != objects_.end() && at->second.written != nullptr) {
    outgoing_word& out = at->second.written->out[o.round];
    const bool valid = out.tag == o.tag && out.rank == source;
    answer.turn = valid ? out.turn : o.turn - 1;
    if (valid) out.tag = 0;
  }
  ctx_.send_record(source, message::notification_word, answer);
}

void notifications::on_answer(const word_grant& o) noexcept {
  RMA_ASSERT(ctx_.is_guarded());
  RMA_ASSERT(o.round < rounds_max && o.what == word_grant::step::answer);
  const auto at = objects_.find(o.id);
  if (at == objects_.end()) return;
  slots& s = at->second;
  if (static_cast<std::int32_t>(o.turn - s.heard[o.round]) > 0) s.heard[o.round] = o.turn;
  if (s.awaited == o.round && is_heard(s, o.round)) hear_awaited(s);
}

void notifications::on_word_grant(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<notifications*>(self);
  RMA_ASSERT(me.ctx_.is_guarded());
  RMA_ASSERT(source >= 0 && source < me.ctx_.size());
  constexpr auto kind = static_cast<std::uint16_t>(message::notification_word);
  word_grant o{};
  if (payload.size() != sizeof o)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&o, payload.data(), sizeof o);
  if (o.round >= rounds_max || o.what >= word_grant::step::count_)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  switch (o.what) {
    case word_grant::step::invite: return me.on_invitation(source, o);
    case word_grant::step::recall: return me.on_recall(source, o);
    default: return me.on_answer(o);
  }
}

}  // namespace rma::detail
