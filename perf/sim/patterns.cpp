// SPDX-License-Identifier: Apache-2.0
#include "patterns.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <utility>

namespace perf {
namespace {

using rma::sim::PatternRank;

int wrapped(std::int64_t rank, int size) { return static_cast<int>((rank % size + size) % size); }

/// To the ranks +1, -1, +2, -2, ... from it, each put completed before the next.
pattern_main neighbors(const pattern_choice& chosen) {
  return [chosen](PatternRank& me) {
    for (int message = 0; message < chosen.messages; ++message) {
      const int distance = message / 2 + 1;
      const int to = wrapped(me.rank() + (message % 2 == 0 ? distance : -distance), me.size());
      me.complete(me.put(to, chosen.bytes, 0));
    }
  };
}

pattern_main ring(const pattern_choice& chosen) {
  return [chosen](PatternRank& me) {
    const int next = wrapped(me.rank() + 1, me.size());
    for (int round = 0; round < chosen.messages; ++round) {
      if (chosen.wait_first) me.poll(round);
      const auto put = me.put(next, chosen.bytes, round);
      if (!chosen.wait_first) me.poll(round);
      me.complete(put);
    }
  };
}

/// The random ring of the HPC Challenge benchmarks: both neighbors in a ring of random order at a time.
pattern_main random_ring(const pattern_choice& chosen) {
  struct places {
    std::vector<int> order, place_of;
  };
  auto rings = std::make_shared<std::vector<places>>();
  for (int round = 0; round < chosen.messages; ++round) {
    places one{permutation(chosen.ranks, chosen.seed + static_cast<std::uint64_t>(round)), {}};
    one.place_of.resize(one.order.size());
    for (std::size_t i = 0; i < one.order.size(); ++i)
      one.place_of[static_cast<std::size_t>(one.order[i])] = static_cast<int>(i);
    rings->push_back(std::move(one));
  }
  return [chosen, rings](PatternRank& me) {
    for (int round = 0; round < chosen.messages; ++round) {
      const places& in = (*rings)[static_cast<std::size_t>(round)];
      const int here = in.place_of[static_cast<std::size_t>(me.rank())];
      const auto at = [&](int place) { return in.order[static_cast<std::size_t>(wrapped(place, me.size()))]; };
      me.barrier();
      me.phase("exchange");
      me.put(at(here + 1), chosen.bytes, round);
      me.put(at(here - 1), chosen.bytes, round);
      me.poll(round, 2);
      me.complete_all();
      me.phase("");
    }
  };
}

pattern_main alltoall(const pattern_choice& chosen) {
  return [chosen](PatternRank& me) {
    for (int round = 0; round < chosen.messages; ++round) {
      for (int i = 1; i < me.size(); ++i) me.put(wrapped(me.rank() + i, me.size()), chosen.bytes, round);
      me.poll(round, me.size() - 1);
      me.complete_all();
    }
  };
}

/// A box of ranks, closed in each direction: a face to each of the neighbors along each side that is longer than 1.
pattern_main halo(const pattern_choice& chosen) {
  return [chosen](PatternRank& me) {
    const box sides = box_of(me.size());
    const std::array<int, 3> side{sides.x, sides.y, sides.z};
    std::vector<int> around;
    for (int d = 0, stride = 1; d < 3; stride *= side[static_cast<std::size_t>(d++)]) {
      const int length = side[static_cast<std::size_t>(d)];
      const int here = me.rank() / stride % length;
      if (length == 1) continue;
      for (const int step : {1, length - 1}) around.push_back(me.rank() + ((here + step) % length - here) * stride);
    }
    for (int round = 0; round < chosen.messages; ++round) {
      for (const int to : around) me.put(to, chosen.bytes, round);
      me.poll(round, static_cast<int>(around.size()));
      me.complete_all();
    }
  };
}

}  // namespace

const std::vector<named_pattern>& named_patterns() {
  static const std::vector<named_pattern> all = {
      {"neighbors", "each rank puts to the ranks +1, -1, +2, -2, ..., one after the other", neighbors},
      {"ring", "each rank puts to the next and waits for what comes from the one before", ring},
      {"random-ring", "rings in random order, a put to both neighbors at a time, a barrier between", random_ring},
      {"alltoall", "each rank puts to all others", alltoall},
      {"halo", "a box of ranks, closed in each direction, a put to each neighbor", halo},
  };
  return all;
}

const named_pattern* find_pattern(std::string_view name) {
  const auto& all = named_patterns();
  const auto found = std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name == name; });
  return found == all.end() ? nullptr : &*found;
}

box box_of(int ranks) {
  box best{ranks, 1, 1};
  const auto surface = [](const box& b) {
    return std::int64_t{b.x} * b.y + std::int64_t{b.y} * b.z + std::int64_t{b.z} * b.x;
  };
  for (int z = 1; z * z * z <= ranks; ++z) {
    for (int y = z; ranks % z == 0 && y * y <= ranks / z; ++y) {
      const box one{ranks / z / y, y, z};
      if (ranks / z % y == 0 && surface(one) < surface(best)) best = one;
    }
  }
  return best;
}

std::vector<int> permutation(int count, std::uint64_t seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::uint64_t state = seed;
  for (std::size_t left = order.size(); left > 1; --left) {
    std::uint64_t z = state += 0x9E3779B97F4A7C15;  // splitmix64
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    std::swap(order[left - 1], order[static_cast<std::size_t>((z ^ (z >> 31)) % left)]);
  }
  return order;
}

}  // namespace perf
