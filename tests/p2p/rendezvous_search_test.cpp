// SPDX-License-Identifier: Apache-2.0
// Goal: each rendezvous protocol brings two messages of one pair to the receives that they are for, whole, and both
// sides to the end, whoever comes first. Method: all states of two sends and two receives over channels that keep
// messages in order, with the library's own steps; the messages are equal to their receives, shorter, longer or empty,
// their last bytes seen or not, and one side may die, or one transfer fails with a broken connection. Mutations must be
// found.
#include <array>
#include <catch2/catch.hpp>
#include <cstdint>
#include <cstdio>
#include <string>

#include "p2p/rendezvous/table.hpp"
#include "sync/state_search.hpp"

using namespace rma;
using namespace rma::detail;

namespace {

enum class length : std::uint8_t { equal, shorter, longer, empty, pieces };  ///< pieces: a layout, never by a request

enum class mutation : std::uint8_t {
  none,
  finish_too_early,  ///< the word that the data are there overtakes them
  no_word,           ///< nobody is told of an end that cannot be seen
  stale_request,     ///< a request is used though it has crossed an announcement
  not_void,          ///< a message that does not fit a request does not say so
  not_drained,       ///< an end is seen before the messages that were sent before its write
  no_second_try,     ///< a failed transfer is given up
  not_told,          ///< an envelope follows a write that its receiver has not noticed, and is not told of
};

enum class word : std::uint8_t { none, announce, finished, request, ask, used, declined };

struct item {
  word what = word::none;
  std::uint8_t number = 0;  ///< number of the message or receive
  std::uint8_t seen = 0;    ///< ask: envelopes that the receiver has seen
  bool flag = false;        ///< announce: the request is void
  bool operator==(const item&) const = default;
};

constexpr std::size_t channel_max = 6;
using channel = std::array<item, channel_max>;

struct message_state {
  bool started = false, posted = false, matched = false, asked = false, solicited = false, moving = false;
  bool s_streams = false, r_streams = false;  ///< that side goes on by messages, since a transfer has failed
  rendezvous_state s = rendezvous_state::begin, r = rendezvous_state::begin;
  std::uint8_t data = 0;    ///< 0: with the sender, 1: on the way, 2: in place
  std::uint8_t number = 0;  ///< number of the envelope
  bool s_over = false, r_over = false;
  bool operator==(const message_state&) const = default;
};

struct model {
  using packed = test::packed_key<4>;

  std::array<message_state, 2> m{};
  channel forth{}, back{};
  std::uint8_t sent = 0, seen = 0;        ///< envelopes
  std::array<std::uint8_t, 2> waiting{};  ///< announced messages without a receive: number + 1, in order
  std::uint8_t stored = 0;                ///< receive whose request the sender keeps, + 1
  std::uint8_t dead = 0;                  ///< 1: the sender, 2: the receiver
  bool waiting_void = false;
  bool may_break = false;  ///< one transfer may fail
  bool bad = false;

  const rendezvous_protocol* protocol = nullptr;
  std::array<length, 2> lengths{};
  bool unseen = false;  ///< messages end in the byte that the buffer had
  bool may_die = false;
  mutation broken = mutation::none;

  bool operator==(const model& o) const {
    return m == o.m && forth == o.forth && back == o.back && sent == o.sent && seen == o.seen && waiting == o.waiting &&
           stored == o.stored && dead == o.dead && waiting_void == o.waiting_void && may_break == o.may_break &&
           bad == o.bad;
  }

  template <class Self, class Field>
  static void fields(Self& s, Field& field) {
    for (auto& e : s.m) {
      field(e.started, 1), field(e.posted, 1), field(e.matched, 1), field(e.asked, 1), field(e.solicited, 1);
      field(e.moving, 1), field(e.s, 3), field(e.r, 3), field(e.data, 2), field(e.number, 2);
      field(e.s_over, 1), field(e.r_over, 1), field(e.s_streams, 1), field(e.r_streams, 1);
    }
    for (auto* c : {&s.forth, &s.back}) {
      for (auto& i : *c) field(i.what, 3), field(i.number, 1), field(i.seen, 2), field(i.flag, 1);
    }
    field(s.sent, 2), field(s.seen, 2), field(s.waiting[0], 2), field(s.waiting[1], 2), field(s.stored, 2);
    field(s.dead, 2), field(s.waiting_void, 1), field(s.bad, 1), field(s.may_break, 1);
  }
  [[nodiscard]] packed::words key() const { return test::key_of(*this); }
  [[nodiscard]] model with(const packed::words& k) const { return test::made_of(*this, k); }

  // ---- both sides -----------------------------------------------------------------------------------------------

  void put(channel& c, const item& i) {
    for (item& place : c) {
      if (place.what != word::none) continue;
      place = i;
      return;
    }
    bad = true;
  }
  static item take(channel& c) {
    const item first = c[0];
    for (std::size_t i = 1; i < c.size(); ++i) c[i - 1] = c[i];
    c.back() = {};
    return first;
  }
  [[nodiscard]] bool fits(std::uint8_t i) const { return lengths[i] != length::longer && lengths[i] != length::empty; }
  [[nodiscard]] bool by_request(std::uint8_t i) const { return fits(i) && lengths[i] != length::pieces; }
  /// The receiver sees the end of a write by itself.
  [[nodiscard]] bool is_seen(std::uint8_t i) const { return lengths[i] == length::equal && !unseen; }

  void sender(std::uint8_t i, rendezvous_event event) {
    const auto step = (m[i].s_streams ? &stream_protocol : protocol)->sender(m[i].s, event);
    m[i].s = step.next;
    constexpr std::uint32_t sends = rendezvous_action::write | rendezvous_action::stream | rendezvous_action::gather;
    if ((step.actions & sends) != 0) {
      m[i].data = 1;
      m[i].moving = true;
      if (broken == mutation::finish_too_early) put(forth, {word::finished, i});
      // The last piece of a stream is the word.
      if ((step.actions & rendezvous_action::stream) != 0) m[i].data = 2, put(forth, {word::finished, i});
    }
    const bool unseen_end = (step.actions & rendezvous_action::finish_if_unseen) != 0 && !is_seen(i);
    if ((step.actions & rendezvous_action::finish) != 0 || (unseen_end && broken != mutation::no_word))
      if (broken != mutation::finish_too_early) put(forth, {word::finished, i});
    if ((step.actions & rendezvous_action::end) != 0) m[i].s_over = true;
  }
  void receiver(std::uint8_t i, rendezvous_event event) {
    const auto step = (m[i].r_streams ? &stream_protocol : protocol)->receiver(m[i].r, event);
    m[i].r = step.next;
    if ((step.actions & (rendezvous_action::request | rendezvous_action::scatter)) != 0) {
      m[i].asked = event == rendezvous_event::start;
      put(back, {m[i].asked ? word::ask : word::request, i, seen});
    }
    if ((step.actions & rendezvous_action::read) != 0) m[i].data = 1;
    if ((step.actions & rendezvous_action::finish) != 0) put(back, {word::finished, i});
    if ((step.actions & rendezvous_action::end) != 0) end_receive(i);
  }
  void end_receive(std::uint8_t i) {
    if (m[i].data != 2) bad = true;
    m[i].r_over = true;
    m[i].matched = true;
    consider_asking();
  }

  /// The transfer has ended with an error: whoever has posted it goes on by messages, or repeats the write for a
  /// receive that waits for nothing else.
  void fail(std::uint8_t i) {
    message_state& e = m[i];
    may_break = false;
    const bool by_receiver = e.r == rendezvous_state::moving;
    if (!by_receiver && e.solicited) return;
    if (broken == mutation::no_second_try) return void(e.data = 3);
    e.data = 0;
    if (by_receiver) {
      e.r = rendezvous_state::begin;
      e.r_streams = true;
      return receiver(i, rendezvous_event::announced);
    }
    stream_instead(i);
  }
  void stream_instead(std::uint8_t i) {
    m[i].s = rendezvous_state::announced;
    m[i].s_streams = true;
    sender(i, rendezvous_event::requested);
  }

  // ---- the receiver ---------------------------------------------------------------------------------------------

  /// The first receive that no message has matched; 2: none.
  [[nodiscard]] std::uint8_t head() const {
    for (std::uint8_t i = 0; i < 2; ++i)
      if (m[i].posted && !m[i].matched) return i;
    return 2;
  }
  void consider_asking() {
    const std::uint8_t i = head();
    if (i < 2 && protocol->receiver_initiates && !m[i].asked) receiver(i, rendezvous_event::start);
  }
  void match(std::uint8_t receive, std::uint8_t message, bool is_void) {
    if (receive != message) bad = true;
    message_state& e = m[receive];
    e.matched = true;
    if (!fits(message)) {
      put(back, {word::finished, message});
      e.r_over = true;
    } else if (!(e.asked && !is_void)) {
      e.r = rendezvous_state::begin;
      receiver(receive, rendezvous_event::announced);
    }
    consider_asking();
  }
  void post(std::uint8_t i) {
    m[i].posted = true;
    if (waiting[0] != 0) {
      const auto message = static_cast<std::uint8_t>(waiting[0] - 1);
      waiting = {waiting[1], 0};
      return match(i, message, std::exchange(waiting_void, false));
    }
    consider_asking();
  }
  void arrive(const item& got) {
    ++seen;
    const std::uint8_t i = head();
    if (i < 2) return match(i, got.number, got.flag);
    waiting[waiting[0] == 0 ? 0 : 1] = static_cast<std::uint8_t>(got.number + 1);
    waiting_void = waiting_void || got.flag;
  }

  // ---- the sender -----------------------------------------------------------------------------------------------

  void start(std::uint8_t i) {
    message_state& e = m[i];
    e.started = true;
    bool is_void = false;
    if (stored != 0) {
      const auto receive = static_cast<std::uint8_t>(stored - 1);
      stored = 0;
      if (by_request(i)) {
        if (receive != i) bad = true;
        e.solicited = true;
        return sender(i, rendezvous_event::requested);
      }
      is_void = broken != mutation::not_void;
    }
    if (i == 1 && m[0].solicited && broken != mutation::not_told) put(forth, {word::used, 0});
    e.number = sent++;
    e.s = protocol->sender(e.s, rendezvous_event::start).next;
    put(forth, {word::announce, i, 0, is_void});
  }
  void asked_for(const item& got) {
    for (std::uint8_t i = 0; i < 2; ++i) {
      const bool crossed = m[i].started && !m[i].solicited && m[i].s == rendezvous_state::announced && !m[i].s_over &&
                           m[i].number >= got.seen;
      if (!crossed || broken == mutation::stale_request) continue;
      if (!fits(i)) return;  // the receive is over
      if (got.number != i) bad = true;
      if (!by_request(i)) return put(forth, {word::declined, got.number});
      return sender(i, rendezvous_event::requested);
    }
    for (std::uint8_t i = 0; i < 2; ++i)  // one that is over, by its receive: it was too long
      if (m[i].started && !m[i].solicited && !fits(i) && m[i].number >= got.seen) return;
    stored = static_cast<std::uint8_t>(got.number + 1);
  }

  // ---- what may happen ------------------------------------------------------------------------------------------

  [[nodiscard]] std::string wrong() const {
    return bad ? "a message was mixed up, or is over before its data are there" : "";
  }
  [[nodiscard]] bool finished() const {
    for (const message_state& e : m) {
      if (dead != 1 && !e.s_over && dead == 0) return false;
      if (dead == 0 && !e.r_over) return false;
    }
    return true;  // a death ends all that is under way with the dead rank, whatever its state is
  }

  template <class F>
  void successors(F&& emit) const {
    if (dead != 0) return;
    const auto step = [&](auto&& change) {
      model next = *this;
      change(next);
      emit(next);
    };
    for (std::uint8_t i = 0; i < 2; ++i) {
      if (!m[i].started && (i == 0 || m[0].started)) step([i](model& n) { n.start(i); });
      if (!m[i].posted && (i == 0 || m[0].posted)) step([i](model& n) { n.post(i); });
      if (m[i].data == 1) step([i](model& n) { n.m[i].data = 2; });
      if (m[i].data == 1 && may_break) step([i](model& n) { n.fail(i); });
      if (m[i].data == 2 && m[i].moving && !m[i].s_over) step([i](model& n) { n.sender(i, rendezvous_event::moved); });
      if (m[i].data == 2 && m[i].r == rendezvous_state::moving && !m[i].r_over) {
        step([i](model& n) { n.receiver(i, rendezvous_event::moved); });
        if (protocol->polls) step([i](model& n) { n.receiver(i, rendezvous_event::changed); });
      }
      if (m[i].data == 2 && m[i].r == rendezvous_state::asked && protocol->polls && is_seen(i) && !m[i].r_over &&
          !m[i].s_streams && (m[i].matched || forth[0].what == word::none || broken == mutation::not_drained))
        step([i](model& n) { n.receiver(i, rendezvous_event::changed); });
    }
    if (forth[0].what != word::none)
      step([](model& n) {
        const item got = take(n.forth);
        if (got.what == word::announce) return n.arrive(got);
        if (got.what == word::declined) {
          n.m[got.number].r = rendezvous_state::begin;
          return n.receiver(got.number, rendezvous_event::announced);
        }
        if (got.what == word::used) {
          if (n.m[got.number].matched) return;
          n.m[got.number].matched = true;
          return n.consider_asking();
        }
        if (!n.m[got.number].r_over) n.receiver(got.number, rendezvous_event::finished);
      });
    if (back[0].what != word::none)
      step([](model& n) {
        const item got = take(n.back);
        if (got.what == word::ask) return n.asked_for(got);
        if (n.m[got.number].r_streams && got.what == word::request) return n.stream_instead(got.number);
        n.sender(got.number, got.what == word::request ? rendezvous_event::requested : rendezvous_event::finished);
      });
    if (may_die) {
      step([](model& n) { n.dead = 1; });
      step([](model& n) { n.dead = 2; });
    }
  }
};

struct totals {
  std::size_t states = 0;
  unsigned failures = 0;
};

/// All lengths of both messages; stops at the first failure if `broken`.
totals search_all(const rendezvous_protocol& protocol, mutation broken) {
  totals all;
  for (unsigned pick = 0; pick < 50; ++pick) {
    model first;
    first.protocol = &protocol;
    first.lengths = {static_cast<length>(pick % 5), static_cast<length>(pick / 5 % 5)};
    first.unseen = pick >= 25;
    first.may_die = broken == mutation::none;
    first.may_break = broken == mutation::none || broken == mutation::no_second_try;
    first.broken = broken;
    const auto found = test::state_search<model>().run(first, 200'000);
    all.states += found.states;
    if (found.failure.empty()) continue;
    ++all.failures;
    if (broken != mutation::none) return all;
    INFO(protocol.name << ", lengths " << pick % 5 << " and " << pick / 5 % 5 << ": " << found.failure);
    CHECK(found.failure.empty());
  }
  return all;
}

}  // namespace

TEST_CASE("each rendezvous ends, with the right data, from all states", "[p2p][rendezvous]") {
  for (const rendezvous_protocol* const protocol : rendezvous_rows) {
    const totals found = search_all(*protocol, mutation::none);
    std::printf("%-7s %zu states\n", std::string(protocol->name).c_str(), found.states);
    CHECK(found.failures == 0);
  }
}

TEST_CASE("mistakes in a rendezvous are found", "[p2p][rendezvous]") {
  CHECK(search_all(rput_protocol, mutation::finish_too_early).failures != 0);
  CHECK(search_all(put_protocol, mutation::no_word).failures != 0);
  CHECK(search_all(putnr_protocol, mutation::no_word).failures != 0);
  CHECK(search_all(put_protocol, mutation::stale_request).failures != 0);
  CHECK(search_all(put_protocol, mutation::not_void).failures != 0);
  CHECK(search_all(put_protocol, mutation::not_told).failures != 0);
  CHECK(search_all(put_protocol, mutation::not_drained).failures != 0);
  for (const rendezvous_protocol* const protocol : rendezvous_rows) {
    if (protocol->kind == rendezvous_kind::stream) continue;  // nothing of it can fail
    CHECK(search_all(*protocol, mutation::no_second_try).failures != 0);
  }
}
