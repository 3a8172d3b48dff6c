// SPDX-License-Identifier: Apache-2.0
/// \file
/// The signature of a collective in messages and flags, in 31 bits: call, operator, element type and root.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <string>

#include "rma/detail/collective_call.hpp"

namespace rma::detail::coll {

[[nodiscard]] std::int32_t signature_of(const collective_call& c) noexcept;
/// "allreduce (sum of f64)", "broadcast with root 3".
[[nodiscard]] std::string text_of_signature(std::int32_t signature);

/// A call of this member, for reports to members that have made a different one.
struct call_record {
  std::uint64_t turn = 0;  ///< its number among the team's collectives
  std::int32_t signature = 0;
  std::source_location where{};
};
/// "solver.cpp:31"; "a try_ form" if the place is not known.
[[nodiscard]] std::string text_of_place(const std::source_location& where);

}  // namespace rma::detail::coll
