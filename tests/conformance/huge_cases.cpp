// SPDX-License-Identifier: Apache-2.0
// Transfers of more than 2 GiB: every count is 64 bits wide.
#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>

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

constexpr test_case huge_table[] = {
    {.name = "huge.one_call",
     .run = one_call,
     .kinds = only(window_kind::allocated) | only(window_kind::created),
     .ranks_min = 2,
     .long_only = true},
};

}  // namespace

std::span<const test_case> huge_cases() noexcept { return huge_table; }

}  // namespace conformance
