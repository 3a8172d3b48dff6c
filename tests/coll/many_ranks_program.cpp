// SPDX-License-Identifier: Apache-2.0
// many_ranks: each collective once, of few bytes and of some more, on as many ranks as there are; each result is
// checked.
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

}  // namespace

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  job j(runtime);
  j.world.barrier();
  j.world.ibarrier().wait();
  combining(j, 1);
  combining(j, 3000);
  moving(j);
  const std::int64_t wrong = j.world.allreduce(std::int64_t{j.wrong}, rma::sum);
  if (j.rank == 0) std::printf("%s on %d ranks\n", wrong == 0 ? "right" : "wrong", static_cast<int>(j.size));
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
