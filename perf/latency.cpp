// SPDX-License-Identifier: Apache-2.0
// Time of one operation, 8 bytes: ns. Rank 0 works on rank 1, which sits in a barrier; synchronization takes both.
#include <array>
#include <atomic>
#include <optional>

#include "bench.hpp"

namespace {

using window = rma::Window<std::uint64_t>;
constexpr int target = 1;

void operations(perf::bench& b, window& win) {
  auto& points = b.points;
  std::optional<rma::Epoch> epoch;
  if (b.first()) epoch.emplace(win.lock_all());
  std::uint64_t last = 0;
  points.origin({"put_flush", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      win.put(i, target, 0);
      win.flush(target);
    }
    last = n - 1;
  });
  if (b.first()) perf::require(win.get(target, 0) == last, "put_flush");
  points.origin({"get", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) perf::keep(win.get(target, 0));
  });
}

void atomics(perf::bench& b, window& win) {
  auto& points = b.points;
  std::optional<rma::Epoch> epoch;
  std::uint64_t added = 0;
  if (b.first()) {
    epoch.emplace(win.lock_all());
    win.put(added, target, 0);
    win.flush(target);
  }
  points.origin({"fetch_and_op", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) perf::keep(win.fetch_and_op(1, target, 0, rma::sum));
    added += n;
  });
  points.origin({"accumulate", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      win.accumulate(1, target, 0, rma::sum);
      win.flush(target);
    }
    added += n;
  });
  if (b.first()) perf::require(win.get(target, 0) == added, "sums");
  points.origin({"compare_and_swap", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) perf::keep(win.compare_and_swap(added + i, added + i + 1, target, 0));
    added += n;
  });
  if (b.first()) perf::require(win.get(target, 0) == added, "compare_and_swap");
}

/// As MPI allows: between nodes a lock may be taken as late as by its unlock.
void locks(perf::bench& b, window& win) {
  auto& points = b.points;
  points.origin({"lock_put_unlock", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      auto epoch = win.lock(rma::exclusive, target, rma::deferrable);
      win.put(i, target, 0);
    }
  });
  points.origin({"lock_unlock"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) auto epoch = win.lock(rma::exclusive, target, rma::deferrable);
  });
  points.origin({"lock_shared_unlock"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) auto epoch = win.lock(rma::shared, target, rma::deferrable);
  });
  points.origin({"lock_all_unlock_all"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) auto epoch = win.lock_all();
  });
  points.origin({"lock_all_put_unlock_all", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      auto epoch = win.lock_all();
      win.put(i, target, 0);
    }
  });
}

/// This rank's own lock, and what a lock and an unlock are at least: two atomic instructions on one line.
void local_lock(perf::bench& b, window& win) {
  b.points.origin({"lock_local"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) auto epoch = win.lock(rma::exclusive, 0);
  });
  std::atomic_ref<std::uint64_t> word(win[0]);
  b.points.origin({"atomic_pair"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      word.fetch_add(1);
      word.fetch_sub(1);
    }
  });
}

/// All ranks want rank 0's lock: ns for each acquisition, whoever got it.
void contended_lock(perf::bench& b, window& win) {
  b.points.everyone({"lock_contended", 8, perf::unit::ns, static_cast<double>(b.ranks())}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      auto epoch = win.lock(rma::exclusive, 0, rma::deferrable);
      win.put(i, 0, 1);
    }
    b.world.barrier();
  });
  constexpr std::uint64_t turns = 1000;
  win[2] = 0;
  b.world.barrier();
  for (std::uint64_t i = 0; i < turns; ++i) {
    auto epoch = win.lock(rma::exclusive, 0);
    win.put(win.get(0, 2) + 1, 0, 2);
  }
  b.world.barrier();
  if (b.first()) perf::require(win[2] == turns * static_cast<std::uint64_t>(b.ranks()), "exclusive locks exclude");
}

void synchronization(perf::bench& b, window& win) {
  win.fence();
  b.points.everyone({"fence"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) win.fence();
  });
  win.fence(rma::no_succeed);
  const std::array<int, 1> other{1 - b.rank()};
  if (b.ranks() == 2) {
    b.points.everyone({"pscw"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        win.post(other);
        win.start(other);
        win.complete();
        win.wait();
      }
    });
  }
  b.points.everyone({"barrier"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) b.world.barrier();
  });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "latency of single operations and of synchronization", 2, [](perf::bench& b) {
    auto win = window::allocate(b.world, 1024);
    operations(b, win);
    atomics(b, win);
    locks(b, win);
    local_lock(b, win);
    contended_lock(b, win);
    synchronization(b, win);
    win.free();
  });
}
