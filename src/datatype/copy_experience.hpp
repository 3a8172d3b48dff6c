// SPDX-License-Identifier: Apache-2.0
/// \file
/// Statistics of copies of private memory between two processes, of more than 1 KiB: the time that copies of one size
/// have taken by each way. Which way is the fastest depends on the processor (docs/decisions/0021): slots copy 38 GB/s
/// on a Zen 5 and 6 on a Xeon, where the kernel copies 12 and 26. Pure steps; src/xfer/copy_trial.cpp drives them.
///
///   each way has a turn of four copies first; then the cheapest is used, and measured every eighth time
///   another way has its next turn when there have been some ten times as many copies as at the last one, times the
///   ratio of its cost to the least; later after so many that its turns take a five-hundredth of all time
///
/// A figure falls at once, but rises by a sixteenth at most: a copy during which a process was stopped means little.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "core/assert.hpp"

namespace rma::detail {

enum class copy_way : std::uint8_t {
  fabric,
  staged,  ///< through memory of both processes: slots, or a message if the data fit one
  shared,
};

inline constexpr std::uint32_t measured_every = 8;
inline constexpr std::uint32_t message_measured_every = 64;  ///< a measurement waits for it, maybe amid a stream
inline constexpr std::uint32_t turn_copies = 4;              ///< the first ones wake the target, if it was asleep

struct copy_figure {
  std::uint32_t cost_ns = 0;   ///< cost of a copy of the largest size of its class; 0: not known
  std::uint32_t left = 0;      ///< remaining copies of a turn that has begun
  std::uint32_t again_at = 0;  ///< number of copies at the next turn, if another way is cheaper
};

/// Statistics of the copies of one size.
struct copy_experience {
  std::array<copy_figure, 3> figures{};
  std::uint32_t copies = 0;              ///< counted modulo 2^32
  std::size_t ways = 3;                  ///< number of ways, from the first on
  std::uint32_t every = measured_every;  ///< one of that many copies by the cheapest way is measured
};

struct copy_choice {
  copy_way way = copy_way::fabric;
  bool measured = false;
  const char* why = "";
};

inline constexpr std::uint32_t again_after = 2048;  ///< copies until the next turn for each multiple of the least cost
inline constexpr std::uint32_t again_times_max = 1024;  ///< limit on that multiple
inline constexpr std::uint32_t copy_cost_max_ns = 1'000'000'000;

/// Sizes of one class are at most a power of two, and more than half of it.
inline constexpr int copy_class_first = 11, copy_class_last = 22;  ///< 2 KiB and less to 4 MiB and more
inline constexpr std::size_t copy_classes = copy_class_last - copy_class_first + 1;
constexpr int copy_class(std::uint64_t bytes) noexcept {
  return std::clamp(static_cast<int>(std::bit_width(bytes - 1)), copy_class_first, copy_class_last) - copy_class_first;
}
/// Below this size, the message of "shared" costs as much as its smaller copy saves.
inline constexpr std::uint64_t shared_bytes_min = (std::uint64_t{16} << 10) + 1;
constexpr std::size_t ways_of(int of_class) noexcept { return of_class < copy_class(shared_bytes_min) ? 2 : 3; }

/// The cost of this copy, scaled to the class's largest size.
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

/// The cost of the cheapest measured way; 0: none has been measured.
constexpr std::uint32_t least_cost_ns(const copy_experience& e) noexcept {
  std::uint32_t least_ns = 0;
  for (std::size_t way = 0; way < e.ways; ++way) {
    const std::uint32_t cost_ns = e.figures[way].cost_ns;
    if (cost_ns != 0 && (least_ns == 0 || cost_ns < least_ns)) least_ns = cost_ns;
  }
  return least_ns;
}

constexpr copy_choice next_copy(const copy_experience& e) noexcept {
  RMA_ASSERT(e.ways > 0 && e.ways <= e.figures.size());
  RMA_ASSERT(e.every > 0);
  for (std::size_t way = 0; way < e.ways; ++way) {
    if (e.figures[way].left != 0) return {static_cast<copy_way>(way), true, "measured, at this size"};
  }
  const std::size_t best = cheapest(e);
  if (e.figures[best].cost_ns == 0) return {static_cast<copy_way>(best), true, "measured first, at this size"};
  for (std::size_t way = 0; way < e.ways; ++way) {
    const bool due = static_cast<std::int32_t>(e.copies - e.figures[way].again_at) >= 0;
    if (way != best && due) return {static_cast<copy_way>(way), true, "measured again, at this size"};
  }
  return {static_cast<copy_way>(best), e.copies % e.every == 0, "the fastest so far, at this size"};
}

/// The copies until the next turn of a way whose cost is `times` the least.
constexpr std::uint32_t copies_until_again(std::uint32_t copies, std::uint32_t times) noexcept {
  return std::min(times, again_times_max) * (copies < again_after / 8 ? 8 * copies : again_after);
}

/// True if the cost of the first copy of some memory must be ignored: it counts only if nothing else can explain it.
constexpr bool tells_nothing(const copy_experience& e, std::uint32_t cost_ns) noexcept {
  constexpr std::uint32_t times = 8;
  const std::uint32_t least_ns = least_cost_ns(e);
  return least_ns == 0 || cost_ns / times < least_ns;
}
/// The statistics after a copy with cost `cost_ns`, scaled to the class's largest size.
constexpr copy_experience after_copy(copy_experience e, copy_way way, std::uint32_t cost_ns) noexcept {
  RMA_ASSERT(static_cast<std::size_t>(way) < e.ways);
  RMA_ASSERT(cost_ns > 0 && cost_ns <= copy_cost_max_ns);
  copy_figure& figure = e.figures[static_cast<std::size_t>(way)];
  const std::uint32_t was_ns = figure.cost_ns;
  figure.cost_ns = was_ns == 0 ? cost_ns : std::min(cost_ns, was_ns + was_ns / 16 + 1);
  const bool in_use = was_ns != 0 && static_cast<std::size_t>(way) == cheapest(e);
  RMA_ASSERT(least_cost_ns(e) > 0 && least_cost_ns(e) <= figure.cost_ns);
  figure.left = figure.left != 0 ? figure.left - 1 : in_use ? 0 : turn_copies - 1;
  if (figure.left == 0) figure.again_at = e.copies + copies_until_again(e.copies, figure.cost_ns / least_cost_ns(e));
  return e;
}
/// The statistics after the system has refused this way to the process.
constexpr copy_experience after_refusal(copy_experience e, copy_way way) noexcept {
  RMA_ASSERT(static_cast<std::size_t>(way) < e.ways);
  copy_figure& figure = e.figures[static_cast<std::size_t>(way)];
  figure = {copy_cost_max_ns, 0, e.copies + again_after * again_times_max};
  RMA_ASSERT(static_cast<std::int32_t>(e.copies - figure.again_at) < 0);  // its next turn is not due
  return e;
}

}  // namespace rma::detail
