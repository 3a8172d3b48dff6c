// SPDX-License-Identifier: Apache-2.0
/// \file
/// What a rank knows of large copies of private memory between two processes: how long those of one size have taken by
/// each way. Which way is the fastest depends on the processor (docs/decisions/0021): through slots 38 GB/s on a Zen 5
/// and 6 on a Xeon, where the kernel's copy has 17 and 26. Pure steps; src/xfer/copy_trial.cpp drives them.
///
///   a way without a figure is measured first; then the cheapest is taken, and measured every eighth time
///   another way is measured again when the copies are five times as many as at its last turn, later after so many as
///   make its turns a five-hundredth of all time
///
/// A figure falls at once, but rises by a quarter at most: a copy amid which a process was stopped says little.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rma::detail {

enum class copy_way : std::uint8_t { staged, fabric, shared };

struct copy_figure {
  std::uint32_t cost_ns = 0;   ///< of a copy of the largest size of its class; 0: not known
  std::uint32_t again_at = 0;  ///< measured again when so many copies have been made, if another way is cheaper
};

/// Of the copies of one size.
struct copy_experience {
  std::array<copy_figure, 3> figures{};
  std::uint32_t copies = 0;  ///< counted modulo 2^32
  std::size_t ways = 3;      ///< the first so many
};

struct copy_choice {
  copy_way way = copy_way::staged;
  bool measured = false;
  const char* why = "";
};

inline constexpr std::uint32_t measured_every = 8;
inline constexpr std::uint32_t again_after = 512;       ///< times as many as the way costs more than the cheapest, ...
inline constexpr std::uint32_t again_times_max = 1024;  ///< ... of which no more than this is made
inline constexpr std::uint32_t copy_cost_max_ns = 1'000'000'000;

/// Sizes of one class are a power of two at most, and more than half of it.
inline constexpr int copy_class_first = 12, copy_class_last = 22;  ///< 4 KiB and less to 4 MiB and more
inline constexpr std::size_t copy_classes = copy_class_last - copy_class_first + 1;
constexpr int copy_class(std::uint64_t bytes) noexcept {
  return std::clamp(static_cast<int>(std::bit_width(bytes - 1)), copy_class_first, copy_class_last) - copy_class_first;
}
/// Below, the message of "shared" costs what the half saves.
inline constexpr std::uint64_t shared_bytes_min = (std::uint64_t{16} << 10) + 1;
constexpr std::size_t ways_of(int of_class) noexcept { return of_class < copy_class(shared_bytes_min) ? 2 : 3; }

/// What a copy of the class's largest size would have cost.
constexpr std::uint32_t copy_cost_ns(std::uint64_t bytes, std::int64_t took_ns) noexcept {
  const std::uint64_t took = static_cast<std::uint64_t>(std::clamp<std::int64_t>(took_ns, 1, copy_cost_max_ns));
  const std::uint64_t largest = std::uint64_t{1} << (copy_class(bytes) + copy_class_first);
  const std::uint64_t cost = bytes > largest ? took / ((bytes + largest - 1) / largest) : took * largest / bytes;
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(cost, 1, copy_cost_max_ns));
}

constexpr std::size_t cheapest(const copy_experience& e) noexcept {
  std::size_t best = 0;
  for (std::size_t way = 1; way < e.ways; ++way) {
    if (e.figures[way].cost_ns < e.figures[best].cost_ns) best = way;
  }
  return best;
}

constexpr copy_choice next_copy(const copy_experience& e) noexcept {
  const std::size_t best = cheapest(e);
  if (e.figures[best].cost_ns == 0) return {static_cast<copy_way>(best), true, "measured first, at this size"};
  for (std::size_t way = 0; way < e.ways; ++way) {
    const bool due = static_cast<std::int32_t>(e.copies - e.figures[way].again_at) >= 0;
    if (way != best && due) return {static_cast<copy_way>(way), true, "measured again, at this size"};
  }
  return {static_cast<copy_way>(best), e.copies % measured_every == 0, "the fastest so far, at this size"};
}

/// The copies until a way that costs so much is measured again.
constexpr std::uint32_t copies_until_again(std::uint32_t copies, std::uint32_t cost_ns,
                                           std::uint32_t best_ns) noexcept {
  const std::uint32_t most = again_after * std::clamp(cost_ns / std::max(best_ns, 1U), 1U, again_times_max);
  return copies < most / 4 ? 4 * copies : most;
}

/// After a copy that took as long as one of the class's largest size in `cost_ns`.
constexpr copy_experience after_copy(copy_experience e, copy_way way, std::uint32_t cost_ns) noexcept {
  copy_figure& figure = e.figures[static_cast<std::size_t>(way)];
  const std::uint32_t most_ns = figure.cost_ns + figure.cost_ns / 4 + 1;
  figure.cost_ns = figure.cost_ns == 0 ? cost_ns : std::min(cost_ns, most_ns);
  const std::uint32_t best_ns = e.figures[cheapest(e)].cost_ns;
  figure.again_at = e.copies + copies_until_again(e.copies, figure.cost_ns, best_ns);
  return e;
}
/// This way is refused to this process.
constexpr copy_experience after_refusal(copy_experience e, copy_way way) noexcept {
  e.figures[static_cast<std::size_t>(way)] = {copy_cost_max_ns, e.copies + again_after * again_times_max};
  return e;
}

}  // namespace rma::detail
