// SPDX-License-Identifier: Apache-2.0
/// \file
/// The context as the fabrics' directory: where a rank is that this one has not met.
#include <fmt/format.h>

#include <algorithm>

#include "channel/context.hpp"

namespace rma::detail {

status context::look_up(int rank, std::string_view key, std::string& value) noexcept {
  const std::lock_guard guard(news_lock_);  // the client is for one thread at a time
  const status s = boot_.get(key, value);
  const bool nobody_answers = s == status::bad_boot || s == status::fabric_lost;
  if (!nobody_answers || !boot_.rank_0_serves()) return s;
  if (std::find(dead_.begin(), dead_.end(), rank) == dead_.end()) {
    unmet_.push_back(rank);
    no_address_ = s;
    mark_dead(rank);
  }
  set_last_failed(rank);
  return status::peer_failed;
}

std::string context::why_failed(int rank) {
  const std::lock_guard guard(news_lock_);
  if (std::find(unmet_.begin(), unmet_.end(), rank) == unmet_.end())
    return fmt::format("world rank {} is dead or has left the job", rank);
  return fmt::format(
      "world rank {} cannot be met for the first time: its address is with the job's server in the process of rank 0, "
      "which {}; let rank 0 stay until all have met, or start the ranks with rmarun",
      rank,
      no_address_ == status::fabric_lost ? "has ended"
                                         : "has not answered for RMA_BOOT_TIMEOUT_MS (is that process stopped?)");
}

}  // namespace rma::detail
