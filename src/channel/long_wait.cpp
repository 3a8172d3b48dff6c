// SPDX-License-Identifier: Apache-2.0
#include "channel/long_wait.hpp"

#include <limits>
#include <string>

#include "channel/context.hpp"

namespace rma::detail {

void long_wait::speak(std::int64_t now_ns) noexcept {
  const std::int64_t every_ns = ctx_.stall_report_ns();
  const std::int64_t lasted_ns = now_ns - begin_ns_;
  ctx_.around().say_where(ctx_.where());  // repeated, since another thread of this rank may have cleared it
  said_ = true;
  if (every_ns == 0) {
    due_ns_ = std::numeric_limits<std::int64_t>::max();
  } else if (lasted_ns < every_ns) {
    due_ns_ = begin_ns_ + every_ns;
  } else {
    ctx_.around().tell_stall(lasted_ns, every_ns);
    due_ns_ = now_ns + lasted_ns;
  }
}

void long_wait::fall_silent() noexcept { ctx_.around().say_where({}); }

}  // namespace rma::detail
