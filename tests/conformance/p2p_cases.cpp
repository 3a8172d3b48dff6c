// SPDX-License-Identifier: Apache-2.0
// Messages with tags between members of a team.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "cases.hpp"
#include "p2p_data.hpp"

namespace conformance {
namespace {

/// Around the limits of messages, of what goes eagerly, and of pages.
constexpr std::size_t message_sizes[] = {0, 1, 8, 40, 41, 239, 255, 2048, 4047, 4080, 4081, 4096, 5000, 65536, 300001};

// Goal: a message of any size arrives whole, and says whose it is and how long; a receive may be longer.
// Method: a ring of ranks, the even ones send first; one rank sends to itself.
void sizes_in_a_ring(context& ctx) {
  rma::Team& world = ctx.world();
  for (const std::size_t bytes : message_sizes) {
    const auto out = numbered(bytes, static_cast<std::uint64_t>(ctx.rank()));
    std::vector<std::uint8_t> in(bytes + 3, 0xEE);
    auto sent = world.isend(std::span(out), ctx.right(), 3);
    const rma::Received what = world.recv(std::span(in), ctx.left(), 3);
    sent.wait();
    ctx.equal(what.source, ctx.left(), "source");
    ctx.equal(what.tag, 3, "tag");
    ctx.equal(what.count<std::uint8_t>(), bytes, "elements");
    const auto wanted = numbered(bytes, static_cast<std::uint64_t>(ctx.left()));
    ctx.check(std::equal(wanted.begin(), wanted.end(), in.begin()), "contents of " + std::to_string(bytes) + " bytes");
    ctx.check(in[bytes] == 0xEE && in[bytes + 2] == 0xEE, "what lies behind the message stays");
  }
}

// Goal: blocking calls of pairs, in every mode.
// Method: rank 0 and rank 1 in turn; ssend returns only when the receive is there.
void modes(context& ctx) {
  if (ctx.rank() > 1) return;
  rma::Team& world = ctx.world();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{20000}}) {
    const auto data = numbered(bytes, 5);
    std::vector<std::uint8_t> in(bytes);
    for (int turn = 0; turn < 4; ++turn) {
      if (ctx.rank() == 0) {
        if (turn == 0) world.send(std::span(data), 1, turn);
        if (turn == 1) world.ssend(std::span(data), 1, turn);
        if (turn == 2) world.bsend(std::span(data), 1, turn);
        if (turn == 3) {
          world.recv(std::span(in), 1, 9);  // the receive is there
          world.rsend(std::span(data), 1, turn);
        }
      } else {
        auto posted = world.irecv(std::span(in), 0, turn);
        if (turn == 3) world.send(std::span(data), 0, 9);
        ctx.equal(posted.wait().bytes, bytes, "bytes");
        ctx.check(in == data, "contents, mode " + std::to_string(turn));
      }
    }
  }
}

// Goal: bsend returns without a receive, whatever its size, and the buffer may be used again at once.
void buffered_returns(context& ctx) {
  rma::Team& world = ctx.world();
  for (const std::size_t bytes : {std::size_t{8}, std::size_t{100000}}) {
    for (unsigned i = 0; i < 20; ++i) {
      auto data = numbered(bytes, i);
      world.bsend(std::span(data), ctx.right(), 1);
      std::ranges::fill(data, std::uint8_t{0});
    }
    for (unsigned i = 0; i < 20; ++i) {
      std::vector<std::uint8_t> in(bytes);
      world.recv(std::span(in), ctx.left(), 1);
      ctx.check(in == numbered(bytes, i), "contents");
    }
  }
}

// Goal: messages of a pair are received in the order of their sends, whatever their sizes; tags choose among them.
// Method: every rank sends to every rank; the receiver takes even tags first.
void order(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t each = ctx.rounds(60);
  std::mt19937_64& random = ctx.common_random();
  std::vector<std::size_t> lengths(each);
  for (auto& l : lengths) l = random() % 3 == 0 ? random() % 20000 : random() % 100;
  std::vector<std::vector<std::uint8_t>> data;
  std::vector<rma::MessageRequest> sends;
  for (std::size_t i = 0; i < each; ++i) {
    data.push_back(numbered(lengths[i], i + static_cast<std::size_t>(ctx.rank())));
    for (int r = 0; r < ctx.size(); ++r)
      sends.push_back(world.isend(std::span(data.back()), r, static_cast<int>(i % 2)));
  }
  for (const std::size_t parity : {std::size_t{0}, std::size_t{1}}) {
    for (std::size_t i = parity; i < each; i += 2) {
      for (int r = 0; r < ctx.size(); ++r) {
        std::vector<std::uint8_t> in(20000);
        const rma::Received what = world.recv(std::span(in), r, static_cast<int>(parity));
        in.resize(what.bytes);
        ctx.check(in == numbered(lengths[i], i + static_cast<std::size_t>(r)), "message " + std::to_string(i));
      }
    }
  }
  wait_all(sends);
}

// Goal: wildcards take the first message that came, and an earlier receive goes first.
void wildcards(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t rounds = ctx.rounds(50);
  std::vector<std::size_t> next(static_cast<std::size_t>(ctx.size()));
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::array<std::uint64_t, 2> mine{i, static_cast<std::uint64_t>(ctx.rank())};
    std::vector<rma::MessageRequest> sends;
    for (int r = 0; r < ctx.size(); ++r) {
      for (const int tag : {1, 2}) sends.push_back(world.isend(std::span(mine), r, tag));
    }
    for (int k = 0; k < 2 * ctx.size(); ++k) {
      std::array<std::uint64_t, 2> in{};
      const bool by_tag = i % 2 == 0;
      const rma::Received what = world.recv(std::span(in), rma::any_source, by_tag ? k % 2 + 1 : rma::any_tag);
      ctx.equal(static_cast<std::uint64_t>(what.source), in[1], "source");
      auto& n = next[static_cast<std::size_t>(what.source)];
      ctx.equal(in[0], n / 2, "round of the message");
      ++n;
    }
    wait_all(sends);
    world.barrier();  // else a receive by tag may take the next round's message of a fast rank
  }
  // Posted first, whatever it looks for.
  std::array<std::uint8_t, 8> a{}, b{}, c{};
  auto any = world.irecv(std::span(a), rma::any_source, rma::any_tag);
  auto exact = world.irecv(std::span(b), ctx.rank(), 5);
  auto tagged = world.irecv(std::span(c), rma::any_source, 5);
  world.barrier();
  for (std::uint8_t i = 0; i < 3; ++i) {
    const std::array<std::uint8_t, 8> data{static_cast<std::uint8_t>(i + 1)};
    world.send(std::span(data), ctx.rank(), 5);
  }
  any.wait(), exact.wait(), tagged.wait();
  ctx.equal(int{a[0]} * 100 + int{b[0]} * 10 + int{c[0]}, 123, "which receive took which message");
}

// Goal: a message longer than its receive is an error of the receiver, which names both sizes; the sender is unharmed,
// and nothing is written.
void too_long(context& ctx) {
  rma::Team& world = ctx.world();
  for (const std::size_t bytes : {std::size_t{100}, std::size_t{30000}}) {
    for (const bool early : {false, true}) {
      const auto out = numbered(bytes, 1);
      std::vector<std::uint8_t> in(50, 7), rest(bytes);
      rma::MessageRequest posted;
      if (early) posted = world.irecv(std::span(in), ctx.left(), 2);
      world.barrier();
      auto sent = world.isend(std::span(out), ctx.right(), 2);
      auto second = world.isend(std::span(out), ctx.right(), 2);
      const auto receive = [&] {
        if (early) {
          posted.wait();
        } else {
          world.recv(std::span(in), ctx.left(), 2);
        }
      };
      ctx.throws(rma::status::message_too_long, {std::to_string(bytes), "50"}, receive);
      ctx.check(std::ranges::all_of(in, [](std::uint8_t x) { return x == 7; }), "the buffer is as it was");
      world.recv(std::span(rest), ctx.left(), 2);
      ctx.check(rest == out, "the next message");
      sent.wait(), second.wait();
    }
  }
}

// Goal: probe says what recv gets, mprobe takes it out, and one that is dropped is lost without harm.
void probes(context& ctx) {
  rma::Team& world = ctx.world();
  for (const std::size_t bytes : {std::size_t{40}, std::size_t{30000}}) {
    const auto out = numbered(bytes, 4);
    std::vector<rma::MessageRequest> sends;
    for (int i = 0; i < 3; ++i) sends.push_back(world.isend(std::span(out), ctx.right(), 6 + i));
    const rma::Received seen = world.probe(ctx.left(), 6);
    ctx.equal(seen.bytes, bytes, "bytes that probe says");
    ctx.equal(seen.source, ctx.left(), "source that probe says");
    std::vector<std::uint8_t> in(bytes);
    rma::Message taken = world.mprobe(rma::any_source, 7);
    ctx.check(static_cast<bool>(taken), "mprobe finds it");
    ctx.equal(taken.info().tag, 7, "its tag");
    if (ctx.size() == 1 || ctx.left() != ctx.rank()) {
      ctx.check(!world.iprobe(ctx.left(), 7).has_value(), "nobody else gets it");
    }
    taken.recv(std::span(in));
    ctx.check(in == out, "contents by mprobe");
    world.recv(std::span(in), ctx.left(), 6);
    { const rma::Message dropped = world.mprobe(ctx.left(), 8); }
    wait_all(sends);
    ctx.check(!world.iprobe(rma::any_source, rma::any_tag).has_value(), "nothing is left");
    ctx.check(!static_cast<bool>(world.improbe(ctx.left(), 8)), "nothing to take is left");
    world.barrier();
  }
}

// Goal: a receive that nothing has matched can be taken back, and then gets nothing.
void cancelled(context& ctx) {
  rma::Team& world = ctx.world();
  std::array<int, 1> first{}, second{};
  auto posted = world.irecv(std::span(first), ctx.left(), 4);
  ctx.check(posted.cancel(), "cancel says that it did");
  ctx.check(!posted.pending(), "the request is empty");
  world.barrier();
  const std::array<int, 1> out{ctx.rank()};
  auto sent = world.isend(std::span(out), ctx.right(), 4);
  world.recv(std::span(second), ctx.left(), 4);
  sent.wait();
  ctx.equal(first[0], 0, "the cancelled receive's buffer");
  ctx.equal(second[0], ctx.left(), "the message");
}

// Goal: the same of a receive whose source has been told of its buffer, where the protocol does so; also of a
// persistent one that is ended. Break: let messenger::cancel refuse receives that have an identifier.
void cancelled_long(context& ctx) {
  rma::Team& world = ctx.world();
  constexpr std::size_t bytes = 8192;
  const auto out = numbered(bytes, static_cast<std::uint64_t>(ctx.rank()));
  std::vector<std::uint8_t> first(bytes, 0xEE), kept(bytes, 0xEE), second(bytes);
  auto posted = world.irecv(std::span(first), ctx.left(), 4);
  auto behind = world.irecv(std::span(second), ctx.left(), 4);
  {
    rma::PersistentMessage ended = world.recv_init(std::span(kept), ctx.left(), 5);
    ended.start();
    world.barrier();
  }
  ctx.check(posted.cancel(), "cancel says that it did");
  ctx.check(!posted.pending(), "the request is empty");
  world.barrier();
  auto sent = world.isend(std::span(out), ctx.right(), 4);
  auto other = world.isend(std::span(out), ctx.right(), 5);
  behind.wait();
  ctx.check(second == numbered(bytes, static_cast<std::uint64_t>(ctx.left())), "the message");
  second.assign(bytes, 0);
  world.recv(std::span(second), ctx.left(), 5);
  ctx.check(second == numbered(bytes, static_cast<std::uint64_t>(ctx.left())), "the message of the other tag");
  sent.wait(), other.wait();
  const auto untouched = [](std::uint8_t x) { return x == 0xEE; };
  ctx.check(std::ranges::all_of(first, untouched), "the cancelled receive's buffer");
  ctx.check(std::ranges::all_of(kept, untouched), "the ended receive's buffer");
}

// Goal: a cancel that meets the message either takes the receive back, and the next one gets the message, or comes too
// late, and the receive has it.
void cancel_or_message(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t rounds = ctx.rounds(100);
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::size_t bytes = ctx.common_random()() % 4 == 0 ? 8 : 8192;
    const auto out = numbered(bytes, i + static_cast<std::uint64_t>(ctx.rank()));
    const auto wanted = numbered(bytes, i + static_cast<std::uint64_t>(ctx.left()));
    std::vector<std::uint8_t> first(8192, 0xEE), second(8192, 0xEE);
    auto posted = world.irecv(std::span(first), ctx.left(), 4);
    ctx.runtime().compute(std::chrono::nanoseconds(ctx.random()() % 8000));
    auto sent = world.isend(std::span(out), ctx.right(), 4);
    for (auto looks = ctx.random()() % 8; looks > 0; --looks) {
      ctx.runtime().compute(std::chrono::nanoseconds(ctx.random()() % 4000));
      ctx.runtime().progress();
    }
    const bool cancelled = posted.cancel();
    if (cancelled) {
      ctx.check(std::ranges::all_of(first, [](std::uint8_t x) { return x == 0xEE; }), "the cancelled buffer");
      ctx.equal(world.recv(std::span(second), ctx.left(), 4).bytes, bytes, "bytes of the next receive");
    } else {
      ctx.equal(posted.wait().bytes, bytes, "bytes of the receive");
    }
    const auto& in = cancelled ? second : first;
    ctx.check(std::equal(wanted.begin(), wanted.end(), in.begin()), "contents");
    sent.wait();
  }
}

// Goal: sendrecv among neighbors; no_rank at the ends.
void exchanges(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t n = 5000;
  std::vector<int> out(n, ctx.rank()), in(n, -1);
  const rma::Received what = world.sendrecv(std::span(out), ctx.right(), 1, std::span(in), ctx.left(), 1);
  ctx.equal(what.count<int>(), n, "elements");
  ctx.check(std::ranges::all_of(in, [&](int x) { return x == ctx.left(); }), "contents");
  const int up = ctx.rank() + 1 < ctx.size() ? ctx.rank() + 1 : rma::no_rank;
  const int down = ctx.rank() > 0 ? ctx.rank() - 1 : rma::no_rank;
  std::ranges::fill(in, -1);
  const rma::Received edge = world.sendrecv(std::span(out), up, 2, std::span(in), down, 2);
  ctx.equal(edge.source, down, "source at the end of the line");
  ctx.equal(in.front(), down == rma::no_rank ? -1 : down, "contents at the end of the line");
}

// Goal: persistent operations go again and again.
void persistent(context& ctx) {
  rma::Team& world = ctx.world();
  std::vector<int> out(3000), in(3000);
  rma::PersistentMessage to = world.send_init(std::span(out), ctx.right(), 1);
  rma::PersistentMessage from = world.recv_init(std::span(in), ctx.left(), 1);
  for (int turn = 0; turn < 10; ++turn) {
    std::ranges::fill(out, turn * 100 + ctx.rank());
    from.start();
    to.start();
    ctx.expect(to.try_start(), rma::status::bad_argument, "a start while it is under way");
    ctx.equal(from.wait().count<int>(), in.size(), "elements");
    to.wait();
    ctx.equal(in.back(), turn * 100 + ctx.left(), "contents");
  }
}

// Goal: teams do not get each other's messages, also if one of them is younger than the message.
void teams_apart(context& ctx) {
  rma::Team& world = ctx.world();
  rma::Team other = world.split(0, -ctx.rank());
  const std::array<int, 1> one{1}, two{2};
  std::array<int, 1> in{};
  auto a = world.isend(std::span(one), ctx.right(), 1);
  auto b = other.isend(std::span(two), other.rank_of(ctx.right()), 1);
  const rma::Received what = other.recv(std::span(in), rma::any_source, rma::any_tag);
  ctx.equal(in[0], 2, "message of the other team");
  ctx.equal(other.world_rank(what.source), ctx.left(), "its source");
  world.recv(std::span(in), rma::any_source, rma::any_tag);
  ctx.equal(in[0], 1, "message of the world");
  a.wait(), b.wait();
}

// Goal: requests in any order: wait_any, test, drop.
void requests(context& ctx) {
  rma::Team& world = ctx.world();
  std::vector<std::array<int, 1>> in(8), out(8);
  std::vector<rma::MessageRequest> receives;
  for (int i = 0; i < 8; ++i)
    receives.push_back(world.irecv(std::span(in[static_cast<std::size_t>(i)]), ctx.left(), i));
  world.barrier();
  for (int i = 7; i >= 0; --i) {
    out[static_cast<std::size_t>(i)] = {i};
    world.send(std::span(out[static_cast<std::size_t>(i)]), ctx.right(), i);
  }
  unsigned seen = 0;
  for (int i = 0; i < 8; ++i) {
    rma::Received what;
    const std::size_t which = wait_any(receives, what);
    ctx.equal(static_cast<std::size_t>(what.tag), which, "tag of the one that is over");
    seen |= 1U << which;
  }
  ctx.equal(seen, 255U, "each once");
  rma::Received none;
  ctx.equal(wait_any(receives, none), receives.size(), "none is pending");
  ctx.check(test_all(receives), "all are over");
  std::array<int, 1> late{};
  auto request = world.irecv(std::span(late), ctx.left(), 1);
  ctx.check(!request.test().has_value(), "nothing has come");
  world.barrier();
  world.send(std::span(out[3]), ctx.right(), 1);
  ctx.wait_until([&] { return !request.pending() || request.test().has_value(); });
  ctx.equal(late[0], 3, "contents");
}

// Goal: what is not expected is bounded, and all of it arrives in order.
void flood(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t each = ctx.rounds(2000);
  std::vector<std::array<std::uint64_t, 128>> data(each);
  std::vector<rma::MessageRequest> sends;
  for (std::size_t i = 0; i < each; ++i) {
    data[i].fill(i);
    sends.push_back(world.isend(std::span(data[i]), 0, 1));
  }
  if (ctx.rank() == 0) {
    for (int r = ctx.size(); r-- > 0;) {
      for (std::size_t i = 0; i < each; ++i) {
        std::array<std::uint64_t, 128> in{};
        world.recv(std::span(in), r, 1);
        ctx.check(in.front() == i && in.back() == i, "message in its turn");
      }
    }
  }
  wait_all(sends);
}

/// One message of any source by one of the ways to receive it.
rma::Received take_one(context& ctx, std::span<std::uint64_t> in) {
  rma::Team& world = ctx.world();
  const auto way = ctx.random()() % 5;
  const int tag = ctx.random()() % 2 == 0 ? 4 : rma::any_tag;
  if (way == 0) return world.recv(in, rma::any_source, tag);
  if (way == 1) return world.irecv(in, rma::any_source, tag).wait();
  if (way == 2) return world.mprobe(rma::any_source, tag).recv(in);
  const rma::Received next = world.probe(rma::any_source, tag);
  if (way == 3) return world.recv(in, next.source, tag);
  return world.irecv(in, next.source, 4).wait();
}

// Goal: short messages, which need no operation, keep their order among themselves and with all others.
// Method: every rank sends to every rank, most of them a number, some as long as a line, some longer than what goes
// eagerly; the receiver takes them by all ways.
void short_and_long(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t each = ctx.rounds(200);
  constexpr std::size_t word_counts[] = {1, 1, 1, 1, 5, 6, 100, 1000};
  std::vector<std::vector<std::uint64_t>> data;
  std::vector<rma::MessageRequest> sends;
  std::vector<std::uint64_t> next(static_cast<std::size_t>(ctx.size()));
  std::size_t got = 0;
  const auto take = [&] {
    std::array<std::uint64_t, 1000> in{};
    const rma::Received what = take_one(ctx, in);
    std::uint64_t& wanted = next[static_cast<std::size_t>(what.source)];
    ctx.equal(in[0], wanted, "number of the message");
    const std::size_t count = what.count<std::uint64_t>();
    ctx.check(count > 0 && in[count - 1] == wanted, "all of it");
    ++wanted, ++got;
  };
  for (std::size_t i = 0; i < each; ++i) {
    data.emplace_back(word_counts[ctx.random()() % std::size(word_counts)], i);
    for (int r = 0; r < ctx.size(); ++r) {
      if (data.back().size() < 100 && ctx.random()() % 4 != 0) {
        world.send(std::span(data.back()), r, 4);
      } else {
        sends.push_back(world.isend(std::span(data.back()), r, 4));
      }
    }
    for (int r = 0; r < ctx.size() && got < each * static_cast<std::size_t>(ctx.size()); ++r) {
      if (world.iprobe(rma::any_source, 4)) take();
    }
  }
  while (got < each * static_cast<std::size_t>(ctx.size())) take();
  wait_all(sends);
}

// Goal: mistakes are told by name and with what was given.
void misuse(context& ctx) {
  rma::Team& world = ctx.world();
  const std::array<int, 1> out{};
  std::array<int, 1> in{};
  ctx.throws(rma::status::bad_rank, {"send", std::to_string(ctx.size())},
             [&] { world.send(std::span(out), ctx.size(), 1); });
  ctx.throws(rma::status::bad_argument, {"send", "tag -1"}, [&] { world.send(std::span(out), 0, -1); });
  ctx.throws(rma::status::bad_argument, {"recv", "tag -5"}, [&] { world.recv(std::span(in), 0, -5); });
  ctx.expect(world.try_send(std::span(out), rma::any_source, 1), rma::status::bad_rank, "a send to any rank");
  rma::PersistentMessage none;
  ctx.expect(none.try_start(), rma::status::bad_argument, "a start of none");
  world.send(std::span(out), rma::no_rank, 1);
  ctx.equal(world.recv(std::span(in), rma::no_rank, 1).source, rma::no_rank, "a receive from nobody");
}

// Goal: revoke ends receives and sends that wait for living members.
void revoked(context& ctx) {
  if (ctx.size() == 1) context::skip("needs another rank");
  rma::Team team = ctx.world().split(0, 0);
  std::array<int, 1> in{};
  const std::vector<int> out(100000);
  if (ctx.rank() == 0) {
    team.barrier();
    team.revoke();
  } else {
    auto pending = team.irecv(std::span(in), rma::any_source, 1);
    auto announced = team.isend(std::span(out), 0, 1);
    const rma::status met = team.try_barrier();  // which may hear of the revocation as well
    ctx.check(met == rma::status::done || met == rma::status::revoked, "the barrier");
    ctx.throws(rma::status::revoked, {"recv"}, [&] { team.recv(std::span(in), 0, 2); });
    ctx.expect(pending.wait_nothrow(), rma::status::revoked, "a pending receive");
    ctx.expect(announced.wait_nothrow(), rma::status::revoked, "a pending send");
  }
  ctx.world().barrier();
}

// Goal: threads of one rank share a team: each message is received once, those of a tag in order.
void threads_share_a_team(context& ctx) {
  for (const rma::Setting& each : ctx.runtime().settings()) {
    if (each.name == "RMA_BOOT" && each.value.starts_with("sim:")) context::skip("a simulated rank has one thread");
  }
  if (ctx.runtime().threads() != rma::thread_level::multiple) context::skip("needs RMA_THREADS=multiple");
  rma::Team& world = ctx.world();
  constexpr std::size_t count = 4;
  const std::size_t each = ctx.rounds(200);
  std::vector<std::string> wrong(count);
  std::vector<std::thread> all;
  std::vector<std::vector<std::uint8_t>> seen(count, std::vector<std::uint8_t>(count * each));
  for (std::size_t t = 0; t < count; ++t) {
    all.emplace_back([&, t] {
      try {
        std::vector<rma::MessageRequest> sends;
        std::vector<std::array<std::uint64_t, 2>> out(each);
        for (std::size_t i = 0; i < each; ++i) {
          out[i] = {t, i};
          sends.push_back(world.isend(std::span(out[i]), ctx.right(), 1));
        }
        for (std::size_t i = 0; i < each; ++i) {
          std::array<std::uint64_t, 2> in{};
          rma::Message m = world.mprobe(ctx.left(), rma::any_tag);
          m.recv(std::span(in));
          seen[t][in[0] * each + in[1]] = 1;
        }
        wait_all(sends);
      } catch (const std::exception& e) {
        wrong[t] = e.what();
      }
    });
  }
  for (std::thread& t : all) t.join();
  for (const std::string& w : wrong) ctx.equal(w, std::string(), "error of a thread");
  for (std::size_t i = 0; i < count * each; ++i) {
    int times = 0;
    for (const auto& s : seen) times += s[i];
    ctx.equal(times, 1, "how often a message was received");
  }
}

constexpr test_case cases[] = {
    {"p2p.sizes", sizes_in_a_ring},
    {"p2p.modes", modes, no_kind, 2},
    {"p2p.buffered", buffered_returns},
    {"p2p.order", order},
    {"p2p.wildcards", wildcards},
    {"p2p.too_long", too_long},
    {"p2p.probes", probes},
    {"p2p.cancel", cancelled},
    {"p2p.cancel_long", cancelled_long},
    {"p2p.cancel_or_message", cancel_or_message},
    {"p2p.sendrecv", exchanges},
    {"p2p.persistent", persistent},
    {"p2p.teams", teams_apart},
    {"p2p.requests", requests},
    {"p2p.flood", flood},
    {"p2p.short_and_long", short_and_long},
    {"p2p.misuse", misuse},
    {"p2p.revoked", revoked},
    {"thread.messages", threads_share_a_team},
};

}  // namespace

std::span<const test_case> p2p_cases() noexcept { return cases; }

}  // namespace conformance
