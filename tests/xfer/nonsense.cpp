// SPDX-License-Identifier: Apache-2.0
// Goal: a rank that sends damaged control messages gets to know it, as an error of its own; the others are unharmed.
// Method: rank 0 sends rank 1 messages of an unknown kind, cut off, and with contents that make no sense, through the
// library's own channel; then everybody works with everybody. Prints one line for each check that fails.
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <vector>

#include "rma/rma.hpp"
#include "runtime/runtime_core.hpp"
#include "xfer/layout_exchange.hpp"
#include "xfer/wire.hpp"

namespace {

using rma::detail::message;

int failures = 0;

void check(bool holds, int rank, const char* what) {
  if (holds) return;
  ++failures;
  fmt::print("nonsense: rank {}: does not hold: {}\n", rank, what);
}

std::uint64_t count_of(const rma::Runtime& rt, std::string_view name) {
  for (const rma::Counter& c : rt.counters()) {
    if (c.name == name) return c.value;
  }
  return 0;
}

void send(rma::Runtime& rt, int to, std::uint16_t kind, std::span<const std::byte> bytes) {
  rma::detail::context& ctx = *rt.core().ctx;
  const std::lock_guard guard(ctx.lock());
  ctx.send(to, static_cast<message>(kind), {}, bytes);
}

/// An operation as the handler protocol has it, but with pieces that it does not carry.
std::vector<std::byte> operation_without_its_pieces() {
  rma::detail::operation_header head{};
  head.signal = -1;
  head.pieces = 200;
  head.kind = rma::detail::call::put;
  std::vector<std::byte> bytes(sizeof head);
  std::memcpy(bytes.data(), &head, sizeof head);
  return bytes;
}

/// A part of the description of a layout.
std::vector<std::byte> part_of_layout(std::uint32_t bytes, std::uint32_t at, std::size_t part) {
  const rma::detail::layout_header head{77, bytes, at, 0};
  std::vector<std::byte> all(sizeof head + part);
  std::memcpy(all.data(), &head, sizeof head);
  return all;
}

unsigned send_nonsense(rma::Runtime& rt, int to) {
  const std::vector<std::byte> some(7, std::byte{0xa5});
  const std::vector<std::byte> round(16, std::byte{0xff});  // one that no barrier has
  unsigned sent = 0;
  for (const std::uint16_t kind : {std::uint16_t{1000}, std::uint16_t{0xffff}}) {
    send(rt, to, kind, some);
    ++sent;
  }
  for (const message kind : {message::notify, message::operation, message::reply, message::acknowledge, message::share,
                             message::notification}) {
    send(rt, to, static_cast<std::uint16_t>(kind), some);
    ++sent;
  }
  send(rt, to, static_cast<std::uint16_t>(message::notification), round);
  send(rt, to, static_cast<std::uint16_t>(message::operation), operation_without_its_pieces());
  send(rt, to, static_cast<std::uint16_t>(message::layout), part_of_layout(100, 0, 50));  // makes sense so far
  send(rt, to, static_cast<std::uint16_t>(message::layout), part_of_layout(10, 50, 4));   // lies behind the end
  return sent + 3;
}

/// Everyone adds one to a word of everyone.
void work(rma::Runtime& rt, rma::Window<std::uint64_t>& win, std::uint64_t round) {
  for (int target = 0; target < rt.size(); ++target) {
    auto epoch = win.lock(rma::shared, target);
    win.accumulate(1, target, 0, rma::sum);
    win.put(round, target, static_cast<std::size_t>(1 + rt.rank()));
  }
  rt.world().barrier();
  bool all = win[0] == round * static_cast<std::uint64_t>(rt.size());
  for (int r = 0; r < rt.size(); ++r) all = all && win[static_cast<std::size_t>(1 + r)] == round;
  check(all, rt.rank(), "everyone's puts and sums are here");
  rt.world().barrier();
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime rt(argc, argv);
  auto win = rma::Window<std::uint64_t>::allocate(rt.world(), 1 + static_cast<std::size_t>(rt.size()));
  for (std::size_t i = 0; i < win.size(); ++i) win[i] = 0;
  rt.world().barrier();
  work(rt, win, 1);
  if (rt.rank() == 0) {
    const unsigned sent = send_nonsense(rt, 1);
    const auto until = rt.now() + std::chrono::seconds(20);
    while (count_of(rt, "malformed_notices") < sent && rt.now() < until) {
      rt.progress();
      rt.compute(std::chrono::microseconds(1));  // else no time passes in the simulator
    }
    check(count_of(rt, "malformed_notices") == sent, 0, "each message that makes no sense is protested");
  }
  rt.world().barrier();
  if (rt.rank() != 0) check(count_of(rt, "malformed_notices") == 0, rt.rank(), "nobody protests who did nothing");
  check((count_of(rt, "messages_refused") != 0) == (rt.rank() == 1), rt.rank(), "only rank 1 refused messages");
  // The operations under way when the malformed_notices came may have been part of it; after that all is well.
  for (int target = 0; target < rt.size(); ++target) {
    (void)win.lock_nothrow(rma::shared, target);
    win.accumulate(0, target, 0, rma::sum);
    const rma::status s = win.try_unlock(target);
    check(ok(s) || (rt.rank() == 0 && s == rma::status::transfer_failed), rt.rank(), "an epoch after it");
  }
  rt.world().barrier();
  work(rt, win, 2);
  win.free();
  if (rt.rank() == 0) fmt::print("nonsense: done\n");
  return failures == 0 ? 0 : 1;
}
