// SPDX-License-Identifier: Apache-2.0
// many_ranks: each collective once, of few bytes and of some more, on as many ranks as there are; each result is
// checked. alltoallv and alltoallw are on teams of 128 ranks.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <rma/rma.hpp>

namespace {

using std::span;
using numbers = std::vector<std::int64_t>;

struct job {
  rma::Runtime& runtime;
  rma::Team world;
  std::int64_t rank, size;
  int wrong = 0;

  explicit job(rma::Runtime& rt) : runtime(rt), world(rt.world()), rank(world.rank()), size(world.size()) {}
  void check(bool right, const char* what) {
    if (right) return;
    ++wrong;
    std::fprintf(stderr, "rank %d: %s\n", static_cast<int>(rank), what);
  }
};

void combining(job& j, std::size_t count) {
  const std::int64_t sum = j.size * (j.size - 1) / 2;
  const numbers mine(count, j.rank);
  numbers got(count);
  j.world.allreduce(span(mine), span(got), rma::sum);
  j.check(got.front() == sum && got.back() == sum, "allreduce");
  const int root = static_cast<int>(j.size) - 1;
  j.world.reduce(span(mine), span(got), rma::max, root);
  j.check(j.rank != root || got.back() == j.size - 1, "reduce");
  j.world.scan(span(mine), span(got), rma::sum);
  j.check(got.back() == j.rank * (j.rank + 1) / 2, "scan");
  j.world.exscan(span(mine), span(got), rma::sum);
  j.check(j.rank == 0 || got.back() == j.rank * (j.rank - 1) / 2, "exscan");
  got.assign(count, j.rank == root ? 7 : 0);
  j.world.broadcast(span(got), root);
  j.check(got.front() == 7 && got.back() == 7, "broadcast");
}

void moving(job& j) {
  const auto n = static_cast<std::size_t>(j.size);
  numbers all(n), got(n);
  for (std::size_t r = 0; r < n; ++r) all[r] = j.rank * 10000 + static_cast<std::int64_t>(r);
  std::int64_t one = 0;
  j.world.reduce_scatter_block(span(all), span(&one, 1), rma::max);
  j.check(one == (j.size - 1) * 10000 + j.rank, "reduce_scatter_block");
  j.world.scatter(span(all), span(&one, 1), 0);
  j.check(one == j.rank, "scatter");
  j.world.gather(span(&j.rank, 1), span(got), 0);
  j.check(j.rank != 0 || got.back() == j.size - 1, "gather");
  got.assign(n, 0);
  j.world.allgather(span(&j.rank, 1), span(got));
  bool right = true;
  for (std::size_t r = 0; r < n; ++r) right = right && got[r] == static_cast<std::int64_t>(r);
  j.check(right, "allgather");
  j.world.alltoall(span(all), span(got));
  for (std::size_t r = 0; r < n; ++r) right = right && got[r] == static_cast<std::int64_t>(r) * 10000 + j.rank;
  j.check(right, "alltoall");
  const int left = static_cast<int>((j.rank + j.size - 1) % j.size);
  const int next = static_cast<int>((j.rank + 1) % j.size);
  j.world.neighbor_allgather(span(&j.rank, 1), span(&one, 1), rma::Neighbors{span(&left, 1), span(&next, 1)});
  j.check(one == left, "neighbor_allgather");
}

/// Counts that are the same on all ranks: 0, 1 or 2 elements of rank r.
std::size_t count_of(std::size_t r) { return r % 3; }

void varied(job& j) {
  const auto n = static_cast<std::size_t>(j.size);
  const auto me = static_cast<std::size_t>(j.rank);
  std::vector<std::size_t> counts(n), offsets(n);
  std::size_t total = 0;
  for (std::size_t r = 0; r < n; ++r) {
    counts[r] = count_of(r);
    offsets[r] = total;
    total += counts[r];
  }
  const span<const std::size_t> parts(counts), places(offsets);
  const auto holds_all = [&](const numbers& all) {
    bool right = true;
    for (std::size_t r = 0; r < n; ++r) {
      for (std::size_t i = 0; i < counts[r]; ++i) right = right && all[offsets[r] + i] == static_cast<std::int64_t>(r);
    }
    return right;
  };
  numbers mine(counts[me], j.rank), all(total);
  const int root = static_cast<int>(j.size) - 1;
  j.world.gatherv(span(mine), span(all), parts, places, root);
  j.check(j.rank != root || holds_all(all), "gatherv");
  mine.assign(counts[me], -1);
  j.world.scatterv(span(all), parts, places, span(mine), root);
  j.check(mine == numbers(counts[me], j.rank), "scatterv");
  all.assign(total, -1);
  j.world.allgatherv(span(mine), span(all), parts, places);
  j.check(holds_all(all), "allgatherv");
  j.world.reduce_scatter(span(all), span(mine), parts, rma::sum);
  j.check(mine == numbers(counts[me], j.rank * j.size), "reduce_scatter");
}

/// Each rank has a message for each other one, also for an empty block: teams of `sparse_ranks` have few enough of
/// them.
constexpr std::int64_t sparse_ranks = 128;

/// Few ranks exchange anything: those at a distance of 1 and of 16, to both sides.
void sparse(job& j) {
  rma::Team team = j.world.split(static_cast<int>(j.rank / sparse_ranks), static_cast<int>(j.rank));
  const auto n = static_cast<std::size_t>(team.size());
  const std::int64_t size = team.size();
  const std::int64_t far = size > 16 ? 16 : 1;
  const auto at_distance = [&](std::int64_t d) { return static_cast<std::size_t>((team.rank() + d + size) % size); };
  std::vector<std::size_t> counts(n);
  for (const std::int64_t d : {std::int64_t{1}, std::int64_t{-1}, far, -far}) counts[at_distance(d)] = 1;
  const auto partners = static_cast<std::size_t>(std::count(counts.begin(), counts.end(), std::size_t{1}));
  const numbers mine(partners, team.rank());
  numbers got(partners, -1);
  const auto holds_partners = [&] {
    std::size_t at = 0;
    bool right = true;
    for (std::size_t r = 0; r < n; ++r) right = right && (counts[r] == 0 || got[at++] == static_cast<std::int64_t>(r));
    return right;
  };
  const span<const std::size_t> each(counts);
  team.alltoallv(span(mine), each, {}, span(got), each, {});
  j.check(holds_partners(), "alltoallv");

  std::vector<rma::Layout> layouts(n, rma::Layout::contiguous<std::int64_t>(0));
  std::vector<std::ptrdiff_t> places(n);
  std::ptrdiff_t end = 0;
  for (std::size_t r = 0; r < n; ++r) {
    places[r] = end;
    if (counts[r] == 0) continue;
    layouts[r] = rma::Layout::contiguous<std::int64_t>(1);
    end += static_cast<std::ptrdiff_t>(sizeof(std::int64_t));
  }
  got.assign(partners, -1);
  team.alltoallw(mine.data(), layouts, places, got.data(), layouts, places);
  j.check(holds_partners(), "alltoallw");
}

void among_neighbors(job& j) {
  const int left = static_cast<int>((j.rank + j.size - 1) % j.size);
  const int next = static_cast<int>((j.rank + 1) % j.size);
  const std::array<int, 2> sources{left, next}, targets{next, left};
  const rma::Neighbors ring{sources, targets};
  const std::array<std::int64_t, 3> mine{j.rank, -j.rank, -j.rank - 1};
  const std::array<std::int64_t, 3> wanted{left, -next, -next - 1};
  std::array<std::int64_t, 3> got{};
  const std::array<std::size_t, 2> counts{1, 2};
  j.world.neighbor_alltoall(span(mine).first(2), span(got).first(2), ring);
  j.check(got[0] == left && got[1] == -next, "neighbor_alltoall");
  got = {};
  j.world.neighbor_alltoallv(span(mine), counts, {}, span(got), counts, {}, ring);
  j.check(got == wanted, "neighbor_alltoallv");
  got = {};
  const std::array layouts{rma::Layout::contiguous<std::int64_t>(1), rma::Layout::contiguous<std::int64_t>(2)};
  const std::array<std::ptrdiff_t, 2> places{0, sizeof(std::int64_t)};
  j.world.neighbor_alltoallw(mine.data(), layouts, places, got.data(), layouts, places, ring);
  j.check(got == wanted, "neighbor_alltoallw");
  std::array<std::int64_t, 2> both{};
  j.world.neighbor_allgatherv(span(&j.rank, 1), span(both), std::array<std::size_t, 2>{1, 1}, {}, ring);
  j.check(both[0] == left && both[1] == next, "neighbor_allgatherv");
}

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  job j(runtime);
  j.world.barrier();
  j.world.ibarrier().wait();
  combining(j, 1);
  combining(j, 3000);
  moving(j);
  varied(j);
  sparse(j);
  among_neighbors(j);
  const std::int64_t wrong = j.world.allreduce(std::int64_t{j.wrong}, rma::sum);
  if (j.rank == 0) std::printf("%s on %d ranks\n", wrong == 0 ? "right" : "wrong", static_cast<int>(j.size));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
