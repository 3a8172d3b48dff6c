// SPDX-License-Identifier: Apache-2.0
// forms: collectives that have one form each in memory, once; tests/core/trace_test.py looks which ones they had.
#include <cstdio>
#include <span>
#include <vector>

#include <rma/rma.hpp>

int main(int argc, char** argv) {
  rma::Runtime runtime(argc, argv);
  rma::Team world = runtime.world();
  const double sum = world.size();
  world.barrier();
  std::vector<double> few(1, 1), many(1024, 1);
  world.allreduce(few, rma::sum);
  world.allreduce(many, rma::sum);
  auto window = rma::Window<double>::allocate(world, 8192);
  window.local()[0] = 1;
  world.allreduce(window.local(), rma::sum);
  bool right = few[0] == sum && many[1023] == sum && window.local()[0] == sum;
  few[0] = 1;
  world.iallreduce(std::span(few), rma::sum).wait();
  right = right && few[0] == sum;
  world.broadcast(few, 0);
  std::vector<double> total(1);
  world.reduce(few, total, rma::max, 0);
  right = right && (world.rank() != 0 || total[0] == sum);
  std::vector<double> all(static_cast<std::size_t>(world.size())), each(all.size());
  world.allgather(few, all);
  world.alltoall(all, each);
  world.gather(few, all, 0);
  world.scatter(each, few, 0);
  window.free();
  if (!right) runtime.abort(1, "wrong sum");
  if (world.rank() == 0) std::printf("right\n");
}
