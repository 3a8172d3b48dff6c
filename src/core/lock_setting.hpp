// SPDX-License-Identifier: Apache-2.0
/// \file
/// The value of RMA_LOCK: a protocol, and its options after colons, in any order.
///
///   auto[:deferred]   two-sided[:deferred]   network[:word|:agent|:fompi]   cpu
///   hybrid[:naive|:threshold:K|:adaptive|:pattern|:priority|:native][:home=cpu|:home=network]
#pragma once

#include <cstdint>
#include <string_view>

#include "rma/hints.hpp"

namespace rma::detail {

struct lock_setting {
  lock_protocol protocol = lock_protocol::automatic;
  lock_scheme scheme = lock_scheme::word;
  lock_policy policy = lock_policy::adaptive;
  std::uint32_t threshold = 0;  ///< K of policy `threshold`
  lock_home home = lock_home::cpu;
  bool deferred = false;
};

/// False if the text is no such value; then nothing is changed.
bool parse_lock_setting(std::string_view text, lock_setting& parsed) noexcept;

}  // namespace rma::detail
