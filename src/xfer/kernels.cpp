// SPDX-License-Identifier: Apache-2.0
#include "xfer/kernels.hpp"

#include "datatype/string_copy.hpp"
#include "xfer/kernels_tables.hpp"

namespace rma::detail {
namespace {

constexpr kernel_table baseline_table{baseline::bulk.rows, baseline::fetch_bulk.rows, atomic_kernels.rows,
                                      fetch_atomic_kernels.rows, "baseline"};
#if defined(__x86_64__)
constexpr kernel_table avx2_table{avx2::bulk.rows, avx2::fetch_bulk.rows, atomic_kernels.rows,
                                  fetch_atomic_kernels.rows, "avx2"};
constexpr kernel_table avx512_table{avx512::bulk.rows, avx512::fetch_bulk.rows, atomic_kernels.rows,
                                    fetch_atomic_kernels.rows, "avx512"};

bool has_avx2() noexcept { return __builtin_cpu_supports("avx2") != 0; }

bool has_avx512() noexcept {
  return __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
         __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0;
}
#endif

}  // namespace

const kernel_table* kernels_for(kernel_isa isa) noexcept {
#if defined(__x86_64__)
  if (isa == kernel_isa::avx2) return has_avx2() ? &avx2_table : nullptr;
  if (isa == kernel_isa::avx512) return has_avx512() ? &avx512_table : nullptr;
#endif
  return isa == kernel_isa::baseline ? &baseline_table : nullptr;
}

const kernel_table& kernels_for_this_cpu() noexcept {
#if defined(__x86_64__)
  if (has_avx512() && moves_64_at_once()) return avx512_table;
  if (has_avx2()) return avx2_table;
#endif
  return baseline_table;
}

}  // namespace rma::detail
