// SPDX-License-Identifier: Apache-2.0
// Messages by what they consist of: none, any last byte, pieces; and their requests among those of other kinds.
#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <string>
#include <vector>

#include "cases.hpp"
#include "p2p_data.hpp"

namespace conformance {
namespace {

// Goal: by any rendezvous a message may end in any byte, which some of them look for.
void last_bytes(context& ctx) {
  rma::Team& world = ctx.world();
  constexpr std::size_t bytes = 5000;
  for (unsigned last = 0; last < 256; ++last) {
    auto out = numbered(bytes, last);
    std::vector<std::uint8_t> in(bytes + last % 3 / 2, static_cast<std::uint8_t>(last));  // also longer ones
    out.back() = static_cast<std::uint8_t>(last);
    auto posted = world.irecv(std::span(in), ctx.left(), 3);
    if (last % 2 == 0) world.barrier();  // else either may be first
    world.send(std::span(out), ctx.right(), 3);
    ctx.equal(posted.wait().bytes, bytes, "bytes");
    ctx.check(std::equal(out.begin(), out.end(), in.begin()),
              "contents of a message that ends in " + std::to_string(last));
  }
}

// Goal: messages without data, and to this rank itself, in all modes.
void empty_and_own(context& ctx) {
  rma::Team& world = ctx.world();
  for (const int peer : {ctx.right(), ctx.rank()}) {
    const int source = peer == ctx.rank() ? ctx.rank() : ctx.left();
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{8}, std::size_t{70000}}) {
      for (const rma::send_kind kind :
           {rma::send_kind::standard, rma::send_kind::synchronous, rma::send_kind::buffered, rma::send_kind::ready}) {
        const auto out = numbered(bytes, 9);
        std::vector<std::uint8_t> early(bytes + 1, 0xEE), late(bytes + 1, 0xEE);
        auto posted = world.irecv(std::span(early), source, 4);
        rma::MessageRequest first, second;
        ctx.expect(world.try_isend(std::span(out), peer, 4, first, kind), rma::status::done, "a send");
        ctx.expect(world.try_isend(std::span(out), peer, 4, second, kind), rma::status::done, "a second one");
        ctx.equal(posted.wait().bytes, bytes, "bytes of the first");
        ctx.equal(world.recv(std::span(late), rma::any_source, 4).bytes, bytes, "bytes of the second");
        first.wait(), second.wait();
        ctx.check(early == late && early.back() == 0xEE, "what lies behind");
        early.pop_back();
        ctx.check(early == out, "contents");
        world.barrier();
      }
    }
  }
}

// Goal: layouts on both sides, of different shapes.
// Method: random pairs of shapes of equal size; the oracle is a copy in memory by blocks.
void layouts(context& ctx) {
  rma::Team& world = ctx.world();
  const std::size_t rounds = ctx.rounds(40);
  for (std::size_t i = 0; i < rounds; ++i) {
    const std::size_t rows = ctx.common_random()() % 200 + 1, width = ctx.common_random()() % 90 + 1;
    const auto rows_layout = rma::Layout::vector<std::uint16_t>(rows, width, static_cast<std::ptrdiff_t>(width) + 3);
    const auto columns = rma::Layout::vector<std::uint16_t>(rows * width, 1, 2);
    std::vector<std::uint16_t> out(rows * (width + 3)), in(2 * rows * width);
    std::iota(out.begin(), out.end(), static_cast<std::uint16_t>(ctx.rank() * 7));
    auto sent = world.isend(out.data(), rows_layout, ctx.right(), 2);
    const rma::Received what = world.recv(in.data(), columns, ctx.left(), 2);
    sent.wait();
    ctx.equal(what.bytes, 2 * rows * width, "bytes");
    bool right = true;
    for (std::size_t k = 0; k < rows * width; ++k) {
      const std::size_t from = k / width * (width + 3) + k % width;
      if (in[2 * k] != static_cast<std::uint16_t>(from + static_cast<std::size_t>(ctx.left()) * 7)) right = false;
      if (in[2 * k + 1] != 0) right = false;
    }
    ctx.check(right, "contents");
  }
}

/// Ints that lie apart, in another way on each side.
struct apart {
  static constexpr std::size_t out_step = 3, in_step = 2;
  rma::Layout out_layout, in_layout;
  std::vector<int> out, in;

  explicit apart(std::size_t count)
      : out_layout(rma::Layout::vector<int>(count, 1, out_step)),
        in_layout(rma::Layout::vector<int>(count, 1, in_step)),
        out(out_step * count),
        in(in_step * count, -1) {}

  void fill(int rank, int turn) {
    std::iota(out.begin(), out.end(), rank * 1000 + turn);
    std::ranges::fill(in, -1);
  }
  /// True if the data are those of that rank, and nothing else was written.
  [[nodiscard]] bool has_come(int rank, int turn) const {
    for (std::size_t i = 0; i < in.size(); ++i) {
      const int wanted = i % in_step == 0 ? static_cast<int>(i / in_step * out_step) + rank * 1000 + turn : -1;
      if (in[i] != wanted) return false;
    }
    return true;
  }
};

// Goal: layouts in each mode, by blocking calls, requests, sendrecv and persistent operations.
void layouts_in_each_call(context& ctx) {
  rma::Team& world = ctx.world();
  for (const std::size_t count : {std::size_t{5}, std::size_t{7000}}) {
    apart a(count);
    const rma::Layout& layout = a.out_layout;
    int* const out = a.out.data();
    const auto sends = std::to_array<void (*)(rma::Team&, const int*, const rma::Layout&, int)>({
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.ssend(from, l, to, 1); },
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.bsend(from, l, to, 1); },
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.rsend(from, l, to, 1); },
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.issend(from, l, to, 1).wait(); },
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.ibsend(from, l, to, 1).wait(); },
        [](rma::Team& t, const int* from, const rma::Layout& l, int to) { t.irsend(from, l, to, 1).wait(); },
    });
    for (int turn = 0; turn < static_cast<int>(sends.size()); ++turn) {
      a.fill(ctx.rank(), turn);
      auto posted = world.irecv(a.in.data(), a.in_layout, ctx.left(), 1);
      world.barrier();  // for the ready modes
      sends[static_cast<std::size_t>(turn)](world, out, layout, ctx.right());
      ctx.equal(posted.wait().count<int>(), count, "elements");
      ctx.check(a.has_come(ctx.left(), turn), "contents of mode " + std::to_string(turn));
    }
    a.fill(ctx.rank(), 7);
    const rma::Received what = world.sendrecv(out, layout, ctx.right(), 2, a.in.data(), a.in_layout, ctx.left(), 2);
    ctx.equal(what.count<int>(), count, "elements of sendrecv");
    ctx.check(a.has_come(ctx.left(), 7), "contents of sendrecv");
    for (const rma::send_kind kind :
         {rma::send_kind::standard, rma::send_kind::synchronous, rma::send_kind::buffered}) {
      rma::PersistentMessage to = world.send_init(out, rma::Layout(layout), ctx.right(), 3, kind);
      rma::PersistentMessage from = world.recv_init(a.in.data(), rma::Layout(a.in_layout), ctx.left(), 3);
      for (int turn = 0; turn < 3; ++turn) {
        a.fill(ctx.rank(), turn);
        from.start();
        to.start();
        ctx.equal(from.wait().count<int>(), count, "elements of a persistent receive");
        to.wait();
        ctx.check(a.has_come(ctx.left(), turn), "contents of a persistent receive");
      }
    }
  }
  std::array<int, 8> small{};
  const auto two = rma::Layout::vector<int>(2, 1, 4), three = rma::Layout::vector<int>(3, 1, 2);
  ctx.throws(rma::status::message_too_long, {"sendrecv", "12", "takes 8"},
             [&] { world.sendrecv(small.data(), three, ctx.right(), 4, small.data(), two, ctx.left(), 4); });
  world.barrier();
}

// Goal: data in long pieces, on either side or both, also of a message that is shorter than its receive.
// Method: all four pairs of a layout and a row; the message has three pieces less than the receive.
void pieces(context& ctx) {
  rma::Team& world = ctx.world();
  constexpr std::size_t count = 150, width = 1000;
  const auto apart = rma::Layout::vector<std::uint8_t>(count, width, 2 * width);
  const auto row = rma::Layout::contiguous<std::uint8_t>(count * width);
  const auto longer_apart = rma::Layout::vector<std::uint8_t>(count + 3, width, 2 * width);
  const auto longer_row = rma::Layout::contiguous<std::uint8_t>((count + 3) * width);
  for (const bool from_row : {false, true}) {
    for (const bool into_row : {false, true}) {
      const auto out = numbered(2 * count * width, static_cast<std::uint64_t>(ctx.rank()));
      const auto wanted = numbered(2 * count * width, static_cast<std::uint64_t>(ctx.left()));
      std::vector<std::uint8_t> in(2 * (count + 3) * width, 0xEE);
      auto sent = world.isend(out.data(), from_row ? row : apart, ctx.right(), 2);
      const rma::Received what = world.recv(in.data(), into_row ? longer_row : longer_apart, ctx.left(), 2);
      sent.wait();
      ctx.equal(what.bytes, count * width, "bytes");
      std::vector<std::uint8_t> model(in.size(), 0xEE);
      for (std::size_t i = 0; i < count; ++i) {
        std::copy_n(wanted.data() + i * (from_row ? width : 2 * width), width,
                    model.data() + i * (into_row ? width : 2 * width));
      }
      ctx.check(in == model, "contents, and what lies between");
    }
  }
}

// Goal: requests of messages, windows and collectives in one list: each is told once, by whatever looks.
void mixed_requests(context& ctx) {
  rma::Team& world = ctx.world();
  auto window = rma::Window<int>::allocate(world, 4);
  const std::vector<int> put(2, ctx.rank() + 1);
  std::vector<int> out(30000, ctx.rank()), in(30000, -1), back(1), small{ctx.rank()};
  auto epoch = window.lock_all();
  const auto start = [&](rma::Received& what) {
    std::vector<rma::Request> all;
    all.push_back(world.irecv(std::span(in), rma::any_source, 5).request(what));
    all.push_back(world.irecv(std::span(back), ctx.left(), 6));
    all.push_back(world.isend(std::span(out), ctx.right(), 5));
    all.push_back(world.isend(std::span(small), ctx.right(), 6));
    all.push_back(window.rput(std::span(put), ctx.right(), 0));
    all.push_back(world.ibarrier());
    return all;
  };
  for (int turn = 0; turn < 3; ++turn) {
    rma::Received what;
    auto all = start(what);
    unsigned seen = 0;
    if (turn == 0) wait_all(std::span(all));
    for (std::size_t i = 0; turn != 0 && i < all.size(); ++i) {
      std::size_t which = all.size();
      if (turn == 1) which = wait_any(std::span(all));
      ctx.wait_until([&] {
        if (turn == 2) which = test_any(std::span(all)).value_or(all.size());
        return which != all.size();
      });
      ctx.check((seen & 1U << which) == 0, "told once");
      seen |= 1U << which;
    }
    ctx.check(test_all(std::span(all)), "all are over");
    ctx.equal(what.source, ctx.left(), "source");
    ctx.equal(what.count<int>(), in.size(), "elements");
    ctx.check(in.back() == ctx.left() && back.front() == ctx.left(), "contents");
    world.barrier();
  }
  epoch.unlock();
  // Errors are the message's own, and one that is dropped goes on.
  std::array<int, 1> short_one{};
  std::vector<rma::Request> all;
  all.push_back(world.irecv(std::span(short_one), ctx.left(), 7));
  { const rma::Request dropped = world.isend(std::span(out), ctx.right(), 7); }
  ctx.throws(rma::status::message_too_long, {"wait for a receive", std::to_string(out.size() * sizeof(int)), "takes 4"},
             [&] { (void)wait_any(std::span(all)); });
  world.barrier();
  window.free();
}

constexpr test_case data_cases[] = {
    {"p2p.last_bytes", last_bytes}, {"p2p.empty_and_own", empty_and_own},
    {"p2p.layouts", layouts},       {"p2p.layouts_in_each_call", layouts_in_each_call},
    {"p2p.pieces", pieces},         {"p2p.mixed_requests", mixed_requests},
};

}  // namespace

std::span<const test_case> p2p_data_cases() noexcept { return data_cases; }

}  // namespace conformance
