// SPDX-License-Identifier: Apache-2.0
/// \file
/// The text of a LockChoice: the value of RMA_LOCK.
#pragma once

#include <string_view>

#include "rma/hints.hpp"

namespace rma::detail {

/// The values of RMA_LOCK, as its error message names them.
constexpr std::string_view lock_values =
    "auto[:deferred], two-sided[:deferred], network[:word|:agent|:fompi], cpu, "
    "hybrid[:naive|:threshold:K|:adaptive|:pattern|:priority|:native][:home=cpu|:home=network]";

/// False if the text is no such value; then nothing is changed.
bool parse_lock(std::string_view text, LockChoice& parsed) noexcept;

}  // namespace rma::detail
