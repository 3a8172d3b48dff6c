// SPDX-License-Identifier: Apache-2.0
/// \file
/// A session asks PMIx this.
///
///   PMIx_Init -> rank, size, ranks on this node
///   rank 0: PMIx_Put; all: PMIx_Fence_nb that collects, PMIx_Get
///   any rank, later: PMIx_Query_info_nb for process sets (pmix_sets.cpp)
///   PMIx_Abort; at the process's end PMIx_Finalize
#pragma once

#include <pmix.h>

#include <string>
#include <string_view>
#include <vector>

#include "boot/introduction.hpp"
#include "boot/pmix_calls.hpp"

namespace rma::boot {

/// The launcher's view of this process. It lasts until the process ends, where PMIx is told so: PMIx 4 does not stand
/// being started twice, and MPI may want it later.
class pmix_session final : public introduction {
 public:
  /// Throws Error(bad_boot).
  pmix_session();

  [[nodiscard]] int rank() const noexcept override { return static_cast<int>(me_.rank); }
  [[nodiscard]] int size() const noexcept override { return size_; }
  [[nodiscard]] bool one_node() override { return number(PMIX_LOCAL_SIZE) == size_; }
  std::string from_rank_0(const std::string& text, int timeout_s) override;
  [[nodiscard]] std::vector<std::string> process_sets(int timeout_s) const override;
  [[nodiscard]] std::vector<int> members_of(const std::string& set, int timeout_s) const override;
  void abort(int code, std::string_view message) noexcept override;

 private:
  [[noreturn]] void reject(const char* what, pmix_status_t why) const;
  void check(const char* what, pmix_status_t s) const;
  void meet(int timeout_s) const;
  int number(const char* key) const;
  unsigned next_round() const;

  pmix_calls pmix_;
  pmix_proc_t me_{};
  int size_ = 0;
};

}  // namespace rma::boot
