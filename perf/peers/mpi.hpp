// SPDX-License-Identifier: Apache-2.0
/// \file
/// The harness around MPI, for the programs beside this file. They measure what the programs of the same names one
/// folder up measure, under the same metric names.
#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "../perf.hpp"

namespace perf {

struct bench {
  session& points;

  [[nodiscard]] int rank() const { return points.with().rank; }
  [[nodiscard]] int ranks() const { return points.with().size; }
  [[nodiscard]] bool first() const { return points.with().rank == 0; }
};

/// A window over so many bytes of each rank, zeroed; displacements count 8 bytes.
class mpi_window {
 public:
  enum class memory : std::uint8_t { of_mpi, of_user };
  explicit mpi_window(std::size_t bytes, memory kind = memory::of_mpi, int displacement_unit = 8);
  mpi_window(const mpi_window&) = delete;
  mpi_window& operator=(const mpi_window&) = delete;
  ~mpi_window();

  operator MPI_Win() const noexcept { return win_; }  // NOLINT: meant to be implicit
  template <class T>
  [[nodiscard]] T* data() const noexcept {
    return static_cast<T*>(base_);
  }

 private:
  MPI_Win win_ = MPI_WIN_NULL;
  void* base_ = nullptr;
  memory kind_;
};

/// The whole main() of a peer's benchmark; see perf::run in bench.hpp.
int run(int argc, char** argv, const char* summary, int ranks, const std::function<void(bench&)>& measure);

}  // namespace perf
