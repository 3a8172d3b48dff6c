// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace rma::detail {

/// How often scheme "toy" has been started in this process.
inline int& toy_starts() noexcept {
  static int starts = 0;
  return starts;
}

}  // namespace rma::detail
