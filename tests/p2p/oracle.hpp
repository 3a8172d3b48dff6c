// SPDX-License-Identifier: Apache-2.0
/// \file
/// Random programs of messages with wildcards. Every message says whose and which it is. Afterwards each rank compares
/// all pairs of its receives: of two that one sender's messages matched, the one that was posted first has the one that
/// was sent first.
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "fabric/sim/fault_model.hpp"
#include "rma/rma.hpp"

namespace p2p_oracle {

using rma::sim::rng;

inline constexpr std::size_t bytes_max = 20000;
inline constexpr int tags = 3;
inline constexpr std::size_t contexts = 2;

/// In front of each message; the bytes behind it follow from it.
struct label {
  std::uint16_t source, dest, context, round;
  std::uint32_t sequence, bytes;
};

struct planned {
  int dest;
  std::size_t context;
  int tag;
  label what;
};

struct plan {
  std::uint64_t seed;
  int ranks;
  std::size_t rounds, each;
  bool is_short = false;   ///< most messages fit a line of shared memory
  bool may_block = false;  ///< in some rounds messages are received by blocking calls, one after the other
};

inline std::uint8_t byte_of(const label& l, std::size_t i) {
  return static_cast<std::uint8_t>(l.source * 31 + l.sequence * 17 + l.context * 5 + l.round * 3 + i * (i / 256 + 1));
}

/// The messages that a rank sends in a round, in this order: everybody knows.
inline std::vector<planned> sends_of(const plan& p, int rank, std::size_t round) {
  rng d(p.seed * 7919 + round * 131 + static_cast<std::uint64_t>(rank) + 1);
  std::vector<planned> all;
  std::map<std::pair<int, std::size_t>, std::uint32_t> sequence;
  for (std::size_t i = 0; i < p.each; ++i) {
    planned m{};
    m.dest = static_cast<int>(d.below(static_cast<std::uint64_t>(p.ranks)));
    m.context = d.below(contexts);
    m.tag = static_cast<int>(d.below(tags));
    const bool is_long = d.one_in(p.is_short ? 12 : 3);
    const std::size_t bytes = is_long ? 16 + d.below(bytes_max - 16) : 16 + d.below(p.is_short ? 30 : 200);
    m.what = {static_cast<std::uint16_t>(rank),      static_cast<std::uint16_t>(m.dest),
              static_cast<std::uint16_t>(m.context), static_cast<std::uint16_t>(round),
              sequence[{m.dest, m.context}]++,       static_cast<std::uint32_t>(bytes)};
    all.push_back(m);
  }
  return all;
}

struct pattern {
  int source, tag;
  [[nodiscard]] bool matches(int s, int t) const {
    return (source == rma::any_source || source == s) && (tag == rma::any_tag || tag == t);
  }
};

/// Receives for all messages of a round in a context, of which none can starve: wildcards in front take what comes
/// first, so that so many fewer of each key are asked for by name; the rest is taken by any.
inline std::vector<pattern> receives_of(const plan& p, int rank, std::size_t round, std::size_t context) {
  rng d(p.seed * 104729 + round * 17 + static_cast<std::uint64_t>(rank) * 3 + context);
  std::map<std::pair<int, int>, std::size_t> count;
  std::size_t total = 0;
  for (int s = 0; s < p.ranks; ++s) {
    for (const planned& m : sends_of(p, s, round)) {
      if (m.dest != rank || m.context != context) continue;
      ++count[{s, m.tag}];
      ++total;
    }
  }
  const std::size_t in_front = std::min(total, d.one_in(2) ? std::size_t{0} : d.below(3));
  std::vector<pattern> all(in_front, pattern{rma::any_source, rma::any_tag});
  std::vector<pattern> named;
  for (const auto& [key, n] : count) {
    for (std::size_t i = in_front; i < n; ++i) {
      if (!d.one_in(4)) named.push_back({key.first, key.second});
    }
  }
  for (std::size_t i = named.size(); i > 1; --i) std::swap(named[i - 1], named[d.below(i)]);
  all.insert(all.end(), named.begin(), named.end());
  all.resize(total, pattern{rma::any_source, rma::any_tag});
  return all;
}

struct taken {
  pattern asked;
  label got;
  int tag;
};

[[noreturn]] inline void fail(const std::string& why) { throw std::runtime_error(why); }

inline label check_message(const std::vector<std::uint8_t>& in, const rma::Received& what, int me,
                           std::size_t context) {
  label l{};
  if (what.bytes < sizeof l) fail("a message without a label");
  std::memcpy(&l, in.data(), sizeof l);
  if (l.source != what.source || l.dest != me || l.context != context || l.bytes != what.bytes)
    fail(fmt::format("a message from {} says that it is from {} to {} with {} bytes, and has {}", what.source, l.source,
                     l.dest, l.bytes, what.bytes));
  for (std::size_t i = sizeof l; i < what.bytes; ++i) {
    if (in[i] != byte_of(l, i))
      fail(fmt::format("byte {} of message {} of {} bytes from {}", i, l.sequence, l.bytes, l.source));
  }
  return l;
}

inline void check_order(const std::vector<taken>& all) {
  for (std::size_t a = 0; a < all.size(); ++a) {
    for (std::size_t b = a + 1; b < all.size(); ++b) {
      if (all[a].got.source != all[b].got.source) continue;
      if (all[a].got.sequence == all[b].got.sequence) fail("a message came twice");
      if (all[b].got.sequence < all[a].got.sequence && all[a].asked.matches(all[b].got.source, all[b].tag))
        fail(fmt::format("message {} from {} was overtaken by {}", all[b].got.sequence, all[b].got.source,
                         all[a].got.sequence));
    }
  }
}

struct round_state {
  std::vector<std::vector<std::uint8_t>> out, in;
  std::vector<rma::MessageRequest> requests;  ///< receives first, context by context
  std::vector<pattern> asked;
  std::vector<std::size_t> context;
};

inline void post_receives(const plan& p, std::array<rma::Team, contexts>& teams, int me, std::size_t round,
                          round_state& s) {
  for (std::size_t c = 0; c < contexts; ++c) {
    for (const pattern& a : receives_of(p, me, round, c)) {
      s.asked.push_back(a);
      s.context.push_back(c);
    }
  }
  s.in.assign(s.asked.size(), std::vector<std::uint8_t>(bytes_max, 0xAB));
  for (std::size_t i = 0; i < s.asked.size(); ++i)
    s.requests.push_back(teams[s.context[i]].irecv(std::span(s.in[i]), s.asked[i].source, s.asked[i].tag));
}

inline void start_sends(const plan& p, rma::Runtime& rt, std::array<rma::Team, contexts>& teams, std::size_t round,
                        rng& d, round_state& s) {
  const auto sends = sends_of(p, rt.rank(), round);
  for (const planned& m : sends) {
    s.out.emplace_back(m.what.bytes);
    std::memcpy(s.out.back().data(), &m.what, sizeof m.what);
    for (std::size_t i = sizeof m.what; i < m.what.bytes; ++i) s.out.back()[i] = byte_of(m.what, i);
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    rma::Team& team = teams[sends[i].context];
    const auto kind = static_cast<rma::send_kind>(d.below(3));
    rma::MessageRequest r;
    if (const rma::status st = team.try_isend(std::span(s.out[i]), sends[i].dest, sends[i].tag, r, kind); !ok(st))
      throw rma::Error(st, "isend");
    if (kind == rma::send_kind::buffered) std::ranges::fill(s.out[i], std::uint8_t{0xCD});
    s.requests.push_back(std::move(r));
    if (d.one_in(8)) rt.compute(std::chrono::nanoseconds(d.below(20000)));
  }
}

/// The same by blocking calls, which may find a short message without an operation.
inline void receive_in_turn(const plan& p, std::array<rma::Team, contexts>& teams, int me, std::size_t round,
                            std::array<std::vector<taken>, contexts>& got) {
  std::vector<std::uint8_t> in(bytes_max);
  for (std::size_t c = 0; c < contexts; ++c) {
    for (const pattern& a : receives_of(p, me, round, c)) {
      const rma::Received what = teams[c].recv(std::span(in), a.source, a.tag);
      got[c].push_back({a, check_message(in, what, me, c), what.tag});
    }
  }
}

inline bool is_of_a_death(rma::status s) {
  return s == rma::status::peer_failed || s == rma::status::transfer_failed || s == rma::status::revoked;
}

/// Waits for a request after a death, when this rank and others have cancelled receives and sends: what others' sends
/// wait for is received here, whatever it is; what then still waits for a message that was cancelled is revoked.
inline rma::status wait_after_death(rma::Runtime& rt, rma::MessageRequest& request,
                                    std::array<rma::Team, contexts>& teams, rma::Received& what) {
  constexpr int looks = 2000;
  std::vector<std::uint8_t> in(bytes_max);
  for (int i = 0; i < looks; ++i) {
    if (const rma::status st = request.try_test(what); st != rma::status::not_yet) return st;
    for (rma::Team& team : teams) {
      rma::Received other;
      if (team.try_iprobe(rma::any_source, rma::any_tag, other) == rma::status::done)
        (void)team.recv_nothrow(std::span(in), rma::any_source, rma::any_tag, other);
    }
    rt.compute(std::chrono::microseconds(1));
  }
  for (rma::Team& team : teams) (void)team.try_revoke();
  return request.wait_nothrow(what);
}

/// True if the round has come to its end; false if somebody has died.
inline bool run_round(const plan& p, rma::Runtime& rt, std::array<rma::Team, contexts>& teams, std::size_t round,
                      bool deaths) {
  rng d(p.seed + round * 977 + static_cast<std::uint64_t>(rt.rank()) * 13);
  round_state s, sending;
  const bool early = d.one_in(2);
  const bool blocks = !early && p.may_block && d.one_in(2);
  std::array<std::vector<taken>, contexts> got;
  bool failed = false;
  const auto note = [&](std::size_t i, const rma::Received& what) {
    if (i >= s.asked.size()) return;
    got[s.context[i]].push_back({s.asked[i], check_message(s.in[i], what, rt.rank(), s.context[i]), what.tag});
    got[s.context[i]].back().asked.source = s.asked[i].source;
  };
  try {
    if (early) post_receives(p, teams, rt.rank(), round, s);
    if (early) {
      start_sends(p, rt, teams, round, d, s);
    } else {
      start_sends(p, rt, teams, round, d, sending);
      rt.compute(std::chrono::nanoseconds(d.below(100000)));
      if (blocks) receive_in_turn(p, teams, rt.rank(), round, got);
      if (!blocks) post_receives(p, teams, rt.rank(), round, s);
    }
  } catch (const rma::Error& e) {
    if (!deaths || !is_of_a_death(e.code())) throw;
    failed = true;
  }
  for (auto& r : sending.requests) s.requests.push_back(std::move(r));
  std::vector<std::pair<std::size_t, std::vector<std::uint8_t>>> ended_badly;
  for (std::size_t i = 0; i < s.requests.size(); ++i) {  // in the order of posting, which check_order wants
    if (failed && s.requests[i].cancel()) continue;
    rma::Received what;
    const rma::status st = failed ? wait_after_death(rt, s.requests[i], teams, what) : s.requests[i].wait_nothrow(what);
    if (st == rma::status::done) {
      if (what.source != rma::no_rank) note(i, what);
      continue;
    }
    if (!deaths || !is_of_a_death(st)) fail(fmt::format("request {} of {}: {}", i, s.requests.size(), name_of(st)));
    failed = true;
    if (i < s.in.size()) ended_badly.emplace_back(i, s.in[i]);
  }
  for (const auto& each : got) check_order(each);
  if (!failed) return true;
  rt.compute(std::chrono::milliseconds(5));
  rt.progress();
  for (const auto& [i, before] : ended_badly) {
    if (s.in[i] != before) fail("a receive that has failed was written to");
  }
  return false;
}

inline int program(const plan& p, rma::Runtime& rt, bool deaths) {
  std::array<rma::Team, contexts> teams{rt.world(), rt.world()};
  try {
    teams[1] = rt.world().split(0, rt.rank());
    for (std::size_t round = 0; round < p.rounds; ++round) {
      if (!run_round(p, rt, teams, round, deaths)) return 0;
      teams[0].barrier();
    }
  } catch (const rma::Error& e) {
    if (!deaths || !is_of_a_death(e.code())) throw;
    return 0;
  }
  if (rt.world().iprobe(rma::any_source, rma::any_tag)) fail("a message is left");
  return 0;
}

}  // namespace p2p_oracle
