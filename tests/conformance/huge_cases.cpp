// SPDX-License-Identifier: Apache-2.0
// Transfers of more than 2 GiB: every count is 64 bits wide.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "cases.hpp"
#include "windows.hpp"

namespace conformance {
namespace {

constexpr std::size_t huge_bytes = (std::size_t{2} << 30) + (std::size_t{64} << 20) + 8;

std::size_t available_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string line; std::getline(info, line);) {
    if (line.starts_with("MemAvailable:")) return std::stoull(line.substr(13)) << 10;
  }
  return 0;
}

/// A sample of the words: the first and last, those around each 2^31 and 2^32 limit, and every 4099th.
template <class Visit>
void sample(std::size_t words, Visit visit) {
  for (std::size_t i = 0; i < words; i += 4099) visit(i);
  for (const std::size_t edge : {std::size_t{1} << 28, std::size_t{1} << 29, words - 1}) {
    for (std::size_t i = edge - 1; i <= edge + 1; ++i) {
      if (i < words) visit(i);
    }
  }
}

// Goal: one put and one get of more than 2^31 bytes carry all of them.
// Method: rank 1 puts its whole part over rank 0's in one call, then gets it back in one call; sampled words are
// compared at both ends.
void one_call(context& ctx) {
  const std::size_t needed = 4 * huge_bytes + (std::size_t{1} << 30);
  std::uint64_t enough = available_bytes() > needed ? 1 : 0;
  ctx.world().broadcast(std::span(&enough, 1), 0);
  if (enough == 0) context::skip("needs " + std::to_string(needed >> 30) + " GiB of free memory");
  const std::size_t words = huge_bytes / 8;
  const std::size_t mine = ctx.rank() < 2 ? words : 0;
  test_window<std::uint64_t> win(ctx, mine);
  if (ctx.rank() == 1) sample(words, [&](std::size_t i) { win.local()[i] = tagged<std::uint64_t>(1, i); });
  win->fence();
  if (ctx.rank() == 1) win->put(std::span<const std::uint64_t>(win.local()), 0, win.at(0, 0));
  win->fence();
  if (ctx.rank() == 0) {
    sample(words, [&](std::size_t i) {
      if (win.local()[i] != tagged<std::uint64_t>(1, i)) ctx.fail("word " + std::to_string(i) + " of a huge put");
      win.local()[i] = tagged<std::uint64_t>(0, i);
    });
  }
  win->fence();
  if (ctx.rank() == 1) win->get(win.local(), 0, win.at(0, 0));
  win->fence();
  if (ctx.rank() == 1) {
    sample(words, [&](std::size_t i) {
      if (win.local()[i] != tagged<std::uint64_t>(0, i)) ctx.fail("word " + std::to_string(i) + " of a huge get");
    });
  }
  win->fence(rma::no_succeed);
  win.free();
}

// Goal: a message of more than 2^31 bytes arrives whole, by the rendezvous that the setting names.
// Method: from rank 1 to rank 0, whose receive is a byte longer; bytes around all limits, and many others.
void message(context& ctx) {
  constexpr std::size_t bytes = (std::size_t{2} << 30) + 1;
  std::uint64_t enough = available_bytes() > 3 * bytes ? 1 : 0;
  ctx.world().broadcast(std::span(&enough, 1), 0);
  if (enough == 0) context::skip("needs " + std::to_string((3 * bytes) >> 30) + " GiB of free memory");
  const auto value = [](std::size_t i) { return static_cast<std::uint8_t>(i * 7 + i / 251 + (i >> 30) + 1); };
  const auto visit = [](auto&& look) {
    for (std::size_t i = 0; i < bytes; i += 4093) look(i);
    for (const std::size_t edge : {std::size_t{1} << 30, std::size_t{1} << 31, bytes - 2}) {
      for (std::size_t i = edge - 2; i <= edge + 1 && i < bytes; ++i) look(i);
    }
  };
  if (ctx.rank() == 1) {
    std::vector<std::uint8_t> out(bytes);
    visit([&](std::size_t i) { out[i] = value(i); });
    ctx.world().send(std::span(out), 0, 1);
  } else if (ctx.rank() == 0) {
    std::vector<std::uint8_t> in(bytes + 1, 0xEE);
    const rma::Received what = ctx.world().recv(std::span(in), 1, 1);
    ctx.equal(what.bytes, bytes, "bytes");
    visit([&](std::size_t i) {
      if (in[i] != value(i)) ctx.fail("byte " + std::to_string(i) + " of a huge message");
    });
    ctx.equal(int{in[bytes]}, 0xEE, "what lies behind it");
  }
}

constexpr test_case huge_table[] = {
    {.name = "huge.one_call",
     .run = one_call,
     .kinds = only(window_kind::allocated) | only(window_kind::created),
     .ranks_min = 2,
     .long_only = true},
    {.name = "huge.message", .run = message, .ranks_min = 2, .long_only = true},
};

}  // namespace

std::span<const test_case> huge_cases() noexcept { return huge_table; }

}  // namespace conformance
