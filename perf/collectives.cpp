// SPDX-License-Identifier: Apache-2.0
// Collectives: ns for each call, by bytes: of the vector, or of the block for each rank. Sums of doubles. The metrics
// `..._window` have their operands in windows; `..._last` have a barrier behind each call, so that a root does not run
// ahead of the others, `barrier_last` is its time alone.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "bench.hpp"

namespace {

constexpr std::size_t bytes_max = std::size_t{64} << 20;  ///< size of one buffer
constexpr std::size_t all_bytes[] = {8, 512, 4096, 65536, 1048576, 8388608};

/// Buffers of doubles, which every call of a size uses.
struct buffers {
  std::vector<double> out, in;
  buffers(std::size_t bytes, std::size_t blocks) : out(bytes / 8 * blocks, 1.0), in(out.size()) {}
};

/// Calls one form again and again.
template <class Call>
void repeat(perf::bench& b, const std::string& metric, std::size_t bytes, Call&& call) {
  b.points.everyone({metric, bytes}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) call();
  });
}
/// The same, and once more until the last rank has its result.
template <class Call>
void repeat_both(perf::bench& b, const std::string& metric, std::size_t bytes, Call&& call) {
  repeat(b, metric, bytes, call);
  repeat(b, metric + "_last", bytes, [&] {
    call();
    b.world.barrier();
  });
}

void combining(perf::bench& b, std::size_t bytes) {
  rma::Team& team = b.world;
  const auto ranks = static_cast<std::size_t>(b.ranks());
  buffers of(bytes, 1);
  const std::span out(of.out), in(of.in);
  repeat_both(b, "broadcast", bytes, [&] { team.broadcast(in, 0); });
  repeat_both(b, "reduce", bytes, [&] { team.reduce(out, in, rma::sum, 0); });
  repeat_both(b, "allreduce", bytes, [&] { team.allreduce(out, in, rma::sum); });
  perf::require(!b.points.wants("allreduce", bytes) || in.back() == static_cast<double>(b.ranks()), "allreduce");
  repeat_both(b, "iallreduce", bytes, [&] { team.iallreduce(out, in, rma::sum).wait(); });
  repeat_both(b, "ibroadcast", bytes, [&] { team.ibroadcast(in, 0).wait(); });
  repeat_both(b, "ireduce", bytes, [&] { team.ireduce(out, in, rma::sum, 0).wait(); });
  repeat(b, "scan", bytes, [&] { team.scan(out, in, rma::max); });
  if (b.points.wants("allreduce_window", bytes)) {
    auto win = rma::Window<double>::allocate(b.world, 2 * of.out.size());
    const std::span all = win.local();
    std::copy(of.out.begin(), of.out.end(), all.begin());
    repeat(b, "allreduce_window", bytes,
           [&] { team.allreduce(all.first(of.out.size()), all.subspan(of.out.size()), rma::sum); });
    win.free();
  }
  if (bytes * ranks > bytes_max) return;
  buffers many(bytes, ranks);
  repeat_both(b, "reduce_scatter_block", bytes, [&] {
    team.reduce_scatter_block(std::span(many.out), std::span(many.in).first(of.out.size()), rma::sum);
  });
}

void moving(perf::bench& b, std::size_t bytes) {
  rma::Team& team = b.world;
  const auto ranks = static_cast<std::size_t>(b.ranks());
  if (bytes * ranks > bytes_max) return;
  buffers of(bytes, ranks);
  const std::span out(of.out), in(of.in);
  const auto mine = out.first(bytes / 8);
  const auto part = in.first(bytes / 8);
  repeat_both(b, "gather", bytes, [&] { team.gather(mine, in, 0); });
  repeat_both(b, "scatter", bytes, [&] { team.scatter(out, part, 0); });
  repeat_both(b, "allgather", bytes, [&] { team.allgather(mine, in); });
  repeat_both(b, "alltoall", bytes, [&] { team.alltoall(out, in); });
  perf::require(!b.points.wants("alltoall", bytes) || in.back() == 1.0, "alltoall");
  repeat_both(b, "ialltoall", bytes, [&] { team.ialltoall(out, in).wait(); });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "collectives", 1, [](perf::bench& b) {
    repeat(b, "barrier", 0, [&] { b.world.barrier(); });
    repeat(b, "barrier_last", 0, [&] { b.world.barrier(); });
    repeat_both(b, "ibarrier", 0, [&] { b.world.ibarrier().wait(); });
    for (const std::size_t bytes : all_bytes) {
      combining(b, bytes);
      moving(b, bytes);
    }
  });
}
