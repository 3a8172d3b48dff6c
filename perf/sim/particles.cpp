// SPDX-License-Identifier: Apache-2.0
#include "particles.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <numbers>
#include <thread>

namespace perf {
namespace {

/// xoshiro-like quality is not needed: splitmix64.
class chance {
 public:
  explicit chance(std::uint64_t seed) : state_(seed) {}
  double uniform() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1p-53;
  }
  /// Box and Muller: both numbers of a pair.
  double normal() noexcept {
    if (kept_) {
      kept_ = false;
      return other_;
    }
    const double radius = std::sqrt(-2 * std::log(1 - uniform()));
    const double angle = 2 * std::numbers::pi * uniform();
    other_ = radius * std::sin(angle);
    kept_ = true;
    return radius * std::cos(angle);
  }

 private:
  std::uint64_t state_;
  double other_ = 0;
  bool kept_ = false;
};

struct cluster {
  std::array<double, 3> centre;
  std::array<double, 3> velocity;
  double radius;
  double share;  ///< share of the mass, up to and with this one
};

double wrapped(double x) noexcept {
  x -= std::floor(x);
  return x < 1 ? x : 0;  // a tiny negative number becomes 1
}

std::vector<cluster> make_clusters(const cosmos& of, chance& draw) {
  constexpr double mass_ratio = 100;     // ratio of the heaviest to the lightest
  constexpr double radius_scale = 0.12;  // scale of a cluster that has all the mass; as mass^(1/3)
  std::vector<cluster> all(static_cast<std::size_t>(of.clusters));
  double sum = 0;
  for (cluster& one : all) {
    for (double& x : one.centre) x = draw.uniform();
    for (double& v : one.velocity) v = of.bulk * draw.normal();
    sum += one.share = std::pow(mass_ratio, draw.uniform());
  }
  double so_far = 0;
  for (cluster& one : all) {
    one.radius = radius_scale * std::cbrt(one.share / sum);
    one.share = so_far += one.share / sum;
  }
  return all;
}

void place_in(const cluster& in, const cosmos& of, chance& draw, particle& p) {
  constexpr double farthest = 5;  // in radii
  double distance = 0;
  do distance = 1 / std::sqrt(std::pow(draw.uniform() + 1e-12, -2.0 / 3.0) - 1);
  while (!(distance < farthest));
  const double z = 2 * draw.uniform() - 1;
  const double angle = 2 * std::numbers::pi * draw.uniform();
  const double flat = std::sqrt(1 - z * z);
  const std::array<double, 3> direction{flat * std::cos(angle), flat * std::sin(angle), z};
  for (std::size_t d = 0; d < 3; ++d) {
    p.position[d] = wrapped(in.centre[d] + in.radius * distance * direction[d]);
    p.velocity[d] = static_cast<float>(in.velocity[d] + of.dispersion * draw.normal());
  }
}

}  // namespace

std::vector<particle> make_particles(const cosmos& of) {
  chance draw(of.seed);
  const std::vector<cluster> clusters = make_clusters(of, draw);
  std::vector<particle> all(of.count);
  for (std::uint64_t i = 0; i < of.count; ++i) {
    particle& p = all[i];
    p.id = i;
    p.mass = 1;
    if (clusters.empty() || draw.uniform() < of.background) {
      for (double& x : p.position) x = draw.uniform();
      for (float& v : p.velocity) v = static_cast<float>(of.dispersion * draw.normal());
      continue;
    }
    const double pick = draw.uniform() * clusters.back().share;
    const auto in = std::find_if(clusters.begin(), clusters.end() - 1, [&](const auto& c) { return pick < c.share; });
    place_in(*in, of, draw, p);
  }
  return all;
}

void drift(std::vector<particle>& all) {
  for (particle& p : all) {
    for (std::size_t d = 0; d < 3; ++d) p.position[d] = wrapped(p.position[d] + static_cast<double>(p.velocity[d]));
  }
}

// ---- domains --------------------------------------------------------------------------------------------------------

domains::domains(const std::vector<particle>& all, int ranks) : ranks_(ranks) {
  std::vector<point> points(all.size());
  std::transform(all.begin(), all.end(), points.begin(), [](const particle& p) { return p.position; });
  root_ = divide(points.data(), points.data() + points.size(), 0, ranks, 0);
}

// Axes take turns: to choose the longest would now and then turn a cut round, and all behind it would change places.
int domains::divide(point* first, point* last, int rank, int ranks, unsigned axis) {
  if (ranks == 1) return -1 - rank;
  const int left_ranks = ranks / 2;
  point* const middle = first + (last - first) * left_ranks / ranks;
  std::nth_element(first, middle, last, [axis](const point& a, const point& b) { return a[axis] < b[axis]; });
  const auto number = cuts_.size();
  cuts_.push_back({.axis = axis, .at = middle == last ? 1 : (*middle)[axis]});
  const int left = divide(first, middle, rank, left_ranks, (axis + 1) % 3);
  const int right = divide(middle, last, rank + left_ranks, ranks - left_ranks, (axis + 1) % 3);
  cuts_[number].left = left;
  cuts_[number].right = right;
  return static_cast<int>(number);
}

int domains::owner(const std::array<double, 3>& position) const noexcept {
  int at = root_;
  while (at >= 0) {
    const cut& here = cuts_[static_cast<std::size_t>(at)];
    at = position[here.axis] < here.at ? here.left : here.right;
  }
  return -1 - at;
}

// ---- exchange -------------------------------------------------------------------------------------------------------

std::uint64_t exchange::before(int rank) const noexcept {
  std::uint64_t sum = 0;
  for (int to = 0; to < ranks_; ++to) sum += of(rank, to);
  return sum;
}
std::uint64_t exchange::after(int rank) const noexcept {
  std::uint64_t sum = 0;
  for (int from = 0; from < ranks_; ++from) sum += of(from, rank);
  return sum;
}
std::uint64_t exchange::leaving(int from) const noexcept { return before(from) - of(from, from); }
std::uint64_t exchange::coming(int to) const noexcept { return after(to) - of(to, to); }
std::uint64_t exchange::moved() const noexcept {
  std::uint64_t sum = 0;
  for (int rank = 0; rank < ranks_; ++rank) sum += leaving(rank);
  return sum;
}

exchange exchange_between(const std::vector<particle>& before, const domains& old_domains,
                          const std::vector<particle>& after, const domains& new_domains) {
  exchange counts(old_domains.ranks());
  for (std::size_t i = 0; i < before.size(); ++i)
    ++counts.of(old_domains.owner(before[i].position), new_domains.owner(after[i].position));
  return counts;
}

double measure_pack_ns(const std::vector<particle>& before, const domains& old_domains,
                       const std::vector<particle>& after, const domains& new_domains) {
  // As the ranks have them: each its own, in no order, and for each other rank a list of those that go there. All ranks
  // together do not fit a cache, so that each finds its particles in memory.
  const auto ranks = static_cast<std::size_t>(old_domains.ranks());
  std::vector<std::vector<particle>> held(ranks);
  std::vector<std::vector<std::vector<std::uint32_t>>> going(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  std::size_t moved = 0;
  for (std::size_t i = 0; i < before.size(); ++i) {
    const auto from = static_cast<std::size_t>(old_domains.owner(before[i].position));
    const auto to = static_cast<std::size_t>(new_domains.owner(after[i].position));
    if (from != to) {
      going[from][to].push_back(static_cast<std::uint32_t>(held[from].size()));
      ++moved;
    }
    held[from].push_back(after[i]);
  }
  if (moved == 0) return 0;
  // Two at a time, as in the paper.
  std::array<double, 2> spent_ns{};
  {
    std::vector<std::jthread> both;
    for (std::size_t half = 0; half < 2; ++half) {
      both.emplace_back([&, half] {
        std::vector<particle> buffer(moved);
        const auto start = std::chrono::steady_clock::now();
        particle* out = buffer.data();
        for (std::size_t from = half; from < ranks; from += 2) {
          for (const auto& to : going[from]) {
            for (const std::uint32_t i : to) *out++ = held[from][i];
          }
        }
        spent_ns[half] = std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - start).count();
        __asm__ __volatile__("" : : "r"(buffer.data()) : "memory");
      });
    }
  }
  return (spent_ns[0] + spent_ns[1]) / static_cast<double>(moved);
}

}  // namespace perf
