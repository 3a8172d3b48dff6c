// SPDX-License-Identifier: Apache-2.0
/// \file
/// The last step of a runtime: messages of successful calls must be delivered, however late their receivers make
/// progress.
#include <cstdio>
#include <limits>
#include <mutex>
#include <string>

#include "channel/context.hpp"

namespace rma::detail {
namespace {

constexpr std::int64_t at_no_time_ns = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t failed_ns = 2'000'000'000;  // time limit of a runtime that ends by an exception

}  // namespace

void context::drain(bool in_good_order) noexcept {
  const std::int64_t begin_ns = around_.now_ns();
  const std::int64_t until_ns = in_good_order ? at_no_time_ns : begin_ns + failed_ns;
  std::int64_t told_at_ns = stall_report_ns_ == 0 || !in_good_order ? at_no_time_ns : begin_ns + stall_report_ns_;
  const auto all_gone = [&]() noexcept {
    const std::lock_guard guard(lock_);
    const bool quiet = wide_ == nullptr || wide_->as_liveness().quiet();
    if (waiting_.empty() && ack_sources_.empty() && quiet && !may_be_asked()) return true;
    const std::int64_t now_ns = around_.now_ns();
    if (now_ns > told_at_ns) {
      told_at_ns = at_no_time_ns;
      tell_undelivered((now_ns - begin_ns) / 1'000'000'000);
    }
    return now_ns > until_ns;
  };
  (void)wait({.until = all_gone});
}

// The caller holds the lock.
void context::tell_undelivered(std::int64_t waited_s) noexcept {
  std::string ranks;
  for (const int rank : waiting_) ranks += (ranks.empty() ? "" : ", ") + std::to_string(rank);
  if (ranks.empty()) ranks = "a rank of another node";
  std::fprintf(stderr,
               "rma: rank %d leaves the job, and has waited for %lld s until what its calls have sent is taken by: %s; "
               "Runtime::abort ends a job that does not want it\n",
               rank(), static_cast<long long>(waited_s), ranks.c_str());
}

}  // namespace rma::detail
