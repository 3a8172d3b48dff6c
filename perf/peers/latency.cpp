// SPDX-License-Identifier: Apache-2.0
// The measurements of perf/latency.cpp in MPI. Single-element results are waited for by flush_local, the cheapest call
// that makes them usable.
#include <array>

#include "mpi.hpp"

namespace {

constexpr int target = 1;

void put(MPI_Win win, std::uint64_t value, int to, MPI_Aint at) {
  MPI_Put(&value, 1, MPI_UINT64_T, to, at, 1, MPI_UINT64_T, win);
}

std::uint64_t get(MPI_Win win, int from, MPI_Aint at) {
  std::uint64_t value = 0;
  MPI_Get(&value, 1, MPI_UINT64_T, from, at, 1, MPI_UINT64_T, win);
  MPI_Win_flush_local(from, win);
  return value;
}

void operations(perf::bench& b, MPI_Win win) {
  if (b.first()) MPI_Win_lock_all(0, win);
  std::uint64_t last = 0;
  b.points.origin({"put_flush", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Put(&i, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
    last = n - 1;
  });
  if (b.first()) perf::require(get(win, target, 0) == last, "put_flush");
  b.points.origin({"get", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) perf::keep(get(win, target, 0));
  });
  if (b.first()) MPI_Win_unlock_all(win);
}

void atomics(perf::bench& b, MPI_Win win) {
  std::uint64_t added = 0;
  if (b.first()) {
    MPI_Win_lock_all(0, win);
    put(win, added, target, 0);
    MPI_Win_flush(target, win);
  }
  const std::uint64_t one = 1;
  b.points.origin({"fetch_and_op", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      std::uint64_t old = 0;
      MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, 0, MPI_SUM, win);
      MPI_Win_flush_local(target, win);
      perf::keep(old);
    }
    added += n;
  });
  b.points.origin({"accumulate", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Accumulate(&one, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, MPI_SUM, win);
      MPI_Win_flush(target, win);
    }
    added += n;
  });
  if (b.first()) perf::require(get(win, target, 0) == added, "sums");
  b.points.origin({"compare_and_swap", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      const std::uint64_t expected = added + i;
      const std::uint64_t desired = expected + 1;
      std::uint64_t old = 0;
      MPI_Compare_and_swap(&desired, &expected, &old, MPI_UINT64_T, target, 0, win);
      MPI_Win_flush_local(target, win);
      perf::keep(old);
    }
    added += n;
  });
  if (b.first()) {
    perf::require(get(win, target, 0) == added, "compare_and_swap");
    MPI_Win_unlock_all(win);
  }
}

void locks(perf::bench& b, MPI_Win win) {
  b.points.origin({"lock_put_unlock", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, target, 0, win);
      MPI_Put(&i, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
      MPI_Win_unlock(target, win);
    }
  });
  const auto lock_unlock = [&](int kind) {
    return [&, kind](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        MPI_Win_lock(kind, target, 0, win);
        MPI_Win_unlock(target, win);
      }
    };
  };
  b.points.origin({"lock_unlock"}, lock_unlock(MPI_LOCK_EXCLUSIVE));
  b.points.origin({"lock_shared_unlock"}, lock_unlock(MPI_LOCK_SHARED));
  b.points.origin({"lock_all_unlock_all"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Win_lock_all(0, win);
      MPI_Win_unlock_all(win);
    }
  });
  b.points.origin({"lock_all_put_unlock_all", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Win_lock_all(0, win);
      MPI_Put(&i, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
      MPI_Win_unlock_all(win);
    }
  });
}

void contended_lock(perf::bench& b, const perf::mpi_window& win) {
  b.points.everyone({"lock_contended", 8, perf::unit::ns, static_cast<double>(b.ranks())}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
      MPI_Put(&i, 1, MPI_UINT64_T, 0, 1, 1, MPI_UINT64_T, win);
      MPI_Win_unlock(0, win);
    }
    MPI_Barrier(MPI_COMM_WORLD);
  });
  constexpr std::uint64_t turns = 1000;
  for (std::uint64_t i = 0; i < turns; ++i) {
    MPI_Win_lock(MPI_LOCK_EXCLUSIVE, 0, 0, win);
    const std::uint64_t next = get(win, 0, 2) + 1;
    MPI_Put(&next, 1, MPI_UINT64_T, 0, 2, 1, MPI_UINT64_T, win);
    MPI_Win_unlock(0, win);
  }
  MPI_Barrier(MPI_COMM_WORLD);
  if (b.first()) {
    MPI_Win_lock(MPI_LOCK_SHARED, 0, 0, win);
    const std::uint64_t total = get(win, 0, 2);
    MPI_Win_unlock(0, win);
    perf::require(total == turns * static_cast<std::uint64_t>(b.ranks()), "exclusive locks exclude");
  }
}

void synchronization(perf::bench& b, MPI_Win win) {
  MPI_Win_fence(0, win);
  b.points.everyone({"fence"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) MPI_Win_fence(0, win);
  });
  MPI_Win_fence(MPI_MODE_NOSUCCEED, win);
  if (b.ranks() == 2) {
    MPI_Group all = MPI_GROUP_NULL;
    MPI_Group other = MPI_GROUP_NULL;
    const std::array<int, 1> member{1 - b.rank()};
    MPI_Comm_group(MPI_COMM_WORLD, &all);
    MPI_Group_incl(all, 1, member.data(), &other);
    b.points.everyone({"pscw"}, [&](std::uint64_t n) {
      for (std::uint64_t i = 0; i < n; ++i) {
        MPI_Win_post(other, 0, win);
        MPI_Win_start(other, 0, win);
        MPI_Win_complete(win);
        MPI_Win_wait(win);
      }
    });
    MPI_Group_free(&other);
    MPI_Group_free(&all);
  }
  b.points.everyone({"barrier"}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) MPI_Barrier(MPI_COMM_WORLD);
  });
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "latency of single operations and of synchronization", 2, [](perf::bench& b) {
    const perf::mpi_window win(1024 * sizeof(std::uint64_t));
    operations(b, win);
    atomics(b, win);
    locks(b, win);
    contended_lock(b, win);
    synchronization(b, win);
  });
}
