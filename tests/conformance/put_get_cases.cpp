// SPDX-License-Identifier: Apache-2.0
// put and get of values and ranges, of every size that may change the protocol.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <thread>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

/// One below, on and above powers of two: where inline data, eager buffers, cross-memory attach and pipelines
/// begin and end.
std::vector<std::size_t> sizes_around_limits() {
  std::vector<std::size_t> sizes = {0, 1, 2, 3, 4, 5, 7, 8, 9, 12};
  for (std::size_t power = 16; power <= std::size_t{1} << 20; power *= 2) {
    sizes.insert(sizes.end(), {power - 1, power, power + 1});
  }
  sizes.push_back((std::size_t{3} << 20) + 5);
  return sizes;
}

using byte_type = std::uint8_t;
constexpr std::size_t guard = 64;
constexpr byte_type untouched_byte = 0xa5;

// Goal: a put of any size writes its bytes, all of them and nothing else, at any alignment, to others and to self.
// Method: put of tagged bytes with a random offset into a window of a constant byte; then the whole surroundings are
// looked at by the target. Break: copy one byte too few in the slow path of put.
void put_sizes(context& ctx) {
  const auto sizes = sizes_around_limits();
  test_window<byte_type> win(ctx, sizes.back() + 4 * guard);
  std::ranges::fill(win.local(), untouched_byte);
  std::vector<byte_type> from(sizes.back());
  win->fence();
  for (const std::size_t n : sizes) {
    if (!ctx.sampled()) continue;
    const std::size_t shift = guard + ctx.common_random()() % guard;
    const bool self = ctx.common_random()() % 4 == 0;
    const int target = self ? ctx.rank() : ctx.right();
    const int writer = self ? ctx.rank() : ctx.left();
    fill_tagged(std::span(from).first(n), ctx.rank(), n);
    win->put(std::span<const byte_type>(from).first(n), target, win.at(target, shift));
    win->fence();
    const std::span<const byte_type> part = win.local().subspan(shift - guard, n + 2 * guard);
    ctx.equal(first_untagged(part.subspan(guard, n), writer, n), n,
              "first wrong byte of a put of " + std::to_string(n));
    const bool clean = std::ranges::all_of(part.first(guard), [](byte_type b) { return b == untouched_byte; }) &&
                       std::ranges::all_of(part.last(guard), [](byte_type b) { return b == untouched_byte; });
    ctx.check(clean, "bytes beside a put of " + std::to_string(n) + " were written");
    std::ranges::fill(win.local().subspan(shift, n), untouched_byte);
    win->fence();
  }
  win.free();
}

// Goal: a get of any size reads its bytes and writes nothing beside the buffer.
void get_sizes(context& ctx) {
  const auto sizes = sizes_around_limits();
  test_window<byte_type> win(ctx, sizes.back() + guard);
  fill_tagged(win.local(), ctx.rank());
  std::vector<byte_type> to(sizes.back() + 2 * guard);
  win->fence();
  for (const std::size_t n : sizes) {
    if (!ctx.sampled()) continue;
    const std::size_t shift = ctx.common_random()() % guard;
    const int target = ctx.common_random()() % 4 == 0 ? ctx.rank() : ctx.right();
    std::ranges::fill(to, untouched_byte);
    win->get(std::span(to).subspan(guard, n), target, win.at(target, shift));
    win->fence();
    const std::span<const byte_type> part = std::span<const byte_type>(to).first(n + 2 * guard);
    ctx.equal(first_untagged(part.subspan(guard, n), target, 0, shift), n,
              "first wrong byte of a get of " + std::to_string(n));
    const bool clean = std::ranges::all_of(part.first(guard), [](byte_type b) { return b == untouched_byte; }) &&
                       std::ranges::all_of(part.last(guard), [](byte_type b) { return b == untouched_byte; });
    ctx.check(clean, "bytes beside a get of " + std::to_string(n) + " were written");
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: the same to a target that waits in the library from beginning to end, and so may take part in copies.
// Method: rank 0 puts each size, flushes, gets it back; the others sit in a barrier.
void waiting_targets(context& ctx) {
  const auto sizes = sizes_around_limits();
  test_window<byte_type> win(ctx, sizes.back() + 2 * guard);
  std::ranges::fill(win.local(), untouched_byte);
  std::vector<byte_type> from(sizes.back());
  std::vector<byte_type> to(sizes.back() + 2 * guard);
  ctx.world().barrier();
  if (ctx.rank() == 0) ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  for (const std::size_t n : sizes) {
    if (ctx.rank() != 0) break;
    if (!ctx.sampled()) continue;
    const int target = 1 % ctx.size();
    const std::size_t shift = guard + ctx.random()() % guard;
    fill_tagged(std::span(from).first(n), target, n);
    win->put(std::span<const byte_type>(from).first(n), target, win.at(target, shift));
    win->flush(target);
    win->get(std::span(to).first(n + 2), target, win.at(target, shift - 1));
    win->flush(target);
    const std::span<const byte_type> back = std::span<const byte_type>(to).subspan(1, n);
    ctx.equal(first_untagged(back, target, n), n, "first wrong byte of " + std::to_string(n));
    ctx.check(to[0] == untouched_byte && to[n + 1] == untouched_byte, "bytes beside " + std::to_string(n) + " changed");
    std::fill(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(n), untouched_byte);
    win->put(std::span<const byte_type>(to).first(n), target, win.at(target, shift));
    win->flush(target);
  }
  if (ctx.rank() == 0) win->unlock_all();
  ctx.world().barrier();
  win.free();
}

/// A target that waits in the library for a signal, and then computes without a call of the library, if that is not
/// needed, until rank 0 has what it wants.
class waiting_and_computing {
 public:
  waiting_and_computing(context& ctx, test_window<std::uint64_t>& win, rma::detail::call what)
      : ctx_(ctx), win_(win), done_(rma::Window<std::uint64_t>::allocate(ctx.world(), 1)) {
    // Rank 0 knows: a fabric may reach the memory of one target and not that of another.
    int needs_no_target = 1;
    for (int target = 1; ctx.rank() == 0 && target < ctx.size(); ++target) {
      if (!win->one_sided(what, target) || !done_.one_sided(rma::detail::call::put, target)) needs_no_target = 0;
    }
    leaves_ = ctx.world().allreduce(needs_no_target, rma::min) != 0;
    ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
    ctx.expect(done_.lock_all_nothrow(), rma::status::done, "lock_all");
  }

  /// The part of a target in each round, from 1 on.
  void serve(std::size_t round) {
    win_->wait_signal(2, 1, 0);
    const std::atomic_ref<std::uint64_t> reached(done_.local()[0]);
    if (polls) {
      const rma::PollingScope scope(ctx_.runtime());
      for (int i = 0; i < 16; ++i) ctx_.runtime().progress();
    }
    while (leaves_ && reached.load(std::memory_order_acquire) < round) {
      std::this_thread::yield();
      ctx_.runtime().compute(std::chrono::microseconds(1));  // virtual time passes by this alone
    }
  }
  bool polls = false;  ///< before it computes, the target makes progress, as within another library's blocking call
  void signal(int target) { win_->put_signal({}, target, win_.at(target, 0), 2); }
  void let_go(int target, std::size_t round) {
    done_.put(std::uint64_t{round}, target, 0);
    done_.flush(target);
  }
  void end() {
    done_.unlock_all();
    win_->unlock_all();
    ctx_.world().barrier();
    done_.free();
  }

 private:
  context& ctx_;
  test_window<std::uint64_t>& win_;
  rma::Window<std::uint64_t> done_;
  bool leaves_ = false;
};

// Goal: a stream of puts loses nothing, and is not held up, while its target enters and leaves the library.
// Method: rank 0 puts values, sends a signal in between, and flushes. Break: let a target leave without a look at its
// promised messages.
void put_to_busy_targets(context& ctx, bool polls) {
  constexpr std::size_t slots = 512;
  test_window<std::uint64_t> win(ctx, slots);
  waiting_and_computing targets(ctx, win, rma::detail::call::put);
  targets.polls = polls;
  const std::size_t rounds = ctx.rounds(polls ? 300 : 1000);
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() != 0) targets.serve(round);
    for (int target = 1; ctx.rank() == 0 && target < ctx.size(); ++target) {
      const std::size_t puts = ctx.random()() % slots;
      const std::size_t before = ctx.random()() % 20;
      for (std::size_t i = 0; i < puts; ++i) {
        if (i == before) targets.signal(target);
        win->put(tagged<std::uint64_t>(target, i), target, win.at(target, i));
      }
      if (before >= puts) targets.signal(target);
      win->flush(target);
      targets.let_go(target, round);
    }
  }
  if (ctx.rank() == 0) {
    for (int target = 1; target < ctx.size(); ++target) {
      for (std::size_t i = 0; i < slots; ++i) win->put(tagged<std::uint64_t>(target, i), target, win.at(target, i));
    }
  }
  targets.end();
  if (ctx.rank() != 0) {
    ctx.equal(first_untagged(std::span<const std::uint64_t>(win.local()), ctx.rank()), slots, "words put");
  }
  win.free();
}

void target_comes_and_goes(context& ctx) { put_to_busy_targets(ctx, false); }

// Goal: nothing is lost where a target begins and ends a PollingScope. Break: end it without handling what was
// promised.
void target_polls(context& ctx) { put_to_busy_targets(ctx, true); }

// Goal: a target that leaves the library owes nobody an answer, however many there is room for on their way.
// Method: rank 0 asks for more data than that without looking for any, sends a signal in between, and flushes. Break:
// let a target leave while answers wait for room.
void target_leaves_no_answers(context& ctx) {
  constexpr std::size_t slots = 256;
  constexpr std::size_t gets_max = 40;
  test_window<std::uint64_t> win(ctx, slots);
  std::vector<std::uint64_t> got(gets_max * slots);
  fill_tagged(std::span<std::uint64_t>(win.local()), ctx.rank());
  ctx.world().barrier();
  waiting_and_computing targets(ctx, win, rma::detail::call::get);
  const std::size_t rounds = ctx.rounds(200);
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() != 0) targets.serve(round);
    for (int target = 1; ctx.rank() == 0 && target < ctx.size(); ++target) {
      const std::size_t gets = 1 + ctx.random()() % gets_max;
      const std::size_t before = ctx.random()() % gets;
      std::fill(got.begin(), got.end(), 0);
      for (std::size_t i = 0; i < gets; ++i) {
        if (i == before) targets.signal(target);
        win->get(std::span(got).subspan(i * slots, slots), target, win.at(target, 0));
      }
      win->flush(target);
      for (std::size_t i = 0; i < gets; ++i) {
        const std::span<const std::uint64_t> one = std::span<const std::uint64_t>(got).subspan(i * slots, slots);
        ctx.equal(first_untagged(one, target), slots, "words of get " + std::to_string(i));
      }
      targets.let_go(target, round);
    }
  }
  targets.end();
  win.free();
}

// Goal: rows that take several messages arrive whole, and come back whole, when the target leaves the library amid
// them. Method: rank 0 sends a signal, which lets the target go, and then puts and gets rows of other values in each
// round. Break: take what has been sent for the whole.
void target_leaves_amid_rows(context& ctx) {
  constexpr std::size_t rows = 64, stride = 64;
  test_window<std::uint64_t> win(ctx, rows * stride);
  std::vector<std::uint64_t> from(rows * stride), got(rows * stride);
  waiting_and_computing targets(ctx, win, rma::detail::call::put);
  const std::size_t rounds = ctx.rounds(300);
  for (std::size_t round = 1; round <= rounds; ++round) {
    if (ctx.rank() != 0) targets.serve(round);
    for (int target = 1; ctx.rank() == 0 && target < ctx.size(); ++target) {
      const std::size_t width = 1 + ctx.random()() % (stride - 1);
      const auto part = rma::Layout::vector<std::uint64_t>(rows, width, stride);
      std::iota(from.begin(), from.end(), round * rows * stride);
      std::fill(got.begin(), got.end(), 0);
      const bool puts_first = ctx.random()() % 2 != 0;
      if (puts_first) targets.signal(target);
      win->put(from.data(), part, target, win.at(target, 0), part);
      win->flush(target);
      if (!puts_first) targets.signal(target);
      win->get(got.data(), part, target, win.at(target, 0), part);
      win->flush(target);
      for (std::size_t i = 0; i < got.size(); ++i) {
        const std::uint64_t wanted = i % stride < width ? from[i] : 0;
        if (got[i] != wanted) ctx.fail("word " + std::to_string(i) + " of round " + std::to_string(round));
      }
      targets.let_go(target, round);
    }
  }
  targets.end();
  win.free();
}

template <class T>
void values_of(context& ctx) {
  test_window<T> win(ctx, 40);
  win->fence();
  for (std::size_t i = 0; i < 40; ++i) {
    win->put(tagged<T>(ctx.rank(), i), ctx.right(), win.at(ctx.right(), i));
  }
  win->fence();
  ctx.equal(first_untagged(std::span<const T>(win.local()), ctx.left()), std::size_t{40}, "values put");
  for (std::size_t i = 0; i < 40; ++i) {
    const T seen = win->get(ctx.right(), win.at(ctx.right(), i));
    if (!(seen == tagged<T>(ctx.rank(), i))) ctx.fail("value got at " + std::to_string(i));
  }
  win->fence();
  win.free();
}

// Goal: single values of every element type arrive as they are.
void values(context& ctx) {
  values_of<std::int8_t>(ctx);
  values_of<std::uint16_t>(ctx);
  values_of<std::int32_t>(ctx);
  values_of<std::uint64_t>(ctx);
  values_of<float>(ctx);
  values_of<double>(ctx);
}

// Goal: everyone can put to everyone in one epoch; no byte gets lost when all talk at once.
// Method: blocks of random size, the same on all ranks, to all targets, in a random order of targets.
void all_to_all(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  constexpr std::size_t slot = 40000;
  test_window<std::uint32_t> win(ctx, slot * ranks);
  std::vector<std::uint32_t> from(slot * ranks);
  for (std::size_t round = 0; round < 4; ++round) {
    const std::size_t count = 1 + ctx.common_random()() % slot;
    win->fence();
    std::vector<int> order(ranks);
    for (std::size_t i = 0; i < ranks; ++i) order[i] = static_cast<int>(i);
    std::ranges::shuffle(order, ctx.random());
    for (const int target : order) {
      const auto block = std::span(from).subspan(static_cast<std::size_t>(target) * slot, count);
      fill_tagged(block, ctx.rank(), static_cast<std::uint64_t>(target) + 100 * round);
      win->put(std::span<const std::uint32_t>(block), target,
               win.at(target, slot * static_cast<std::size_t>(ctx.rank())));
    }
    win->fence();
    for (int r = 0; r < ctx.size(); ++r) {
      const std::span<const std::uint32_t> block = win.local().subspan(slot * static_cast<std::size_t>(r), count);
      ctx.equal(first_untagged(block, r, static_cast<std::uint64_t>(ctx.rank()) + 100 * round), count,
                "block of a rank");
    }
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: the origin's buffer may be used again after flush_local, and the old contents arrive.
// Method: the same buffer for 50 puts of 20 KiB, overwritten after each flush_local.
void buffer_reuse(context& ctx) {
  constexpr std::size_t count = 2500;
  test_window<std::uint64_t> win(ctx, 50 * count);
  std::vector<std::uint64_t> buffer(count);
  {
    const auto hold = win->lock(rma::shared, ctx.right());
    for (std::size_t i = 0; i < 50; ++i) {
      fill_tagged(std::span(buffer), ctx.rank(), i);
      win->put(std::span<const std::uint64_t>(buffer), ctx.right(), win.at(ctx.right(), i * count));
      win->flush_local(ctx.right());
      std::ranges::fill(buffer, 0);
    }
  }
  ctx.world().barrier();
  for (std::size_t i = 0; i < 50; ++i) {
    const std::span<const std::uint64_t> part = win.local().subspan(i * count, count);
    ctx.equal(first_untagged(part, ctx.left(), i), count, "put number " + std::to_string(i));
  }
  win.free();
}

/// Reads that asked whether puts are in the target's memory.
std::uint64_t placement_reads(const rma::Runtime& runtime) {
  for (const rma::Counter& each : runtime.counters()) {
    if (each.name == "placement_reads") return each.value;
  }
  return ~std::uint64_t{0};
}

// Goal: flush_local and flush_local_all do not ask whether puts are in the target's memory, a flush after them does;
// both let buffers be used again. Method: the same buffer for each put, towards all ranks; the questions are counted.
void flush_local_asks_nothing(context& ctx) {
  test_window<std::uint64_t> win(ctx, 64);
  std::vector<std::uint64_t> buffer(8);
  const auto put_to = [&](int target, std::uint64_t round) {
    fill_tagged(std::span(buffer), ctx.rank(), round);
    win->put(std::span<const std::uint64_t>(buffer), target, win.at(target, round * buffer.size()));
  };
  ctx.world().barrier();
  {
    const auto hold = win->lock_all();
    put_to(ctx.right(), 0);
    win->flush(ctx.right());  // whatever else has to be asked for first
    const std::uint64_t before = placement_reads(ctx.runtime());
    for (std::uint64_t round = 1; round < 8; ++round) {
      put_to(ctx.right(), round);
      if (round % 2 == 0) win->flush_local_all();
      if (round % 2 != 0) win->flush_local(ctx.right());
      std::ranges::fill(buffer, 0);
    }
    ctx.equal(placement_reads(ctx.runtime()), before, "questions asked by flush_local");
    win->flush(ctx.right());
  }
  ctx.world().barrier();
  for (std::uint64_t round = 0; round < 8; ++round) {
    const std::span<const std::uint64_t> part = win.local().subspan(round * buffer.size(), buffer.size());
    ctx.equal(first_untagged(part, ctx.left(), round), buffer.size(), "put number " + std::to_string(round));
  }
  win.free();
}

// Goal: many small puts and gets in one epoch, to random places of random targets, all take effect.
// Method: every rank owns a slice of each target's window, so that no two write the same word; an oracle is kept. The
// slice is small, so that many words are put twice before a flush. Inside a node the last put counts; elsewhere puts
// have no order, and a flush comes between them. Break: let a put by system call overtake one that is still in a
// message.
void random_small(context& ctx) {
  const auto ranks = static_cast<std::size_t>(ctx.size());
  constexpr std::size_t slice = 4;
  test_window<std::uint64_t> win(ctx, slice * ranks);
  std::vector<std::uint64_t> oracle(slice * ranks, 0);
  const std::size_t first = slice * static_cast<std::size_t>(ctx.rank());
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all");
  const std::size_t rounds = ctx.rounds(20000);
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::size_t target = ctx.random()() % ranks;
    const std::size_t place = ctx.random()() % slice;
    const int to = static_cast<int>(target);
    if (ctx.random()() % 2 == 0) {
      const std::uint64_t value = ctx.random()();
      if (!ctx.world().shares_memory(to)) win->flush(to);
      win->put(value, to, win.at(to, first + place));
      oracle[target * slice + place] = value;
    } else {
      win->flush(to);
      const std::uint64_t seen = win->get(to, win.at(to, first + place));
      if (seen != oracle[target * slice + place]) ctx.fail("a get after a flush missed an own put");
    }
  }
  win->unlock_all();
  win.free();
}

// Goal: gets of one epoch read the values from before it where nobody writes, in any number.
// Method: 3000 outstanding span gets of 8 bytes to 1 KiB, all completed by one flush_all.
void many_outstanding_gets(context& ctx) {
  constexpr std::size_t count = 4096;
  test_window<std::uint32_t> win(ctx, count);
  fill_tagged(win.local(), ctx.rank());
  ctx.world().barrier();
  const std::size_t rounds = ctx.rounds(3000, 100);
  std::vector<std::vector<std::uint32_t>> results(rounds);
  std::vector<std::pair<int, std::size_t>> asked(rounds);
  {
    auto hold = win->lock_all();
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::size_t n = 2 + ctx.random()() % 255;
      asked[i] = {static_cast<int>(ctx.random()() % static_cast<std::uint64_t>(ctx.size())),
                  ctx.random()() % (count - n)};
      results[i].resize(n);
      win->get(std::span(results[i]), asked[i].first, win.at(asked[i].first, asked[i].second));
    }
    hold.flush();
    for (std::size_t i = 0; i < rounds; ++i) {
      const std::span<const std::uint32_t> got(results[i]);
      if (first_untagged(got, asked[i].first, 0, asked[i].second) != got.size()) ctx.fail("get " + std::to_string(i));
    }
  }
  ctx.world().barrier();
  win.free();
}

// Goal: the exception-free forms do the same and say done or posted.
void try_forms(context& ctx) {
  test_window<double> win(ctx, 8);
  ctx.expect(win->try_fence(), rma::status::done, "try_fence");
  const std::vector<double> data = {1.0, 2.0, 3.0};
  ctx.expect(win->try_put(4.5, ctx.right(), win.at(ctx.right(), 0)), rma::status::done, "try_put of a value");
  ctx.check(rma::ok(win->try_put(std::span<const double>(data), ctx.right(), win.at(ctx.right(), 1))),
            "try_put of a span");
  ctx.expect(win->try_fence(), rma::status::done, "try_fence");
  double value = 0;
  std::vector<double> back(3);
  ctx.expect(win->try_get(value, ctx.right(), win.at(ctx.right(), 0)), rma::status::done, "try_get of a value");
  ctx.check(rma::ok(win->try_get(std::span(back), ctx.right(), win.at(ctx.right(), 1))), "try_get of a span");
  ctx.expect(win->try_fence(rma::no_succeed), rma::status::done, "try_fence");
  ctx.check(value == 4.5 && back == data, "values of the exception-free forms");
  ctx.expect(win->lock_nothrow(rma::shared, 0), rma::status::done, "lock_nothrow");
  ctx.expect(win->try_flush(0), rma::status::done, "try_flush");
  ctx.expect(win->try_flush_local(0), rma::status::done, "try_flush_local");
  ctx.expect(win->try_flush_all(), rma::status::done, "try_flush_all");
  ctx.expect(win->try_flush_local_all(), rma::status::done, "try_flush_local_all");
  ctx.expect(win->try_sync(), rma::status::done, "try_sync");
  ctx.expect(win->try_unlock(0), rma::status::done, "try_unlock");
  ctx.expect(win->lock_all_nothrow(), rma::status::done, "lock_all_nothrow");
  ctx.expect(win->try_unlock_all(), rma::status::done, "try_unlock_all");
  win.free();
}

constexpr test_case put_get_table[] = {
    {"put.sizes", put_sizes, each_kind},
    {"get.sizes", get_sizes, each_kind},
    {"put_get.waiting_targets", waiting_targets, each_kind},
    {"put_get.target_polls", target_polls, each_kind},
    {"put_get.target_comes_and_goes", target_comes_and_goes, each_kind},
    {"put_get.target_leaves_no_answers", target_leaves_no_answers, each_kind},
    {"put_get.target_leaves_amid_rows", target_leaves_amid_rows, each_kind},
    {"put_get.values", values, each_kind},
    {"put_get.all_to_all", all_to_all, each_kind},
    {"put_get.buffer_reuse", buffer_reuse, each_kind},
    {"put_get.flush_local_asks_nothing", flush_local_asks_nothing, each_kind},
    {"put_get.random_small", random_small, each_kind},
    {"put_get.many_outstanding_gets", many_outstanding_gets, each_kind},
    {"put_get.try_forms", try_forms, each_kind},
};

}  // namespace

std::span<const test_case> put_get_cases() noexcept { return put_get_table; }

}  // namespace conformance
