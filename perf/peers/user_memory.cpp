// SPDX-License-Identifier: Apache-2.0
// The created_... measurements of perf/user_memory.cpp in MPI: MPI_Win_create, the target sits in a barrier.
#include <algorithm>
#include <numeric>
#include <vector>

#include "../plan.hpp"
#include "mpi.hpp"

namespace {

constexpr int target = 1;
constexpr std::size_t window_bytes = perf::matrix_rows * perf::matrix_columns * sizeof(int);
constexpr std::size_t large_bytes = 64 * perf::kibibyte;

std::uint64_t read(MPI_Win win, MPI_Aint at) {
  std::uint64_t value = 0;
  MPI_Get(&value, 1, MPI_UINT64_T, target, at, 1, MPI_UINT64_T, win);
  MPI_Win_flush_local(target, win);
  return value;
}

void latency(perf::bench& b, MPI_Win win) {
  std::uint64_t last = 0;
  b.points.origin({"created_put_flush", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Put(&i, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
    last = n - 1;
  });
  if (b.first()) perf::require(read(win, 0) == last, "put_flush");
  b.points.origin({"created_get", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) perf::keep(read(win, 0));
  });
}

void put_and_get(perf::bench& b, MPI_Win win, std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
  const std::size_t bytes = from.size_bytes();
  const int count = static_cast<int>(from.size());
  from[0] = bytes;
  b.points.origin({"created_put", bytes, perf::unit::gbs}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Put(from.data(), count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
  });
  b.points.origin({"created_get", bytes, perf::unit::gbs}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Get(to.data(), count, MPI_UINT64_T, target, 0, count, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
  });
  const auto asked = [&](const char* name) { return b.points.wants(name, bytes); };
  if (b.first() && asked("created_put") && asked("created_get"))
    perf::require(std::ranges::equal(from, to), "put, get of a span");
}

void streams(perf::bench& b, MPI_Win win, std::span<std::uint64_t> from, std::span<std::uint64_t> to) {
  constexpr int words = perf::stream_bytes / sizeof(std::uint64_t);
  constexpr std::size_t end = words * perf::stream_operations;
  from[0] = 2;
  const auto point = [&](const char* name) {
    return perf::point{name, perf::stream_bytes, perf::unit::gbs, perf::stream_operations};
  };
  b.points.origin(point("created_put_stream"), [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::size_t at = 0; at < end; at += words)
        MPI_Put(from.data() + at, words, MPI_UINT64_T, target, static_cast<MPI_Aint>(at), words, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
  });
  b.points.origin(point("created_get_stream"), [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::size_t at = 0; at < end; at += words)
        MPI_Get(to.data() + at, words, MPI_UINT64_T, target, static_cast<MPI_Aint>(at), words, MPI_UINT64_T, win);
      MPI_Win_flush(target, win);
    }
  });
  const auto asked = [&](const char* name) { return b.points.wants(name, perf::stream_bytes); };
  if (b.first() && asked("created_put_stream") && asked("created_get_stream"))
    perf::require(std::ranges::equal(from.first(end), to.first(end)), "streams of puts, gets");
}

void bandwidth(perf::bench& b, MPI_Win win) {
  constexpr std::size_t batch = perf::operations_per_flush(8);
  std::vector<std::uint64_t> from_room((large_bytes + perf::page_bytes) / sizeof(std::uint64_t)), to_room(from_room);
  const auto from = perf::part_at(0, from_room), to = perf::part_at(0, to_room);
  std::iota(from.begin(), from.end(), 1);
  b.points.origin({"created_put_rate", 8, perf::unit::mops, batch}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      for (std::size_t k = 0; k < batch; ++k) {
        MPI_Put(from.data() + k, 1, MPI_UINT64_T, target, static_cast<MPI_Aint>(k), 1, MPI_UINT64_T, win);
      }
      MPI_Win_flush(target, win);
    }
  });
  for (const std::size_t bytes : perf::user_memory_bytes) {
    const std::size_t count = bytes / sizeof(std::uint64_t);
    put_and_get(b, win, from.first(count), to.first(count));
  }
  streams(b, win, from, to);
}

void strided(perf::bench& b, MPI_Win win) {
  constexpr std::size_t length = perf::row_lengths[0];
  constexpr int count = static_cast<int>(perf::matrix_rows * length);
  const std::vector<int> from(perf::matrix_rows * length, 7);
  MPI_Datatype columns = MPI_DATATYPE_NULL;
  MPI_Type_vector(static_cast<int>(perf::matrix_rows), static_cast<int>(length), static_cast<int>(perf::matrix_columns),
                  MPI_INT, &columns);
  MPI_Type_commit(&columns);
  b.points.origin({"created_strided_put_rows_8", perf::rows_bytes(length)}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      MPI_Put(from.data(), count, MPI_INT, target, 0, 1, columns, win);
      MPI_Win_flush(target, win);
    }
  });
  constexpr std::size_t row_words = perf::matrix_columns * sizeof(int) / sizeof(std::uint64_t);
  constexpr auto last_row = static_cast<MPI_Aint>((perf::matrix_rows - 1) * row_words);
  if (b.first() && b.points.wants("created_strided_put_rows_8", perf::rows_bytes(length))) {
    perf::require(read(win, last_row) == 0x0000'0007'0000'0007u, "rows");
  }
  MPI_Type_free(&columns);
}

void atomics(perf::bench& b, MPI_Win win) {
  std::uint64_t added = 0;
  const std::uint64_t one = 1;
  if (b.first()) {
    MPI_Put(&added, 1, MPI_UINT64_T, target, 0, 1, MPI_UINT64_T, win);
    MPI_Win_flush(target, win);
  }
  b.points.origin({"created_fetch_and_op", 8}, [&](std::uint64_t n) {
    for (std::uint64_t i = 0; i < n; ++i) {
      std::uint64_t old = 0;
      MPI_Fetch_and_op(&one, &old, MPI_UINT64_T, target, 0, MPI_SUM, win);
      MPI_Win_flush_local(target, win);
      perf::keep(old);
    }
    added += n;
  });
  if (b.first()) perf::require(read(win, 0) == added, "fetch_and_op");
}

}  // namespace

int main(int argc, char** argv) {
  return perf::run(argc, argv, "operations on windows over user memory", 2, [](perf::bench& b) {
    const perf::mpi_window win(window_bytes, perf::mpi_window::memory::of_user);
    if (b.first()) MPI_Win_lock_all(0, win);
    latency(b, win);
    bandwidth(b, win);
    strided(b, win);
    atomics(b, win);
    if (b.first()) MPI_Win_unlock_all(win);
    MPI_Barrier(MPI_COMM_WORLD);
  });
}
