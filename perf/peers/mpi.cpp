// SPDX-License-Identifier: Apache-2.0
#include "mpi.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <new>
#include <string>

namespace perf {
namespace {

job job_of(std::uint64_t* line) {
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
  with.line = line;
  return with;
}

/// A page that ranks 0 and 1 map, for the probe of the machine. Not from MPI: the component that is measured need not
/// be able to share memory.
class shared_line {
 public:
  shared_line() {
    int rank = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    int file = rank == 0 ? memfd_create("line", MFD_CLOEXEC) : -1;
    const bool sized = file >= 0 && ftruncate(file, bytes) == 0;
    std::array<int, 2> where{getpid(), sized ? file : -1};
    MPI_Bcast(where.data(), 2, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank != 0) file = open(fmt::format("/proc/{}/fd/{}", where[0], where[1]).c_str(), O_RDWR | O_CLOEXEC);
    if (file >= 0) page_ = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    if (file >= 0) close(file);
    int usable = page_ != MAP_FAILED ? 1 : 0;
    MPI_Allreduce(MPI_IN_PLACE, &usable, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    usable_ = usable != 0;
  }
  shared_line(const shared_line&) = delete;
  shared_line& operator=(const shared_line&) = delete;
  ~shared_line() {
    if (page_ != MAP_FAILED) munmap(page_, bytes);
  }
  /// Null if some rank has no such page.
  [[nodiscard]] std::uint64_t* word() const noexcept { return usable_ ? static_cast<std::uint64_t*>(page_) : nullptr; }

 private:
  static constexpr std::size_t bytes = 4096;
  void* page_ = MAP_FAILED;
  bool usable_ = false;
};

void measure_all(const options& chosen, const std::string& program, const std::function<void(bench&)>& measure) {
  const shared_line line;
  session points(chosen, job_of(line.word()), program);
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
