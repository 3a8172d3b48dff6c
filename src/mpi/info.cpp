// SPDX-License-Identifier: Apache-2.0
#include "mpi/info.hpp"

#include <array>
#include <charconv>
#include <string_view>

namespace rma::mpi {
namespace {

/// Returns an empty string if the key is missing.
std::string value_of(MPI_Info info, const char* key) {
  std::array<char, MPI_MAX_INFO_VAL + 1> value{};
  int is_there = 0;
  PMPI_Info_get(info, key, MPI_MAX_INFO_VAL, value.data(), &is_there);
  return is_there != 0 ? value.data() : "";
}

bool is_true(MPI_Info info, const char* key) { return value_of(info, key) == "true"; }

std::size_t number_in(MPI_Info info, const char* key) {
  const std::string value = value_of(info, key);
  std::size_t number = 0;
  const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
  return read.ec == std::errc() && read.ptr == value.data() + value.size() ? number : 0;
}

}  // namespace

window_info info_of(MPI_Info info) {
  if (info == MPI_INFO_NULL) return {};
  return {.no_locks = is_true(info, "no_locks"),
          .same_disp_unit = is_true(info, "same_disp_unit"),
          .noncontiguous = is_true(info, "alloc_shared_noncontig"),
          .granularity_bytes = number_in(info, "mpi_accumulate_granularity")};
}

}  // namespace rma::mpi
