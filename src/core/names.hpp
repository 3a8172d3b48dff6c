// SPDX-License-Identifier: Apache-2.0
/// \file
/// Names for messages.
#pragma once

#include <string>
#include <string_view>

#include "rma/detail/view.hpp"
#include "rma/hints.hpp"

namespace rma::detail {
std::string_view name_of(accumulate_mode mode) noexcept;
std::string_view name_of(fence_kind kind) noexcept;
std::string_view name_of(schedule_order order) noexcept;
std::string_view name_of(lock_protocol lock) noexcept;
std::string_view name_of(lock_scheme scheme) noexcept;
std::string_view name_of(call what) noexcept;
/// Escapes a text of the user for a message of one line: control characters become \x1b and the like.
std::string printable(std::string_view text);
/// As the other, for a name, in quotes.
std::string quoted(std::string_view name);
}  // namespace rma::detail
