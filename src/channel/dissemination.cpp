// SPDX-License-Identifier: Apache-2.0
#include "channel/dissemination.hpp"

#include <algorithm>
#include <cstring>

#include "core/assert.hpp"

namespace rma::detail {
namespace {

constexpr std::uint32_t enough_at_first = 16;
constexpr std::uint32_t enough_at_most = 4096;  // a recall costs two messages: at most a thousandth of all

}  // namespace

struct dissemination::news {
  std::uint64_t id;
  std::uint32_t turn;
  std::uint32_t round;
};

/// An invitation to write, its recall, or the reply to the recall.
struct dissemination::word_grant {
  enum class step : std::uint32_t { invite, recall, answer, count_ };
  std::uint64_t id;
  std::uint64_t address;
  std::uint64_t key;
  std::uint32_t round;
  std::uint32_t tag;
  std::uint32_t turn;
  step what;
};

dissemination::dissemination(context& ctx) : ctx_(ctx) {
  ctx.set_handler(message::barrier, &dissemination::on_news, this);
  ctx.set_handler(message::barrier_word, &dissemination::on_offer, this);
  const bool always = ctx.config().is(knob::barrier, "words");
  if (ctx.wide() == nullptr || !ctx.wide()->caps().words || ctx.config().is(knob::barrier, "messages")) return;
  if (!always && !ctx.waits_spin()) return;  // the grant would be recalled at every wait
  enough_ = always ? 0 : enough_at_first;
  board_ = std::make_unique<word_board>(*ctx.wide());
  ctx.add_before_sleep(&dissemination::on_sleep, this);
}

dissemination::barrier_state& dissemination::find(std::uint64_t id) noexcept {
  const std::lock_guard guard(ctx_.lock());
  barrier_state& c = known(id);
  if (board_ != nullptr && c.written == nullptr) {
    c.written = std::make_unique<writing>();
    for (incoming_word& each : c.written->in) each.enough = enough_;
  }
  return c;
}

void dissemination::drop(std::uint64_t id) noexcept {
  const std::lock_guard guard(ctx_.lock());
  last_ = nullptr;
  const auto at = barriers_.find(id);
  RMA_ASSERT(at != barriers_.end() && (waiting_ == nullptr || waiting_->of != &at->second));
  if (at->second.written != nullptr) {
    for (const incoming_word& i : at->second.written->in) {
      if (i.word != nullptr) board_->give_back(i.word);
    }
  }
  barriers_.erase(at);
}

// Others may enter a barrier before this rank has made the object that it belongs to.
dissemination::barrier_state& dissemination::known(std::uint64_t id) noexcept {
  if (last_ == nullptr || last_->id != id) {
    last_ = &barriers_[id];
    last_->id = id;
  }
  return *last_;
}

void dissemination::send(barrier_state& c, unsigned round, int to) noexcept {
  if (c.written != nullptr && write(c, round, to)) return;
  ctx_.send_record(to, message::barrier, news{c.id, c.turn, round});
}

// A round without room for a write may be sent as a message, and the next write may overtake it.
void dissemination::on_news(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<dissemination*>(self);
  constexpr auto kind = static_cast<std::uint16_t>(message::barrier);
  news n{};
  if (payload.size() != sizeof n)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&n, payload.data(), sizeof n);
  if (n.round >= rounds_max)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  me.known(n.id).heard[n.round].store(n.turn);
}

// ---- rounds by writes: the receiver -------------------------------------------------------------------------

// Writes serve one wait at a time, which suffices for all thread levels but multiple; further waits use messages.
void dissemination::begin(wait& mine) noexcept {
  if (waiting_ == nullptr) {
    waiting_ = &mine;
  } else {
    mine.slept = true;
    recall(mine);
  }
}

void dissemination::end(wait& mine) noexcept {
  const std::lock_guard guard(ctx_.lock());
  RMA_ASSERT(waiting_ == &mine || mine.slept);
  if (waiting_ == &mine) waiting_ = nullptr;
  if (!mine.slept || enough_ == 0) stayed_awake(mine);
}

void dissemination::stayed_awake(const wait& mine) noexcept {
  incoming_word& in = mine.of->written->in[mine.round];
  if (!in.open && ++in.awake >= in.enough) invite(mine);
}

void dissemination::invite(const wait& w) noexcept {
  incoming_word& in = w.of->written->in[w.round];
  RMA_ASSERT(!in.open && board_ != nullptr);
  if (in.word == nullptr) in.word = board_->take();
  if (in.word == nullptr) return;
  in.tag = ++last_tag_ != 0 ? last_tag_ : ++last_tag_;
  in.open = true;
  ctx_.send_record(w.from, message::barrier_word,
                   word_grant{w.of->id, reinterpret_cast<std::uint64_t>(in.word), board_->region().key, w.round, in.tag,
                              w.of->turn, word_grant::step::invite});
}

// A round that has been written already still counts.
void dissemination::recall(const wait& w) noexcept {
  RMA_ASSERT(w.of->written != nullptr && w.round < rounds_max);
  incoming_word& in = w.of->written->in[w.round];
  in.awake = 0;
  if (!in.open) return;
  in.open = false;
  in.enough = std::min(2 * in.enough, enough_at_most);
  ctx_.send_record(w.from, message::barrier_word,
                   word_grant{w.of->id, 0, 0, w.round, in.tag, w.of->turn, word_grant::step::recall});
}

void dissemination::on_sleep(void* self) noexcept {
  auto& me = *static_cast<dissemination*>(self);
  if (me.waiting_ == nullptr) return;
  me.waiting_->slept = true;
  me.recall(*me.waiting_);
}

// ---- the sender ---------------------------------------------------------------------------------------------

bool dissemination::write(barrier_state& c, unsigned round, int to) noexcept {
  outgoing_word& out = c.written->out[round];
  if (out.tag == 0 || out.rank != to) return false;
  RMA_ASSERT(ctx_.wide() != nullptr && round < rounds_max);
  std::uint64_t word = std::uint64_t{out.tag} << 32 | c.turn;
  const fabric::local_slice here{&word, sizeof word};
  const fabric::remote_slice there{out.address, sizeof word};
  if (ctx_.wide()->write(to, {&here, 1}, out.region, {&there, 1}, 0, fabric::silent_write) != status::done)
    return false;
  out.turn = c.turn;
  ctx_.count(counter::barrier_words);
  return true;
}

// An invitation that arrives after the last barrier is ignored.
void dissemination::on_invitation(int source, const word_grant& o) noexcept {
  const auto at = barriers_.find(o.id);
  if (at == barriers_.end() || at->second.written == nullptr) return;
  at->second.written->out[o.round] = {source, o.tag, o.turn, o.address, {o.address, sizeof(word64), o.key}};
}

// A rank that has dropped the barrier state has left its last barrier.
void dissemination::on_recall(int source, const word_grant& o) noexcept {
  word_grant answer = o;
  answer.what = word_grant::step::answer;
  const auto at = barriers_.find(o.id);
  if (at != barriers_.end() && at->second.written != nullptr) {
    outgoing_word& out = at->second.written->out[o.round];
    const bool valid = out.tag == o.tag && out.rank == source;
    answer.turn = valid ? out.turn : o.turn - 1;
    if (valid) out.tag = 0;
  }
  ctx_.send_record(source, message::barrier_word, answer);
}

void dissemination::on_offer(void* self, int source, std::span<const std::byte> payload) noexcept {
  auto& me = *static_cast<dissemination*>(self);
  constexpr auto kind = static_cast<std::uint16_t>(message::barrier_word);
  word_grant o{};
  if (payload.size() != sizeof o)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_length);
  std::memcpy(&o, payload.data(), sizeof o);
  if (o.round >= rounds_max || o.what >= word_grant::step::count_)
    return me.ctx_.reject_malformed(source, kind, payload.size(), malformed_reason::wrong_contents);
  if (o.what == word_grant::step::invite) return me.on_invitation(source, o);
  if (o.what == word_grant::step::recall) return me.on_recall(source, o);
  const auto at = me.barriers_.find(o.id);
  if (at == me.barriers_.end()) return;
  word32& heard = at->second.heard[o.round];
  if (static_cast<std::int32_t>(o.turn - heard.load()) > 0) heard.store(o.turn);
}

}  // namespace rma::detail
