// SPDX-License-Identifier: Apache-2.0
// Collectives by schedules: many under way, requests that are dropped, members that differ, schedules of one's own,
// containers.
#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "cases.hpp"

namespace conformance {
namespace {

using std::span;

// Goal: many under way at once on one team, ended in another order than started; barriers among them.
void many_under_way(context& ctx) {
  rma::Team& team = ctx.world();
  const auto n = static_cast<std::size_t>(ctx.size());
  const std::size_t many = ctx.rounds(1000, 1000);
  std::vector<std::vector<int>> out(many), in(many);
  std::vector<rma::Request> requests;
  for (std::size_t i = 0; i < many; ++i) {
    for (std::size_t r = 0; r < n; ++r) out[i].push_back(static_cast<int>(i * 1000 + r * 10) + ctx.rank());
    in[i].resize(n);
    requests.push_back(team.ialltoall(span(out[i]), span(in[i])));
    if (i % 16 == 0) requests.push_back(team.ibarrier());
  }
  std::shuffle(requests.begin(), requests.end(), ctx.random());
  for (rma::Request& r : requests) r.wait();
  bool right = true;
  for (std::size_t i = 0; i < many; ++i) {
    for (std::size_t r = 0; r < n; ++r)
      right = right && in[i][r] == static_cast<int>(i * 1000) + ctx.rank() * 10 + static_cast<int>(r);
  }
  ctx.check(right, "alltoalls that were under way at once");
}

bool is_simulated(context& ctx) {
  for (const rma::Setting& s : ctx.runtime().settings()) {
    if (s.name == "RMA_BOOT" && s.value.starts_with("sim:")) return true;
  }
  return false;
}

// Goal: two threads run collectives at once, each on a team of its own, blocking and not.
void teams_in_threads(context& ctx) {
  if (is_simulated(ctx)) context::skip("a simulated rank has one thread");
  if (ctx.runtime().threads() != rma::thread_level::multiple) context::skip("needs RMA_THREADS=multiple");
  std::array<rma::Team, 2> teams{ctx.world().split(0, ctx.rank()), ctx.world().split(0, -ctx.rank())};
  const std::size_t turns = ctx.rounds(300, 30);
  std::array<bool, 2> right{};
  const auto work = [&](std::size_t which) {
    rma::Team& team = teams[which];
    const auto n = static_cast<std::size_t>(team.size());
    std::vector<int> out(n), in(n), many(5000);
    bool all = true;
    for (std::size_t i = 0; i < turns; ++i) {
      const int mark = static_cast<int>(i * 2 + which);
      std::fill(many.begin(), many.end(), mark);
      rma::Request large = team.iallreduce(span(many), rma::sum);
      for (std::size_t r = 0; r < n; ++r) out[r] = mark * 100 + team.rank();
      rma::Request exchange = team.ialltoall(span(out), span(in));
      all = all && team.allreduce(mark, rma::max) == mark;
      exchange.wait();
      large.wait();
      all = all && many.back() == mark * team.size();
      for (std::size_t r = 0; r < n; ++r) all = all && in[r] == mark * 100 + static_cast<int>(r);
    }
    right[which] = all;
  };
  std::thread other([&] { work(1); });
  work(0);
  other.join();
  ctx.check(right[0] && right[1], "collectives of two teams in two threads");
}

/// How many elements of a vector are not `wanted(i)`.
template <class T, class Wanted>
std::size_t wrong_ones(span<const T> seen, Wanted&& wanted) {
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) wrong += seen[i] == wanted(i) ? 0U : 1U;
  return wrong;
}

// Goal: large vectors in windows, in place or not, and some members' elsewhere; each is written right behind the call.
// Break: leave the call before all have read.
void operands_in_windows(context& ctx) {
  rma::Team& team = ctx.world();
  constexpr std::size_t count = 9001;
  auto win = rma::Window<std::int64_t>::allocate(team, 2 * count);
  const span<std::int64_t> first = win.local().first(count);
  const span<std::int64_t> second = win.local().subspan(count);
  std::vector<std::int64_t> elsewhere(count);
  const std::size_t turns = ctx.rounds(60, 6);
  for (std::size_t turn = 0; turn < turns; ++turn) {
    const auto value = [&](int r, std::size_t i) { return static_cast<std::int64_t>(turn * 7 + i) * (r + 1); };
    const auto sum = [&](std::size_t i) { return value(ctx.size() * (ctx.size() + 1) / 2 - 1, i); };
    const auto fill = [&] {
      for (std::size_t i = 0; i < count; ++i) first[i] = value(ctx.rank(), i);
    };
    const bool apart = turn % 3 == 2 && ctx.rank() == ctx.size() - 1;
    const span<std::int64_t> result = turn % 3 == 1 ? first : apart ? span(elsewhere) : second;
    fill();
    team.allreduce(first, result, rma::sum);
    ctx.equal(wrong_ones<std::int64_t>(result, sum), std::size_t{0}, "wrong sums of vectors in windows");
    std::fill(result.begin(), result.end(), -1);

    const int root = static_cast<int>(turn) % ctx.size();
    fill();
    team.reduce(first, result, rma::sum, root);
    if (ctx.rank() == root) ctx.equal(wrong_ones<std::int64_t>(result, sum), std::size_t{0}, "wrong sums at the root");
    std::fill(first.begin(), first.end(), -1);
    std::fill(result.begin(), result.end(), -1);

    if (ctx.rank() == root) fill();
    const span<std::int64_t> given = apart ? span(elsewhere) : first;
    if (apart && ctx.rank() == root) std::copy(first.begin(), first.end(), elsewhere.begin());
    team.broadcast(given, root);
    const auto of_root = [&](std::size_t i) { return value(root, i); };
    ctx.equal(wrong_ones<std::int64_t>(given, of_root), std::size_t{0}, "a broadcast of a vector in a window");
    std::fill(given.begin(), given.end(), -1);
  }
  win.free();
}

// Goal: of members that all give large vectors, one has a layout: the others cannot know. Break: let only those without
// layouts tell where their operands are.
void one_member_has_a_layout(context& ctx) {
  rma::Team& team = ctx.world();
  constexpr std::size_t count = 9000;
  auto win = rma::Window<int>::allocate(team, 2 * count);
  const auto pairs = rma::Layout::vector<int>(count, 1, 2);
  const bool odd = ctx.rank() == ctx.size() - 1;
  const std::size_t step = odd ? 2 : 1;
  for (int turn = 0; turn < 3; ++turn) {
    const span<int> data = win.local();
    for (std::size_t i = 0; i < count; ++i) data[i * step] = static_cast<int>(i) + turn;
    if (odd) {
      team.allreduce(data.data(), pairs, rma::element::i32, rma::sum);
    } else {
      team.allreduce(data.first(count), rma::sum);
    }
    bool right = true;
    for (std::size_t i = 0; i < count; ++i)
      right = right && data[i * step] == ctx.size() * (static_cast<int>(i) + turn);
    ctx.check(right, "sums where one member has a layout");
    if (odd) {
      team.broadcast(data.data(), pairs, 0);
    } else {
      team.broadcast(data.first(count), 0);
    }
    for (std::size_t i = 0; i < count; ++i)
      right = right && data[i * step] == ctx.size() * (static_cast<int>(i) + turn);
    ctx.check(right, "a broadcast where one member has a layout");
  }
  win.free();
}

// Goal: a request that is dropped lets its collective go on: the others get its data.
void dropped_requests(context& ctx) {
  rma::Team& team = ctx.world();
  int mine = ctx.rank() + 1;
  int sum = 0;
  { const rma::Request dropped = team.iallreduce(span(&mine, 1), span(&sum, 1), rma::sum); }
  int again = ctx.rank();
  team.allreduce(span(&again, 1), rma::max);
  team.barrier();
  ctx.wait_until([&] {
    ctx.runtime().progress();
    return sum == ctx.size() * (ctx.size() + 1) / 2;
  });
}

/// The last member calls `one` on a team, the others `rest`: all that see it get `wanted`, and a text that names both.
template <class One, class Rest>
void odd_one_out(context& ctx, const char* what, rma::status wanted, One&& one, Rest&& rest) {
  rma::Team team = ctx.world().split(0, ctx.rank());
  rma::status s = rma::status::done;
  std::string text;
  try {
    if (ctx.rank() == ctx.size() - 1) {
      one(team);
    } else {
      rest(team);
    }
  } catch (const rma::Error& e) {
    s = e.code();
    text = e.what();
  }
  const rma::status worst = static_cast<rma::status>(ctx.world().allreduce(static_cast<int>(s), rma::min));
  ctx.expect(worst, wanted, what);
  const auto times = [&](std::string_view word) {
    std::size_t count = 0;
    for (std::size_t at = text.find(word); at != text.npos; at = text.find(word, at + 1)) ++count;
    return count;
  };
  const bool both =
      times("called ") >= 2 && times("collective_request_cases.cpp:") == 3;  // the place of this member's call as well
  const bool refused = times(", with arguments that were refused") == 1 && times("collective_request_cases.cpp:") == 2;
  ctx.check(s == rma::status::done || both || refused, std::string(what) + " does not name both calls: " + text);
  for (int turn = 0; turn < 20; ++turn) {  // late messages of the failed call disturb none of these
    int count = 1;
    team.allreduce(span(&count, 1), rma::sum);
    ctx.check(count == ctx.size(), std::string("the sum after ") + what);
  }
}

// Goal: members that call different things, with different roots or sizes, are told what each of them has called, and
// where. Break: let the other one's answer be lost.
void mismatches(context& ctx) {
  if (ctx.size() < 2) context::skip("needs two ranks");
  std::vector<int> a(64), b(64 * static_cast<std::size_t>(ctx.size()));
  odd_one_out(
      ctx, "allreduce and allgather", rma::status::bad_argument, [&](rma::Team& t) { t.allgather(span(a), span(b)); },
      [&](rma::Team& t) { t.allreduce(span(a), rma::sum); });
  odd_one_out(
      ctx, "sum and max", rma::status::bad_argument, [&](rma::Team& t) { t.allreduce(span(a), rma::max); },
      [&](rma::Team& t) { t.allreduce(span(a), rma::sum); });
  odd_one_out(
      ctx, "sizes", rma::status::bad_size, [&](rma::Team& t) { t.allreduce(span(a).first(8), rma::sum); },
      [&](rma::Team& t) { t.allreduce(span(a), rma::sum); });
  // On several nodes each of the two lengths has an algorithm of its own.
  std::vector<int> longer(1024);
  odd_one_out(
      ctx, "256 bytes and 4 KiB", rma::status::bad_size, [&](rma::Team& t) { t.allreduce(span(a), rma::sum); },
      [&](rma::Team& t) { t.allreduce(span(longer), rma::sum); });
  if (ctx.size() > 2) {  // two roots only give: neither waits for the other
    odd_one_out(
        ctx, "roots", rma::status::bad_argument, [&](rma::Team& t) { t.broadcast(span(a), 1); },
        [&](rma::Team& t) { t.broadcast(span(a), 0); });
  }
  odd_one_out(
      ctx, "int and float", rma::status::bad_argument,
      [&](rma::Team& t) {
        std::vector<float> f(64);
        t.allreduce(span(f), rma::sum);
      },
      [&](rma::Team& t) { t.allreduce(span(a), rma::sum); });
  odd_one_out(
      ctx, "an operator that is refused", rma::status::bad_type,
      [&](rma::Team& t) {
        std::vector<double> d(64);
        t.allreduce(span(d), rma::bxor);
      },
      [&](rma::Team& t) { t.allreduce(span(a), rma::sum); });
}

// Goal: the same of members that give blocks of different sizes, of which small ones go by memory, and large ones by
// messages. Break: let running::meets_memory (src/coll/running.cpp) look at no signature.
void mismatched_blocks(context& ctx) {
  if (ctx.size() < 2) context::skip("needs two ranks");
  const auto alltoall = [&](std::size_t block) {
    return [&ctx, block](rma::Team& t) {
      std::vector<int> mine(block * static_cast<std::size_t>(ctx.size())), all(mine.size());
      t.alltoall(span(mine), span(all));
    };
  };
  odd_one_out(ctx, "8 and 16 bytes for each", rma::status::bad_size, alltoall(2), alltoall(4));
  odd_one_out(ctx, "8 bytes and 128 KiB for each", rma::status::bad_size, alltoall(2), alltoall(32768));
  odd_one_out(ctx, "128 KiB and 8 bytes for each", rma::status::bad_size, alltoall(32768), alltoall(2));
}

// Goal: a member that has been in another call, by messages, and has left it, is not taken for one that has given its
// block in memory, whether its next call goes by memory or by messages. Break: leave out the look at is_later in
// compare_calls (src/coll/memory.cpp), or the call of pass in team_state::start.
void left_before(context& ctx) {
  if (ctx.size() < 2) context::skip("needs two ranks");
  rma::Team team = ctx.world().split(0, ctx.rank());
  std::vector<int> mine(2), all(mine.size() * static_cast<std::size_t>(ctx.size()));
  rma::status s = rma::status::done;
  if (ctx.rank() == ctx.size() - 1) {
    (void)team.try_gatherv(span(mine), span(all), {}, {}, 0);
  } else {
    s = team.try_allgather(span(mine), span(all));
  }
  int count = 1;
  team.allreduce(span(&count, 1), rma::sum);
  ctx.check(count == ctx.size(), "the sum after two different calls");
  const rma::status worst = static_cast<rma::status>(ctx.world().allreduce(static_cast<int>(s), rma::min));
  ctx.expect(worst, rma::status::bad_argument, "gatherv and allgather");
}

// Goal: the start of a collective waits for no other member, not even the first one on a team. Method: the others start
// theirs when they have a message that rank 0 sends after its start. Break: wait for another member in start_call
// (src/api/collectives.cpp).
void starts_do_not_wait(context& ctx) {
  std::vector<long> mine(2000, ctx.rank()), sums(mine.size());
  const long total = ctx.size() * (ctx.size() - 1L) / 2;
  const auto start_apart = [&](auto&& start) {
    rma::Team team = ctx.world().split(0, ctx.rank());
    constexpr int tag = 77;
    int word = 0;
    if (ctx.rank() != 0) (void)ctx.world().recv(span(&word, 1), 0, tag);
    rma::Request pending = start(team);
    for (int r = 1; ctx.rank() == 0 && r < ctx.size(); ++r) ctx.world().send(span<const int>(&word, 1), r, tag);
    pending.wait();
  };
  start_apart([](rma::Team& t) { return t.ibarrier(); });
  start_apart([&](rma::Team& t) { return t.iallreduce(span(mine), span(sums), rma::sum); });
  ctx.check(sums == std::vector<long>(mine.size(), total), "iallreduce that one member starts before the others");
  const int last = ctx.size() - 1;
  start_apart([&](rma::Team& t) { return t.ireduce(span(mine), span(sums), rma::max, last); });
  ctx.check(ctx.rank() != last || sums.back() == last, "ireduce that one member starts before the others");
  start_apart([&](rma::Team& t) { return t.ibroadcast(span(mine), last); });
  ctx.check(mine == std::vector<long>(mine.size(), last), "ibroadcast that one member starts before the others");
}

// Goal: a member that comes to a collective when the others have been told that it has failed, and have gone on, gets
// the reason that they got. Method: it looks at memory alone until they are in the next one. Break: mark a failure that
// was told by another member as one of this member's own.
void late_for_a_refused_one(context& ctx) {
  rma::Team& team = ctx.world();
  if (ctx.size() < 3 || !team.one_node() || is_simulated(ctx)) context::skip("needs three ranks that share memory");
  auto win = rma::Window<std::uint64_t>::allocate(team, 1);
  const auto sum_that_fails = [&] {
    double mine = 1;
    if (ctx.rank() == ctx.size() - 1) {
      team.allreduce(span(&mine, 1), rma::bxor);
    } else {
      team.allreduce(span(&mine, 1), rma::sum);
    }
  };
  for (std::size_t turn = 1; turn <= ctx.rounds(20, 3); ++turn) {
    if (ctx.rank() == 0) {
      const std::uint64_t others = turn * static_cast<std::uint64_t>(ctx.size() - 1);
      while (std::atomic_ref(win.local()[0]).load() != others) std::this_thread::yield();
      for (int i = 0; i < 100; ++i) std::this_thread::yield();  // they have still to call the next one
    }
    ctx.throws(rma::status::bad_type, {"allreduce", "arguments that were refused"}, sum_that_fails);
    if (ctx.rank() != 0) std::atomic_ref(*win.pointer_to(0)).fetch_add(1);
    ctx.equal(team.allreduce(1, rma::sum), ctx.size(), "the allreduce behind it");
  }
  win.free();
}

// Goal: a schedule of one's own, run and run again: a ring that passes a sum around, and puts with signals.
void own_schedules(context& ctx) {
  rma::Team& team = ctx.world();
  rma::Schedule ring;
  ring.copy(rma::input(), rma::output(), 8).copy(rma::input(), rma::scratch(), 8).round();
  for (int i = 1; i < ctx.size(); ++i) {
    const std::size_t from = i % 2 != 0 ? 0 : 8;
    ring.send(rma::scratch(from), 8, ctx.right()).recv(rma::scratch(8 - from), 8, ctx.left()).round();
    ring.combine(rma::scratch(8 - from), rma::output(), 8);
  }
  std::int64_t mine = ctx.rank() + 1;
  std::int64_t sum = 0;
  team.start(ring, span(&mine, 1), span(&sum, 1), rma::sum, rma::element::i64).wait();
  ctx.equal(sum, std::int64_t{ctx.size()} * (ctx.size() + 1) / 2, "sum by a schedule");

  rma::Schedule puts;
  puts.put(rma::input(), rma::output(0), 8, ctx.right()).put_signal(rma::input(), rma::output(8), 8, ctx.right());
  puts.wait_signal(ctx.left());
  std::array<std::int64_t, 2> got{};
  rma::Collective kept = team.init(puts, span(&mine, 1), span(got));
  for (int i = 0; i < 3; ++i) {
    got = {};
    ++mine;
    kept.start().wait();
    ctx.equal(got[0], std::int64_t{ctx.left() + 2 + i}, "put by a schedule");
    ctx.equal(got[1], std::int64_t{ctx.left() + 2 + i}, "put with a signal by a schedule");
    team.barrier();
  }
}

// Goal: calls take whole containers and arrays, and single values.
void containers(context& ctx) {
  rma::Team& team = ctx.world();
  const int last = ctx.size() - 1;
  std::vector<long> data(3, ctx.rank() + 1L), sums(3);
  std::array<long, 3> copy{};
  long plain[] = {ctx.rank() == last ? 7L : 0L};
  const long total = ctx.size() * (ctx.size() + 1L) / 2;
  team.allreduce(data, sums, rma::sum);
  ctx.check(sums == std::vector<long>(3, total), "allreduce of vectors");
  team.reduce(data, copy, rma::max, last);
  if (ctx.rank() == last) ctx.equal(copy[2], last + 1L, "reduce of a vector into an array");
  team.allreduce(data, rma::sum);
  ctx.check(data == sums, "allreduce of a vector in place");
  team.broadcast(plain, last);
  ctx.equal(plain[0], 7L, "broadcast of an array");
  std::vector<long> all(3 * static_cast<std::size_t>(ctx.size())), back(3);
  team.gather(data, all, 0);
  team.scatter(all, back, 0);
  ctx.check(back == data, "gather and scatter of vectors");
  team.allgather(back, all);
  std::vector<long> turned(all.size());
  team.alltoall(all, turned);
  ctx.check(turned == all, "allgather and alltoall of vectors");
  ctx.equal(team.broadcast(ctx.rank(), last), last, "broadcast of a value");
  ctx.equal(team.reduce(ctx.rank() + 1L, rma::sum, 0), ctx.rank() == 0 ? total : ctx.rank() + 1L, "reduce of a value");
  const std::vector<int> ranks = team.gather(ctx.rank(), last);
  ctx.check(ctx.rank() == last ? ranks.back() == last : ranks.empty(), "gather of a value");
}

constexpr test_case collective_request_table[] = {
    {"collective.many_under_way", many_under_way},
    {"collective.teams_in_threads", teams_in_threads},
    {"collective.operands_in_windows", operands_in_windows},
    {"collective.one_member_has_a_layout", one_member_has_a_layout},
    {"collective.dropped_requests", dropped_requests},
    {"collective.mismatches", mismatches},
    {"collective.mismatched_blocks", mismatched_blocks},
    {"collective.left_before", left_before},
    {"collective.late_for_a_refused_one", late_for_a_refused_one},
    {"collective.own_schedules", own_schedules},
    {"collective.containers", containers},
    {"collective.starts_do_not_wait", starts_do_not_wait},
};

}  // namespace

std::span<const test_case> collective_request_cases() noexcept { return collective_request_table; }

}  // namespace conformance
