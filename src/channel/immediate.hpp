// SPDX-License-Identifier: Apache-2.0
/// \file
/// Immediates of writes: the two top bits name the user of the other thirty.
#pragma once

#include <cstddef>
#include <cstdint>

namespace rma::detail {

enum class immediate_user : std::uint8_t {
  fence,
  messages,  ///< point-to-point messages
  collectives,
  program,
  count_
};

constexpr unsigned immediate_value_bits = 30;
constexpr std::uint32_t immediate_value_max = (std::uint32_t{1} << immediate_value_bits) - 1;
constexpr std::size_t immediate_users = static_cast<std::size_t>(immediate_user::count_);
static_assert(immediate_users == std::size_t{1} << (32 - immediate_value_bits));

constexpr std::uint32_t immediate_of(immediate_user user, std::uint32_t value) noexcept {
  return static_cast<std::uint32_t>(user) << immediate_value_bits | value;
}
constexpr immediate_user user_of_immediate(std::uint32_t immediate) noexcept {
  return static_cast<immediate_user>(immediate >> immediate_value_bits);
}
constexpr std::uint32_t value_of_immediate(std::uint32_t immediate) noexcept { return immediate & immediate_value_max; }

static_assert(user_of_immediate(immediate_of(immediate_user::program, immediate_value_max)) == immediate_user::program);
static_assert(value_of_immediate(immediate_of(immediate_user::program, immediate_value_max)) == immediate_value_max);

}  // namespace rma::detail
