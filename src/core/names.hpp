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
/// Text of the user's for a message, which stays one line: control characters are written as \x1b.
std::string printable(std::string_view text);
/// The same for the name of something, in quotes.
std::string quoted(std::string_view name);
}  // namespace rma::detail
