// SPDX-License-Identifier: Apache-2.0
#include "mpi.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>
#include <utility>

#include "../shared_line.hpp"

namespace perf {
namespace {

job job_of_world() {
  job with;
  MPI_Comm_rank(MPI_COMM_WORLD, &with.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &with.size);
  with.fabric = "mpi";
  with.barrier = [] { MPI_Barrier(MPI_COMM_WORLD); };
  with.from_first = [](std::uint64_t value) {
    MPI_Bcast(&value, 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
    return value;
  };
  with.highest = [](double value) {
    MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return value;
  };
  with.now = [] {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  };
  return with;
}

void measure_all(const options& chosen, const std::string& program, const std::function<void(bench&)>& measure) {
  job with_mpi = job_of_world();
  const shared_line line(with_mpi);
  with_mpi.line = line.word();
  session points(chosen, std::move(with_mpi), program);
  bench with{points};
  measure(with);
  points.finish();
}

}  // namespace

mpi_window::mpi_window(std::size_t bytes, memory kind, int displacement_unit) : kind_(kind) {
  const auto size = static_cast<MPI_Aint>(bytes);
  if (kind == memory::of_mpi) {
    MPI_Win_allocate(size, displacement_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &base_, &win_);
  } else {
    constexpr std::size_t page = 4096;
    base_ = std::aligned_alloc(page, (bytes + page - 1) / page * page);
    if (base_ == nullptr) throw std::bad_alloc();
    MPI_Win_create(base_, size, displacement_unit, MPI_INFO_NULL, MPI_COMM_WORLD, &win_);
  }
  std::memset(base_, 0, bytes);
  MPI_Barrier(MPI_COMM_WORLD);
}

mpi_window::~mpi_window() {
  MPI_Win_free(&win_);
  if (kind_ == memory::of_user) std::free(base_);
}

int run(int argc, char** argv, const char* summary, int ranks, const std::function<void(bench&)>& measure) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int size = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  int status = 0;
  try {
    const options chosen = parse(argc, argv, summary, rank != 0);
    const std::string program = std::filesystem::path(argv[0]).filename().string();
    if (size < ranks) {
      fmt::print(stderr, "{} needs {} ranks\n", program, ranks);
      MPI_Abort(MPI_COMM_WORLD, 2);
    }
    if (chosen.pin) pin(rank, size);
    measure_all(chosen, program, measure);
  } catch (const exit_now& early) {
    status = early.status;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return status;
}

}  // namespace perf
